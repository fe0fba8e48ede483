//! DRAM under the heap's guards: what an index keeps beside its persistent objects is read by the same readers, and is
//! given back by the same epochs.
//!
//! I1 What a [`Swap`] has held is dropped when every guard is gone under which it could be loaded.
//! I2 What [`keep`] was given is dropped when the guard is gone for which it is kept.

use crate::Guard;
use crossbeam_epoch::{Atomic, Owned};
use std::sync::atomic::Ordering::{AcqRel, Acquire};

/// A value in DRAM that readers borrow under a guard, and that is replaced as a whole.
#[derive(Debug)]
pub struct Swap<T: Send + Sync + 'static>(Atomic<T>);

impl<T: Send + Sync + 'static> Swap<T> {
    /// Holds `value`.
    pub fn new(value: T) -> Swap<T> {
        Swap(Atomic::new(value))
    }

    /// What it holds now.
    #[inline]
    pub fn load<'g>(&'g self, guard: &'g Guard) -> &'g T {
        // SAFETY: it holds a value from `new` on until it is dropped; one that was replaced since is dropped when the
        // guard is gone (I1).
        unsafe { self.0.load(Acquire, guard.epoch()).deref() }
    }

    /// Replaces what it holds, which its readers may go on using until their guards are gone.
    pub fn replace(&self, value: T, guard: &Guard) {
        let old = self.0.swap(Owned::new(value), AcqRel, guard.epoch());
        // SAFETY: no thread can load it any more, and this call alone has swapped it out.
        unsafe { guard.epoch().defer_destroy(old) };
    }
}

impl<T: Send + Sync + 'static> Drop for Swap<T> {
    fn drop(&mut self) {
        let last = std::mem::replace(&mut self.0, Atomic::null());
        // SAFETY: `&mut self` is exclusive, and the cell holds a value, which `new` or `replace` has put there.
        drop(unsafe { last.into_owned() });
    }
}

/// An address that may be dropped by another thread.
struct Kept(*mut [u8]);

// SAFETY: the bytes are owned by this value alone.
unsafe impl Send for Kept {}

/// Keeps bytes in DRAM for as long as the guard lives: for reads that must return a borrowed copy.
#[expect(clippy::mut_from_ref, reason = "the bytes were the caller's own")]
pub fn keep(guard: &Guard, bytes: Box<[u8]>) -> &mut [u8] {
    let kept = Kept(Box::into_raw(bytes));
    // SAFETY: valid until the deferred call below runs, which is after the guard is gone, and borrowed this once.
    let borrowed = unsafe { &mut *kept.0 };
    guard.defer(move || {
        let kept = kept;
        // SAFETY: it came from `Box::into_raw`, and this runs once.
        drop(unsafe { Box::from_raw(kept.0) });
    });
    borrowed
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::time::{Duration, Instant};

    struct Counted(Arc<AtomicUsize>, usize);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    /// A loaded value lives as long as its guard, and each value is dropped once.
    #[test]
    fn what_was_loaded_stays() {
        let dropped = Arc::new(AtomicUsize::new(0));
        let swap = Swap::new(Counted(Arc::clone(&dropped), 0));
        let guard = crate::pin();
        let first = swap.load(&guard);
        for number in 1..=100 {
            swap.replace(Counted(Arc::clone(&dropped), number), &crate::pin());
            crate::pin().flush();
        }
        assert_eq!((first.1, swap.load(&guard).1), (0, 100));
        drop(guard);
        drop(swap);
        // Guards of other tests in this process may hold some up for a while.
        let begin = Instant::now();
        while dropped.load(SeqCst) < 101 {
            let dropped = dropped.load(SeqCst);
            assert!(begin.elapsed().as_secs() < 120, "{dropped} of 101 were dropped");
            crate::pin().flush();
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(dropped.load(SeqCst), 101);
    }

    /// Bytes kept for a guard are there while it lives.
    #[test]
    fn what_is_kept_stays() {
        let guard = crate::pin();
        let kept: Vec<&mut [u8]> = (0..100u8).map(|i| keep(&guard, Box::from([i; 8]))).collect();
        for _ in 0..10 {
            crate::pin().flush();
        }
        for (i, bytes) in (0..).zip(kept) {
            assert_eq!(bytes, [i; 8]);
        }
    }
}
