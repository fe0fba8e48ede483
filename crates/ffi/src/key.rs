//! Single keys.

use crate::call::{FromC, Out, call};
use crate::memory::{self, NOTHING};
use crate::status::{Failure, wollemi_status, wollemi_status::*};
use crate::types::*;
use std::ffi::c_void;
use wollemi::Map;

/// Returns WOLLEMI_OK, or the given plain "no".
pub fn answer(yes: bool, no: wollemi_status) -> Result<wollemi_status, Failure> {
    Ok(if yes { WOLLEMI_OK } else { no })
}

/// The two outputs for a value that C receives.
pub struct OutValue(Out<*mut c_void>, Out<usize>);

impl OutValue {
    pub fn new(c: &FromC<'_>, value: *mut *mut c_void, value_len: *mut usize) -> Result<OutValue, Failure> {
        // If one is missing, the other is cleared, too.
        let (value, value_len) = (c.out(value, std::ptr::null_mut()), c.out(value_len, 0));
        Ok(OutValue(value?, value_len?))
    }

    pub fn set(&self, value: Option<&[u8]>) -> Result<wollemi_status, Failure> {
        let Some(value) = value else {
            return Ok(WOLLEMI_NOT_FOUND);
        };
        let copy = memory::copy(value)?;
        self.0.set(copy.data);
        self.1.set(copy.len);
        Ok(WOLLEMI_OK)
    }
}

/// Returns a copy of the key's value in `*value`, with its length in `*value_len`, or WOLLEMI_NOT_FOUND if the key is
/// absent. Free the copy by wollemi_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_get(
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
            let reader = c.share::<Map>(map)?.reader();
            value.set(reader.get(c.bytes(key, key_len)?)?.as_deref())
        })
    }
}

/// Copies the key's value into the caller's buffer of `room_len` bytes, and sets `*value_len` to its length. Returns
/// WOLLEMI_TOO_SMALL, without a copy, if the buffer is too small, and WOLLEMI_NOT_FOUND if the key is absent. Allocates
/// nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_get_into(
    map: *const wollemi_map,
    key: *const c_void,
    key_len: usize,
    room: *mut c_void,
    room_len: usize,
    value_len: *mut usize,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let (value_len, room) = (c.out(value_len, 0)?, c.room(room, room_len)?);
            let reader = c.share::<Map>(map)?.reader();
            let Some(value) = reader.get(c.bytes(key, key_len)?)? else {
                return Ok(WOLLEMI_NOT_FOUND);
            };
            value_len.set(value.len());
            Ok(room.fill(&value))
        })
    }
}

/// Calls `show` with the key's value in place, without a copy; returns WOLLEMI_NOT_FOUND if the key is absent. `show`
/// must not keep the pointer, call the library, or exit by longjmp() or an exception. Keep it short: until it returns,
/// space that is freed meanwhile cannot be reused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_read(
    map: *const wollemi_map,
    key: *const c_void,
    key_len: usize,
    show: wollemi_show,
    argument: *mut c_void,
) -> wollemi_status {
    let run = |c: &FromC<'_>| {
        let show = show.ok_or_else(|| Failure::argument("NULL in place of a function"))?;
        let reader = c.share::<Map>(map)?.reader();
        let Some(value) = reader.get(c.bytes(key, key_len)?)? else {
            return Ok(WOLLEMI_NOT_FOUND);
        };
        // SAFETY: a function of the header's type, used as the header says; the reader pins the value.
        unsafe { show(value.as_ptr().cast(), value.len(), argument) };
        Ok(WOLLEMI_OK)
    };
    // SAFETY: the caller keeps to the header.
    unsafe { call(run) }
}

/// Returns WOLLEMI_OK if the key is present, else WOLLEMI_NOT_FOUND.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_contains(
    map: *const wollemi_map,
    key: *const c_void,
    key_len: usize,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let found = c.share::<Map>(map)?.contains(c.bytes(key, key_len)?)?;
            answer(found, WOLLEMI_NOT_FOUND)
        })
    }
}

/// Copies the values of `count` keys into as many `values`, in the keys' order: `data` is NULL if the key is absent.
/// Free each by wollemi_free(). Faster than single wollemi_get()s. On failure no value is left to free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_multi_get(
    map: *const wollemi_map,
    count: usize,
    keys: *const wollemi_slice,
    values: *mut wollemi_bytes,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            if count == 0 {
                return Ok(WOLLEMI_OK);
            }
            let slices = c.slice(keys, count)?;
            // Whatever fails from here on, no value is left to free.
            let places = (0..count).map(|i| c.out(values.wrapping_add(i), NOTHING));
            let places = places.collect::<Result<Vec<_>, _>>()?;
            let missing = || Failure::argument("NULL instead of keys");
            let slices = slices.ok_or_else(missing)?.iter();
            let keys = slices.map(|slice| c.bytes(slice.data, slice.len));
            let keys = keys.collect::<Result<Vec<_>, _>>()?;
            let reader = c.share::<Map>(map)?.reader();
            let found = reader.multi_get(&keys)?;
            let mut copies = Vec::with_capacity(count);
            for value in &found {
                match value.as_deref().map_or(Ok(NOTHING), memory::copy) {
                    Ok(copy) => copies.push(copy),
                    Err(failure) => {
                        copies.into_iter().for_each(memory::give_back);
                        return Err(failure);
                    }
                }
            }
            for (place, copy) in places.iter().zip(copies) {
                place.set(copy);
            }
            Ok(WOLLEMI_OK)
        })
    }
}

/// Sets the key's value, whether or not the key is present. Durable, at the database's level, when it returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_put(
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
            c.share::<Map>(map)?.upsert(key, value)?;
            Ok(WOLLEMI_OK)
        })
    }
}

/// Adds the key if it is absent; otherwise returns WOLLEMI_UNCHANGED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_insert(
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
            answer(c.share::<Map>(map)?.insert(key, value)?, WOLLEMI_UNCHANGED)
        })
    }
}

/// Replaces the value of a key that is present; otherwise returns WOLLEMI_UNCHANGED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_update(
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
            answer(c.share::<Map>(map)?.update(key, value)?, WOLLEMI_UNCHANGED)
        })
    }
}

/// Removes the key. Returns WOLLEMI_NOT_FOUND if it is absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_delete(
    map: *const wollemi_map,
    key: *const c_void,
    key_len: usize,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let removed = c.share::<Map>(map)?.remove(c.bytes(key, key_len)?)?;
            answer(removed, WOLLEMI_NOT_FOUND)
        })
    }
}

/// Replaces the key's value `expected` by `desired`; NULL for either means absent. Returns WOLLEMI_UNCHANGED if the
/// value differs from `expected`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_compare_and_swap(
    map: *const wollemi_map,
    key: *const c_void,
    key_len: usize,
    expected: *const c_void,
    expected_len: usize,
    desired: *const c_void,
    desired_len: usize,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let expected = c.optional_bytes(expected, expected_len)?;
            let desired = c.optional_bytes(desired, desired_len)?;
            let map = c.share::<Map>(map)?;
            let swapped = map.compare_and_swap(c.bytes(key, key_len)?, expected, desired)?;
            answer(swapped, WOLLEMI_UNCHANGED)
        })
    }
}
