//! Entry into the library: every function of the header runs in [`call`], which stops panics and converts C's arguments
//! for Rust.
//!
//! All of it rests on one promise of the C program: that its arguments are as the header says. Each function states it
//! once, where it calls `call`; it gets a [`FromC`], through which it reads and writes pointers.

use crate::handle::{self, Held, Kind, ThreadSafe};
use crate::status::{Failure, record_failure, wollemi_status, wollemi_status::*};
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Runs a call.
///
/// # Safety
///
/// The C program has passed every pointer that `run` passes to the [`FromC`] to this call, as the header says:
///
/// * a handle is NULL or was returned by this library, and no thread closes it before the call returns;
/// * bytes to read are NULL or as many as their length says, and no thread writes them meanwhile;
/// * text is NULL or ends with a NUL;
/// * a place to write to is NULL, or aligned, and no other thread uses it meanwhile.
pub unsafe fn call(run: impl FnOnce(&FromC<'_>) -> Result<wollemi_status, Failure>) -> wollemi_status {
    let from_c = FromC(PhantomData);
    match catch_unwind(AssertUnwindSafe(|| run(&from_c))) {
        Ok(Ok(status)) => status,
        Ok(Err(failure)) => record_failure(failure),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let message = format!("a bug in the library: {}", text.unwrap_or("a panic"));
            record_failure(Failure::new(WOLLEMI_ERROR_BUG, message))
        }
    }
}

/// Access to the C program's arguments; see [`call`] for its promises.
pub struct FromC<'a>(PhantomData<&'a ()>);

impl<'a> FromC<'a> {
    /// Returns an object that many threads may use.
    pub fn share<T: ThreadSafe>(&'a self, handle: *const T::C) -> Result<&'a T, Failure> {
        // SAFETY: promised to `call`.
        unsafe { handle::share(handle) }
    }

    /// Returns an object that one thread at a time may use.
    pub fn hold<T: Kind>(&self, handle: *const T::C) -> Result<Held<T>, Failure> {
        // SAFETY: promised to `call`.
        unsafe { handle::hold(handle) }
    }

    /// Closes a handle, and drops its object; ignores NULL.
    pub fn close<T: Kind>(&self, handle: *mut T::C) -> Result<wollemi_status, Failure> {
        drop(self.take::<T>(handle)?);
        Ok(WOLLEMI_OK)
    }

    /// Closes a handle, and returns its object, or `None` for NULL.
    pub fn take<T: Kind>(&self, handle: *mut T::C) -> Result<Option<T>, Failure> {
        if handle.is_null() {
            return Ok(None);
        }
        // SAFETY: promised to `call`.
        unsafe { handle::close::<T>(handle) }.map(Some)
    }

    /// Returns bytes that must not be NULL.
    pub fn bytes(&'a self, data: *const c_void, len: usize) -> Result<&'a [u8], Failure> {
        match self.optional_bytes(data, len)? {
            Some(bytes) => Ok(bytes),
            None if len == 0 => Ok(&[]),
            None => Err(Failure::argument(format!("NULL instead of {len} bytes"))),
        }
    }

    /// Returns bytes, or `None` for NULL.
    pub fn optional_bytes(&'a self, data: *const c_void, len: usize) -> Result<Option<&'a [u8]>, Failure> {
        self.slice(data.cast(), len)
    }

    /// Returns an array, or `None` for NULL.
    pub fn slice<T>(&'a self, data: *const T, len: usize) -> Result<Option<&'a [T]>, Failure> {
        if data.is_null() {
            return Ok(None);
        }
        if len > isize::MAX as usize / size_of::<T>().max(1) {
            return Err(Failure::argument(format!(
                "length {len} exceeds the address space"
            )));
        }
        // SAFETY: promised to `call`; the length is valid.
        Ok(Some(unsafe { std::slice::from_raw_parts(data, len) }))
    }

    /// Returns a UTF-8 text.
    pub fn text(&'a self, text: *const c_char) -> Result<&'a str, Failure> {
        let text = self.c_string(text)?.to_str();
        text.map_err(|_| Failure::argument("text that is not UTF-8"))
    }

    /// Returns a path.
    pub fn path(&'a self, path: *const c_char) -> Result<&'a Path, Failure> {
        Ok(Path::new(OsStr::from_bytes(self.c_string(path)?.to_bytes())))
    }

    fn c_string(&'a self, text: *const c_char) -> Result<&'a CStr, Failure> {
        if text.is_null() {
            return Err(Failure::argument("NULL instead of a string"));
        }
        // SAFETY: promised to `call`.
        Ok(unsafe { CStr::from_ptr(text) })
    }

    /// Returns a struct, or `None` for NULL.
    pub fn optional<T>(&'a self, place: *const T) -> Option<&'a T> {
        // SAFETY: promised to `call`.
        unsafe { place.as_ref() }
    }

    /// Returns an output, which is set to `nothing` first.
    pub fn out<T>(&self, place: *mut T, nothing: T) -> Result<Out<T>, Failure> {
        if place.is_null() {
            return Err(Failure::argument("NULL instead of an output"));
        }
        Ok(self.optional_out(place, nothing))
    }

    /// Returns an output that may be NULL.
    pub fn optional_out<T>(&self, place: *mut T, nothing: T) -> Out<T> {
        let out = Out(place);
        out.set(nothing);
        out
    }

    /// Returns an output for a handle.
    pub fn out_handle<T: Kind>(&self, place: *mut *mut T::C) -> Result<OutHandle<T>, Failure> {
        Ok(OutHandle(self.out(place, std::ptr::null_mut())?))
    }

    /// Returns the caller's buffer.
    pub fn room(&self, place: *mut c_void, len: usize) -> Result<Room, Failure> {
        if place.is_null() && len > 0 {
            return Err(Failure::argument(format!(
                "NULL instead of a buffer of {len} bytes"
            )));
        }
        Ok(Room(place.cast(), len))
    }
}

/// An output. Only [`FromC::out`] and [`FromC::optional_out`] create it.
pub struct Out<T>(*mut T);

impl<T> Out<T> {
    pub fn set(&self, answer: T) {
        if !self.0.is_null() {
            // SAFETY: promised to `call`. The overwritten memory is C's, which has no destructors.
            unsafe { self.0.write(answer) };
        }
    }
}

/// An output for a handle. Only [`FromC::out_handle`] creates it.
pub struct OutHandle<T: Kind>(Out<*mut T::C>);

impl<T: Kind> OutHandle<T> {
    pub fn open(&self, object: T) -> Result<wollemi_status, Failure> {
        self.0.set(handle::open(object));
        Ok(WOLLEMI_OK)
    }
}

/// The caller's buffer. Only [`FromC::room`] creates it.
pub struct Room(*mut u8, usize);

impl Room {
    /// Copies the bytes if they fit.
    pub fn fill(&self, bytes: &[u8]) -> wollemi_status {
        if bytes.len() > self.1 {
            return WOLLEMI_TOO_SMALL;
        }
        if !bytes.is_empty() {
            // SAFETY: promised to `call`: the buffer has room for them, and no other thread uses it.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0, bytes.len()) };
        }
        WOLLEMI_OK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status_with_a_message() {
        // SAFETY: no pointer is passed.
        let status = unsafe { call(|_| panic!("on purpose")) };
        assert_eq!(status, WOLLEMI_ERROR_BUG);
        // SAFETY: the message stays until this thread's next failure.
        let message = unsafe { CStr::from_ptr(crate::status::wollemi_message()) };
        assert!(message.to_string_lossy().contains("on purpose"), "{message:?}");
    }
}
