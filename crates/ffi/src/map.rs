//! Maps by their names.

use crate::call::call;
use crate::handle::{ThreadSafe, kinds};
use crate::options::index;
use crate::status::{wollemi_status, wollemi_status::*};
use crate::types::*;
use std::ffi::{c_char, c_int};
use wollemi::{Db, Map};

kinds! {
    wollemi_map, Map, b"map ", "map";
}

impl ThreadSafe for Map {}

/// Opens the map of this name; creates it if it does not exist, with the index that the options name. Close it by
/// wollemi_map_close(). A name has 1 to 240 bytes of UTF-8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_map_open(
    db: *const wollemi_db,
    name: *const c_char,
    map: *mut *mut wollemi_map,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let map = c.out_handle(map)?;
            map.open(c.share::<Db>(db)?.map(c.text(name)?)?)
        })
    }
}

/// Like wollemi_map_open(), for a map held by the index of this name; WOLLEMI_ERROR_OTHER_INDEX if another index holds
/// it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_map_open_with(
    db: *const wollemi_db,
    name: *const c_char,
    index: *const c_char,
    map: *mut *mut wollemi_map,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let map = c.out_handle(map)?;
            let index = self::index(c.text(index)?)?;
            map.open(c.share::<Db>(db)?.map_with(c.text(name)?, index)?)
        })
    }
}

/// Opens the map of this name if it exists; otherwise returns WOLLEMI_NOT_FOUND, and `map` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_map_find(
    db: *const wollemi_db,
    name: *const c_char,
    map: *mut *mut wollemi_map,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let map = c.out_handle(map)?;
            match c.share::<Db>(db)?.find_map(c.text(name)?)? {
                Some(found) => map.open(found),
                None => Ok(WOLLEMI_NOT_FOUND),
            }
        })
    }
}

/// Opens another handle to the map, whose writes have this `durability`, a wollemi_durability. It matters only at level
/// `disk`. Close it by wollemi_map_close().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_map_with_durability(
    map: *const wollemi_map,
    durability: c_int,
    other: *mut *mut wollemi_map,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let other = c.out_handle(other)?;
            let durability = crate::options::durability(durability)?;
            other.open(c.share::<Map>(map)?.with_durability(durability))
        })
    }
}

/// Closes the handle. The map stays. Ignores NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_map_close(map: *mut wollemi_map) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe { call(|c| c.close::<Map>(map)) }
}

/// Removes the map of this name with all entries, by one durable step. Returns WOLLEMI_NOT_FOUND if it does not exist,
/// and WOLLEMI_ERROR_IN_USE while a handle to it, or any snapshot, exists. Freeing its space takes time in proportion
/// to its size. WOLLEMI_ERROR_DAMAGED may be returned after the map is gone: the next recovery then finds the space
/// that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_map_drop(db: *const wollemi_db, name: *const c_char) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| match c.share::<Db>(db)?.drop_map(c.text(name)?)? {
            true => Ok(WOLLEMI_OK),
            false => Ok(WOLLEMI_NOT_FOUND),
        })
    }
}

/// Counts the entries by visiting each. Exact if no thread writes meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_count(map: *const wollemi_map, count: *mut u64) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let count = c.out(count, 0)?;
            count.set(c.share::<Map>(map)?.count()?);
            Ok(WOLLEMI_OK)
        })
    }
}
