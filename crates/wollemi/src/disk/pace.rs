//! The pace of a checkpoint beside writers.
//!
//! A sync of the log takes longer while the disk writes a run, and writers need the processors. So a checkpoint goes in
//! small steps. If a write has waited for a sync lately, each step's bytes are synced by themselves, and a rest follows
//! that is a multiple of the time that the step took: few writes meet a step, and none meets a long one. Rests become
//! shorter as the log fills up, and end when it is nearly full. While no write waits, there are no rests.

use log::{Disk, Log};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// How long a checkpoint stays slow after a write has waited.
const LATELY: Duration = Duration::from_secs(1);

/// How often a rest checks whether the checkpoint is to stop.
const LOOK: Duration = Duration::from_millis(20);

/// The longest rest.
const LONGEST: Duration = Duration::from_secs(1);

/// The pace of one checkpoint.
pub(crate) struct Pace<'c, D: Disk> {
    log: &'c Log<D>,
    stop: &'c AtomicBool,
    /// Length of a rest, in lengths of its step.
    rest: f64,
    /// When the present step began.
    began: Instant,
    /// Number of waits for a sync, at the last look.
    waits: u64,
    /// When a look last found that this number had grown.
    waited: Option<Instant>,
}

impl<'c, D: Disk> Pace<'c, D> {
    /// Begins the first step of a checkpoint, which is given up once `stop` is set.
    pub fn new(log: &'c Log<D>, stop: &'c AtomicBool, rest: f64) -> Pace<'c, D> {
        Pace {
            log,
            stop,
            rest,
            began: Instant::now(),
            waits: log.waits(),
            waited: None,
        }
    }

    /// Whether the checkpoint is to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(SeqCst)
    }

    /// Whether writes wait for syncs.
    pub fn is_beside_writers(&mut self) -> bool {
        let waits = self.log.waits();
        if std::mem::replace(&mut self.waits, waits) != waits {
            self.waited = Some(Instant::now());
        }
        self.waited.is_some_and(|waited| waited.elapsed() < LATELY)
    }

    /// Rests, and begins the next step.
    pub fn rest(&mut self) {
        if self.is_beside_writers() {
            let factor = self.rest * slack(self.log.room(), self.log.limit());
            let mut left = self.began.elapsed().mul_f64(factor).min(LONGEST);
            while !left.is_zero() && !self.is_stopped() {
                let now = left.min(LOOK);
                std::thread::sleep(now);
                left -= now;
            }
        }
        self.began = Instant::now();
    }
}

/// The part of a rest for which the log leaves time: all of it while half of the limit or more is left, none below a
/// quarter.
fn slack(room: u64, limit: u64) -> f64 {
    (4.0 * room as f64 / limit as f64 - 1.0).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_leaves_no_time_for_rests() {
        let slacks = [0, 25, 30, 40, 50, 100].map(|room| slack(room, 100));
        assert_eq!(slacks[..2], [0.0, 0.0]);
        assert_eq!(slacks[4..], [1.0, 1.0]);
        assert!(slacks.is_sorted() && slacks[2] > 0.0 && slacks[3] < 1.0);
    }
}
