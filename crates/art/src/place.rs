//! The place of a write in a ROWEX tree: found without locks, and validated under them.

use pmem::{Link, Locked, Media, PSlot};

/// A node whose string the key begins with, and what hangs there for the key.
#[derive(Clone, Copy, Debug)]
pub struct Place<N> {
    /// The node.
    pub node: N,
    /// Where it is (its kind and offset; other tag bits are those of the link the walk came by).
    pub at: Link,
    /// Its level.
    pub level: usize,
    /// What hung there when the walk passed: null, a leaf or an array of them, or an inner node from whose
    /// string the key parts.
    pub link: Link,
    /// Where the key parts from that inner node's string, and the string's byte there.
    pub parting: Option<(usize, u8)>,
}

/// The slot, locked, by which an object hangs in its parent.
#[derive(Debug)]
pub struct Parent<'g, N, M: Media> {
    /// The parent.
    pub node: N,
    /// Where it is.
    pub at: Link,
    /// Its slot.
    pub slot: &'g PSlot,
    /// What the slot holds.
    pub link: Link,
    /// The parent's level.
    pub level: usize,
    /// Its lock.
    pub locked: Locked<'g, M>,
}
