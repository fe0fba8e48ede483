//! WOART: the write optimal adaptive radix tree (WORT §3.5).
//!
//! ART whose every change commits by one 8-byte store: in an N4 to its word of partial keys and slot array (`n4`,
//! Algorithm 3), in an N16 to its bitmap (`n16`, Algorithm 4), in an N48 to its child index, in an N256 to the pointer
//! (`adaptive`), and for a split or a merge of prefixes to the pointer to the node, whose header changes in a separate
//! step as in WORT (`prefix`, Algorithms 1 and 2). A node without room, or with few children left, is replaced by a
//! copy of another kind, by the pointer to it.

mod n16;
mod n4;
mod prefix;

use crate::adaptive::Adaptive;
use pmem::Hardware;

/// A WOART in a heap, under a root of its own.
pub type Woart<M = Hardware> = art::Radix<Adaptive<InPlace>, M>;

/// The scheme in which nodes and headers change in place.
#[derive(Debug)]
pub struct InPlace;
