//! Scenes: what a history of a map finds prepared, and what it is to change about it.
//!
//! Each brings some structure to the brink of a change of shape, for all indexes alike: an index that has no such structure
//! meets operations like any others. Seeds take the scenes in turn.

use super::Maker;
use crate::map::{Bytes, Op};

/// What is prepared.
#[derive(Clone, Copy, Debug)]
enum Scene {
    /// Nothing; so many keys of all sorts.
    Mixed(usize),
    /// Nothing; keys that are prefixes of each other, and long common ones.
    Chains,
    /// A node of about as many children as some kind of node holds, sometimes emptied in part.
    Brink,
    /// A node with so many children, which gets more.
    Grow(u64),
    /// A node that was made with so many children and has so many left, with so many keys below them; it loses some.
    Shrink { made: u64, left: u64, keys: u64 },
    /// A node with so many children, and another one that comes and goes while it is looked for.
    Blink(u64),
    /// A node far below the one above it; keys that part on the way come and go.
    Part,
    /// So many leaves below one byte, which become more than one leaf array holds.
    Leaves(usize),
    /// So many of them, of which so many are left, which become few.
    FewerLeaves(u64, u64),
    /// So many short keys with values of eight bytes, which become more; as dense as makes inline leaf arrays of every size.
    Pairs(usize),
    /// So many of them, of which so many are left, which become few.
    FewerPairs(u64, u64),
    /// So many keys and values of eight bytes, which indexes of such keep in place; values change and are looked at, keys come and go.
    Words(u64),
    /// Pairs, to which come keys or values that are no pairs, and pairs that have no room together.
    OddPairs,
}

/// How many scenes there are: odd, so that histories of one to four threads in turn see each with each number.
pub const SCENES: usize = ALL.len();

const ALL: [Scene; 29] = [
    Scene::Brink,
    Scene::Pairs(26),
    Scene::Shrink {
        made: 17,
        left: 14,
        keys: 44,
    },
    Scene::Mixed(60),
    Scene::Grow(16),
    Scene::FewerPairs(70, 38),
    Scene::Part,
    Scene::Grow(48),
    Scene::Leaves(1),
    Scene::Shrink {
        made: 49,
        left: 42,
        keys: 60,
    },
    Scene::OddPairs,
    Scene::Chains,
    Scene::Pairs(60),
    Scene::Grow(4),
    // Few enough for one leaf array.
    Scene::Shrink {
        made: 4,
        left: 4,
        keys: 33,
    },
    Scene::FewerLeaves(64, 28),
    // Too many for that.
    Scene::Shrink {
        made: 6,
        left: 5,
        keys: 50,
    },
    Scene::Mixed(6),
    Scene::FewerPairs(34, 9),
    // A node below a node with one more child.
    Scene::Shrink {
        made: 2,
        left: 2,
        keys: 72,
    },
    Scene::Leaves(40),
    Scene::Pairs(0),
    Scene::FewerLeaves(30, 18),
    Scene::FewerPairs(52, 20),
    Scene::FewerPairs(30, 5),
    Scene::Words(70),
    Scene::Words(30),
    Scene::Blink(5),
    Scene::Blink(17),
];

/// Children at which trees of this family change the kind of a node, or nearly.
const BRINKS: [u64; 10] = [1, 2, 4, 5, 12, 16, 17, 40, 48, 49];

/// More leaves than one leaf array holds, so that there is a node at all.
const MANY: u64 = 66;

/// Keys below one node: a prefix, a byte for the child, and what tells the leaves below a child apart.
struct Below {
    prefix: Vec<u8>,
    first: u8,
}

impl Below {
    fn key(&self, child: u64, leaf: u64) -> Bytes {
        let mut key = self.prefix.clone();
        key.push(self.first.wrapping_add((child as u8).wrapping_mul(37)));
        if leaf > 0 {
            key.extend([b'-', leaf as u8]);
        }
        key.into()
    }
}

impl Maker {
    /// Prepares a scene, by these operations and those that are planned.
    pub(super) fn prepare(&mut self, scene: usize, ops: &mut Vec<Op>) {
        match ALL[scene] {
            Scene::Mixed(count) => self.mixed_keys(count),
            Scene::Chains => self.chains(),
            Scene::Brink => self.brink(ops),
            Scene::Grow(children) => self.grow(children, ops),
            Scene::Shrink { made, left, keys } => self.shrink(made, left, keys, ops),
            Scene::Blink(children) => self.blink(children, ops),
            Scene::Part => self.part(ops),
            Scene::Leaves(there) => self.leaves(there, ops),
            Scene::FewerLeaves(made, left) => self.fewer_leaves(made, left, ops),
            Scene::Pairs(there) => self.pairs(there, ops),
            Scene::FewerPairs(made, left) => self.fewer_pairs(made, left, ops),
            Scene::Words(there) => self.words(there, ops),
            Scene::OddPairs => self.odd_pairs(ops),
        }
    }

