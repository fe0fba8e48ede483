//! The base: the stores that survive any crash, in memory between runs. It grows along a log, and can be restored.

use super::{Crash, Slow};
use crate::log::LogEvent;
use crate::model::{Base, Content, Tracker};
use std::sync::atomic::Ordering::Relaxed;

impl Crash {
    /// Returns a mark of the present base for [`reset_base`](Crash::reset_base).
    pub(crate) fn mark_base(&self) -> usize {
        self.slow().base_undo.len()
    }

    /// Restores the base to a mark.
    pub(crate) fn reset_base(&self, mark: usize) {
        let mut slow = self.slow();
        while slow.base_undo.len() > mark {
            if let Some((word, value)) = slow.base_undo.pop() {
                self.words()[word as usize].store(value, Relaxed);
                self.0.lines[word as usize / 8].hash.store(0, Relaxed);
            }
        }
    }

    /// Replaces the tracker, which decides which lines are unsettled. Returns the old one.
    pub(crate) fn swap_tracker(&self, tracker: Tracker) -> Tracker {
        let mut slow = self.slow();
        for line in slow.tracker.unsettled() {
            self.set_unsettled(line, false);
        }
        for line in tracker.unsettled() {
            self.set_unsettled(line, true);
        }
        std::mem::replace(&mut slow.tracker, tracker)
    }

    /// Lets the tracker apply an event of a log.
    pub(crate) fn step(&self, place: u32, event: &LogEvent) {
        let mut slow = self.slow();
        let Slow {
            tracker, base_undo, ..
        } = &mut *slow;
        tracker.step(
            place,
            event,
            &mut Arena {
                crash: self,
                undo: base_undo,
            },
        );
    }

    /// Makes the content of a line part of the base.
    pub(crate) fn guarantee_line(&self, line: u32, content: &Content) {
        let mut slow = self.slow();
        let mut arena = Arena {
            crash: self,
            undo: &mut slow.base_undo,
        };
        for (word, &value) in (line * 8..).zip(content) {
            arena.guarantee(word, value);
        }
    }
}

/// The base in memory.
struct Arena<'c> {
    crash: &'c Crash,
    undo: &'c mut Vec<(u32, u64)>,
}

impl Base for Arena<'_> {
    fn guarantee(&mut self, word: u32, value: u64) {
        let place = &self.crash.words()[word as usize];
        let was = place.load(Relaxed);
        if was != value {
            self.undo.push((word, was));
            place.store(value, Relaxed);
            self.crash.0.lines[word as usize / 8].hash.store(0, Relaxed);
        }
    }

    fn unsettled(&mut self, line: u32, unsettled: bool) {
        self.crash.set_unsettled(line, unsettled);
    }
}
