//! Recovery of headers (Algorithm 2, RecoverHeader), when a writer needs one.
//!
//! A depth that is not the one at which the node is reached means that a crash came between the two steps of a split,
//! or that the node has taken its parent's place. The paper takes two leaves below the node and uses their common
//! prefix. Here one leaf suffices, since the header itself states the level at which the node branches (`header`,
//! I2); so the number of leaves does not matter, nor that the first two may share more than all of them.
//!
//! Readers need no prefix, and store nothing: only the writer recovers headers, under its lock.

use crate::header::Header;
use art::{Design, Digit, Way, any_leaf, damaged};
use heap::Access;
use pmem::{Fault, Link, Media};

/// The right header for the node at `link` when `depth` digits lead to it, given its present header (Algorithm 2, lines
/// 3 to 8). Through `link`, `arrival` digits lead to it now.
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

/// A key below the node at `link`, of this level, to which `arrival` digits lead. There is only one writer, so a key
/// exists.
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

/// The way of a key through the node at `link`, of this level, to which `depth` digits lead: `way`, if it leads
/// there, otherwise a new one. There is only one writer, so a leaf below exists.
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
