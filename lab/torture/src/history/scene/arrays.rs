//! Leaf arrays, of leaves and of pairs, that gain or lose entries; and values in place.

use crate::history::Maker;
use crate::map::{Bytes, Op};

impl Maker {
    /// Keys that are too long for pairs, in no order.
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

    /// Inserts the first `there` keys; the others are planned.
    fn insert_and_plan(&mut self, keys: Vec<Bytes>, there: usize, ops: &mut Vec<Op>) {
        for (number, key) in keys.into_iter().enumerate() {
            if number < there {
                self.insert(key, ops);
            } else {
                self.plan_insert(key);
            }
        }
    }

    /// Inserts the keys and removes all but `left`; the removal of the others is planned.
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

    /// Pairs in ascending order. Each byte but one in four has two keys: they are as close together as may be in one
    /// array, and so make it grow soon, and the largest of all with few keys.
    fn dense_keys(&mut self, count: u64) -> Vec<Bytes> {
        // Of any bytes, or of text.
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
                // A reader that looks at once may meet it on its way.
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
            // One line of the largest array has no room for as many as begin with these bytes.
            0 => {
                for last in 0..40 {
                    self.plan_insert([first, keys[0][1], b'n', last].into());
                }
            }
            // A key that is too long.
            1 => self.plan_insert([first; 12].into()),
            // A value that is.
            _ => {
                let key = self.random.pick(&keys).clone();
                self.plan.push_back(Op::Upsert(key, [7; 20][..].into()));
            }
        }
        // And keys that part from all the others, or end where these do.
        self.keys.extend([Bytes::from([first]), [first, 7, 7, 7].into()]);
        self.odd_values = self.random.below(2) == 0;
    }
}
