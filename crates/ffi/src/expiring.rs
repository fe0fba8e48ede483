//! Maps whose entries expire.

use crate::call::call;
use crate::cursor::{Cursor, Source, bounds};
use crate::handle::kinds;
use crate::key::{OutValue, answer};
use crate::status::{wollemi_status, wollemi_status::*};
use crate::types::*;
use std::ffi::c_void;
use std::time::Duration;
use wollemi::{Expiring, Map, Sweeper};

kinds! {
    wollemi_sweeper, Sweeper, b"swee", "sweeper";
}

/// A life in milliseconds; less than 0: without end.
fn life(milliseconds: i64) -> Option<Duration> {
    u64::try_from(milliseconds).ok().map(Duration::from_millis)
}

/// Gives the key this value for `life_ms` milliseconds, after which it is absent; less than 0: without expiry. The
/// clock is the system's, and ends survive crashes. A map is used by these functions or by the others, not by both: its
/// values are stored behind eight bytes with their expiry. An expired entry takes space until its key is written or a
/// sweeper comes by: wollemi_sweeper_start().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_expiring_put(
    map: *const wollemi_map,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    life_ms: i64,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let (key, value) = (c.bytes(key, key_len)?, c.bytes(value, value_len)?);
            Expiring::new(c.share::<Map>(map)?.clone()).upsert(key, value, life(life_ms))?;
            Ok(WOLLEMI_OK)
        })
    }
}

/// As wollemi_expiring_put(), if no key is there that has not expired: else WOLLEMI_UNCHANGED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_expiring_insert(
    map: *const wollemi_map,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    life_ms: i64,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let (key, value) = (c.bytes(key, key_len)?, c.bytes(value, value_len)?);
            let map = Expiring::new(c.share::<Map>(map)?.clone());
            answer(map.insert(key, value, life(life_ms))?, WOLLEMI_UNCHANGED)
        })
    }
}

/// As wollemi_get(), of a key that has not expired. In `*life_ms`, which may be NULL, the milliseconds that are left of
/// its life; -1: it has no end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_expiring_get(
    map: *const wollemi_map,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut c_void,
    value_len: *mut usize,
    life_ms: *mut i64,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let (value, life_ms) = (OutValue::new(c, value, value_len)?, c.optional_out(life_ms, -1));
            let map = Expiring::new(c.share::<Map>(map)?.clone());
            let Some((bytes, left)) = map.get_with_life(c.bytes(key, key_len)?)? else {
                return Ok(WOLLEMI_NOT_FOUND);
            };
            if let Some(left) = left {
                life_ms.set(i64::try_from(left.as_millis()).unwrap_or(i64::MAX));
            }
            value.set(Some(&bytes))
        })
    }
}

/// Gives a key that has not expired another life from now on: WOLLEMI_NOT_FOUND if there is no such key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_expiring_touch(
    map: *const wollemi_map,
    key: *const c_void,
    key_len: usize,
    life_ms: i64,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let map = Expiring::new(c.share::<Map>(map)?.clone());
            answer(
                map.touch(c.bytes(key, key_len)?, life(life_ms))?,
                WOLLEMI_NOT_FOUND,
            )
        })
    }
}

/// Removes the key: WOLLEMI_NOT_FOUND if there was none that has not expired.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_expiring_delete(
    map: *const wollemi_map,
    key: *const c_void,
    key_len: usize,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let map = Expiring::new(c.share::<Map>(map)?.clone());
            answer(map.remove(c.bytes(key, key_len)?)?, WOLLEMI_NOT_FOUND)
        })
    }
}

/// As wollemi_map_range(), over the entries that have not expired when the cursor comes to them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_expiring_range(
    map: *const wollemi_map,
    range: *const wollemi_range,
    cursor: *mut *mut wollemi_cursor,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let cursor = c.out_handle(cursor)?;
            let map = c.share::<Map>(map)?;
            let iter = map.range(bounds(c, range)?);
            cursor.open(Cursor::new(Source::Expiring(Expiring::new(map.clone()), iter)))
        })
    }
}

/// Starts a thread that goes through the map, removes what has expired, rests for `pause_ms` milliseconds, and begins
/// again, until wollemi_sweeper_stop(). It keeps the database open. It blocks no signals.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_sweeper_start(
    map: *const wollemi_map,
    pause_ms: u64,
    sweeper: *mut *mut wollemi_sweeper,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let sweeper = c.out_handle(sweeper)?;
            let map = Expiring::new(c.share::<Map>(map)?.clone());
            sweeper.open(map.sweeper(Duration::from_millis(pause_ms))?)
        })
    }
}

/// Stops a sweeper and waits for its thread. NULL is nothing to stop.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_sweeper_stop(sweeper: *mut wollemi_sweeper) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe { call(|c| c.close::<Sweeper>(sweeper)) }
}
