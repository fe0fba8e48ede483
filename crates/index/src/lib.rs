//! The contract that every index keeps.
//!
//! An index maps keys to values, both any bytes: keys up to [`MAX_KEY`], values up to [`MAX_VALUE`]. It is ordered
//! by the keys' bytes, may be used from many threads at once, and every operation is durably linearizable: what an
//! operation has acknowledged, reads included, survives a crash.
//!
//! The contract is [`Index`]: four calls, [`get`](Index::get), [`write`](Index::write), [`scan`](Index::scan) and
//! [`check`](Index::check), of which all the rest is made. An index on a heap implements [`OnHeap`] and gets it.

mod ahead;
mod bulk;
#[cfg(feature = "conformance")]
pub mod conformance;
mod contract;
mod delegate;
mod edit;
mod error;
mod merges;
#[cfg(feature = "conformance")]
pub mod model;
mod on_heap;
mod range;
mod root;
mod value;

pub use ahead::{Batch, ReadAhead, behind, prefix_bounds};
pub use bulk::{Bulk, Pair, Pairs, Parts, Reading, Sorted};
pub use contract::{Direction, Faults, Index, Still, Visit};
pub use edit::{Action, CompareAndSwap, Edit, Edits, Insert, Remove, Update, Upsert};
pub use error::Error;
pub use heap::Guard;
pub use merges::Merges;
pub use on_heap::{CarryOut, EachEdit, OnHeap};
pub use range::Range;
pub use root::create_root;
pub use value::Value;

/// The longest key, in bytes.
pub const MAX_KEY: usize = 65_535;

/// The longest value, in bytes.
pub const MAX_VALUE: usize = 64 << 20;
