//! Taking a lock, in a heap that outlives panics.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, even after a panic of a holder: every holder keeps the guarded data consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
