//! Freed memory: it holds poison, and an access to it is a finding.
//!
//! I1 A word is freed from the moment at which the allocator may hand it out again until the next draft that covers it.
//! I2 Only the memory of the run holds poison. No log contains it, so crash images hold the earlier content.

use super::Crash;
use crate::log::Site;
use crate::model::LineHasher;
use pmem::LINE;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

/// What freed words hold: an address beyond every pool, and a length beyond every object.
const POISON: u64 = 0xdead_f4ee_dead_f4ee;

/// For each line of memory, the source lines that took its words out of use.
type Lines = HashMap<u32, [Option<Site>; 8], BuildHasherDefault<LineHasher>>;

/// The freed words.
#[derive(Default)]
pub(super) struct Freed(Lines);

impl Freed {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn set(&mut self, words: Range<usize>, site: Option<Site>) {
        for line in words.start / 8..words.end.div_ceil(8) {
            let sites = self.0.entry(line as u32).or_default();
            for word in words.start.max(line * 8)..words.end.min(line * 8 + 8) {
                sites[word % 8] = site;
            }
        }
    }

    /// Returns the first of these words that is freed, and the source line that took it out of use.
    fn first(&self, words: Range<usize>) -> Option<(usize, Site)> {
        let site = |word: usize| self.0.get(&((word / 8) as u32))?[word % 8];
        words.into_iter().find_map(|word| Some((word, site(word)?)))
    }
}

impl Crash {
    /// Frees bytes that were taken out of use at `site`.
    pub(super) fn free(&self, offset: usize, len: usize, site: Site) {
        for line in offset / LINE..(offset + len).div_ceil(LINE) {
            let state = &self.0.lines[line];
            let covered = offset <= line * LINE && (line + 1) * LINE <= offset + len;
            if !covered && state.touched.load(Relaxed) != self.run() {
                // To write poison into a part of the line, the media would have to choose the content of the other
                // part, which the run has not touched.
                continue;
            }
            state.touched.store(self.run(), Relaxed);
            self.save(line);
            for word in (line * 8).max(offset / 8)..(line * 8 + 8).min((offset + len) / 8) {
                self.words()[word].store(POISON, Relaxed);
            }
        }
        let words = offset / 8..(offset + len) / 8;
        for line in words.start / 8..words.end.div_ceil(8) {
            self.0.lines[line].freed.store(self.run(), Relaxed);
        }
        self.slow().freed.set(words, Some(site));
    }

    /// Ends the freed state of bytes that serve again.
    pub(super) fn unfree(&self, offset: usize, len: usize) {
        let words = offset / 8..(offset + len).div_ceil(8);
        let mut lines = words.start / 8..words.end.div_ceil(8);
        if lines.any(|line| self.has_freed(line)) {
            self.slow().freed.set(words, None);
        }
    }

    #[inline(always)]
    pub(super) fn has_freed(&self, line: usize) -> bool {
        self.0.lines[line].freed.load(Relaxed) == self.run()
    }

    /// Ends the run if one of these words is freed.
    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(super) fn must_not_be_freed(&self, words: Range<usize>, verb: &str) {
        let freed = self.slow().freed.first(words);
        if let Some((word, site)) = freed {
            self.end_with(format!(
                "it {verb} freed memory: word {:#x}, at {}; the word was taken out of use at {site}",
                word * 8,
                std::panic::Location::caller(),
            ));
        }
    }
}
