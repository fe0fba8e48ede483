//! A media with an observer: it forwards each call to another media, and calls an [`Observer`] before and after each
//! step. The media that count, delay and trace have observers; so do those that stop a thread at a step, or end the
//! process there.

use crate::{Hardware, Media, PersistenceDomain, Purpose};
use std::panic::Location;
use std::sync::atomic::AtomicU64;

/// The action of a step, on the words or bytes from [`ObservedStep::start`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// Loads a persistent word.
    Load,
    /// Loads a persistent word for a hint.
    Peek,
    /// Stores a persistent word.
    Store,
    /// Stores a persistent word past the cache.
    StoreNt,
    /// Stores a persistent word that need not be persisted.
    StoreUnpersisted,
    /// Compares a persistent word and swaps it.
    Exchange,
    /// Compares a persistent word and swaps it, without need to persist it.
    ExchangeUnpersisted,
    /// Is about to read bytes by plain loads.
    Touch,
    /// Begins a draft.
    Draft,
    /// Has filled a draft.
    Drafted,
    /// Lets bytes join a batch.
    Join,
    /// Writes back a line.
    WriteBack(Purpose),
    /// Writes back a line that has joined a batch.
    WriteBackJoined(Purpose),
    /// Waits for the write-backs before it.
    Fence(Purpose),
    /// Has written bytes of a pool's file to its medium.
    Sync,
    /// Loads a word of the current generation only.
    LoadVolatile,
    /// Stores such a word.
    StoreVolatile,
    /// Compares and swaps such a word.
    ExchangeVolatile,
}

/// A step of a thread.
#[derive(Clone, Copy, Debug)]
pub struct ObservedStep {
    /// The action.
    pub what: StepKind,
    /// Where the affected bytes start; null for a fence.
    pub start: *const u8,
    /// Number of bytes.
    pub len: usize,
    /// The call site.
    pub site: &'static Location<'static>,
}

impl ObservedStep {
    #[inline(always)]
    #[track_caller]
    fn of(what: StepKind, start: *const u8, len: usize) -> ObservedStep {
        ObservedStep {
            what,
            start,
            len,
            site: Location::caller(),
        }
    }

    #[inline(always)]
    #[track_caller]
    fn on(what: StepKind, word: &AtomicU64) -> ObservedStep {
        ObservedStep::of(what, word.as_ptr().cast_const().cast(), size_of::<AtomicU64>())
    }

    /// Whether it changes a persistent word, or may change one.
    #[inline]
    pub fn stores(&self) -> bool {
        use StepKind::{Exchange, ExchangeUnpersisted, Store, StoreNt, StoreUnpersisted};
        matches!(
            self.what,
            Exchange | ExchangeUnpersisted | Store | StoreNt | StoreUnpersisted
        )
    }
}

/// The observer of a [`Watched`] media.
pub trait Observer: Send + Sync + 'static {
    /// Called when a thread is about to take a step.
    #[inline(always)]
    fn before(&self, step: &ObservedStep) {
        let _ = step;
    }

    /// Called when a thread has taken a step. Not called for an exchange that found another value.
    #[inline(always)]
    fn after(&self, step: &ObservedStep) {
        let _ = step;
    }

    /// Called when a thread is about to wait for another one.
    #[inline(always)]
    fn waits(&self) {}

    /// Called when a larger change has reached this step ([`Media::comes_to`]).
    #[inline(always)]
    fn comes_to(&self, step: &'static str) {
        let _ = step;
    }
}

/// Passes calls on to `M`, observed by `W`.
///
/// Two calls are answered by their defaults, so that the observer sees each load and each write-back:
/// [`candidates`](Media::candidates) names all slots, and [`writes_back`](Media::writes_back) returns `true`.
#[derive(Clone, Debug)]
pub struct Watched<W: Observer, M: Media = Hardware> {
    pub(crate) watch: W,
    pub(crate) inner: M,
}

impl<W: Observer> Watched<W> {
    /// Wraps the machine itself.
    pub fn machine(watch: W) -> Watched<W> {
        Watched::around(Hardware::detect(), watch)
    }
}

impl<W: Observer, M: Media> Watched<W, M> {
    /// Wraps `inner`.
    pub fn around(inner: M, watch: W) -> Watched<W, M> {
        Watched { watch, inner }
    }

    /// The observer.
    pub fn watch(&self) -> &W {
        &self.watch
    }

    /// The wrapped media.
    pub fn inner(&self) -> &M {
        &self.inner
    }

    #[inline(always)]
    fn step<R>(&self, step: ObservedStep, take: impl FnOnce(&M) -> R) -> R {
        self.watch.before(&step);
        let result = take(&self.inner);
        self.watch.after(&step);
        result
    }

    #[inline(always)]
    fn exchange(&self, step: ObservedStep, take: impl FnOnce(&M) -> Result<u64, u64>) -> Result<u64, u64> {
        self.watch.before(&step);
        let result = take(&self.inner);
        if result.is_ok() {
            self.watch.after(&step);
        }
        result
    }
}