    fn insert(&mut self, key: Bytes, ops: &mut Vec<Op>) {
        let value = self.value();
        self.present.push(key.clone());
        ops.push(Op::Insert(key, value));
    }

    fn plan_insert(&mut self, key: Bytes) {
        let value = self.value();
        self.plan.push_back(Op::Insert(key, value));
    }

    fn shuffle(&mut self, keys: &mut [Bytes]) {
        for i in (1..keys.len()).rev() {
            keys.swap(i, self.random.below(i as u64 + 1) as usize);
        }
    }

    fn mixed_keys(&mut self, count: usize) {
        self.keys.push([].into());
        while self.keys.len() < count {
            let len = match self.random.below(10) {
                0 => self.random.below(3),
                1 => 9 + self.random.below(80),
                _ => 1 + self.random.below(9),
            };
            let alphabet: &[u8] = if self.random.below(4) == 0 {
                &[0, 1, 127, 128, 255]
            } else {
                b"abc"
            };
            let key: Vec<u8> = (0..len).map(|_| *self.random.pick(alphabet)).collect();
            self.keys.push(key.into());
        }
    }

    fn chains(&mut self) {
        let long: Vec<u8> = (0..120).map(|_| self.random.below(3) as u8).collect();
        for _ in 0..40 {
            let at = self.random.below(long.len() as u64) as usize;
            let mut key = long[..at].to_vec();
            if self.random.below(2) == 0 {
                key.push(self.random.below(256) as u8);
                key.extend(&long[..(self.random.below(4) as usize)]);
            }
            self.keys.push(key.into());
        }
    }

    fn below(&mut self, lengths: &[u64]) -> Below {
        let len = *self.random.pick(lengths);
        Below {
            prefix: (0..len).map(|_| self.random.below(256) as u8).collect(),
            first: self.random.below(256) as u8,
        }
    }

    /// What there is to choose from below a node of so many children: neighbours of what is there, and new children; keys
    /// that part from the prefix; and the key that ends where the others part.
    fn keys_around(&mut self, below: &Below, children: u64) {
        for child in 0..children + 8 {
            let leaf = 1 + self.random.below(6);
            self.keys.push(below.key(child, leaf));
            self.keys.push(below.key(child, 0));
        }
        for _ in 0..4 {
            let at = self.random.below(below.prefix.len() as u64 + 1) as usize;
            let mut other = below.prefix[..at].to_vec();
            other.push(self.random.below(256) as u8);
            self.keys.push(other.into());
        }
        self.keys.push(below.prefix.clone().into());
    }

    fn brink(&mut self, ops: &mut Vec<Op>) {
        let children = *self.random.pick(&BRINKS);
        let below = self.below(&[0, 1, 3, 12]);
        let leaves = *self.random.pick(&[20, MANY, MANY, 80]);
        for number in 0..leaves {
            self.insert(below.key(number % children, number / children), ops);
        }
        self.keys_around(&below, children);
        // A removal of most of it sometimes comes before.
        if self.random.below(3) == 0 {
            while self.present.len() as u64 > children.max(34) + 2 {
                let at = self.random.below(self.present.len() as u64) as usize;
                ops.push(Op::Remove(self.present.swap_remove(at)));
            }
        }
    }

    fn grow(&mut self, children: u64, ops: &mut Vec<Op>) {
        let below = self.below(&[1, 3, 12]);
        for number in 0..MANY {
            self.insert(below.key(number % children, number / children), ops);
        }
        self.keys_around(&below, children);
        for child in children..children + 4 {
            self.plan_insert(below.key(child, 0));
        }
    }

    fn shrink(&mut self, made: u64, left: u64, keys: u64, ops: &mut Vec<Op>) {
        let below = self.below(&[1, 3, 12]);
        // The first few children have one key each; the others share the rest.
        let lone = (left / 2).min(3);
        let child = |number: u64| match number.checked_sub(lone) {
            None => (number, 0),
            Some(number) => (lone + number % (made - lone), number / (made - lone)),
        };
        for number in 0..keys.max(MANY + made - left) {
            let (child, leaf) = child(number);
            self.insert(below.key(child, leaf), ops);
        }
        let stays = |number: &u64| child(*number).0 < left;
        let mut gone: Vec<Bytes> = Vec::new();
        let mut kept = 0;
        for number in 0..self.present.len() as u64 {
            if stays(&number) && kept < keys {
                kept += 1;
            } else {
                let (child, leaf) = child(number);
                gone.push(below.key(child, leaf));
            }
        }
        for key in gone {
            self.present.retain(|other| *other != key);
            ops.push(Op::Remove(key));
        }
        self.keys_around(&below, left);
        for child in 0..lone {
            self.plan.push_back(Op::Remove(below.key(child, 0)));
        }
    }

