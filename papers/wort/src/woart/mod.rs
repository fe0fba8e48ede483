//! WOART: the write optimal adaptive radix tree (WORT §3.5).
//!
//! ART whose every change commits by one 8-byte store in place: an N4 by its word of partial keys and slot array
//! (`n4`, Algorithm 3), an N16 by its bitmap (`n16`, Algorithm 4), an N48 by its child index, an N256 by the pointer
//! (`adaptive`), and a split or a merge of prefixes by the pointer to the node, whose header changes in a separate
//! step as in WORT (`prefix`, Algorithms 1 and 2).

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
