//! Memory that the library returns: allocated by the C library's `malloc`.

use crate::status::Failure;
use crate::status::wollemi_status::WOLLEMI_ERROR_SYSTEM;
use crate::types::wollemi_bytes;
use std::ffi::{c_char, c_void};

/// No bytes.
pub const NOTHING: wollemi_bytes = wollemi_bytes {
    data: std::ptr::null_mut(),
    len: 0,
};

/// Returns a copy that C owns.
pub fn copy(bytes: &[u8]) -> Result<wollemi_bytes, Failure> {
    // SAFETY: at least one byte, since malloc(0) may return NULL.
    let data = unsafe { libc::malloc(bytes.len().max(1)) };
    if data.is_null() {
        let message = format!("no memory for {} bytes", bytes.len());
        return Err(Failure::new(WOLLEMI_ERROR_SYSTEM, message));
    }
    // SAFETY: it was just allocated with enough room, and no other code has its address.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), data.cast(), bytes.len()) };
    Ok(wollemi_bytes {
        data,
        len: bytes.len(),
    })
}

/// Frees a copy that C never received.
pub fn give_back(bytes: wollemi_bytes) {
    // SAFETY: it comes from `copy`, or is NULL, and no other code has its address.
    unsafe { libc::free(bytes.data) };
}

/// Returns a copy of a text with a final NUL, which C owns.
pub fn copy_text(text: String) -> Result<*mut c_char, Failure> {
    Ok(copy(crate::status::c_string(text).as_bytes_with_nul())?
        .data
        .cast())
}

/// Frees values and JSON texts that the library has returned. Ignores NULL. It is the C library's free() if the program
/// and this library share one, as they do on Linux.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wollemi_free(data: *mut c_void) {
    // SAFETY: the caller promises that it is NULL or comes from `copy`, and frees it once.
    unsafe { libc::free(data) };
}
