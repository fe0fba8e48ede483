//! A media that notes which lines are read and stored into, in order: the path of an operation through the memory.
//!
//! What it notes is what passes the media: words, and the bytes of which the media is told that they are read by
//! plain loads ([`Media::touched`]). It is meant for one thread at a time.

use crate::{Hardware, LINE, Media, Purpose};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Notes the lines that are touched on the way to `M`, between [`begin`](Tracing::begin) and [`take`](Tracing::take).
#[derive(Debug)]
pub struct Tracing<M: Media = Hardware> {
    inner: M,
    noting: AtomicBool,
    lines: Mutex<Vec<usize>>,
}

impl<M: Media> Tracing<M> {
    /// Notes nothing yet.
    pub fn new(inner: M) -> Tracing<M> {
        Tracing {
            inner,
            noting: AtomicBool::new(false),
            lines: Mutex::default(),
        }
    }

    /// Notes what is touched from now on.
    pub fn begin(&self) {
        self.noting.store(true, Ordering::Relaxed);
    }

    /// Ends it. The numbers of the lines (address by 64) touched since it began, in order; a line touched several
    /// times in a row is there once.
    pub fn take(&self) -> Vec<usize> {
        self.noting.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, start: *const u8, len: usize) {
        if !self.noting.load(Ordering::Relaxed) {
            return;
        }
        let first = start.addr() / LINE;
        let end = (start.addr() + len).div_ceil(LINE);
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        for line in first..end {
            if lines.last() != Some(&line) {
                lines.push(line);
            }
        }
    }

    fn note_word(&self, word: &AtomicU64) {
        self.note(word.as_ptr().cast(), size_of::<AtomicU64>());
    }
}

// SAFETY: all that matters is passed on.
unsafe impl<M: Media> Media for Tracing<M> {
    fn load(&self, word: &AtomicU64) -> u64 {
        self.note_word(word);
        self.inner.load(word)
    }

    fn store(&self, word: &AtomicU64, value: u64) {
        self.note_word(word);
        self.inner.store(word, value);
    }

    fn compare_exchange(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        self.note_word(word);
        self.inner.compare_exchange(word, old, new)
    }

    fn store_nt(&self, word: &AtomicU64, value: u64) {
        self.note_word(word);
        self.inner.store_nt(word, value);
    }

    fn store_unpersisted(&self, word: &AtomicU64, value: u64) {
        self.note_word(word);
        self.inner.store_unpersisted(word, value);
    }

    fn compare_exchange_unpersisted(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        self.note_word(word);
        self.inner.compare_exchange_unpersisted(word, old, new)
    }

    fn touched(&self, start: *const u8, len: usize) {
        self.note(start, len);
        self.inner.touched(start, len);
    }

    fn drafting(&self, start: *const u8, len: usize) {
        self.note(start, len);
        self.inner.drafting(start, len);
    }

    fn drafted(&self, start: *const u8, len: usize) {
        self.inner.drafted(start, len);
    }

    fn write_back(&self, at: *const u8, purpose: Purpose) {
        self.inner.write_back(at, purpose);
    }

    fn joined(&self, at: *const u8, len: usize) {
        self.inner.joined(at, len);
    }

    fn write_back_joined(&self, at: *const u8, purpose: Purpose) {
        self.inner.write_back_joined(at, purpose);
    }

    fn fence(&self, purpose: Purpose) {
        self.inner.fence(purpose);
    }

    fn load_volatile(&self, word: &AtomicU64) -> u64 {
        self.note_word(word);
        self.inner.load_volatile(word)
    }

    fn store_volatile(&self, word: &AtomicU64, value: u64) {
        self.note_word(word);
        self.inner.store_volatile(word, value);
    }

    fn compare_exchange_volatile(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        self.note_word(word);
        self.inner.compare_exchange_volatile(word, old, new)
    }

    fn caches_persist(&mut self) {
        self.inner.caches_persist();
    }

    fn wait(&self, turn: u32) {
        self.inner.wait(turn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(64))]
    struct Lines([AtomicU64; 24]);

    /// Lines are noted in the order of their use, words and bytes alike, one after the other once.
    #[test]
    fn lines_are_noted_in_order() {
        let media = Tracing::new(Hardware::detect());
        let memory = Lines([const { AtomicU64::new(0) }; 24]);
        let first = memory.0[0].as_ptr().addr() / LINE;
        media.load(&memory.0[8]);
        media.begin();
        media.load(&memory.0[1]);
        media.load_volatile(&memory.0[7]);
        media.touched(memory.0[7].as_ptr().cast(), 80);
        media.store(&memory.0[0], 1);
        assert_eq!(media.take(), [first, first + 1, first + 2, first]);
        media.load(&memory.0[8]);
        assert!(media.take().is_empty());
    }
}
