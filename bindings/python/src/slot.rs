//! Python objects' references to the database, which a close releases.

use crate::errors;
use pyo3::prelude::*;
use std::sync::{PoisonError, RwLock};

/// Converts a result to Python's; `None` is that of a closed object.
fn answer<R>(py: Python<'_>, done: Option<Result<R, wollemi::Error>>) -> PyResult<R> {
    match done {
        Some(result) => result.map_err(|error| errors::of(py, error)),
        None => Err(errors::closed()),
    }
}

/// A value that exists until it is closed.
pub struct Slot<T>(RwLock<Option<T>>);

impl<T: Send + Sync> Slot<T> {
    pub fn new(held: T) -> Slot<T> {
        Slot(RwLock::new(Some(held)))
    }

    /// Uses it without the GIL. A close waits for that.
    pub fn with<R: Send>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&T) -> Result<R, wollemi::Error> + Send,
    ) -> PyResult<R> {
        answer(py, py.detach(|| self.detached(run)))
    }

    /// Uses it, for a caller that has released the GIL. A close waits for that. Returns `None` if it is closed.
    pub fn detached<R>(&self, run: impl FnOnce(&T) -> R) -> Option<R> {
        let held = self.0.read().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().map(run)
    }

    /// Uses it and another slot's value without the GIL. A close of either waits for that: it holds no copy of the
    /// other value, which would keep the database open after all closes.
    pub fn with_other<S: Send + Sync, R: Send>(
        &self,
        py: Python<'_>,
        other: &Slot<S>,
        run: impl FnOnce(&T, &S) -> Result<R, wollemi::Error> + Send,
    ) -> PyResult<R> {
        let both = || other.detached(|other| self.detached(|held| run(held, other)));
        answer(py, py.detach(both).flatten())
    }

    /// Drops it, without the GIL.
    pub fn close(&self, py: Python<'_>) {
        py.detach(|| self.end(drop));
    }

    /// Takes the value, which closes this, and runs a closure with it without the GIL. Returns `None` if it was closed.
    pub fn take<R: Send>(&self, py: Python<'_>, run: impl FnOnce(T) -> R + Send) -> Option<R> {
        py.detach(|| self.end(run))
    }

    /// Holds the lock to the end, so that another thread's close does not return before.
    fn end<R>(&self, run: impl FnOnce(T) -> R) -> Option<R> {
        let mut held = self.0.write().unwrap_or_else(PoisonError::into_inner);
        held.take().map(run)
    }
}

/// A value that one thread at a time uses or changes, until it is closed.
pub struct Turns<T>(std::sync::Mutex<Option<T>>);

impl<T: Send> Turns<T> {
    pub fn new(held: T) -> Turns<T> {
        Turns(std::sync::Mutex::new(Some(held)))
    }

    /// Uses it without the GIL; other threads wait.
    pub fn with<R: Send>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&mut T) -> Result<R, wollemi::Error> + Send,
    ) -> PyResult<R> {
        answer(py, py.detach(|| self.detached(run)))
    }

    /// Uses it and a slot's value without the GIL, like [`Slot::with_other`].
    pub fn with_other<S: Send + Sync, R: Send>(
        &self,
        py: Python<'_>,
        other: &Slot<S>,
        run: impl FnOnce(&mut T, &S) -> Result<R, wollemi::Error> + Send,
    ) -> PyResult<R> {
        let both = || other.detached(|other| self.detached(|held| run(held, other)));
        answer(py, py.detach(both).flatten())
    }

    /// Uses it, for a caller that has released the GIL. Returns `None` if it is closed.
    pub fn detached<R>(
        &self,
        run: impl FnOnce(&mut T) -> Result<R, wollemi::Error>,
    ) -> Option<Result<R, wollemi::Error>> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_mut().map(run)
    }

    /// Takes the value, which closes this, and runs a closure with it without the GIL. A thread that closes this
    /// meanwhile waits until the closure has ended.
    pub fn take<R: Send>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(T) -> Result<R, wollemi::Error> + Send,
    ) -> PyResult<R> {
        let done = py.detach(|| {
            let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            held.take().map(run)
        });
        answer(py, done)
    }

    /// Drops it.
    pub fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }
}
