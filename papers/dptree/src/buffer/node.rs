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
use std::mem::offset_of;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, fence};

/// Entries of a leaf.
pub(super) const LEAF: usize = 32;
const _: () = assert!(LEAF <= u32::BITS as usize, "a word has a bit for each entry");

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

/// A link that is null at first.
#[derive(Debug)]
struct NullLink(AtomicCell<Link>);

impl Default for NullLink {
    fn default() -> NullLink {
        NullLink(AtomicCell::new(Link::NULL))
    }
}

/// A leaf. Prefixes lie together, so that a search reads few lines; links are touched only if there are any.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Leaf {
    pub(super) lock: VersionLock,
    count: AtomicU32,
    /// A bit for each entry: it has a link.
    linked: AtomicU32,
    /// A bit for each entry: it is a removal.
    removed: AtomicU32,
    prefixes: [AtomicU64; LEAF],
    words: [AtomicU64; LEAF],
    links: [NullLink; LEAF],
}

impl Leaf {
    pub(super) fn count(&self) -> usize {
        (self.count.load(Relaxed) as usize).min(LEAF)
    }

    /// Prefetches the lines that a search reads: its steps, which do not branch, would wait for them one by one.
    #[inline]
    pub(super) fn prefetch(&self) {
        pmem::prefetch_range(self, offset_of!(Leaf, words));
    }

    /// The prefix of the entry at `i`, if there is one.
    #[inline]
    pub(super) fn prefix(&self, i: usize) -> u64 {
        self.prefixes[i].load(Relaxed)
    }

    /// The link of the entry at `i`.
    #[inline]
    pub(super) fn link(&self, i: usize) -> Link {
        match has(&self.linked, i) {
            true => self.links[i].0.load(),
            false => Link::NULL,
        }
    }

    pub(super) fn entry(&self, i: usize) -> MarkedPair {
        MarkedPair {
            pair: PairWords {
                prefix: self.prefixes[i].load(Relaxed),
                link: self.link(i),
                word: self.words[i].load(Relaxed),
            },
            removed: has(&self.removed, i),
        }
    }

    /// Replaces the entry at `i`. The caller holds the lock and has marked the leaf as changing, as for all calls
    /// below.
    pub(super) fn set(&self, i: usize, entry: MarkedPair) {
        self.store(i, entry);
        for (bits, bit) in [
            (&self.linked, !entry.link.is_null()),
            (&self.removed, entry.removed),
        ] {
            bits.store(bits.load(Relaxed) & !(1 << i) | u32::from(bit) << i, Relaxed);
        }
    }

    /// Inserts the entry at `i`; there must be room.
    pub(super) fn insert(&self, i: usize, entry: MarkedPair) {
        let count = self.count();
        let prefixes = self.prefixes[i..=count].windows(2).rev();
        let words = self.words[i..=count].windows(2).rev();
        for (prefixes, words) in prefixes.zip(words) {
            prefixes[1].store(prefixes[0].load(Relaxed), Relaxed);
            words[1].store(words[0].load(Relaxed), Relaxed);
        }
        let linked = self.linked.load(Relaxed);
        if linked >> i != 0 {
            for pair in self.links[i..=count].windows(2).rev() {
                pair[1].0.store(pair[0].0.load());
            }
        }
        self.store(i, entry);
        self.linked
            .store(with_bit(linked, i, !entry.link.is_null()), Relaxed);
        self.removed
            .store(with_bit(self.removed.load(Relaxed), i, entry.removed), Relaxed);
        self.count.store(count as u32 + 1, Relaxed);
    }

    /// Stores the entry at `i`, without its bits.
    fn store(&self, i: usize, entry: MarkedPair) {
        self.prefixes[i].store(entry.prefix, Relaxed);
        self.words[i].store(entry.word, Relaxed);
        if !entry.link.is_null() {
            self.links[i].0.store(entry.link);
        }
    }

    /// Moves the upper half to a new leaf; returns the prefix and link of its first entry.
    pub(super) fn split_into(&self, upper: &Leaf) -> (u64, Link) {
        let (count, half) = (self.count(), self.count() / 2);
        for (to, from) in (half..count).enumerate() {
            upper.store(to, self.entry(from));
        }
        for (from, to) in [(&self.linked, &upper.linked), (&self.removed, &upper.removed)] {
            let bits = from.load(Relaxed);
            to.store(bits >> half, Relaxed);
            from.store(bits & ((1 << half) - 1), Relaxed);
        }
        upper.count.store((count - half) as u32, Relaxed);
        self.count.store(half as u32, Relaxed);
        (upper.prefixes[0].load(Relaxed), upper.link(0))
    }
}

#[inline]
fn has(bits: &AtomicU32, i: usize) -> bool {
    bits.load(Relaxed) >> i & 1 == 1
}

/// The bits with one more at `i`, below those from there on.
fn with_bit(bits: u32, i: usize, bit: bool) -> u32 {
    let bits = u64::from(bits);
    let above = bits >> i << (i + 1);
    (bits & ((1 << i) - 1) | u64::from(bit) << i | above) as u32
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
#[repr(C, align(64))]
pub(super) struct Inner {
    pub(super) lock: VersionLock,
    count: AtomicU32,
    last: AtomicU32,
    prefixes: [AtomicU64; INNER],
    children: [AtomicU32; INNER],
    links: [NullLink; INNER],
}

impl Inner {
    /// Number of separators.
    pub(super) fn count(&self) -> usize {
        (self.count.load(Relaxed) as usize).min(INNER)
    }

    /// Prefetches the lines that a search reads, as [`Leaf::prefetch`] does.
    #[inline]
    pub(super) fn prefetch(&self) {
        pmem::prefetch_range(self, offset_of!(Inner, links));
    }

    /// The prefix of the separator at `i`, if there is one.
    #[inline]
    pub(super) fn prefix(&self, i: usize) -> u64 {
        self.prefixes[i].load(Relaxed)
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
