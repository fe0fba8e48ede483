//! Shrinking: makes a failure smaller, as long as it still fails.
//!
//! 1. *The image.* As soon as one fails, lines get their newest version one by one; lines that must lag get the newest
//!    version that still fails. Every store still withheld is needed for the failure.
//! 2. *The history.* It is explored again with fewer crashes, with fewer threads, with fewer preemptions (its
//!    operations in turn, and then with preemptions of one leg, of two, of three, in place of a scheduler's many) and
//!    with fewer operations: chunks of them are left out, ever smaller ones (as in delta debugging, without its
//!    complements). All of this is repeated until nothing more can be left out, or the attempts or the time
//!    (`Settings::shrink_for`) are used up.
//!
//! I1 The result fails with the same settings, except perhaps with fewer crashes allowed, and perhaps with another
//!    message.

use super::Explorer;
use super::image::Probed;
use super::preempt::MAX_LEGS;
use crate::choose::{Contents, Plan};
use crate::{Failure, History, Subject};
use std::time::Instant;

impl<S: Subject> Explorer<S> {
    /// Shrinks a history that fails to as few crashes, threads, preemptions and operations as at most `tries` attempts
    /// find. Returns it with its failure. The report stays as it is.
    pub fn shrink(
        &mut self,
        history: &History<S::Op>,
        failure: Box<Failure>,
        tries: usize,
    ) -> (History<S::Op>, Box<Failure>) {
        let mut left = tries;
        let report = self.report.clone();
        let settings = self.settings.clone();
        let deadline = self.deadline.replace(Instant::now() + settings.shrink_for);
        let mut least = (history.clone(), failure);
        let mut attempt = |explorer: &mut Self, history: History<S::Op>, least: &mut (_, _)| {
            let Some(fewer) = left.checked_sub(1).filter(|_| !explorer.is_late()) else {
                return false;
            };
            left = fewer;
            let found = explorer.explore(&history).err();
            found.map(|failure| *least = (history, failure)).is_some()
        };
        // A part that was needed may become superfluous when another is gone.
        loop {
            let size = |(history, failure): &(History<S::Op>, Box<Failure>)| {
                (history.ops.len(), history.threads, failure.crashes, history.legs)
            };
            let before = size(&least);
            // A failure in the run after a crash needs settings that allow one more crash.
            let max = (least.1.crashes + 1).min(settings.crashes);
            self.settings.crashes = max;
            for crashes in 1..max {
                self.settings.crashes = crashes;
                if attempt(self, least.0.clone(), &mut least) {
                    break;
                }
                self.settings.crashes = max;
            }
            for threads in 1..least.0.threads {
                let history = History {
                    threads,
                    ..least.0.clone()
                };
                if attempt(self, history, &mut least) {
                    break;
                }
            }
            let fewer = match least.0.threads {
                0 | 1 => 0,
                _ => least.0.legs.unwrap_or(MAX_LEGS + 1),
            };
            for legs in 0..fewer {
                let history = History {
                    legs: Some(legs),
                    ..least.0.clone()
                };
                if attempt(self, history, &mut least) {
                    break;
                }
            }
            let mut size_of_chunk = least.0.ops.len().div_ceil(2);
            while size_of_chunk > 0 {
                // Operations are dealt out to threads in turn: chunks of a multiple of the threads leave the others
                // with their threads, where that is possible.
                let threads = least.0.threads.max(1) as usize;
                let chunk = match size_of_chunk {
                    few if few < threads => few,
                    many => many - many % threads,
                };
                // From the end, since operations after the crash are of no use.
                let mut end = least.0.ops.len();
                while end > 0 {
                    let start = end.saturating_sub(chunk);
                    let fewer = without(&least.0, start, end);
                    attempt(self, fewer, &mut least);
                    end = start;
                }
                size_of_chunk = chunk / 2;
            }
            if size(&least) == before {
                break;
            }
        }
        self.settings = settings;
        self.deadline = deadline;
        self.report = report;
        least
    }

    /// Shrinks a failing image to one that lacks as few stores as possible and still fails; `probe` judges the image
    /// that has these contents and the newest version of all other lines.
    pub(super) fn shrink_image(&self, found: Probed, probe: impl Fn(&Self, Plan) -> Probed) -> Probed {
        let mut contents: Contents = found.picked.iter().map(|one| (one.line, one.content)).collect();
        let mut least = found;
        let fails = |contents: &Contents, least: &mut Probed| {
            let probed = probe(self, Plan::But(contents.clone()));
            let fails = probed.result.is_err();
            if fails {
                *least = probed;
            }
            fails
        };
        let lines: Vec<u32> = least.picked.iter().map(|one| one.line).collect();
        for line in lines.into_iter().rev() {
            if let Some(content) = contents.remove(&line)
                && !fails(&contents, &mut least)
            {
                contents.insert(line, content);
            }
        }
        let lines: Vec<u32> = contents.keys().copied().collect();
        for line in lines {
            let first = contents[&line];
            let versions = {
                let slow = self.crash.slow();
                let mode = slow.tracker.model().mode;
                let base = self.crash.content(line);
                let versions = slow.tracker.line(line).map(|line| line.versions(base, mode, 0));
                versions.unwrap_or_default()
            };
            let as_new = versions.iter().rev().skip(1).any(|version| {
                contents.insert(line, version.content);
                fails(&contents, &mut least)
            });
            if !as_new {
                contents.insert(line, first);
            }
        }
        least
    }
}

/// Returns the history without the operations from `start` to `end`.
fn without<O: Clone>(history: &History<O>, start: usize, end: usize) -> History<O> {
    let mut fewer = history.clone();
    fewer.ops.drain(start..end);
    let prepared = history.prepared as usize;
    let gone = end.min(prepared).saturating_sub(start);
    fewer.prepared -= gone as u32;
    fewer
}
