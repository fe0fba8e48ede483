//! Handles: C's references to objects, checked at each use.
//!
//! A handle is the address of a *shell*, which holds the object's kind and state in front of the object itself.
//!
//! I1 A shell is never freed, so a closed handle can still be inspected. A shell is reused for another object of the
//! same kind once more than `QUARANTINE` of its kind are spare: a closed handle is recognized as closed until as many
//! others were closed.
//! I2 A `CLOSED` shell has no object; `IDLE` and `BUSY` ones have one, which only a close removes.
//! I3 An object whose kind is for one thread at a time is reached only through `BUSY`.

use crate::status::{Failure, wollemi_status::*};
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Mutex, PoisonError};

/// Spare shells of a kind that are kept from reuse.
const QUARANTINE: usize = 64;

const CLOSED: u32 = 0x646f6e65;
const IDLE: u32 = 0x69646c65;
const BUSY: u32 = 0x62757379;

/// The common beginning of every shell.
#[repr(C)]
struct Head {
    /// Constant.
    kind: u32,
    state: AtomicU32,
}

/// A shell of one kind.
#[repr(C)]
pub struct Shell<T> {
    head: Head,
    object: UnsafeCell<Option<T>>,
}

// SAFETY: the object of a kind for many threads is reached as `&T`, and such a `T` is `Sync` (`ThreadSafe`); any other
// object through `Held`, by one thread at a time (I3); a close removes it from a shell that no call uses.
unsafe impl<T: Send> Sync for Shell<T> {}

/// A kind of object that a handle can refer to.
pub trait Kind: Send + Sized + 'static {
    /// The type in C.
    type C;
    /// The mark in the shell's head, unique to the kind.
    const MARK: u32;
    /// Its name in messages.
    const NAME: &str;
    /// Returns the spare shells.
    fn spare() -> &'static Spare<Self>;
}

/// A kind that many threads may use at once.
pub trait ThreadSafe: Kind + Sync {}

/// Spare shells, the one closed first in front.
pub struct Spare<T: 'static>(Mutex<VecDeque<&'static Shell<T>>>);

impl<T> Spare<T> {
    pub const fn new() -> Spare<T> {
        Spare(Mutex::new(VecDeque::new()))
    }
}

/// Declares kinds of handles: the type in C, the object behind it, a mark and a name.
macro_rules! kinds {
    ($($(#[$doc:meta])* $c:ident, $object:ty, $mark:literal, $name:literal;)*) => {$(
        impl $crate::handle::Kind for $object {
            type C = $crate::types::$c;
            const MARK: u32 = u32::from_le_bytes(*$mark);
            const NAME: &str = $name;
            fn spare() -> &'static $crate::handle::Spare<Self> {
                static SPARE: $crate::handle::Spare<$object> = $crate::handle::Spare::new();
                &SPARE
            }
        }
    )*};
}
pub(crate) use kinds;

/// Returns a handle to a new object.
pub fn open<T: Kind>(object: T) -> *mut T::C {
    let mut spare = T::spare().0.lock().unwrap_or_else(PoisonError::into_inner);
    let used = if spare.len() > QUARANTINE {
        spare.pop_front()
    } else {
        None
    };
    drop(spare);
    let shell: &'static Shell<T> = used.unwrap_or_else(|| {
        Box::leak(Box::new(Shell {
            head: Head {
                kind: T::MARK,
                state: AtomicU32::new(CLOSED),
            },
            object: UnsafeCell::new(None),
        }))
    });
    let place = shell.object.get();
    // SAFETY: the shell is closed and no longer spare, so no other thread reaches its object (I2).
    unsafe { *place = Some(object) };
    shell.head.state.store(IDLE, Release);
    std::ptr::from_ref(shell).cast_mut().cast()
}

