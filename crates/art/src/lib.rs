//! The common parts of persistent radix nodes, independent of any order of persists.
//!
//! A radix tree branches on one digit of the key (a byte; in WORT, half a byte) at a node's *level*, the digit's
//! position counted from the key's start. A node at level L stands for all keys that begin with the same L digits; a
//! key of exactly L digits ends at the node. The digits between a parent's branching digit and a child's level are the
//! child's *skip* (path compression).
//!
//! The modules contain leaves (`leaf`), the tags of links (`entry`), bytes in words (`bytes`), the four kinds of inner
//! node (`kinds`), children of nodes under construction (`build`), the search among the partial keys of a Patricia node
//! (`partial`), the comparison of a key with the nodes on its way (`way`), reads of a radix index of any design
//! (`design`), and building from sorted pairs (`bulk`). Each index defines its own order of persists, except for
//! changes of one leaf, which are the same for all: an eight-byte value changes in place (`leaf`), or a new leaf
//! replaces the old one (`publish`).

pub mod bounds;
mod build;
mod bulk;
mod bytes;
mod check;
mod compare;
mod design;
mod digit;
mod entry;
mod kinds;
mod leaf;
mod multi_get;
mod on_heap;
pub mod partial;
mod place;
mod publish;
mod read;
mod scan;
mod shrink;
mod trace;
mod tries;
mod way;

pub use build::{Child, Children};
pub use bulk::{Group, Grown, Layout, Spot, build};
pub use bytes::{byte_at, bytes_like, index_word, named, naming, with_byte};
pub use check::report;
pub use compare::{CommonPrefix, common_prefix, same};
pub use design::{Design, Node, NodeSite, Radix, RootNode};
pub use digit::{Byte, Digit, HalfByte};
pub use entry::{Kind, LONG_SKIP, Tagged, child_tag, damaged, matching, same_object};
pub use index::codec::checksum;
pub use kinds::{Head, Inner, InnerRef, Kinds, draft_kind, draft_smallest};
pub use leaf::{Leaf, LeafRef, draft_checked_leaf, draft_leaf, fill_leaf};
pub use multi_get::{GROUP, Walk, address, prefetch_leaf, walk_together};
pub use place::{NodePlace, Parent};
pub use pmem::{prefetch, prefetch_range};
pub use publish::{publish_checked_leaf, publish_leaf, replace_value, retire};
pub use read::{any_leaf, scattered};
pub use shrink::{no_memory, shrink_at};
pub use tries::{Missed, Tries};
pub use way::Way;
