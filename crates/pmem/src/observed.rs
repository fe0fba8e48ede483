//! The media that observe or delay calls, as one type: code that is generic over media is compiled once for all of
//! them, at the price of a branch per call. Measurements of the machine itself use `Hardware` and do not pay it.

use crate::{Counting, Delaying, Media, PersistenceDomain, Purpose, Tracing};
use std::sync::atomic::AtomicU64;

/// The machine, observed or delayed.
#[derive(Debug)]
pub enum Observed {
    /// Counts persists.
    Counting(Counting),
    /// Prolongs fences.
    Delaying(Delaying),
    /// Records the lines touched.
    Tracing(Tracing),
}

macro_rules! to_each {
    ($self:ident, $media:ident => $call:expr) => {
        match $self {
            Observed::Counting($media) => $call,
            Observed::Delaying($media) => $call,
            Observed::Tracing($media) => $call,
        }
    };
}

// SAFETY: all calls that the contract names are passed on, but for `candidates`, whose default names all slots.
unsafe impl Media for Observed {
    #[inline]
    fn load(&self, word: &AtomicU64) -> u64 {
        to_each!(self, media => media.load(word))
    }

    #[inline]
    fn store(&self, word: &AtomicU64, value: u64) {
        to_each!(self, media => media.store(word, value));
    }

    #[inline]
    fn compare_exchange(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        to_each!(self, media => media.compare_exchange(word, old, new))
    }

    fn store_nt(&self, word: &AtomicU64, value: u64) {
        to_each!(self, media => media.store_nt(word, value));
    }

    fn store_unpersisted(&self, word: &AtomicU64, value: u64) {
        to_each!(self, media => media.store_unpersisted(word, value));
    }

    fn compare_exchange_unpersisted(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        to_each!(self, media => media.compare_exchange_unpersisted(word, old, new))
    }

    #[inline]
    fn touched(&self, start: *const u8, len: usize) {
        to_each!(self, media => media.touched(start, len));
    }

    #[inline]
    fn drafting(&self, start: *const u8, len: usize) {
        to_each!(self, media => media.drafting(start, len));
    }

    fn drafted(&self, start: *const u8, len: usize) {
        to_each!(self, media => media.drafted(start, len));
    }

    fn write_back(&self, word: &AtomicU64, purpose: Purpose) {
        to_each!(self, media => media.write_back(word, purpose));
    }

    #[inline]
    fn joined(&self, at: *const u8, len: usize) {
        to_each!(self, media => media.joined(at, len));
    }

    unsafe fn write_back_joined(&self, at: *const u8, purpose: Purpose) {
        // SAFETY: the caller promises that the line is mapped.
        to_each!(self, media => unsafe { media.write_back_joined(at, purpose) });
    }

    fn fence(&self, purpose: Purpose) {
        to_each!(self, media => media.fence(purpose));
    }

    #[inline]
    fn load_volatile(&self, word: &AtomicU64) -> u64 {
        to_each!(self, media => media.load_volatile(word))
    }

    #[inline]
    fn store_volatile(&self, word: &AtomicU64, value: u64) {
        to_each!(self, media => media.store_volatile(word, value));
    }

    #[inline]
    fn compare_exchange_volatile(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        to_each!(self, media => media.compare_exchange_volatile(word, old, new))
    }

    fn stores_survive_in(&mut self, domain: PersistenceDomain) {
        to_each!(self, media => media.stores_survive_in(domain));
    }

    fn wait(&self, turn: u32) {
        to_each!(self, media => media.wait(turn));
    }
}
