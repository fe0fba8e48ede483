//! The conflict for which a thread's last failed call failed.

use crate::call::call;
use crate::status::{with_conflict, wollemi_status, wollemi_status::*};
use std::ffi::{c_char, c_void};

/// Returns the key, and the name of its map, for which this thread's last failed call failed with
/// WOLLEMI_ERROR_CONFLICT. Returns WOLLEMI_NOT_FOUND if it failed for another reason. The pointers stay valid until the
/// next failure on this thread. `map`, `key` and `key_len` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_conflict(
    map: *mut *const c_char,
    key: *mut *const c_void,
    key_len: *mut usize,
) -> wollemi_status {
    // SAFETY: the caller keeps to the header.
    unsafe {
        call(|c| {
            let (map, key) = (
                c.optional_out(map, std::ptr::null()),
                c.optional_out(key, std::ptr::null()),
            );
            let key_len = c.optional_out(key_len, 0);
            with_conflict(|conflict| match conflict {
                Some((name, bytes)) => {
                    map.set(name.as_ptr());
                    key.set(bytes.as_ptr().cast());
                    key_len.set(bytes.len());
                    Ok(WOLLEMI_OK)
                }
                None => Ok(WOLLEMI_NOT_FOUND),
            })
        })
    }
}
