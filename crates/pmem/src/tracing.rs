//! A media that records which lines are read and stored into, in order: the path of an operation through memory.
//!
//! It sees the accesses that go through the media: words, drafts when they begin ([`Media::drafting`]), and bytes that
//! are reported as read by plain loads ([`Media::touched`]). Meant for one thread at a time.

use crate::watched::{ObservedStep, Observer, StepKind, Watched};
use crate::{Hardware, LINE, Media};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Records the lines touched on the way to `M`, between [`begin`](Tracing::begin) and [`take`](Tracing::take).
pub type Tracing<M = Hardware> = Watched<LineTrace, M>;

/// The record of a [`Tracing`] media.
#[derive(Debug, Default)]
pub struct LineTrace {
    noting: AtomicBool,
    lines: Mutex<Vec<usize>>,
}

impl<M: Media> Tracing<M> {
    /// Wraps `inner`, recording nothing yet.
    pub fn new(inner: M) -> Tracing<M> {
        Watched::around(inner, LineTrace::default())
    }

    /// Starts recording.
    pub fn begin(&self) {
        self.watch().noting.store(true, Ordering::Relaxed);
    }

    /// Stops recording and returns the numbers of the lines (address / 64) touched since the start, in order; a line
    /// touched several times in a row appears once.
    pub fn take(&self) -> Vec<usize> {
        let LineTrace { noting, lines } = self.watch();
        noting.store(false, Ordering::Relaxed);
        std::mem::take(&mut *lines.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Observer for LineTrace {
    fn before(&self, step: &ObservedStep) {
        let touches = !matches!(
            step.what,
            StepKind::Drafted
                | StepKind::Join
                | StepKind::WriteBack(_)
                | StepKind::WriteBackJoined(_)
                | StepKind::Fence(_)
        );
        if !touches || !self.noting.load(Ordering::Relaxed) {
            return;
        }
        let first = step.start.addr() / LINE;
        let end = (step.start.addr() + step.len).div_ceil(LINE);
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        for line in first..end {
            if lines.last() != Some(&line) {
                lines.push(line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[repr(align(64))]
    struct Lines([AtomicU64; 24]);

    /// Lines are recorded in the order of their use, words and bytes alike; repeated touches in a row appear once.
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