/// Returns the shell behind a handle.
///
/// # Safety
///
/// The pointer is NULL or was made by [`open`], for any kind.
unsafe fn shell<T: Kind>(handle: *const T::C) -> Result<&'static Shell<T>, Failure> {
    let head = handle.cast::<Head>();
    // SAFETY: every handle points to a shell, which begins with a head and is never freed (I1).
    let Some(head) = (unsafe { head.as_ref() }) else {
        return Err(Failure::argument(format!("NULL instead of a {}", T::NAME)));
    };
    if head.kind != T::MARK {
        let message = format!("the handle is not one of a {}", T::NAME);
        return Err(Failure::new(WOLLEMI_ERROR_HANDLE, message));
    }
    // SAFETY: a shell with this mark is one of `T`, and is never freed.
    Ok(unsafe { &*handle.cast::<Shell<T>>() })
}

fn closed<T: Kind>() -> Failure {
    let message = format!("the handle of this {} is closed", T::NAME);
    Failure::new(WOLLEMI_ERROR_HANDLE, message)
}

/// Returns the object behind a handle that many threads may use.
///
/// # Safety
///
/// As for [`shell`], and no thread closes the handle while the object is used.
pub unsafe fn share<'a, T: ThreadSafe>(handle: *const T::C) -> Result<&'a T, Failure> {
    // SAFETY: promised by the caller.
    let shell = unsafe { shell::<T>(handle) }?;
    if shell.head.state.load(Acquire) != IDLE {
        return Err(closed::<T>());
    }
    let object = shell.object.get();
    // SAFETY: it is open, the caller promises that it stays so, and nothing creates a `&mut` to an object of such a
    // kind.
    unsafe { &*object }.as_ref().ok_or_else(closed::<T>)
}

/// Returns the object behind a handle that is for one thread at a time, for the duration of a call.
///
/// # Safety
///
/// As for [`shell`].
pub unsafe fn hold<T: Kind>(handle: *const T::C) -> Result<Held<T>, Failure> {
    // SAFETY: promised by the caller.
    let shell = unsafe { shell::<T>(handle) }?;
    match shell.head.state.compare_exchange(IDLE, BUSY, Acquire, Relaxed) {
        Ok(_) => Ok(Held(shell)),
        Err(BUSY) => {
            let message = format!("another call is using this {}", T::NAME);
            Err(Failure::new(WOLLEMI_ERROR_THREADS, message))
        }
        Err(_) => Err(closed::<T>()),
    }
}

/// Closes a handle and returns its object.
///
/// # Safety
///
/// As for [`shell`], and no call uses the object if many threads may use its kind.
pub unsafe fn close<T: Kind>(handle: *mut T::C) -> Result<T, Failure> {
    // SAFETY: promised by the caller.
    let held = unsafe { hold::<T>(handle) }?;
    let shell = held.0;
    let place = shell.object.get();
    // SAFETY: only this call has the shell, which is busy.
    let object = unsafe { (*place).take() };
    let object = object.expect("I2: a busy shell has an object");
    std::mem::forget(held);
    shell.head.state.store(CLOSED, Release);
    let mut spare = T::spare().0.lock().unwrap_or_else(PoisonError::into_inner);
    spare.push_back(shell);
    drop(spare);
    Ok(object)
}

/// An object that only this call has.
pub struct Held<T: 'static>(&'static Shell<T>);

impl<T> Deref for Held<T> {
    type Target = T;
    fn deref(&self) -> &T {
        let place = self.0.object.get();
        // SAFETY: the shell is busy for this value alone (I3).
        let object = unsafe { &*place };
        object.as_ref().expect("I2: a busy shell has an object")
    }
}

impl<T> DerefMut for Held<T> {
    fn deref_mut(&mut self) -> &mut T {
        let place = self.0.object.get();
        // SAFETY: the shell is busy for this value alone (I3).
        let object = unsafe { &mut *place };
        object.as_mut().expect("I2: a busy shell has an object")
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        self.0.head.state.store(IDLE, Release);
    }
}
