//! What persistent radix nodes share, without any order of persists.
//!
//! A radix tree branches on one byte of the key at a node's *level*, the byte's position counted from the key's
//! start. A node at level L stands for all keys that begin with the same L bytes; a key of exactly L bytes ends at
//! the node. The bytes between a parent's branching byte and a child's level are the child's *skip* (path
//! compression).
//!
//! Here are the tags of links, fingerprints, prefixes and prefetching. In which order anything becomes durable is
//! each index's own affair.

mod entry;
mod fingerprint;
mod prefetch;
mod prefix;

pub use entry::{Kind, Tagged, child_tag, leaf_tag};
pub use fingerprint::{checksum, fingerprint};
pub use prefetch::{prefetch, prefetch_range};
pub use prefix::{Prefix, common_prefix, same};
