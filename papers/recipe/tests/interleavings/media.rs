//! A media that stops a thread after a step, and counts the turns for which threads wait.

use pmem::watched::{self, Observer, StepKind};
use pmem::{Purpose, Watched};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The events that count as a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A fence of the index, or a store to a volatile word, such as the release of a lock.
    Fence,
    /// The same, and each store to a persistent word, or compare-and-swap that changes one.
    Store,
}

type Hook = Box<dyn FnOnce()>;

thread_local! {
    /// The kind of step, the step's number counted from 1, and the hook to call after it, for this thread.
    static HOOK: RefCell<Option<(Step, usize, Hook)>> = const { RefCell::new(None) };
    /// The counter of this thread's waiting turns.
    static TURNS: RefCell<Option<Arc<AtomicU64>>> = const { RefCell::new(None) };
    /// The structure modifications that this thread has reached.
    static REACHED: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

/// Calls `hook` in this thread after its `nth` step from now on.
pub fn at(step: Step, nth: usize, hook: impl FnOnce() + 'static) {
    HOOK.set(Some((step, nth, Box::new(hook))));
}

/// Removes a hook whose step has not come.
pub fn forget() {
    HOOK.take();
}

/// Counts this thread's waiting turns from now on.
pub fn count_turns(turns: Arc<AtomicU64>) {
    TURNS.set(Some(turns));
}

/// The structure modifications that this thread has reached since the last call.
pub fn reached() -> Vec<&'static str> {
    REACHED.take()
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Stops;

pub type Stopping = Watched<Stops>;

impl Observer for Stops {
    fn after(&self, step: &watched::ObservedStep) {
        // Not inside the heap: it grows the pool under a lock, so a thread stopped there would stop others.
        let file = step.site.file();
        if ["crates/heap", "crates/pmem"].iter().any(|of| file.contains(of)) {
            return;
        }
        let counts = |counted| match step.what {
            StepKind::Fence(Purpose::Node) | StepKind::StoreVolatile => true,
            _ => step.stores() && counted == Step::Store,
        };
        let hook = HOOK.with_borrow_mut(|hook| {
            let (_, left, _) = hook.as_mut().filter(|(counted, ..)| counts(*counted))?;
            *left -= 1;
            if *left == 0 { hook.take() } else { None }
        });
        if let Some((.., hook)) = hook {
            hook();
        }
    }

    fn waits(&self) {
        TURNS.with_borrow(|turns| {
            if let Some(turns) = turns {
                turns.fetch_add(1, Relaxed);
            }
        });
    }

    fn comes_to(&self, step: &'static str) {
        REACHED.with_borrow_mut(|reached| reached.push(step));
    }
}
