//! Recovery of headers (Algorithm 2, RecoverHeader), at the moment a writer needs one.
//!
//! A depth that is not the one at which the node is reached says that a crash came between the two steps of a split, or
//! that the node has taken its parent's place. The paper takes two leaves below the node and makes what they share its
//! prefix. Here one leaf suffices, since the header itself says at which level the node branches (`header`, I2); so it
//! does not matter how many leaves there are, nor that the first two may share more than all.
//!
//! Readers need no prefix, and store nothing: only the writer does, under its lock.

use super::Wort;
use super::node::{Header, Node};
use art::{Digit, HalfByte, LeafRef, damaged};
use index::OnHeap;
use pmem::{Fault, Link, Media};

/// The header of the node at `link`, reached after `depth` digits; recovered, if need be.
#[inline]
pub(super) fn header<M: Media>(
    index: &Wort<M>,
    node: &Node,
    link: Link,
    depth: usize,
) -> Result<Header, Fault> {
    let media = index.heap().media();
    let found = node.header(media);
    if found.depth() == depth {
        return Ok(found);
    }
    let right = header_after(index, found, link, depth)?;
    node.header.store_unpersisted(right.to_word(), media); // line 9; for lines 10 to 12 see `header`, I4
    Ok(right)
}

/// The header that is right for the node at `link`, which has `found`, when it is reached after `depth` digits.
pub(super) fn header_after<M: Media>(
    index: &Wort<M>,
    found: Header,
    link: Link,
    depth: usize,
) -> Result<Header, Fault> {
    if depth > found.level() {
        return Err(damaged("node's level", link));
    }
    if let Some(right) = found.after(depth) {
        return Ok(right);
    }
    // Lines 3 to 8.
    let leaf = leaf_below(index, link, found)?;
    Ok(Header::of(leaf.key(), depth, found.level()))
}

/// Some leaf below the node at `link`. The writer is alone, so there is one, and its key has the node's digits.
pub(super) fn leaf_below<M: Media>(
    index: &Wort<M>,
    link: Link,
    header: Header,
) -> Result<LeafRef<'_>, Fault> {
    index
        .any_leaf(link, 0)?
        .filter(|leaf| HalfByte::count(leaf.key()) >= header.level())
        .ok_or_else(|| damaged("leaf below a node", link))
}
