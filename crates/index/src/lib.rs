//! The contract of all indexes.
//!
//! An index maps keys to values, both any bytes: keys up to [`MAX_KEY`], values up to [`MAX_VALUE`]. Any number of
//! threads may use it at once, and every operation is durably linearizable: whatever an operation has acknowledged,
//! reads included, survives a crash.
//!
//! The contract is [`Index`], in two parts. Every index has *point operations*: [`get`](Index::get),
//! [`write`](Index::write), [`check`](Index::check), and [`walk`](Index::walk), which visits everything in an
//! [order](Order) of the index's own and can continue where it stopped. An index whose order is that of the keys' bytes
//! has *ordered scans* ([`scan`](Index::scan), [`range`](Index::range), [`prefix`](Index::prefix)); a hash table
//! refuses them, except for a range without bounds, which is a walk. All other calls are built on these. An index on a
//! heap implements [`OnHeap`] and gets the contract.

mod ahead;
mod bulk;
pub mod codec;
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
mod order;
mod root;
mod value;

pub use ahead::{ReadAhead, Refill, behind, check_progress, prefix_bounds};
pub use bulk::{Bulk, Pair, Pairs, Parts, Reading, Sorted};
pub use contract::{Faults, Index, Quiesced, Range, Visit};
pub use edit::{Action, CompareAndSwap, Edit, Edits, Insert, Remove, Update, Upsert};
pub use error::Error;
pub use heap::Guard;
pub use merges::Merges;
pub use on_heap::{CarryOut, EachEdit, KEYS_PER_GUARD, OnHeap};
pub use order::{Direction, Order, OrderedPlace};
pub use root::{create_root, name_built};
pub use value::Value;

/// The maximum length of a key in bytes.
pub const MAX_KEY: usize = 65_535;

/// The maximum length of a value in bytes.
pub const MAX_VALUE: usize = 64 << 20;
