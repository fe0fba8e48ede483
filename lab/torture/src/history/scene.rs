//! Scenes: the prepared content of a map's history, and the changes to make.
//!
//! Each scene brings some structure to the brink of a change of shape. All indexes run all scenes; to an index without
//! that structure the operations are ordinary ones. Seeds take the scenes in turn.

mod arrays;
mod nodes;
mod siblings;

use super::Maker;
use crate::map::{Bytes, Op};

/// The prepared content.
#[derive(Clone, Copy, Debug)]
enum Scene {
    /// Nothing prepared; a choice of this many mixed keys.
    Mixed(usize),
    /// Nothing prepared; keys that are prefixes of each other, or share long prefixes.
    Chains,
    /// A node with about as many children as some kind of node holds, sometimes partly emptied.
    Brink,
    /// A node with this many children, which gains more.
    Grow(u64),
    /// A node that had `made` children and keeps `left`, with `keys` keys below them; it loses more children.
    Shrink { made: u64, left: u64, keys: u64 },
    /// A node with this many children, and one more that is inserted and removed while readers look for it.
    Blink(u64),
    /// A node far below its parent; keys that diverge within its prefix are inserted and removed.
    Part,
    /// This many leaves below one byte, which grow beyond the capacity of a leaf array.
    Leaves(usize),
    /// Leaves, reduced from the first number to the second, which become fewer.
    FewerLeaves(u64, u64),
    /// This many short keys with values of eight bytes, which become more. They are dense enough for inline leaf
    /// arrays of every size.
    Pairs(usize),
    /// Pairs, reduced from the first number to the second, which become fewer.
    FewerPairs(u64, u64),
    /// This many keys and values of eight bytes, which indexes with inline values store in place. Operations update,
    /// read and remove them.
    Words(u64),
    /// Pairs, joined by a key or value too long for a pair, or by pairs that do not fit into one line.
    OddPairs,
    /// This many ascending keys, and more between them, so that B+-tree nodes and their parents split.
    Splits(u64),
    /// Ascending keys, reduced from the first number to the second, and then removed, so that B+-tree nodes and their
    /// parents become empty.
    Emptied(u64, u64),
}

/// The number of scenes. It is odd, so that with one to four threads in turn each scene meets each number of threads.
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
    // These keys fit into one leaf array.
    Scene::Shrink {
        made: 4,
        left: 4,
        keys: 33,
    },
    Scene::FewerLeaves(64, 28),
    // These keys do not fit into one leaf array.
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

/// Returns whether a scene inserts and removes a key while readers look for it.
pub(super) fn blinks(scene: usize) -> bool {
    matches!(ALL[scene], Scene::Blink(_))
}

impl Maker {
    /// Prepares a scene: appends its operations to `ops`, and plans those that follow.
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
    use crate::history::{RARE_IN, of_map};

    /// Every scene yields a history with at least the requested number of watched operations.
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
        // In a hunt, one in `RARE_IN` seeds has no scene; each scene still has seeds.
        assert!(!SCENES.is_multiple_of(RARE_IN as usize));
    }

    /// The preparation of `Shrink` leaves the stated numbers of children and keys.
    #[test]
    fn what_shrinks_has_as_many_left() {
        for (seed, scene) in (0..).zip(ALL) {
            let Scene::Shrink { left, keys, .. } = scene else {
                continue;
            };
            let history = of_map(seed, 0, 1);
            let mut present = std::collections::BTreeSet::new();
            for op in &history.ops {
                match op {
                    Op::Remove(key) => assert!(present.remove(key), "{scene:?}"),
                    op => assert!(op.key().is_some_and(|key| present.insert(key)), "{scene:?}"),
                }
            }
            let prefix = present.iter().map(|key| key.len()).min().unwrap_or_default();
            let children: std::collections::BTreeSet<u8> =
                present.iter().map(|key| key[prefix - 1]).collect();
            assert_eq!(
                (children.len() as u64, present.len() as u64),
                (left, keys),
                "{scene:?}"
            );
        }
    }
}
