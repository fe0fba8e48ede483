//! Transactions: reads and changes that happen together.

use crate::call::{FromC, call};
use crate::cursor::{Cursor, Source, bounds};
use crate::handle::{self, kinds};
use crate::key::{OutValue, answer};
use crate::status::{Failure, wollemi_status, wollemi_status::*};
use crate::types::*;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, TryLockError};
use wollemi::{Db, Error, Map, Retry, Transaction, TransactionCursor};

/// The object behind a transaction's handle; `None` once it was committed or freed. Its cursors hold it too.
#[derive(Clone)]
pub struct Running(Arc<Mutex<Option<Transaction<'static>>>>);

/// The handle's own: what is freed by it is over for its cursors.
pub struct Owner(Running);

impl Drop for Owner {
    fn drop(&mut self) {
        if let Ok(mut transaction) = self.0.0.lock() {
            *transaction = None;
        }
    }
}

kinds! {
    wollemi_transaction, Owner, b"tran", "transaction";
}

fn over() -> Failure {
    Failure::new(
        WOLLEMI_ERROR_HANDLE,
        "this transaction was committed, or given up",
    )
}

impl Running {
    fn new(transaction: Transaction<'static>) -> Running {
        Running(Arc::new(Mutex::new(Some(transaction))))
    }

    /// Uses the transaction, which a handle and its cursors share.
    pub fn with<T>(
        &self,
        run: impl FnOnce(&mut Transaction<'static>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        run(self.lock()?.as_mut().ok_or_else(over)?)
    }

    fn take(&self) -> Result<Transaction<'static>, Failure> {
        self.lock()?.take().ok_or_else(over)
    }

    fn lock(&self) -> Result<std::sync::MutexGuard<'_, Option<Transaction<'static>>>, Failure> {
        match self.0.try_lock() {
            Ok(transaction) => Ok(transaction),
            Err(TryLockError::WouldBlock) => {
                let message = "another call is using this transaction";
                Err(Failure::new(WOLLEMI_ERROR_THREADS, message))
            }
            Err(TryLockError::Poisoned(_)) => {
                let message = "an earlier call with this transaction has met a bug of the library";
                Err(Failure::new(WOLLEMI_ERROR_BUG, message))
            }
        }
    }
}

/// Begins a transaction: reads and changes of any maps that happen together, as at one moment, or not at all. It is
/// optimistic: while it runs no thread waits for it, and its commit fails with WOLLEMI_ERROR_CONFLICT if another writer
/// has changed what it has read. Begin it again then, or have wollemi_transact() do so. It sees its own changes. Free
/// it by wollemi_transaction_free(), committed or not; one that was not committed has done nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_transaction_begin(
    db: *const wollemi_db,
    transaction: *mut *mut wollemi_transaction,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let transaction = c.out_handle(transaction)?;
            transaction.open(Owner(Running::new(c.share::<Db>(db)?.begin_owned())))
        })
    }
}

/// As wollemi_get(), in the transaction. The key counts as read, present or not. WOLLEMI_ERROR_CONFLICT where it is
/// certain by now that the transaction cannot be committed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_transaction_get(
    transaction: *mut wollemi_transaction,
    map: *const wollemi_map,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut c_void,
    value_len: *mut usize,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let value = OutValue::new(c, value, value_len)?;
            let (map, key) = (c.share::<Map>(map)?, c.bytes(key, key_len)?);
            let transaction = c.hold::<Owner>(transaction)?;
            let found = transaction.0.with(|running| Ok(running.get(map, key)?))?;
            value.set(found.as_deref())
        })
    }
}

/// As wollemi_put(), in the transaction. A key or a value that is too long is an error of the commit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_transaction_put(
    transaction: *mut wollemi_transaction,
    map: *const wollemi_map,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let map = c.share::<Map>(map)?;
            let (key, value) = (c.bytes(key, key_len)?, c.bytes(value, value_len)?);
            let transaction = c.hold::<Owner>(transaction)?;
            transaction
                .0
                .with(|running| Ok(running.upsert(map, key, value)?))?;
            Ok(WOLLEMI_OK)
        })
    }
}

/// As wollemi_insert(), in the transaction. The key counts as read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_transaction_insert(
    transaction: *mut wollemi_transaction,
    map: *const wollemi_map,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let map = c.share::<Map>(map)?;
            let (key, value) = (c.bytes(key, key_len)?, c.bytes(value, value_len)?);
            let transaction = c.hold::<Owner>(transaction)?;
            let added = transaction
                .0
                .with(|running| Ok(running.insert(map, key, value)?))?;
            answer(added, WOLLEMI_UNCHANGED)
        })
    }
}

