//! Batches: changes that are committed together.

use crate::call::call;
use crate::handle::kinds;
use crate::key::answer;
use crate::status::{Failure, wollemi_status, wollemi_status::*};
use crate::types::*;
use std::ffi::{c_int, c_void};
use wollemi::{Batch, Db, Map};

/// The object behind a batch's handle; `None` after its commit.
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

/// Creates a batch of changes to any of the maps. All of them happen or none, whenever a crash comes. Readers may see
/// some of the changes before others; snapshots and transactions do not. Of several changes to one key, the last
/// counts. Free it by wollemi_batch_free(), committed or not.
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

/// Adds a put of this value to the batch. The bytes are copied.
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

/// Adds a removal of the key to the batch.
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

/// Makes the commit conditional on the key having this value before it; NULL: on its absence.
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

/// Sets the batch's durability, at level `disk`: a wollemi_durability.
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

/// Commits the batch, which is durable when this returns. Returns WOLLEMI_UNCHANGED, with nothing changed, if an
/// expectation does not hold. Afterwards, whatever this returns, the batch can only be freed.
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

/// Frees a batch. Without a commit it has no effect. Ignores NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_batch_free(batch: *mut wollemi_batch) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe { call(|c| c.close::<Gathered>(batch)) }
}
