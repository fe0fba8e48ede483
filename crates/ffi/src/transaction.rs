//! Transactions: reads and changes that happen together.

use crate::call::{FromC, call};
use crate::cursor::{Cursor, Source, bounds};
use crate::handle::{self, kinds};
use crate::key::{OutValue, answer};
use crate::running::Running;
use crate::status::{Failure, wollemi_status, wollemi_status::*};
use crate::types::*;
use std::ffi::{c_int, c_void};
use wollemi::{Db, Error, Map, Retry, TransactionCursor};

/// The object behind a transaction's handle: freeing it ends the transaction for its cursors too.
pub struct Owner(Running);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.end();
    }
}

kinds! {
    wollemi_transaction, Owner, b"tran", "transaction";
}

/// Begins a transaction: reads and changes of any maps that happen together, atomically, or not at all. It is
/// optimistic: no thread waits for it while it runs, and its commit fails with WOLLEMI_ERROR_CONFLICT if another writer
/// has changed a key that it has read. Then begin it again, or let wollemi_transact() do so. It sees its own changes.
/// Free it by wollemi_transaction_free(), committed or not; without a commit it has no effect.
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

/// Like wollemi_get(), in the transaction. The key counts as read, present or not. Returns WOLLEMI_ERROR_CONFLICT if it
/// is already certain that the transaction cannot commit.
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

/// Like wollemi_put(), in the transaction. A key or a value that is too long fails the commit.
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

/// Like wollemi_insert(), in the transaction. The key counts as read.
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

/// Like wollemi_delete(), in the transaction. The key counts as read.
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

/// Opens a cursor over the entries of a map as the transaction sees them, with its own changes, including those it
/// makes between two steps. Entries that the cursor has returned, and the gaps between them, count as read; later
/// entries do not. After the end of the transaction, the cursor returns WOLLEMI_ERROR_HANDLE. Free it by
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

/// Sets the transaction's durability, at level `disk`: a wollemi_durability.
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

/// Commits the transaction, if everything it has read is unchanged; it is durable when this returns. Otherwise returns
/// WOLLEMI_ERROR_CONFLICT, with nothing changed; wollemi_conflict() returns the key. Afterwards, whatever this returns,
/// the transaction can only be freed.
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

/// Frees a transaction. Without a commit it has no effect. Ignores NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_transaction_free(transaction: *mut wollemi_transaction) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe { call(|c| c.close::<Owner>(transaction)) }
}

/// Why the transaction of a body was not committed.
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

/// Runs `body` with a transaction and commits it, and again after a conflict, up to a hundred times with pauses in
/// between. `body` returns WOLLEMI_OK to commit. Any other result abandons the transaction: nothing is changed, and
/// wollemi_transact() returns the same, or WOLLEMI_ERROR_ARGUMENT if that is not a status. If a call with the
/// transaction returns WOLLEMI_ERROR_CONFLICT, `body` should return that: then it runs again. `body` must neither
/// commit nor free the transaction, nor exit by longjmp() or an exception; it must tolerate being run more than once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_transact(
    db: *const wollemi_db,
    body: wollemi_body,
    argument: *mut c_void,
) -> wollemi_status {
    let run = |c: &FromC<'_>| {
        let body = body.ok_or_else(|| Failure::argument("NULL instead of a function"))?;
        // A handle of its own: the body may close the caller's.
        let db = c.share::<Db>(db)?.clone();
        let done = db.transact_owned(&Retry::default(), |transaction| {
            let ours = std::mem::replace(transaction, db.begin_owned());
            let running = Running::new(ours);
            let handle = handle::open(Owner(running.clone()));
            // SAFETY: a function of the header's type, used as the header says.
            let code = unsafe { body(handle, argument) };
            let taken = running.take();
            let closed = c.close::<Owner>(handle);
            *transaction = taken.and_then(|taken| closed.map(|_| taken)).map_err(|_| {
                let message = "the body of a transaction committed or freed it, or still uses it";
                GivenUp::Misused(Failure::argument(message))
            })?;
            match code {
                0 => Ok(()),
                // `transact_owned` checks the reads. If one is no longer valid, the body runs again, whatever the code.
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
