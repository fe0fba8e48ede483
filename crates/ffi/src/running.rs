//! A transaction that its handle and its cursors share.

use crate::status::{Failure, wollemi_status::*};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use wollemi::Transaction;

/// A transaction, shared by its handle and its cursors; `None` after it was committed or freed.
#[derive(Clone)]
pub struct Running(Arc<Mutex<Option<Transaction<'static>>>>);

fn over() -> Failure {
    Failure::new(
        WOLLEMI_ERROR_HANDLE,
        "this transaction was committed or abandoned",
    )
}

impl Running {
    pub fn new(transaction: Transaction<'static>) -> Running {
        Running(Arc::new(Mutex::new(Some(transaction))))
    }

    /// Runs a closure with the transaction, which no other call may use meanwhile.
    pub fn with<T>(
        &self,
        run: impl FnOnce(&mut Transaction<'static>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        run(self.lock()?.as_mut().ok_or_else(over)?)
    }

    pub fn take(&self) -> Result<Transaction<'static>, Failure> {
        self.lock()?.take().ok_or_else(over)
    }

    /// Ends the transaction without a commit, unless a panic has poisoned the lock.
    pub fn end(&self) {
        if let Ok(mut transaction) = self.0.lock() {
            *transaction = None;
        }
    }

    fn lock(&self) -> Result<MutexGuard<'_, Option<Transaction<'static>>>, Failure> {
        match self.0.try_lock() {
            Ok(transaction) => Ok(transaction),
            Err(TryLockError::WouldBlock) => {
                let message = "another call is using this transaction";
                Err(Failure::new(WOLLEMI_ERROR_THREADS, message))
            }
            Err(TryLockError::Poisoned(_)) => {
                let message = "an earlier call with this transaction met a bug in the library";
                Err(Failure::new(WOLLEMI_ERROR_BUG, message))
            }
        }
    }
}
