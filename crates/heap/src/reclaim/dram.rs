//! DRAM under the heap's guards: the readers of an index's persistent objects also read its DRAM state, and the same
//! epochs reclaim it.
//!
//! I1 A value replaced in a [`Swap`] is dropped when every guard is gone under which it could be loaded.
//! I2 Bytes given to [`keep`] are dropped when their guard is gone.

use crate::Guard;
use crossbeam_epoch::{Atomic, Owned};
use std::sync::atomic::Ordering::{AcqRel, Acquire};

/// A value in DRAM that readers borrow under a guard, and that is replaced as a whole.
#[derive(Debug)]
pub struct Swap<T: Send + Sync + 'static>(Atomic<T>);

impl<T: Send + Sync + 'static> Swap<T> {
    /// Creates a cell that holds `value`.
    pub fn new(value: T) -> Swap<T> {
        Swap(Atomic::new(value))
    }

    /// The current value.
    #[inline]
    pub fn load<'g>(&'g self, guard: &'g Guard) -> &'g T {
        // SAFETY: the cell holds a value from `new` until its drop; a replaced one is dropped when the guard is gone
        // (I1).
        unsafe { self.0.load(Acquire, guard.epoch()).deref() }
    }

    /// Replaces the value; readers may go on using the old one until their guards are gone.
    pub fn replace(&self, value: T, guard: &Guard) {
        let old = self.0.swap(Owned::new(value), AcqRel, guard.epoch());
        // SAFETY: no thread can load it any more, and only this call has swapped it out.
        unsafe { guard.epoch().defer_destroy(old) };
    }
}

impl<T: Send + Sync + 'static> Drop for Swap<T> {
    fn drop(&mut self) {
        let last = std::mem::replace(&mut self.0, Atomic::null());
        // SAFETY: `&mut self` is exclusive, and the cell holds a value that `new` or `replace` put there.
        drop(unsafe { last.into_owned() });
    }
}

/// Bytes that another thread may drop.
struct Kept(*mut [u8]);

// SAFETY: this value alone owns the bytes.
unsafe impl Send for Kept {}

/// Keeps bytes in DRAM for as long as the guard lives: for reads that must return a borrowed copy.
#[expect(clippy::mut_from_ref, reason = "the bytes were the caller's own")]
pub fn keep(guard: &Guard, bytes: Box<[u8]>) -> &mut [u8] {
    let len = bytes.len();
    let kept = Kept(Box::into_raw(bytes));
    // SAFETY: valid until the deferred call below runs, which is after the guard is gone, and borrowed this once.
    let borrowed = unsafe { &mut *kept.0 };
    guard.defer(len, move || {
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
        // Guards of other tests in this process may delay some drops.
        let begin = Instant::now();
        while dropped.load(SeqCst) < 101 {
            let dropped = dropped.load(SeqCst);
            assert!(begin.elapsed().as_secs() < 120, "{dropped} of 101 were dropped");
            crate::pin().flush();
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(dropped.load(SeqCst), 101);
    }

    /// Bytes kept for a guard live as long as it.
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
