//! ART+CoW: the adaptive radix tree with copy-on-write (WORT §3.6).
//!
//! Adding a child to an N4 or N16, removing one that leaves several, and changing the prefix of any node make a copy;
//! the change commits by the pointer to the copy in the slot above (`small`, `prefix`). N48 and N256 change in place,
//! as in WOART (`adaptive`). So does a slot of a small node when another child takes the place of the one for its byte.
//! In a full pool nothing is copied for a removal: the child's slot is emptied in place, or the last child, with its
//! prefix as it is, takes the node's place.

mod prefix;
mod small;

use crate::adaptive::Adaptive;
use pmem::Hardware;

/// An ART+CoW in a heap, under a root of its own.
pub type ArtCow<M = Hardware> = art::Radix<Adaptive<ByCopy>, M>;

/// The scheme in which small nodes and headers change by copies.
#[derive(Debug)]
pub struct ByCopy;
