//! Nodes of the buffer tree: arrays of atomic words under a version lock, in arenas that only grow.
//!
//! I1 A node that a walk can reach changes only while its lock word says *changing*; readers that met a change start
//!    over (optimistic lock coupling). A node that is locked but not changing can be read: a writer that waits for its
//!    log record does not block readers.
//! I2 Nodes are freed only with the whole tree, so a number that was once a node's remains valid.
//! I3 A link in a node leads to a record that lives at least as long as the buffer tree, so readers may follow it even
//!    if the node has changed since.

use crate::key::MarkedPair;
use crossbeam_utils::atomic::AtomicCell;
use index::codec::PairWords;
use pmem::{Link, Media};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, fence};

/// Entries of a leaf.
pub(super) const LEAF: usize = 32;

/// Separators of an inner node.
pub(super) const INNER: usize = 32;

const _: () = assert!(AtomicCell::<Link>::is_lock_free());

/// A node's lock word, as read by a walk.
pub(super) type Version = u64;

const LOCKED: u64 = 1;
const CHANGING: u64 = 2;
const STEP: u64 = 4;

/// A version lock.
#[derive(Debug, Default)]
pub(super) struct VersionLock(AtomicU64);

impl VersionLock {
    /// The version, once the node is not changing.
    #[inline]
    pub(super) fn read<M: Media>(&self, media: &M) -> Version {
        let mut turn = 0;
        loop {
            let word = self.0.load(Acquire);
            if word & CHANGING == 0 {
                return word & !LOCKED;
            }
            media.wait(turn);
            turn = turn.saturating_add(1);
        }
    }

    /// Whether everything read since [`read`](VersionLock::read) belongs to that version.
    #[inline]
    pub(super) fn is_still(&self, version: Version) -> bool {
        fence(Acquire);
        self.0.load(Relaxed) & !LOCKED == version
    }

    /// Takes the lock if it is free and the node still has this version.
    #[inline]
    pub(super) fn try_lock(&self, version: Version) -> bool {
        self.0
            .compare_exchange(version, version | LOCKED, AcqRel, Relaxed)
            .is_ok()
    }

    /// Marks the node as changing. The caller holds the lock.
    #[inline]
    pub(super) fn change(&self) {
        self.0.store(self.0.load(Relaxed) | CHANGING, Relaxed);
        fence(Release);
    }

    /// Releases the lock, with a new version if the node was changed.
    #[inline]
    pub(super) fn unlock(&self) {
        let word = self.0.load(Relaxed);
        let next = if word & CHANGING == 0 { word } else { word + STEP };
        self.0.store(next & !(LOCKED | CHANGING), Release);
    }
}

/// An entry's place.
#[derive(Debug, Default)]
struct Slot {
    prefix: AtomicU64,
    word: AtomicU64,
    link: NullLink,
    removed: AtomicBool,
}

/// A link that is null at first.
#[derive(Debug)]
struct NullLink(AtomicCell<Link>);

impl Default for NullLink {
    fn default() -> NullLink {
        NullLink(AtomicCell::new(Link::NULL))
    }
}

impl Slot {
    fn get(&self) -> MarkedPair {
        MarkedPair {
            pair: PairWords {
                prefix: self.prefix.load(Relaxed),
                link: self.link.0.load(),
                word: self.word.load(Relaxed),
            },
            removed: self.removed.load(Relaxed),
        }
    }

    fn set(&self, entry: MarkedPair) {
        self.prefix.store(entry.prefix, Relaxed);
        self.link.0.store(entry.link);
        self.word.store(entry.word, Relaxed);
        self.removed.store(entry.removed, Relaxed);
    }
}

/// A leaf.
#[derive(Debug, Default)]
pub(super) struct Leaf {
    pub(super) lock: VersionLock,
    count: AtomicU32,
    slots: [Slot; LEAF],
}

impl Leaf {
    pub(super) fn count(&self) -> usize {
        (self.count.load(Relaxed) as usize).min(LEAF)
    }

    /// The prefix and link of the entry at `i`.
    #[inline]
    pub(super) fn key(&self, i: usize) -> (u64, Link) {
        let slot = &self.slots[i];
        (slot.prefix.load(Relaxed), slot.link.0.load())
    }

    pub(super) fn entry(&self, i: usize) -> MarkedPair {
        self.slots[i].get()
    }

    /// Replaces the entry at `i`. The caller holds the lock and has marked the leaf as changing, as for all calls
    /// below.
    pub(super) fn set(&self, i: usize, entry: MarkedPair) {
        self.slots[i].set(entry);
    }

    /// Inserts the entry at `i`; there must be room.
    pub(super) fn insert(&self, i: usize, entry: MarkedPair) {
        let count = self.count();
        for at in (i..count).rev() {
            self.slots[at + 1].set(self.slots[at].get());
        }
        self.slots[i].set(entry);
        self.count.store(count as u32 + 1, Relaxed);
    }

