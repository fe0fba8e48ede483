//! The nodes and records of a B-link tree of words.
//!
//! ```text
//!  level 1           [ node ]
//!                    /      \
//!  level 0     [ node ] --> [ node ] -->     a node holds the keys from its `low` up to its sibling's
//!               |  |  |      |  |
//!               records                      the values
//! ```
//!
//! I1 `kind` and `low` never change.
//! I2 An entry counts if its bit in `state` is set. An entry that does not count is written, then its bit is set; one
//!    that counts changes by one store into its slot.
//! I3 Each store of `state` raises its version, so that a reader that finds it unchanged has read entries of one
//!    moment.

use pmem::{CommitWord, GenerationLock, Media, PSlot, PWord, persistent};

/// Entries of a node: few, so that few keys make it split.
pub const ENTRIES: usize = 5;

persistent! {
    pub struct Root [size: 16] {
        pub lock: GenerationLock,
        pub top: PSlot,
    }
}

persistent! {
    pub struct Entry [size: 16] {
        pub key: PWord,
        /// A record, or in an inner node the node that holds the keys from this one on.
        pub slot: PSlot,
    }
}

persistent! {
    pub struct Node [size: 128, align: 64] {
        pub lock: GenerationLock,
        /// The node's level plus one.
        pub kind: PWord,
        /// The lowest key that the node may hold.
        pub low: PWord,
        /// `version:56 | counts:7 | mark`
        pub state: CommitWord,
        /// The sibling to the right, which holds the keys from its own `low` on.
        pub next: PSlot,
        rest: PWord,
        pub entries: [Entry; ENTRIES],
    }
}

persistent! {
    pub struct Record [size: 16] {
        pub value: PWord,
        rest: PWord,
    }
}

impl Record {
    pub fn new(value: u64) -> Record {
        Record {
            value: PWord::new(value),
            rest: PWord::new(0),
        }
    }
}

/// Returns the bit of an entry in `state`.
pub fn bit(entry: usize) -> u64 {
    2 << entry
}

/// Returns the state that follows, in which these entries count.
pub fn follows(state: u64, counts: u64) -> u64 {
    ((state >> 8) + 1) << 8 | counts
}

/// Returns the bits of the entries that count.
pub fn counts(state: u64) -> u64 {
    state & (bit(ENTRIES) - 2)
}

impl Node {
    /// Returns a node of a level, for a draft, whose first `len` entries count.
    pub fn new(generation: u32, level: u64, low: u64, len: usize) -> Node {
        Node {
            lock: GenerationLock::new(generation),
            kind: PWord::new(level + 1),
            low: PWord::new(low),
            state: CommitWord::new(bit(len) - 2),
            next: PSlot::null(),
            rest: PWord::new(0),
            entries: std::array::from_fn(|_| Entry {
                key: PWord::new(0),
                slot: PSlot::null(),
            }),
        }
    }

    /// Returns keys and numbers of the entries that count, sorted by key.
    pub fn sorted<M: Media>(&self, media: &M, state: u64) -> Vec<(u64, usize)> {
        let counted = (0..ENTRIES).filter(|&entry| state & bit(entry) != 0);
        let mut sorted: Vec<_> = counted
            .map(|entry| (self.entries[entry].key.peek(media), entry))
            .collect();
        sorted.sort_unstable();
        sorted
    }

    /// Returns the bits of the entries that count and have keys below `high`.
    pub fn below<M: Media>(&self, media: &M, state: u64, high: u64) -> u64 {
        let below = self
            .sorted(media, state)
            .into_iter()
            .filter(|(key, _)| *key < high);
        below.map(|(_, entry)| bit(entry)).sum()
    }

    /// Returns the slot of the key's entry. The caller holds the lock.
    pub fn find<M: Media>(&self, media: &M, key: u64) -> Option<&PSlot> {
        let sorted = self.sorted(media, self.state.load(media));
        let found = sorted.into_iter().find(|(other, _)| *other == key);
        found.map(|(_, entry)| &self.entries[entry].slot)
    }
}
