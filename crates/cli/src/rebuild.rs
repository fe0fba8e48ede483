//! Shows the progress of a rebuild after a loss of power: a bar on a terminal, otherwise events in the log.
//!
//! A rebuild has up to three phases: it reads and sorts the log, builds the maps from the checkpoint's entries, and
//! replays the part of the log that was too long to sort. Each phase has a bar and a unit of its own, since an entry
//! takes far longer than a byte of the log: the estimate of the remaining time is that of the phase.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use wollemi::Rebuilding;

/// Time between two events of the log.
const PAUSE: Duration = Duration::from_secs(10);

/// Returns a callback for the rebuild of one pool.
pub fn show() -> impl Fn(&Rebuilding) + Send + Sync + 'static {
    let shown = Mutex::new(None);
    move |done| {
        let now = Instant::now();
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        let (rebuild, bar) = shown.get_or_insert_with(|| (Rebuild::new(now), None));
        let step = rebuild.step(done, now);
        match std::io::stderr().is_terminal() {
            true => draw(bar, rebuild, step, done),
            false => log_step(rebuild, step, done, now),
        }
    }
}

/// A phase of a rebuild.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Reads and sorts the log, in bytes.
    Read,
    /// Builds the maps, in entries of the checkpoint.
    Build,
    /// Replays the rest of the log, in bytes.
    Replay,
}

impl Phase {
    const fn name(self) -> &'static str {
        match self {
            Phase::Read => "reading the log",
            Phase::Build => "building the maps",
            Phase::Replay => "replaying the log",
        }
    }
}

/// What a report of progress means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The rebuild has begun.
    Begin,
    /// Another phase has begun.
    Enter,
    /// [`PAUSE`] has passed since the last event.
    Progress,
    /// The rebuild has ended.
    End,
    /// No event is due.
    None,
}

/// The course of a rebuild, derived from its reports.
#[derive(Debug)]
struct Rebuild {
    started: Instant,
    /// Time of the last event of the log.
    last: Instant,
    phase: Phase,
    /// Bytes of the log that were read before the maps were built.
    read: u64,
    /// The last step other than [`Step::None`].
    step: Option<Step>,
}

impl Rebuild {
    fn new(now: Instant) -> Rebuild {
        Rebuild {
            started: now,
            last: now,
            phase: Phase::Read,
            read: 0,
            step: None,
        }
    }

    fn has_ended(&self) -> bool {
        self.step == Some(Step::End)
    }

    /// Returns how much of the phase is done, and its length.
    fn progress(&self, done: &Rebuilding) -> (u64, u64) {
        match self.phase {
            Phase::Read => (done.log, done.log_in_all),
            Phase::Build => (done.entries, done.entries_in_all),
            // It begins where reading has ended.
            Phase::Replay => (done.log.saturating_sub(self.read), done.log_in_all - self.read),
        }
    }

    /// Takes a report into account.
    fn step(&mut self, done: &Rebuilding, now: Instant) -> Step {
        let step = self.next(done, now);
        if matches!(step, Step::Begin | Step::Progress) {
            self.last = now;
        }
        if step != Step::None {
            self.step = Some(step);
        }
        step
    }

    fn next(&mut self, done: &Rebuilding, now: Instant) -> Step {
        // Several threads report while the maps are built, and a report may come late.
        let phase = match self.phase {
            Phase::Read if done.entries > 0 => Phase::Build,
            Phase::Build if done.log > self.read => Phase::Replay,
            same => same,
        };
        if phase == Phase::Build {
            self.read = self.read.max(done.log);
        }
        let enters = std::mem::replace(&mut self.phase, phase) != phase;
        match self.step {
            None => Step::Begin,
            Some(Step::End) => Step::None,
            Some(_) if done.is_done => Step::End,
            Some(_) if enters => Step::Enter,
            Some(_) if now - self.last >= PAUSE => Step::Progress,
            Some(_) => Step::None,
        }
    }
}

