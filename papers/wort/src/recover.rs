//! Recovery of headers (Algorithm 2, RecoverHeader), at the moment a writer needs one.
//!
//! A depth that is not the one at which the node is reached says that a crash came between the two steps of a
//! split, or that the node has taken its parent's place. The paper takes two leaves below the node and makes
//! what they share its prefix. Here one leaf suffices, since the header itself says at which level the node
//! branches (`header`, I2); so it does not matter how many leaves there are, nor that the first two may share
//! more than all.
//!
//! Readers need no prefix, and store nothing: only the writer does, under its lock.

use crate::header::Header;
use art::{Design, Digit, Way, any_leaf, damaged};
use heap::Access;
use pmem::{Fault, Link, Media};

/// The header that is right for a node where `depth` digits lead to it, given the one that it has: lines 3 to
/// 8. `arrival` digits lead to it now, by this link.
pub(crate) fn right_header<D: Design, M: Media>(
    heap: &Access<M>,
    (link, arrival): (Link, usize),
    depth: usize,
    found: Header<D::Digit>,
) -> Result<Header<D::Digit>, Fault> {
    let level = found.level();
    if depth > level {
        return Err(damaged("node's level", link));
    }
    match found.after(depth) {
        Some(right) => Ok(right),
        None => Ok(Header::of(
            key_below::<D, M>(heap, (link, arrival), level)?,
            depth,
            level,
        )),
    }
}

/// Some key below the node at `link`, of this level, to which `arrival` digits lead. The writer is alone, so
/// there is one.
fn key_below<D: Design, M: Media>(
    heap: &Access<M>,
    (link, arrival): (Link, usize),
    level: usize,
) -> Result<&[u8], Fault> {
    let leaf = any_leaf::<D, M>(heap, link, arrival)?;
    leaf.map(|leaf| leaf.key())
        .filter(|key| D::Digit::count(key) >= level)
        .ok_or_else(|| damaged("leaf below a node", link))
}

/// The way of a key on which the node at `link` is, of this level, to which `depth` digits lead: `way`, if that leads
/// there, else a new one. The writer is alone, so there is a leaf below.
pub(crate) fn way_through<'w, D: Design, M: Media>(
    heap: &Access<M>,
    (link, depth): (Link, usize),
    level: usize,
    key: &[u8],
    way: &'w mut Option<Way>,
) -> Result<&'w Way, Fault> {
    if !way.as_mut().is_some_and(|way| way.leads_to(link, level)) {
        *way = Way::along::<D, M>(heap, (link, depth), key)?;
    }
    way.as_ref().ok_or_else(|| damaged("leaf below a node", link))
}
