//! The way in: every function of the header runs in [`call`], which lets no panic out and turns what C hands over into
//! what Rust takes.
//!
//! The one promise that all of it rests on is made by the C program: what it passes is as the header says. Each
//! function says so once, where it calls `call`; what it gets is a [`FromC`], through which pointers are read and
//! written.

use crate::handle::{self, Held, Kind, ThreadSafe};
use crate::status::{Failure, tell, wollemi_status, wollemi_status::*};
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Carries out a call.
///
/// # Safety
///
/// Every pointer that `run` passes to the [`FromC`] was passed by the C program to this call, and is as the header
/// says:
///
/// * a handle is NULL or was given out by this library, and no thread closes it before the call returns;
/// * bytes to read are NULL or as many as their length says, and no thread writes them meanwhile;
/// * text is NULL or ends with a NUL;
/// * a place to write to is NULL, or aligned, and no other thread uses it meanwhile.
pub unsafe fn call(run: impl FnOnce(&FromC<'_>) -> Result<wollemi_status, Failure>) -> wollemi_status {
    let from_c = FromC(PhantomData);
    match catch_unwind(AssertUnwindSafe(|| run(&from_c))) {
        Ok(Ok(status)) => status,
        Ok(Err(failure)) => tell(failure),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let message = format!("a bug of the library: {}", text.unwrap_or("a panic"));
            tell(Failure::new(WOLLEMI_ERROR_BUG, message))
        }
    }
}

/// What the C program has passed to a call: see [`call`] for what it promises.
pub struct FromC<'a>(PhantomData<&'a ()>);

impl<'a> FromC<'a> {
    /// An object that many threads may use.
    pub fn share<T: ThreadSafe>(&'a self, handle: *const T::C) -> Result<&'a T, Failure> {
        // SAFETY: promised to `call`.
        unsafe { handle::share(handle) }
    }

    /// An object that is for one thread at a time.
    pub fn hold<T: Kind>(&self, handle: *const T::C) -> Result<Held<T>, Failure> {
        // SAFETY: promised to `call`.
        unsafe { handle::hold(handle) }
    }

    /// Closes a handle; NULL is none.
    pub fn close<T: Kind>(&self, handle: *mut T::C) -> Result<wollemi_status, Failure> {
        if !handle.is_null() {
            // SAFETY: promised to `call`.
            unsafe { handle::close::<T>(handle) }?;
        }
        Ok(WOLLEMI_OK)
    }

    /// Bytes that must be there.
    pub fn bytes(&'a self, data: *const c_void, len: usize) -> Result<&'a [u8], Failure> {
        match self.optional_bytes(data, len)? {
            Some(bytes) => Ok(bytes),
            None if len == 0 => Ok(&[]),
            None => Err(Failure::argument(format!("NULL in place of {len} bytes"))),
        }
    }

    /// Bytes, or NULL.
    pub fn optional_bytes(&'a self, data: *const c_void, len: usize) -> Result<Option<&'a [u8]>, Failure> {
        self.slice(data.cast(), len)
    }

    /// An array, or NULL.
    pub fn slice<T>(&'a self, data: *const T, len: usize) -> Result<Option<&'a [T]>, Failure> {
        if data.is_null() {
            return Ok(None);
        }
        if len > isize::MAX as usize / size_of::<T>().max(1) {
            return Err(Failure::argument(format!("{len}: more than memory can hold")));
        }
        // SAFETY: promised to `call`; the length is one that can be.
        Ok(Some(unsafe { std::slice::from_raw_parts(data, len) }))
    }

    /// A text in UTF-8.
    pub fn text(&'a self, text: *const c_char) -> Result<&'a str, Failure> {
        let text = self.c_string(text)?.to_str();
        text.map_err(|_| Failure::argument("text that is not UTF-8"))
    }

    /// A path.
    pub fn path(&'a self, path: *const c_char) -> Result<&'a Path, Failure> {
        Ok(Path::new(OsStr::from_bytes(self.c_string(path)?.to_bytes())))
    }

    fn c_string(&'a self, text: *const c_char) -> Result<&'a CStr, Failure> {
        if text.is_null() {
            return Err(Failure::argument("NULL in place of a text"));
        }
        // SAFETY: promised to `call`.
        Ok(unsafe { CStr::from_ptr(text) })
    }

    /// A struct, or NULL.
    pub fn optional<T>(&'a self, place: *const T) -> Option<&'a T> {
        // SAFETY: promised to `call`.
        unsafe { place.as_ref() }
    }

    /// A place for an answer, which holds `nothing` until it is set.
    pub fn out<T>(&self, place: *mut T, nothing: T) -> Result<Out<T>, Failure> {
        if place.is_null() {
            return Err(Failure::argument("NULL in place of where the answer goes"));
        }
        Ok(self.optional_out(place, nothing))
    }

    /// A place for an answer that may be NULL.
    pub fn optional_out<T>(&self, place: *mut T, nothing: T) -> Out<T> {
        let out = Out(place);
        out.set(nothing);
        out
    }

    /// A place for a handle.
    pub fn out_handle<T: Kind>(&self, place: *mut *mut T::C) -> Result<OutHandle<T>, Failure> {
        Ok(OutHandle(self.out(place, std::ptr::null_mut())?))
    }

    /// Room of the caller's.
    pub fn room(&self, place: *mut c_void, len: usize) -> Result<Room, Failure> {
        if place.is_null() && len > 0 {
            return Err(Failure::argument(format!(
                "NULL in place of room for {len} bytes"
            )));
        }
        Ok(Room(place.cast(), len))
    }
}

/// A place for an answer, of [`FromC::out`] alone.
pub struct Out<T>(*mut T);

impl<T> Out<T> {
    pub fn set(&self, answer: T) {
        if !self.0.is_null() {
            // SAFETY: promised to `call`. The overwritten memory is C's, which has no destructors.
            unsafe { self.0.write(answer) };
        }
    }
}

/// A place for a handle, of [`FromC::out_handle`] alone.
pub struct OutHandle<T: Kind>(Out<*mut T::C>);

impl<T: Kind> OutHandle<T> {
    pub fn open(&self, object: T) -> Result<wollemi_status, Failure> {
        self.0.set(handle::open(object));
        Ok(WOLLEMI_OK)
    }
}

/// Room of the caller's, of [`FromC::room`] alone.
pub struct Room(*mut u8, usize);

impl Room {
    /// Copies the bytes, if they fit.
    pub fn fill(&self, bytes: &[u8]) -> wollemi_status {
        if bytes.len() > self.1 {
            return WOLLEMI_TOO_SMALL;
        }
        if !bytes.is_empty() {
            // SAFETY: promised to `call`: there is room for as many, and no other thread uses it.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0, bytes.len()) };
        }
        WOLLEMI_OK
    }
}
