//! Mutexes that are held across calls of the media.

use crate::Media;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Locks a mutex whose holders call the media, for instance to persist. Under media whose threads take turns, the wait is
/// a [`Media::wait`], since a blocked thread would keep the turn. A holder that panics must leave the data consistent:
/// the mutex is then locked like any other.
pub fn lock_across<'m, T, M: Media>(mutex: &'m Mutex<T>, media: &M) -> MutexGuard<'m, T> {
    if !M::TAKES_TURNS {
        return mutex.lock().unwrap_or_else(PoisonError::into_inner);
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
