//! A media that calls a hook after each step of a thread.

use pmem::watched::{self, Observer, StepKind};
use pmem::{Purpose, Watched};
use std::cell::RefCell;

/// The step that a thread has just taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadStep {
    /// Loaded a persistent word.
    Load,
    /// Changed a persistent word.
    Store,
    /// Changed a persistent word that need not be durable.
    Unpersisted,
    /// Fenced for the index; not for the heap.
    Fence,
}

type Hook = Box<dyn FnMut(ThreadStep)>;

thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
    static WAITS: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// Runs `operation`, and `hook` when it first waits for another thread.
pub fn with_waits_hook<R>(hook: impl FnOnce() + 'static, operation: impl FnOnce() -> R) -> R {
    WAITS.set(Some(Box::new(hook)));
    let result = operation();
    WAITS.set(None);
    result
}

/// Runs `operation`, and `hook` after each of its steps, but not after steps of the hook itself.
pub fn with_hook<R>(hook: impl FnMut(ThreadStep) + 'static, operation: impl FnOnce() -> R) -> R {
    HOOK.set(Some(Box::new(hook)));
    let result = operation();
    HOOK.set(None);
    result
}

fn pass(step: ThreadStep) {
    if let Some(mut hook) = HOOK.take() {
        hook(step);
        HOOK.set(Some(hook));
    }
}

/// The machine, step by step.
pub type Stepping = Watched<Steps>;

/// Calls the hook.
#[derive(Clone, Copy, Debug)]
pub struct Steps;

impl Observer for Steps {
    fn after(&self, step: &watched::ObservedStep) {
        match step.what {
            StepKind::Load | StepKind::Peek => pass(ThreadStep::Load),
            StepKind::Store | StepKind::Exchange | StepKind::StoreNt => pass(ThreadStep::Store),
            StepKind::StoreUnpersisted | StepKind::ExchangeUnpersisted => pass(ThreadStep::Unpersisted),
            StepKind::Fence(Purpose::Node) => pass(ThreadStep::Fence),
            _ => {}
        }
    }

    fn waits(&self) {
        if let Some(hook) = WAITS.take() {
            hook();
        }
    }
}
