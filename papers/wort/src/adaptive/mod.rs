//! The common parts of WOART and ART+CoW: adaptive nodes, and the writes to them.
//!
//! Both are ART (nodes of 4, 16, 48 and 256 children, path compression) made failure-atomic. They keep the
//! same N48 and
//! N256 and differ in a [`Scheme`]: how the two small kinds look and take a child, and how a prefix changes.
//!      WOART does
//! all that in place, by one word; ART+CoW builds a new node and swings the pointer to it.
//!
//! Writers, one at a time (`root`), walk down from the root's slot, settling what a crash has left on their
//! way (`locate`), and then change one node (`write`, `grow`, `shrink`):
//!
//! W1 A change commits by one store to one word: a slot, or a node's commit word.
//! W2 A node that is replaced stays as it was, so that readers that came before go on through it.
//! W3 A link names its kind, the byte by which it hangs and its skip, so that readers know a slot that serves
//!    another byte by now, and need no header to find a level.
//! W4 A node has two children at least, its ending key counted. The last but one to go takes the node along.
//!
//! Here: `node` (what all kinds have, and readers see), `n48`, `n256`, `build` (nodes under construction).

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
use heap::{Access, Error, Guard};
use index::{Action, Edit};
use locate::Place;
use node::{Branch, Node};
use pmem::{Fault, Link, LinkAndPersist, Media};
use std::fmt::Debug;
use std::marker::PhantomData;
use write::Writer;

/// The policy by which everything is published.
pub(crate) type Publish = LinkAndPersist;

/// A header of byte digits.
pub(crate) type Prefix = Header<Byte>;

/// A tree of some scheme.
pub(crate) type Tree<S, M> = Radix<Adaptive<S>, M>;

/// How the two small kinds of node look and take a child, and how a prefix changes.
///
/// # Safety
///
/// As for [`Design`].
pub unsafe trait Scheme: Debug + Send + Sync + Sized + 'static {
    /// What the heap's root directory calls such a tree.
    const KIND: u32;
    /// Up to 4 children.
    type N4: Branch;
    /// Up to 16 children.
    type N16: Branch;

    /// The header of a node whose depth is not the one at which the walk has arrived: a split or merge that a
    /// crash has cut short, or that a full pool has left as it is.
    ///
    /// # Errors
    ///
    /// If the pool makes no sense.
    fn recover_header<M: Media>(
        writer: &Writer<'_, Self, M>,
        place: &Place<'_>,
        node: Node<'_, Self>,
        found: Prefix,
    ) -> Result<Prefix, Fault>;

    /// Puts a node above `node`, from whose prefix the writer's key parts, to hold both: at this position,
    /// where the prefix has this byte.
    ///
    /// # Errors
    ///
    /// If the pool is full. Nothing was changed then.
    fn split_prefix<M: Media>(
        writer: &Writer<'_, Self, M>,
        place: &Place<'_>,
        node: Node<'_, Self>,
        parting: (usize, u8),
        value: &[u8],
    ) -> Result<(), Error>;

    /// Gives the inner node at `child`, to which `depth` bytes lead, the place of the node above it, whose
    /// only child it is, and so a longer prefix.
    ///
    /// # Errors
    ///
    /// If the pool makes no sense.
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

// SAFETY: the one writer holds the guard that it is given, and retires what it has unlinked; nodes report every child
// that counts.
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
