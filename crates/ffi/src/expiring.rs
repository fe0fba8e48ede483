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

/// Converts a life in milliseconds; less than 0: none.
fn life(milliseconds: i64) -> Option<Duration> {
    u64::try_from(milliseconds).ok().map(Duration::from_millis)
}

/// Sets the key's value for `life_ms` milliseconds, after which the key is absent; less than 0: it never expires. The
/// clock is the system's, and expiry times survive crashes. Use a map either through these functions or through the
/// others, not both: its values are stored after eight bytes with their expiry. An expired entry takes space until its
/// key is written or a sweeper removes it: wollemi_sweeper_start().
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

/// Like wollemi_expiring_put(), if the key is absent or expired; otherwise returns WOLLEMI_UNCHANGED.
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

/// Like wollemi_get(), for a key that has not expired. Sets `*life_ms`, which may be NULL, to its remaining life in
/// milliseconds; -1: it never expires.
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
            let life_ms = c.optional_out(life_ms, 0);
            let value = OutValue::new(c, value, value_len)?;
            let map = Expiring::new(c.share::<Map>(map)?.clone());
            let Some((bytes, left)) = map.get_with_life(c.bytes(key, key_len)?)? else {
                return Ok(WOLLEMI_NOT_FOUND);
            };
            let status = value.set(Some(&bytes))?;
            life_ms.set(left.map_or(-1, |left| i64::try_from(left.as_millis()).unwrap_or(i64::MAX)));
            Ok(status)
        })
    }
}

/// Replaces the life of a key that has not expired, from now on. Returns WOLLEMI_NOT_FOUND if there is no such key.
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

/// Removes the key. Returns WOLLEMI_NOT_FOUND if it is absent or expired.
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

/// Like wollemi_map_range(), over the entries that have not expired when the cursor reaches them.
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

/// Starts a thread that walks the map, removes expired entries, sleeps for `pause_ms` milliseconds, and starts over,
/// until wollemi_sweeper_stop(). It keeps the database open. It blocks no signals.
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

/// Stops a sweeper and waits for its thread. Ignores NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_sweeper_stop(sweeper: *mut wollemi_sweeper) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe { call(|c| c.close::<Sweeper>(sweeper)) }
}
