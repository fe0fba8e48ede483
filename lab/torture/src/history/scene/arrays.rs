//! Scenes of leaf arrays and inline leaf arrays that gain or lose entries, and of values stored in place.

use crate::history::Maker;
use crate::map::{Bytes, Op};

impl Maker {
    /// Returns keys that are too long for pairs, shuffled.
    fn long_keys(&mut self, count: u64) -> Vec<Bytes> {
        let first = self.random.below(256) as u8;
        let tail = *self.random.pick(&[7, 30]);
        let key = |number: u64| {
            let mut key = vec![first, (number as u8).wrapping_mul(37), number as u8];
            key.extend(std::iter::repeat_n(b'~', tail));
            Bytes::from(key)
        };
        let mut keys: Vec<Bytes> = (0..count).map(key).collect();
        self.shuffle(&mut keys);
        self.keys.extend(keys.iter().cloned());
        keys
    }

    pub(super) fn leaves(&mut self, there: usize, ops: &mut Vec<Op>) {
        let keys = self.long_keys(72);
        self.insert_and_plan(keys, there, ops);
    }

    pub(super) fn fewer_leaves(&mut self, made: u64, left: u64, ops: &mut Vec<Op>) {
        let keys = self.long_keys(made);
        self.make_and_remove(keys, left, ops);
    }

    /// Inserts the first `there` keys, and plans the insertion of the others.
    fn insert_and_plan(&mut self, keys: Vec<Bytes>, there: usize, ops: &mut Vec<Op>) {
        for (number, key) in keys.into_iter().enumerate() {
            if number < there {
                self.insert(key, ops);
            } else {
                self.plan_insert(key);
            }
        }
    }

    /// Inserts the keys, removes all but `left` of them, and plans the removal of those.
    fn make_and_remove(&mut self, mut keys: Vec<Bytes>, left: u64, ops: &mut Vec<Op>) {
        for key in &keys {
            self.insert(key.clone(), ops);
        }
        self.shuffle(&mut keys);
        let planned = keys.split_off(keys.len() - left as usize);
        for key in keys {
            self.present.retain(|other| *other != key);
            ops.push(Op::Remove(key));
        }
        self.plan.extend(planned.into_iter().map(Op::Remove));
    }

    /// Returns keys of pairs in ascending order. Three of four second bytes have two keys each: the keys crowd
    /// together in one array, so that it grows soon, and few keys make it reach its largest size.
    fn dense_keys(&mut self, count: u64) -> Vec<Bytes> {
        // Arbitrary bytes, or text.
        let (first, least) = *self.random.pick(&[(b'p', 0), (b'p', 40), (0, 150), (255, 64)]);
        let key = |number: u64| {
            let (byte, second) = (number / 7 * 4 + number % 7 / 2, number % 7 % 2);
            let mut key = vec![first, least + byte as u8];
            key.extend((second > 0).then_some(b's'));
            Bytes::from(key)
        };
        let keys: Vec<Bytes> = (0..count).map(key).collect();
        self.keys.extend(keys.iter().cloned());
        keys
    }

    pub(super) fn pairs(&mut self, there: usize, ops: &mut Vec<Op>) {
        self.odd_values = false;
        let keys = self.dense_keys(84);
        self.insert_and_plan(keys, there, ops);
    }

    pub(super) fn fewer_pairs(&mut self, made: u64, left: u64, ops: &mut Vec<Op>) {
        self.odd_values = false;
        let keys = self.dense_keys(made);
        self.make_and_remove(keys, left, ops);
    }

    pub(super) fn words(&mut self, there: u64, ops: &mut Vec<Op>) {
        self.odd_values = false;
        let key = |i: u64| Bytes::from(i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        for i in 0..there {
            self.insert(key(i), ops);
        }
        self.keys.extend((0..there + 40).map(key));
        for i in 0..there / 2 {
            let place = self.random.below(there);
            let value = self.value();
            if i % 3 == 0 {
                self.plan.push_back(Op::Remove(key(place)));
            } else {
                // A concurrent reader may meet the update in progress.
                self.plan.push_back(Op::Update(key(place), value));
                self.plan.push_back(Op::Get(key(place)));
            }
        }
    }

    pub(super) fn odd_pairs(&mut self, ops: &mut Vec<Op>) {
        self.odd_values = false;
        let there = *self.random.pick(&[3, 20, 30, 60]);
        let keys = self.dense_keys(there);
        for key in &keys {
            self.insert(key.clone(), ops);
        }
        let first = keys[0][0];
        match self.random.below(3) {
            // More keys with these two first bytes than one line of the largest array holds.
            0 => {
                for last in 0..40 {
                    self.plan_insert([first, keys[0][1], b'n', last].into());
                }
            }
            // A key too long for a pair.
            1 => self.plan_insert([first; 12].into()),
            // A value too long for a pair.
            _ => {
                let key = self.random.pick(&keys).clone();
                self.plan.push_back(Op::Upsert(key, [7; 20][..].into()));
            }
        }
        // Keys that diverge from all others, or are a prefix of them.
        self.keys.extend([Bytes::from([first]), [first, 7, 7, 7].into()]);
        self.odd_values = self.random.below(2) == 0;
    }
}
