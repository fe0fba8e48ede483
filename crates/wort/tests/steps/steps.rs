//! A media on which a thread can be looked at after each of its steps.

use pmem::{Hardware, Media, Purpose};
use std::cell::RefCell;
use std::sync::atomic::AtomicU64;

/// What a thread has just done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Loaded a persistent word.
    Load,
    /// Changed a persistent word.
    Store,
    /// Changed one that need not be durable.
    Unpersisted,
    /// Fenced for the index; not for the heap.
    Fence,
}

type Hook = Box<dyn FnMut(Step)>;

thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// Runs `operation`, and `hook` after each of its steps; what the hook does itself has none.
pub fn with_hook<R>(hook: impl FnMut(Step) + 'static, operation: impl FnOnce() -> R) -> R {
    HOOK.set(Some(Box::new(hook)));
    let result = operation();
    HOOK.set(None);
    result
}

fn pass(step: Step) {
    if let Some(mut hook) = HOOK.take() {
        hook(step);
        HOOK.set(Some(hook));
    }
}

/// The machine, step by step.
#[derive(Debug)]
pub struct Stepping(Hardware);

impl Stepping {
    pub fn new() -> Stepping {
        Stepping(Hardware::detect())
    }
}

// SAFETY: each call is the hardware's.
unsafe impl Media for Stepping {
    fn load(&self, word: &AtomicU64) -> u64 {
        let value = self.0.load(word);
        pass(Step::Load);
        value
    }
    fn store(&self, word: &AtomicU64, value: u64) {
        self.0.store(word, value);
        pass(Step::Store);
    }
    fn store_unpersisted(&self, word: &AtomicU64, value: u64) {
        self.0.store_unpersisted(word, value);
        pass(Step::Unpersisted);
    }
    fn compare_exchange(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        let result = self.0.compare_exchange(word, old, new);
        pass(Step::Store);
        result
    }
    fn store_nt(&self, word: &AtomicU64, value: u64) {
        self.0.store_nt(word, value);
        pass(Step::Store);
    }
    fn write_back(&self, at: *const u8, purpose: Purpose) {
        self.0.write_back(at, purpose);
    }
    fn fence(&self, purpose: Purpose) {
        self.0.fence(purpose);
        if purpose == Purpose::Node {
            pass(Step::Fence);
        }
    }
    fn load_volatile(&self, word: &AtomicU64) -> u64 {
        self.0.load_volatile(word)
    }
    fn store_volatile(&self, word: &AtomicU64, value: u64) {
        self.0.store_volatile(word, value);
    }
    fn compare_exchange_volatile(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        self.0.compare_exchange_volatile(word, old, new)
    }
}
