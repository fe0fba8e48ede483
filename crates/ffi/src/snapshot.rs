//! Snapshots: all maps at one moment.

use crate::call::call;
use crate::cursor::{Cursor, Source, bounds};
use crate::handle::{ThreadSafe, kinds};
use crate::key::OutValue;
use crate::status::{wollemi_status, wollemi_status::*};
use crate::types::*;
use std::ffi::{c_char, c_void};
use wollemi::{Db, Map, Snapshot};

kinds! {
    wollemi_snapshot, Snapshot, b"snap", "snapshot";
}

impl ThreadSafe for Snapshot {}

/// Takes a snapshot of all maps, readable while other threads write. Nothing is copied at first. The first change of a
/// key keeps its old value in memory, up to `max_memory` bytes in all; 0: no limit. Beyond the limit its reads fail
/// with WOLLEMI_ERROR_SNAPSHOT, and writers continue. No map can be dropped before the snapshot is freed by
/// wollemi_snapshot_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_snapshot_take(
    db: *const wollemi_db,
    max_memory: u64,
    snapshot: *mut *mut wollemi_snapshot,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let snapshot = c.out_handle(snapshot)?;
            let max = if max_memory == 0 { u64::MAX } else { max_memory };
            snapshot.open(c.share::<Db>(db)?.snapshot_within(max)?)
        })
    }
}

/// Like wollemi_get(), for the value at the moment of the snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_snapshot_get(
    snapshot: *const wollemi_snapshot,
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
            let view = c.share::<Snapshot>(snapshot)?.view(c.share::<Map>(map)?)?;
            value.set(view.get(c.bytes(key, key_len)?)?.as_deref())
        })
    }
}

/// Opens a cursor over a map's entries at the moment of the snapshot. It may outlive the snapshot's handle, whose
/// memory it keeps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_snapshot_range(
    snapshot: *const wollemi_snapshot,
    map: *const wollemi_map,
    range: *const wollemi_range,
    cursor: *mut *mut wollemi_cursor,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let cursor = c.out_handle(cursor)?;
            let view = c.share::<Snapshot>(snapshot)?.view(c.share::<Map>(map)?)?;
            cursor.open(Cursor::new(Source::View(view.range(bounds(c, range)?))))
        })
    }
}

/// Writes a backup of all maps, as of the snapshot, to a new file, which gets its name only when it is complete and on
/// the disk; until then it has a temporary name. On failure no file remains. `wollemi restore` creates a pool from it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_snapshot_backup(
    snapshot: *const wollemi_snapshot,
    path: *const c_char,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let snapshot = c.share::<Snapshot>(snapshot)?;
            snapshot.backup_to(c.path(path)?, |_| {})?;
            Ok(WOLLEMI_OK)
        })
    }
}

/// Returns the approximate memory, in bytes, that a snapshot uses for later changes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_snapshot_memory(
    snapshot: *const wollemi_snapshot,
    bytes: *mut u64,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let bytes = c.out(bytes, 0)?;
            bytes.set(c.share::<Snapshot>(snapshot)?.memory());
            Ok(WOLLEMI_OK)
        })
    }
}

/// Frees a snapshot. Ignores NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_snapshot_free(snapshot: *mut wollemi_snapshot) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe { call(|c| c.close::<Snapshot>(snapshot)) }
}
