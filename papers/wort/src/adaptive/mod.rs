//! The common parts of WOART and ART+CoW: adaptive nodes, and the writes to them.
//!
//! Both are ART (nodes of 4, 16, 48 and 256 children, path compression) made failure-atomic. They share the same N48
//! and N256 and differ in a [`Scheme`]: the layout of the two small kinds and how they accept a child, and how a
//! prefix changes. WOART does all that in place, by one word; ART+CoW builds a new node and swings the pointer to it.
//!
//! A writer, one at a time (`root`), walks down from the root's slot, settling the leftovers of a crash on its way
//! (`locate`), and then changes one node (`write`, `grow`, `shrink`):
//!
//! W1 A change commits by one store to one word: a slot, or a node's commit word.
//! W2 A replaced node stays as it was, so that earlier readers can go on through it.
//! W3 A link contains its kind, its byte and its skip, so that readers recognise a slot that is used for another byte
//!    by now, and need no header to find a level, unless the skip is too long for the link.
//! W4 A node has at least two children, its ending key counted. Removing the last but one removes the node too.
//!
//! Modules: `branch` (the common part of all kinds), `node` (the readers' view), `n48`, `n256`, `build` (nodes under
//! construction).

pub(crate) mod branch;
pub(crate) mod build;
mod grow;
pub(crate) mod locate;
mod n256;
mod n48;
pub(crate) mod node;
pub(crate) mod shrink;
pub(crate) mod write;

use crate::header::Header;
use crate::root::Root;
use art::{Byte, Design, Radix};
use branch::Branch;
use heap::{Access, Error, Guard};
use index::{Action, Edit};
use locate::{Place, Writer};
use node::Node;
use pmem::{Fault, Link, LinkAndPersist, Media};
use std::fmt::Debug;
use std::marker::PhantomData;

/// The publication policy for everything.
pub(crate) type Publish = LinkAndPersist;

/// A header of byte digits.
pub(crate) type Prefix = Header<Byte>;

/// A tree of some scheme.
pub(crate) type Tree<S, M> = Radix<Adaptive<S>, M>;

/// The layout of the two small kinds of node, how they accept a child, and how a prefix changes.
///
/// # Safety
///
/// As for [`Design`].
pub unsafe trait Scheme: Debug + Send + Sync + Sized + 'static {
    /// The kind of such a tree in the heap's root directory.
    const KIND: u32;
    /// Up to 4 children.
    type N4: Branch;
    /// Up to 16 children.
    type N16: Branch;

    /// Returns the right header of a node whose depth is not the one at which the walk has arrived: a crash has
    /// interrupted a split, or a merge has put the node in its parent's place as it was (in ART+CoW, only in a full
    /// pool).
    ///
    /// # Errors
    ///
    /// If the pool is damaged.
    fn recover_header<M: Media>(
        writer: &Writer<'_, Self, M>,
        place: &Place<'_>,
        node: Node<'_, Self>,
        found: Prefix,
    ) -> Result<Prefix, Fault>;

    /// The writer's key parts from the prefix of `node` at this position, where the prefix has this byte: puts a new
    /// node in the place of `node`, above `node` (or its copy) and a new leaf.
    ///
    /// # Errors
    ///
    /// If the pool is full or damaged. Nothing was changed then.
    fn split_prefix<M: Media>(
        writer: &Writer<'_, Self, M>,
        place: &Place<'_>,
        node: Node<'_, Self>,
        parting: (usize, u8),
        value: &[u8],
    ) -> Result<(), Error>;

    /// Puts the inner node at `child`, to which `depth` bytes lead, in the place of its parent, whose only child it
    /// is; this makes its prefix longer.
    ///
    /// # Errors
    ///
    /// If the pool is damaged.
    fn merge_prefix<M: Media>(
        writer: &Writer<'_, Self, M>,
        place: &Place<'_>,
        child: Link,
        depth: usize,
    ) -> Result<(), Error>;
}

/// An adaptive radix tree of some scheme.
#[derive(Debug)]
pub struct Adaptive<S>(PhantomData<S>);

// SAFETY: the only writer holds its caller's guard, and retires what it has unlinked; nodes report every child that
// counts.
unsafe impl<S: Scheme> Design for Adaptive<S> {
    const KIND: u32 = S::KIND;

    type Digit = Byte;

    type Node<'g> = Node<'g, S>;

    type Root = Root;

    fn edit<M: Media>(
        index: &Tree<S, M>,
        heap: &Access<M>,
        key: &[u8],
        edit: &mut dyn Edit,
        guard: &Guard,
    ) -> Result<Action, Error> {
        Writer::edit(index, heap, key, edit, guard)
    }
}
