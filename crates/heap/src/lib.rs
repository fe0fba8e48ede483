//! DCMM: the persistent heap (ROART §3.4.2).

mod class;
mod error;
mod heap;
mod local;
mod page;
mod recovery;
mod root;
mod runs;
mod space;
mod table;
mod trace;

pub use class::footprint;
pub use error::Error;
pub use heap::Heap;
pub use root::{MAX_NAME, Root};
pub use trace::Trace;

/// A pin of the current epoch: what it protects is not reused until it is dropped.
pub use crossbeam_epoch::Guard;

/// Pins the current epoch.
#[inline]
pub fn pin() -> Guard {
    crossbeam_epoch::pin()
}
