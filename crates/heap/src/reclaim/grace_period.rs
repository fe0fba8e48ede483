//! Exact grace periods: retired memory is freed the moment the last guard that protects it is gone.
//!
//! An epoch ends some time after its guards, which hides a premature retirement: hardly any memory is reused within a
//! short run. Under media that reuse memory at once ([`Media::REUSES_AT_ONCE`](pmem::Media::REUSES_AT_ONCE)) each
//! guard has a number here as well. The logical threads of such media share one system thread, and so do their
//! guards.
//!
//! I1 A deferred call runs when no guard is left whose number was assigned before the call was deferred.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether a heap of this process needs exact grace periods.
static WANTED: AtomicBool = AtomicBool::new(false);

#[derive(Default)]
struct Pins {
    last: u64,
    live: BTreeSet<u64>,
    /// Deferred calls, each with the last number assigned before it, in ascending order.
    deferred: VecDeque<(u64, Box<dyn FnOnce()>)>,
}

thread_local! {
    static PINS: RefCell<Pins> = RefCell::default();
}

/// Makes the grace periods of all guards from now on end exactly.
pub(crate) fn begin() {
    WANTED.store(true, Relaxed);
}

/// A guard's number. It stays on its thread.
pub(crate) struct Pin(u64, PhantomData<*const ()>);

/// Assigns a number for a guard, if grace periods end exactly.
#[inline(always)]
pub(crate) fn pin() -> Option<Pin> {
    WANTED.load(Relaxed).then(number)?
}

/// Assigns the next number; returns `None` if the thread is ending.
#[cold]
#[inline(never)]
fn number() -> Option<Pin> {
    let number = PINS.try_with(|pins| {
        let pins = &mut *pins.borrow_mut();
        pins.last += 1;
        pins.live.insert(pins.last);
        pins.last
    });
    number.ok().map(|number| Pin(number, PhantomData))
}

/// Defers `run` until every guard that exists now is gone. The caller holds one.
pub(crate) fn defer<R>(run: impl FnOnce() -> R + 'static) {
    // An ending thread runs no deferred calls any more.
    let _ = PINS.try_with(|pins| {
        let pins = &mut *pins.borrow_mut();
        let run = Box::new(move || drop(run()));
        pins.deferred.push_back((pins.last, run));
    });
}

impl Drop for Pin {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        let _ = PINS.try_with(|pins| {
            pins.borrow_mut().live.remove(&self.0);
            loop {
                let run = {
                    let pins = &mut *pins.borrow_mut();
                    let oldest = pins.live.first().copied().unwrap_or(u64::MAX);
                    match pins.deferred.front() {
                        Some((last, _)) if *last < oldest => pins.deferred.pop_front(),
                        _ => None,
                    }
                };
                match run {
                    Some((_, run)) => run(),
                    None => return,
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    /// A deferred call runs when the last guard that existed at its deferral goes, whatever guards came later, and
    /// not before.
    #[test]
    fn a_call_runs_when_the_last_guard_of_then_goes() {
        let ran = Rc::new(RefCell::new(Vec::new()));
        let defer = |what: u32| {
            let ran = Rc::clone(&ran);
            defer(move || ran.borrow_mut().push(what));
        };
        let (first, second) = (number(), number());
        defer(1);
        let third = number();
        defer(2);
        drop(first);
        assert!(ran.borrow().is_empty());
        drop(second);
        assert_eq!(*ran.borrow(), [1]);
        let fourth = number();
        drop(third);
        assert_eq!(*ran.borrow(), [1, 2]);
        drop(fourth);
        assert_eq!(*ran.borrow(), [1, 2]);
    }
}
