//! DCMM: the persistent heap (ROART §3.4.2).

mod error;
pub use error::Error;

/// A pin of the current epoch: what it protects is not reused until it is dropped.
pub use crossbeam_epoch::Guard;

/// Pins the current epoch.
#[inline]
pub fn pin() -> Guard {
    crossbeam_epoch::pin()
}
