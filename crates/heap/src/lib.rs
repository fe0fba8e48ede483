//! DCMM: the persistent heap (ROART §3.4.2).

mod audit;
mod class;
mod error;
mod heap;
mod local;
mod page;
mod recovery;
mod root;
mod runs;
mod space;
mod stats;
mod sweep;
mod table;
mod trace;

pub use audit::Audit;
pub use class::footprint;
pub use error::Error;
pub use heap::Heap;
pub use recovery::{Progress, State};
pub use root::{MAX_NAME, Root};
pub use stats::Stats;
pub use trace::{Trace, Tracers};

/// A pin of the current epoch: what it protects is not reused until it is dropped.
pub use crossbeam_epoch::Guard;

/// Pins the current epoch.
#[inline]
pub fn pin() -> Guard {
    crossbeam_epoch::pin()
}