/// Draws the bar of the present phase.
fn draw(bar: &mut Option<ProgressBar>, rebuild: &Rebuild, step: Step, done: &Rebuilding) {
    let (position, length) = rebuild.progress(done);
    if matches!(step, Step::Begin | Step::Enter | Step::End)
        && let Some(before) = bar.take()
    {
        before.finish_and_clear();
    }
    if step != Step::End && !rebuild.has_ended() {
        let new = || {
            let style = "rebuilding after a loss of power: {msg} {wide_bar} {percent} %, {eta} left";
            let style = ProgressStyle::with_template(style);
            ProgressBar::new(length)
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
                .with_message(rebuild.phase.name())
        };
        bar.get_or_insert_with(new).set_position(position);
    }
}

fn log_step(rebuild: &Rebuild, step: Step, done: &Rebuilding, now: Instant) {
    let Rebuilding {
        entries,
        entries_in_all,
        log,
        log_in_all,
        is_done: _,
    } = *done;
    let (phase, seconds) = (rebuild.phase.name(), (now - rebuild.started).as_secs_f64());
    match step {
        Step::Begin => tracing::info!(entries_in_all, log_in_all, "the pool is being rebuilt"),
        Step::Progress => {
            tracing::info!(
                phase,
                entries,
                entries_in_all,
                log,
                log_in_all,
                seconds,
                "rebuilding"
            );
        }
        Step::End => tracing::info!(entries, log, seconds, "the pool is rebuilt"),
        Step::Enter | Step::None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(entries: u64, log: u64) -> Rebuilding {
        Rebuilding {
            entries,
            entries_in_all: 1000,
            log,
            log_in_all: 900,
            is_done: false,
        }
    }

    /// Each phase has its own unit and length, and begins at zero.
    #[test]
    fn phases_have_their_units() {
        let start = Instant::now();
        let mut rebuild = Rebuild::new(start);
        let mut take = |entries, log, seconds| {
            let done = Rebuilding {
                is_done: seconds >= 8,
                ..report(entries, log)
            };
            let step = rebuild.step(&done, start + Duration::from_secs(seconds));
            (step, rebuild.phase, rebuild.progress(&done))
        };
        assert_eq!(take(0, 0, 0), (Step::Begin, Phase::Read, (0, 900)));
        assert_eq!(take(0, 500, 1), (Step::None, Phase::Read, (500, 900)));
        assert_eq!(take(100, 600, 2), (Step::Enter, Phase::Build, (100, 1000)));
        assert_eq!(take(900, 600, 3), (Step::None, Phase::Build, (900, 1000)));
        assert_eq!(take(800, 600, 4), (Step::None, Phase::Build, (800, 1000)));
        assert_eq!(take(900, 700, 5), (Step::Enter, Phase::Replay, (100, 300)));
        assert_eq!(take(900, 800, 6), (Step::None, Phase::Replay, (200, 300)));
        // The pool is still to be written out and renamed.
        assert_eq!(take(1000, 900, 7), (Step::None, Phase::Replay, (300, 300)));
        assert_eq!(take(1000, 900, 8), (Step::End, Phase::Replay, (300, 300)));
        assert_eq!(take(1000, 900, 9).0, Step::None);
    }

    /// A long rebuild is logged every ten seconds.
    #[test]
    fn progress_is_logged_now_and_then() {
        let start = Instant::now();
        let mut rebuild = Rebuild::new(start);
        let steps = (0..=25).map(|second| {
            let step = rebuild.step(&report(second, 0), start + Duration::from_secs(second));
            (step == Step::Progress).then_some(second)
        });
        assert_eq!(steps.flatten().collect::<Vec<_>>(), [10, 20]);
    }

    /// A rebuild of nothing begins and ends.
    #[test]
    fn empty_rebuild_ends() {
        let now = Instant::now();
        let mut rebuild = Rebuild::new(now);
        let steps = [false, true, true].map(|is_done| {
            let done = Rebuilding {
                is_done,
                ..Rebuilding::default()
            };
            rebuild.step(&done, now)
        });
        assert_eq!(steps, [Step::Begin, Step::End, Step::None]);
    }
}
