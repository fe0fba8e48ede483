//! A media that stops a thread at a step of the test's choice.

use heap::Heap;
use pmem::watched::{self, Observer, StepKind};
use pmem::{Pool, PoolOptions, Purpose, Watched};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wollemi_roart::{Full, Roart};

/// The steps at which a thread can be stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Before a lock, or another volatile word, is changed by a compare-and-swap.
    Lock,
    /// After a lock's holder has stored its word, or after a store to another volatile word.
    Held,
    /// After a fence for an index's own objects.
    Fence,
}

type Hook = Box<dyn FnOnce()>;

thread_local! {
    /// The kind of step, the step's number counted from 1, and the hook to call there, for this thread.
    static HOOK: RefCell<Option<(Step, usize, Hook)>> = const { RefCell::new(None) };
}

/// Calls `hook` in this thread at the `nth` such step from now on.
pub fn at(step: Step, nth: usize, hook: impl FnOnce() + 'static) {
    HOOK.set(Some((step, nth, Box::new(hook))));
}

fn pass(step: Step) {
    let hook = HOOK.with_borrow_mut(|slot| match slot {
        Some((wanted, left, _)) if *wanted == step => {
            *left -= 1;
            if *left == 0 { slot.take() } else { None }
        }
        _ => None,
    });
    if let Some((_, _, hook)) = hook {
        hook();
    }
}

/// Stops threads, and counts loads of locks and other volatile words.
#[derive(Default)]
pub struct Stops {
    pub looks: AtomicU64,
}

impl Observer for Stops {
    fn before(&self, step: &watched::ObservedStep) {
        match step.what {
            StepKind::ExchangeVolatile => pass(Step::Lock),
            StepKind::LoadVolatile => _ = self.looks.fetch_add(1, Relaxed),
            _ => {}
        }
    }
    fn after(&self, step: &watched::ObservedStep) {
        match step.what {
            StepKind::StoreVolatile => pass(Step::Held),
            StepKind::Fence(Purpose::Node) => pass(Step::Fence),
            _ => {}
        }
    }
}

pub type Stopping = Watched<Stops>;

/// An empty index in memory.
pub fn index() -> Arc<Roart<Stopping, Full>> {
    let pool = Pool::anonymous(&PoolOptions::default(), Watched::machine(Stops::default())).expect("memory");
    let heap = Heap::new(pool).expect("a heap");
    Arc::new(Roart::create(&heap, b"test").expect("room"))
}
