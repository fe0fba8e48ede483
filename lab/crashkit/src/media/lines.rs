//! Lines: their content, and what happens when a run first touches a line, or first saves it before a change.

use super::{AccessKind, Crash, Slow};
use crate::model::Content;
use pmem::LINE;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

impl Crash {
    /// Returns the present content of a line.
    pub(crate) fn content(&self, line: u32) -> Content {
        let words = &self.words()[line as usize * 8..][..8];
        let word = |i: usize| words[i].load(Relaxed);
        [
            word(0),
            word(1),
            word(2),
            word(3),
            word(4),
            word(5),
            word(6),
            word(7),
        ]
    }

    pub(super) fn write(&self, line: u32, content: &Content) {
        let words = &self.words()[line as usize * 8..][..8];
        for (word, &value) in words.iter().zip(content) {
            word.store(value, Relaxed);
        }
    }

    pub(super) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the kit changes a line when it is first touched, before any reference into it can exist, and between
        // runs, when no pool is open.
        unsafe { self.0.memory.words() }
    }

    pub(super) fn set_unsettled(&self, line: u32, unsettled: bool) {
        self.0.lines[line as usize].unsettled.store(unsettled, Relaxed);
    }

    /// Returns the offset of `at` in the memory, if it is in the memory.
    #[inline(always)]
    pub(super) fn within(&self, at: *const u8) -> Option<usize> {
        let offset = at.addr().wrapping_sub(self.0.start);
        (offset < self.0.len).then_some(offset)
    }

    #[inline(always)]
    #[track_caller]
    pub(super) fn touch_for_load(&self, word: &AtomicU64) {
        let at = word.as_ptr().cast();
        self.count_access(AccessKind::Load, at);
        if let Some(offset) = self.within(at) {
            if self.has_freed(offset / LINE) {
                self.must_not_be_freed(offset / 8..offset / 8 + 1, "reads");
            }
            self.touch(offset / LINE);
        }
    }

    /// Prepares a store to a word. Returns the word's number, if it is in the memory.
    #[inline(always)]
    #[track_caller]
    pub(super) fn touch_for_store(&self, word: &AtomicU64) -> Option<u32> {
        let at = word.as_ptr().cast();
        self.count_access(AccessKind::Store, at);
        let offset = self.within(at)?;
        if self.has_freed(offset / LINE) {
            self.must_not_be_freed(offset / 8..offset / 8 + 1, "stores to");
        }
        self.save(offset / LINE);
        Some((offset / 8) as u32)
    }

    #[inline(always)]
    pub(super) fn touch(&self, line: usize) {
        if self.0.lines[line].touched.load(Relaxed) != self.run() {
            self.touch_first(line);
        }
    }

    #[inline(always)]
    pub(super) fn save(&self, line: usize) {
        if self.0.lines[line].saved.load(Relaxed) != self.run() {
            self.touch(line);
            self.save_slowly(line);
        }
    }

    #[inline(never)]
    fn save_slowly(&self, line: usize) {
        // The first touch may have saved it already, to replace it by its image.
        if self.0.lines[line].saved.load(Relaxed) != self.run() {
            self.save_first(&mut self.slow(), line);
        }
    }

    #[inline(never)]
    fn touch_first(&self, line: usize) {
        let state = &self.0.lines[line];
        state.touched.store(self.run(), Relaxed);
        state.read.store(self.0.epoch.load(Relaxed), Relaxed);
        let hash = if state.unsettled.load(Relaxed) {
            self.decide(line)
        } else {
            match state.hash.load(Relaxed) {
                0 => {
                    let hash = hash_of(line, &self.content(line as u32));
                    state.hash.store(hash, Relaxed);
                    hash
                }
                hash => hash,
            }
        };
        let signature = &self.0.signature;
        signature.store(signature.load(Relaxed) ^ hash, Relaxed);
    }

    /// Writes this image's version of a line in which images differ. Returns its hash.
    fn decide(&self, line: usize) -> u64 {
        let mut slow = self.slow();
        let slow = &mut *slow;
        let content = self.content(line as u32);
        let image = slow.chooser.image_of(&slow.tracker, line as u32, content);
        if image != content {
            self.save_first(slow, line);
            self.write(line as u32, &image);
        }
        hash_of(line, &image)
    }

    fn save_first(&self, slow: &mut Slow, line: usize) {
        self.0.lines[line].saved.store(self.run(), Relaxed);
        slow.undo.push((line as u32, self.content(line as u32)));
    }
}

/// Returns a hash of a line's number and its content.
fn hash_of(line: usize, content: &Content) -> u64 {
    let mut hash = (line as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    for &word in content {
        hash = (hash ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^= hash >> 32;
    }
    hash
}
