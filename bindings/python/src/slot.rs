//! Python objects' references to the database, which a close releases.

use crate::errors;
use pyo3::prelude::*;
use std::sync::{PoisonError, RwLock};

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
        let done = py.detach(|| {
            let held = self.0.read().unwrap_or_else(PoisonError::into_inner);
            held.as_ref().map(run)
        });
        match done {
            Some(result) => result.map_err(|error| errors::of(py, error)),
            None => Err(errors::closed()),
        }
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
        match py.detach(|| self.detached(run)) {
            Some(result) => result.map_err(|error| errors::of(py, error)),
            None => Err(errors::closed()),
        }
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
        match done {
            Some(result) => result.map_err(|error| errors::of(py, error)),
            None => Err(errors::closed()),
        }
    }

    /// Drops it.
    pub fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }
}