/// As wollemi_delete(), in the transaction. The key counts as read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_transaction_delete(
    transaction: *mut wollemi_transaction,
    map: *const wollemi_map,
    key: *const c_void,
    key_len: usize,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let (map, key) = (c.share::<Map>(map)?, c.bytes(key, key_len)?);
            let transaction = c.hold::<Owner>(transaction)?;
            let removed = transaction.0.with(|running| Ok(running.remove(map, key)?))?;
            answer(removed, WOLLEMI_NOT_FOUND)
        })
    }
}

/// A cursor over the entries of a map as the transaction sees them, with its own changes, also those that it makes
/// between two steps. Entries that the cursor has returned count as read, and so do the gaps between them; later
/// entries do not. When the transaction is over, the cursor answers WOLLEMI_ERROR_HANDLE. Free it by
/// wollemi_cursor_free(), before the transaction or after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_transaction_range(
    transaction: *mut wollemi_transaction,
    map: *const wollemi_map,
    range: *const wollemi_range,
    cursor: *mut *mut wollemi_cursor,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let cursor = c.out_handle(cursor)?;
            let map = c.share::<Map>(map)?;
            let running = c.hold::<Owner>(transaction)?.0.clone();
            // A map of another database, or without order, is an error at once.
            let bounds = bounds(c, range)?;
            running.with(|transaction| Ok(transaction.range(map, bounds.clone()).map(drop)?))?;
            let place = TransactionCursor::new(map, bounds);
            cursor.open(Cursor::new(Source::Transaction(place, running)))
        })
    }
}

/// When the transaction is durable, at level `disk`: a wollemi_durability.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_transaction_set_durability(
    transaction: *mut wollemi_transaction,
    durability: c_int,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let durability = crate::options::durability(durability)?;
            let transaction = c.hold::<Owner>(transaction)?;
            transaction.0.with(|running| {
                running.set_durability(durability);
                Ok(WOLLEMI_OK)
            })
        })
    }
}

/// Commits the transaction, if what it has read is still so: it is durable when this returns. WOLLEMI_ERROR_CONFLICT,
/// and nothing was changed, if not; wollemi_conflict() returns the key. Afterwards, whatever this returns, the
/// transaction can only be freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_transaction_commit(transaction: *mut wollemi_transaction) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            c.hold::<Owner>(transaction)?.0.take()?.commit()?;
            Ok(WOLLEMI_OK)
        })
    }
}

/// Frees a transaction. One that was not committed has done nothing. NULL is nothing to free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_transaction_free(transaction: *mut wollemi_transaction) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe { call(|c| c.close::<Owner>(transaction)) }
}

/// Why a body was not followed by a commit.
enum GivenUp {
    Failed(Error),
    Body(c_int),
    Misused(Failure),
}

impl From<Error> for GivenUp {
    fn from(error: Error) -> GivenUp {
        GivenUp::Failed(error)
    }
}

/// Runs `body` with a transaction and commits it, and does so again after a conflict, up to a hundred times with pauses
/// in between. `body` answers WOLLEMI_OK to have it committed. Any other answer gives it up: nothing is changed, and
/// wollemi_transact() answers the same, or WOLLEMI_ERROR_ARGUMENT if that is no status. WOLLEMI_ERROR_CONFLICT from a
/// call with the transaction should be passed on so: then it is run again. `body` must neither commit nor free the
/// transaction, nor leave by longjmp() or an exception; it must bear to be run more than once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_transact(
    db: *const wollemi_db,
    body: wollemi_body,
    argument: *mut c_void,
) -> wollemi_status {
    let run = |c: &FromC<'_>| {
        let body = body.ok_or_else(|| Failure::argument("NULL in place of a function"))?;
        // Of its own: the body may close the handle.
        let db = c.share::<Db>(db)?.clone();
        let done = db.transact_owned(&Retry::default(), |transaction| {
            let ours = std::mem::replace(transaction, db.begin_owned());
            let running = Running::new(ours);
            let handle = handle::open(Owner(running.clone()));
            // SAFETY: a function of the header's type, as the header asks.
            let code = unsafe { body(handle, argument) };
            let taken = running.take();
            let closed = c.close::<Owner>(handle);
            *transaction = taken.and_then(|taken| closed.map(|_| taken)).map_err(|_| {
                let message = "the body of a transaction has committed or freed it, or still uses it";
                GivenUp::Misused(Failure::argument(message))
            })?;
            match code {
                0 => Ok(()),
                // After a conflict that the callback met, what it has read is checked, and it is run again.
                code => Err(GivenUp::Body(code)),
            }
        });
        match done {
            Ok(()) => Ok(WOLLEMI_OK),
            Err(GivenUp::Failed(error)) => Err(error.into()),
            Err(GivenUp::Misused(failure)) => Err(failure),
            Err(GivenUp::Body(code)) => crate::status::passed_on(code),
        }
    };
    // SAFETY: the caller keeps to the header.
    unsafe { call(run) }
}
