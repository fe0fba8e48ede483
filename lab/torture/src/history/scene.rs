//! Scenes: the prepared content of a map's history, and the changes to make.
//!
//! Each brings some structure to the brink of a change of shape, for all indexes alike: an index that has no such
//! structure meets operations like any others. Seeds take the scenes in turn.

mod arrays;
mod nodes;
mod siblings;

use super::Maker;
use crate::map::{Bytes, Op};

/// What is prepared.
#[derive(Clone, Copy, Debug)]
enum Scene {
    /// Nothing; this many keys of all sorts.
    Mixed(usize),
    /// Nothing; keys that are prefixes of each other, and long common ones.
    Chains,
    /// A node of about as many children as some kind of node holds, sometimes emptied in part.
    Brink,
    /// A node with this many children, which gets more.
    Grow(u64),
    /// A node that was made with `made` children and has `left`, with `keys` keys below them; it loses some.
    Shrink { made: u64, left: u64, keys: u64 },
    /// A node with this many children, and another one that comes and goes while it is looked for.
    Blink(u64),
    /// A node far below the one above it; keys that part on the way come and go.
    Part,
    /// This many leaves below one byte, which become more than one leaf array holds.
    Leaves(usize),
    /// This many of them, of which the second number is left, which become few.
    FewerLeaves(u64, u64),
    /// This many short keys with values of eight bytes, which become more; as dense as makes inline leaf arrays of
    /// every size.
    Pairs(usize),
    /// This many of them, of which the second number is left, which become few.
    FewerPairs(u64, u64),
    /// This many keys and values of eight bytes, which indexes with inline values store in place; values change and are
    /// read, keys come and go.
    Words(u64),
    /// Pairs, to which come keys or values that are no pairs, and pairs that have no room together.
    OddPairs,
    /// This many keys that ascend, and more between them: nodes of B+-trees split, and those above them.
    Splits(u64),
    /// This many keys, of which the second number is left and then removed: their nodes are emptied, and those above
    /// them.
    Emptied(u64, u64),
}

/// How many scenes there are: odd, so that histories of one to four threads in turn see each with each number.
pub const SCENES: usize = ALL.len();

const ALL: [Scene; 33] = [
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
    Scene::Splits(165),
    Scene::Emptied(170, 14),
    Scene::Splits(13),
    Scene::Emptied(40, 16),
];

/// Whether a scene is of a key that comes and goes while it is looked for.
pub(super) fn blinks(scene: usize) -> bool {
    matches!(ALL[scene], Scene::Blink(_))
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
            Scene::Splits(there) => self.splits(there, ops),
            Scene::Emptied(made, left) => self.emptied(made, left, ops),
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
                    op => assert!(op.key().is_some_and(|key| there.insert(key)), "{scene:?}"),
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