    fn blink(&mut self, children: u64, ops: &mut Vec<Op>) {
        let below = self.below(&[1, 3, 12]);
        for number in 0..MANY {
            self.insert(below.key(number % children, number / children), ops);
        }
        self.keys_around(&below, children);
        let key = below.key(children, 0);
        for _ in 0..8 {
            self.plan_insert(key.clone());
            self.plan.push_back(Op::Get(key.clone()));
            self.plan.push_back(Op::Remove(key.clone()));
            self.plan.push_back(Op::Get(key.clone()));
        }
    }

    fn part(&mut self, ops: &mut Vec<Op>) {
        let below = self.below(&[4, 12, 40]);
        let children = *self.random.pick(&BRINKS);
        for number in 0..MANY {
            self.insert(below.key(number % children, number / children), ops);
        }
        self.keys_around(&below, children);
        let prefix = &below.prefix;
        let mut parting: Vec<Bytes> = Vec::new();
        for at in 1..prefix.len() {
            let mut key = prefix[..at].to_vec();
            key.extend([prefix[at] ^ 0x55, b'+']);
            parting.push(key.into());
        }
        parting.push(prefix[..prefix.len() - 1].into());
        self.shuffle(&mut parting);
        parting.truncate(8);
        for key in parting.clone() {
            self.plan_insert(key);
        }
        self.shuffle(&mut parting);
        self.plan.extend(parting.into_iter().map(Op::Remove));
    }

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

    fn leaves(&mut self, there: usize, ops: &mut Vec<Op>) {
        let keys = self.long_keys(72);
        self.insert_and_plan(keys, there, ops);
    }

    fn fewer_leaves(&mut self, made: u64, left: u64, ops: &mut Vec<Op>) {
        let keys = self.long_keys(made);
        self.make_and_remove(keys, left, ops);
    }

    /// Inserts the first so many keys; the others are planned.
    fn insert_and_plan(&mut self, keys: Vec<Bytes>, there: usize, ops: &mut Vec<Op>) {
        for (number, key) in keys.into_iter().enumerate() {
            if number < there {
                self.insert(key, ops);
            } else {
                self.plan_insert(key);
            }
        }
    }

    /// Inserts the keys and removes all but so many; the removal of the others is planned.
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

    fn pairs(&mut self, there: usize, ops: &mut Vec<Op>) {
        self.odd_values = false;
        let keys = self.dense_keys(84);
        self.insert_and_plan(keys, there, ops);
    }

    fn fewer_pairs(&mut self, made: u64, left: u64, ops: &mut Vec<Op>) {
        self.odd_values = false;
        let keys = self.dense_keys(made);
        self.make_and_remove(keys, left, ops);
    }

    fn words(&mut self, there: u64, ops: &mut Vec<Op>) {
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
                // Who looks at once may meet it on its way.
                self.plan.push_back(Op::Update(key(place), value));
                self.plan.push_back(Op::Get(key(place)));
            }
        }
    }

    fn odd_pairs(&mut self, ops: &mut Vec<Op>) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::of_map;

    /// Every scene makes a history of as many watched operations as were asked for.
    #[test]
    fn scenes_make_histories() {
        for seed in 0..4 * SCENES as u64 {
            let history = of_map(seed, 100, 1 + seed as u32 % 4);
            assert!(
                history.ops.len() - history.prepared as usize >= 100,
                "seed {seed}"
            );
            assert_eq!(history.threads, 1 + seed as u32 % 4);
        }
        assert!(!SCENES.is_multiple_of(2));
    }

    /// A node that is to shrink has what it is to have left.
    #[test]
    fn what_shrinks_has_as_many_left() {
        for (seed, scene) in (0..).zip(ALL) {
            let Scene::Shrink { left, keys, .. } = scene else {
                continue;
            };
            let history = of_map(seed, 0, 1);
            let mut there = std::collections::BTreeSet::new();
            for op in &history.ops {
                match op {
                    Op::Remove(key) => assert!(there.remove(key), "{scene:?}"),
                    op => assert!(there.insert(op.key()), "{scene:?}"),
                }
            }
            let prefix = there.iter().map(|key| key.len()).min().unwrap_or_default();
            let children: std::collections::BTreeSet<u8> = there.iter().map(|key| key[prefix - 1]).collect();
            assert_eq!(
                (children.len() as u64, there.len() as u64),
                (left, keys),
                "{scene:?}"
            );
        }
    }
}
