//! The place of a write in a ROWEX tree: found without locks, and validated under them.

use pmem::{Link, Locked, Media, PSlot};

/// A node whose string the key begins with, and its child for the key.
#[derive(Clone, Copy, Debug)]
pub struct NodePlace<'g, N> {
    /// The node.
    pub node: N,
    /// Its place (kind and offset; other tag bits are those of the link that the walk followed).
    pub at: Link,
    /// Its level.
    pub level: usize,
    /// The child's slot, if the node has one for it.
    pub slot: Option<&'g PSlot>,
    /// The child when the walk passed: null, a leaf or an array of them, or an inner node whose string the key does
    /// not follow to the end.
    pub link: Link,
    /// The position where the key parts from that inner node's string, and the string's byte there.
    pub parting: Option<(usize, u8)>,
}

/// The slot of an object in its parent, locked.
#[derive(Debug)]
pub struct Parent<'g, N, M: Media> {
    /// The parent.
    pub node: N,
    /// Its place.
    pub at: Link,
    /// Its slot.
    pub slot: &'g PSlot,
    /// The slot's link.
    pub link: Link,
    /// The parent's level.
    pub level: usize,
    /// Its lock.
    pub locked: Locked<'g, M>,
}
