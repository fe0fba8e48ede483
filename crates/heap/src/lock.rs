//! Taking a lock, in a heap that outlives panics and media whose threads take turns.

use pmem::Media;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Locks, even after a panic of a holder: every holder keeps the guarded data consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a lock that is held across calls of the media.
pub(crate) fn lock_across<'m, T, M: Media>(mutex: &'m Mutex<T>, media: &M) -> MutexGuard<'m, T> {
    if !M::TAKES_TURNS {
        return lock(mutex);
    }
    let mut turn = 0;
    loop {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => media.wait(turn),
        }
        turn = turn.saturating_add(1);
    }
}
