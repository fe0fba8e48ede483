//! Batches: changes that are made together.

use crate::call::call;
use crate::handle::kinds;
use crate::key::answer;
use crate::status::{Failure, wollemi_status, wollemi_status::*};
use crate::types::*;
use std::ffi::{c_int, c_void};
use wollemi::{Batch, Db, Map};

/// The object behind a batch's handle; `None` once it was committed.
pub struct Gathered(Option<Batch>);

kinds! {
    wollemi_batch, Gathered, b"batc", "batch";
}

fn over() -> Failure {
    Failure::new(WOLLEMI_ERROR_HANDLE, "this batch was committed")
}

impl Gathered {
    fn batch(&mut self) -> Result<&mut Batch, Failure> {
        self.0.as_mut().ok_or_else(over)
    }
}

/// A batch of changes to any of the maps, all of which happen or none, whatever crash comes. Readers may see some of
/// them before others, snapshots and transactions do not. The last of several changes of one key counts. Free it by
/// wollemi_batch_free(), committed or not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_batch_new(
    db: *const wollemi_db,
    batch: *mut *mut wollemi_batch,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let batch = c.out_handle(batch)?;
            batch.open(Gathered(Some(c.share::<Db>(db)?.batch())))
        })
    }
}

/// The key shall have this value. The bytes are copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_batch_put(
    batch: *mut wollemi_batch,
    map: *const wollemi_map,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let (key, value) = (c.bytes(key, key_len)?, c.bytes(value, value_len)?);
            let mut batch = c.hold::<Gathered>(batch)?;
            batch.batch()?.upsert(c.share::<Map>(map)?, key, value);
            Ok(WOLLEMI_OK)
        })
    }
}

/// The key shall be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_batch_delete(
    batch: *mut wollemi_batch,
    map: *const wollemi_map,
    key: *const c_void,
    key_len: usize,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let key = c.bytes(key, key_len)?;
            let mut batch = c.hold::<Gathered>(batch)?;
            batch.batch()?.remove(c.share::<Map>(map)?, key);
            Ok(WOLLEMI_OK)
        })
    }
}

/// The batch shall be carried out only if the key has this value before it; NULL: only if it is absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_batch_expect(
    batch: *mut wollemi_batch,
    map: *const wollemi_map,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let (key, value) = (c.bytes(key, key_len)?, c.optional_bytes(value, value_len)?);
            let mut batch = c.hold::<Gathered>(batch)?;
            batch.batch()?.expect(c.share::<Map>(map)?, key, value);
            Ok(WOLLEMI_OK)
        })
    }
}

/// When the batch is durable, at level `disk`: a wollemi_durability.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_batch_set_durability(
    batch: *mut wollemi_batch,
    durability: c_int,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let durability = crate::options::durability(durability)?;
            c.hold::<Gathered>(batch)?.batch()?.durability(durability);
            Ok(WOLLEMI_OK)
        })
    }
}

/// Carries the batch out: it is durable when this returns. WOLLEMI_UNCHANGED, and nothing was changed, if something is
/// not as it was expected. Afterwards, whatever this returns, the batch can only be freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_batch_commit(batch: *mut wollemi_batch) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let batch = c.hold::<Gathered>(batch)?.0.take().ok_or_else(over)?;
            answer(batch.commit()?, WOLLEMI_UNCHANGED)
        })
    }
}

/// Frees a batch. One that was not committed has done nothing. NULL is nothing to free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_batch_free(batch: *mut wollemi_batch) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe { call(|c| c.close::<Gathered>(batch)) }
}