// SAFETY: all calls that the contract names are passed on, but for `candidates`, whose default names all slots.
unsafe impl<W: Observer, M: Media> Media for Watched<W, M> {
    const TAKES_TURNS: bool = M::TAKES_TURNS;
    const REUSES_AT_ONCE: bool = M::REUSES_AT_ONCE;

    #[inline]
    fn load(&self, word: &AtomicU64) -> u64 {
        self.step(ObservedStep::on(StepKind::Load, word), |inner| inner.load(word))
    }

    #[inline]
    fn peek(&self, word: &AtomicU64) -> u64 {
        self.step(ObservedStep::on(StepKind::Peek, word), |inner| inner.peek(word))
    }

    #[inline]
    fn disregard(&self, word: &AtomicU64) {
        self.inner.disregard(word);
    }

    #[inline]
    fn store(&self, word: &AtomicU64, value: u64) {
        self.step(ObservedStep::on(StepKind::Store, word), |inner| {
            inner.store(word, value)
        });
    }

    #[inline]
    fn compare_exchange(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        self.exchange(ObservedStep::on(StepKind::Exchange, word), |inner| {
            inner.compare_exchange(word, old, new)
        })
    }

    #[inline]
    fn store_nt(&self, word: &AtomicU64, value: u64) {
        self.step(ObservedStep::on(StepKind::StoreNt, word), |inner| {
            inner.store_nt(word, value)
        });
    }

    #[inline]
    fn store_unpersisted(&self, word: &AtomicU64, value: u64) {
        self.step(ObservedStep::on(StepKind::StoreUnpersisted, word), |inner| {
            inner.store_unpersisted(word, value);
        });
    }

    #[inline]
    fn compare_exchange_unpersisted(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        self.exchange(ObservedStep::on(StepKind::ExchangeUnpersisted, word), |inner| {
            inner.compare_exchange_unpersisted(word, old, new)
        })
    }

    #[inline]
    fn touched(&self, start: *const u8, len: usize) {
        self.step(ObservedStep::of(StepKind::Touch, start, len), |inner| {
            inner.touched(start, len);
        });
    }

    #[inline]
    fn freed(&self, start: *const u8, len: usize, site: &'static Location<'static>) {
        self.inner.freed(start, len, site);
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.inner.has_room()
    }

    #[inline]
    fn drafting(&self, start: *const u8, len: usize) {
        self.step(ObservedStep::of(StepKind::Draft, start, len), |inner| {
            inner.drafting(start, len);
        });
    }

    #[inline]
    fn drafted(&self, start: *const u8, len: usize) {
        self.step(ObservedStep::of(StepKind::Drafted, start, len), |inner| {
            inner.drafted(start, len);
        });
    }

    #[inline]
    fn write_back(&self, word: &AtomicU64, purpose: Purpose) {
        let at = word.as_ptr().cast_const().cast();
        self.step(ObservedStep::of(StepKind::WriteBack(purpose), at, 1), |inner| {
            inner.write_back(word, purpose);
        });
    }

    #[inline]
    fn joined(&self, at: *const u8, len: usize) {
        self.step(ObservedStep::of(StepKind::Join, at, len), |inner| {
            inner.joined(at, len)
        });
    }

    #[inline]
    unsafe fn write_back_joined(&self, at: *const u8, purpose: Purpose) {
        self.step(
            ObservedStep::of(StepKind::WriteBackJoined(purpose), at, 1),
            |inner| {
                // SAFETY: the caller promises that the line is mapped.
                unsafe { inner.write_back_joined(at, purpose) };
            },
        );
    }

    #[inline]
    fn fence(&self, purpose: Purpose) {
        self.step(
            ObservedStep::of(StepKind::Fence(purpose), std::ptr::null(), 0),
            |inner| {
                inner.fence(purpose);
            },
        );
    }

    #[inline]
    fn load_volatile(&self, word: &AtomicU64) -> u64 {
        self.step(ObservedStep::on(StepKind::LoadVolatile, word), |inner| {
            inner.load_volatile(word)
        })
    }

    #[inline]
    fn store_volatile(&self, word: &AtomicU64, value: u64) {
        self.step(ObservedStep::on(StepKind::StoreVolatile, word), |inner| {
            inner.store_volatile(word, value);
        });
    }

    #[inline]
    fn compare_exchange_volatile(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        self.exchange(ObservedStep::on(StepKind::ExchangeVolatile, word), |inner| {
            inner.compare_exchange_volatile(word, old, new)
        })
    }

    fn stores_survive_in(&mut self, domain: PersistenceDomain) {
        self.inner.stores_survive_in(domain);
    }

    #[inline]
    fn synced(&self, start: *const u8, len: usize) {
        self.step(ObservedStep::of(StepKind::Sync, start, len), |inner| {
            inner.synced(start, len);
        });
    }

    #[inline]
    fn comes_to(&self, step: &'static str) {
        self.watch.comes_to(step);
        self.inner.comes_to(step);
    }

    #[inline]
    fn site(&self, name: &'static str) {
        self.inner.site(name);
    }

    fn wait(&self, turn: u32) {
        self.watch.waits();
        self.inner.wait(turn);
    }
}