    /// Moves the upper half to a new leaf; returns its first entry.
    pub(super) fn split_into(&self, upper: &Leaf) -> MarkedPair {
        let (count, half) = (self.count(), self.count() / 2);
        for (to, from) in (half..count).enumerate() {
            upper.slots[to].set(self.slots[from].get());
        }
        upper.count.store((count - half) as u32, Relaxed);
        self.count.store(half as u32, Relaxed);
        upper.slots[0].get()
    }
}

/// A child: the number of an inner node, or of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Child(u32);

impl Child {
    const LEAF: u32 = 1 << 31;

    pub(super) fn leaf(number: usize) -> Child {
        Child(number as u32 | Self::LEAF)
    }

    pub(super) fn inner(number: usize) -> Child {
        Child(number as u32)
    }

    /// The number: of a leaf as `Ok`, of an inner node as `Err`.
    pub(super) fn number(self) -> Result<usize, usize> {
        let number = (self.0 & !Self::LEAF) as usize;
        if self.0 & Self::LEAF != 0 {
            Ok(number)
        } else {
            Err(number)
        }
    }

    pub(super) fn load(from: &AtomicU32) -> Child {
        Child(from.load(Acquire))
    }

    pub(super) fn store(self, to: &AtomicU32) {
        to.store(self.0, Release);
    }
}

/// An inner node: child `i` holds the keys from separator `i` - 1 on and below separator `i`.
#[derive(Debug, Default)]
pub(super) struct Inner {
    pub(super) lock: VersionLock,
    count: AtomicU32,
    prefixes: [AtomicU64; INNER],
    links: [NullLink; INNER],
    children: [AtomicU32; INNER],
    last: AtomicU32,
}

impl Inner {
    /// Number of separators.
    pub(super) fn count(&self) -> usize {
        (self.count.load(Relaxed) as usize).min(INNER)
    }

    #[inline]
    pub(super) fn separator(&self, i: usize) -> (u64, Link) {
        (self.prefixes[i].load(Relaxed), self.links[i].0.load())
    }

    fn slot(&self, i: usize) -> &AtomicU32 {
        self.children.get(i).unwrap_or(&self.last)
    }

    pub(super) fn child(&self, i: usize) -> Child {
        Child::load(self.slot(i))
    }

    fn set_separator(&self, i: usize, separator: (u64, Link)) {
        self.prefixes[i].store(separator.0, Relaxed);
        self.links[i].0.store(separator.1);
    }

    /// A new root over two children.
    pub(super) fn root(&self, lower: Child, separator: (u64, Link), upper: Child) {
        self.set_separator(0, separator);
        lower.store(self.slot(0));
        upper.store(self.slot(1));
        self.count.store(1, Relaxed);
    }

    /// Inserts a separator, with the child above it, at `i`; there must be room. The caller holds the lock and has
    /// marked the node as changing.
    pub(super) fn insert(&self, i: usize, separator: (u64, Link), upper: Child) {
        let count = self.count();
        for at in (i..count).rev() {
            self.set_separator(at + 1, self.separator(at));
            self.child(at + 1).store(self.slot(at + 2));
        }
        self.set_separator(i, separator);
        upper.store(self.slot(i + 1));
        self.count.store(count as u32 + 1, Relaxed);
    }

    /// Moves the upper half to a new node; returns the separator between the two.
    pub(super) fn split_into(&self, upper: &Inner) -> (u64, Link) {
        let (count, half) = (self.count(), self.count() / 2);
        for (to, from) in (half + 1..count).enumerate() {
            upper.set_separator(to, self.separator(from));
            self.child(from).store(upper.slot(to));
        }
        self.child(count).store(upper.slot(count - half - 1));
        upper.count.store((count - half - 1) as u32, Relaxed);
        self.count.store(half as u32, Relaxed);
        self.separator(half)
    }
}

/// An array that grows and never moves: part k holds 64 x 2^k nodes and is allocated when it is first needed.
#[derive(Debug)]
pub(super) struct Arena<T> {
    parts: [OnceLock<Box<[T]>>; PARTS],
    len: AtomicUsize,
}

const FIRST: usize = 64;
const PARTS: usize = 25;

impl<T: Default> Arena<T> {
    pub(super) fn new() -> Arena<T> {
        Arena {
            parts: [const { OnceLock::new() }; PARTS],
            len: AtomicUsize::new(0),
        }
    }

    /// Adds a node, and returns its number.
    pub(super) fn add(&self) -> usize {
        self.len.fetch_add(1, Relaxed)
    }

    #[inline]
    pub(super) fn get(&self, number: usize) -> &T {
        let index = number + FIRST;
        let part = (index.ilog2() - FIRST.ilog2()) as usize;
        let len = FIRST << part;
        let nodes = self.parts[part].get_or_init(|| (0..len).map(|_| T::default()).collect());
        &nodes[index - len]
    }
}
