//! The pace of a checkpoint beside writers.
//!
//! A sync of the log takes longer while the disk writes a run, and writers need the processors. So a checkpoint
//! proceeds in small steps. If a write has recently waited for a sync, each step's bytes are synced separately and
//! followed by a rest that is a multiple of the step's duration: few writes meet a step, and none meets a long one.
//! Rests become shorter once the log is half full, and end when it is three quarters full. While no write waits, there
//! are no rests.

use crate::files_error::FilesError;
use log::{Disk, Log};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// How long a checkpoint stays slow after a write has waited.
const SLOW_AFTER_WAIT: Duration = Duration::from_secs(1);

/// How often a rest checks whether the checkpoint is stopped.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Maximum length of a rest.
const MAX_REST: Duration = Duration::from_secs(1);

/// Returns whether the caller wants checkpoints to end.
pub(crate) type Asked = Arc<dyn Fn() -> bool + Send + Sync>;

/// What ends checkpoints early.
#[derive(Default)]
pub(crate) struct Stop {
    /// Whether the database is being closed.
    closing: AtomicBool,
    asked: Option<Asked>,
}

impl Stop {
    pub fn new(asked: Option<Asked>) -> Stop {
        Stop {
            closing: AtomicBool::new(false),
            asked,
        }
    }

    /// Notes that the database is being closed.
    pub fn close(&self) {
        self.closing.store(true, SeqCst);
    }

    pub fn is_closing(&self) -> bool {
        self.closing.load(SeqCst)
    }

    /// Returns whether checkpoints must end.
    fn is_set(&self) -> bool {
        self.is_closing() || self.asked.as_ref().is_some_and(|asked| asked())
    }
}

/// The pace of one checkpoint.
pub(crate) struct Pace<'c, D: Disk> {
    log: &'c Log<D>,
    stop: &'c Stop,
    /// Length of a rest, as a multiple of its step.
    rest: f64,
    /// When the current step began.
    began: Instant,
    /// Number of waits for a sync at the last check.
    waits: u64,
    /// When a check last found that this number had grown.
    waited: Option<Instant>,
}

impl<'c, D: Disk> Pace<'c, D> {
    /// Begins the first step of a checkpoint, which is abandoned once `stop` is set.
    pub fn new(log: &'c Log<D>, stop: &'c Stop, rest: f64) -> Pace<'c, D> {
        Pace {
            log,
            stop,
            rest,
            began: Instant::now(),
            waits: log.waits(),
            waited: None,
        }
    }

    /// Fails if the checkpoint is stopped.
    pub fn refuse_if_stopped(&self) -> Result<(), FilesError> {
        match self.stop.is_set() {
            true => Err(FilesError::Stopped),
            false => Ok(()),
        }
    }

    /// Ends a step that needs no sync of its own.
    pub fn end_step(&mut self) -> Result<(), FilesError> {
        self.refuse_if_stopped()?;
        self.rest();
        Ok(())
    }

    /// Returns whether writes have recently waited for syncs.
    pub fn is_beside_writers(&mut self) -> bool {
        let waits = self.log.waits();
        if std::mem::replace(&mut self.waits, waits) != waits {
            self.waited = Some(Instant::now());
        }
        self.waited
            .is_some_and(|waited| waited.elapsed() < SLOW_AFTER_WAIT)
    }

    /// Rests, and begins the next step.
    pub fn rest(&mut self) {
        if self.is_beside_writers() {
            let factor = self.rest * slack(self.log.room(), self.log.limit());
            let mut left = self.began.elapsed().mul_f64(factor).min(MAX_REST);
            while !left.is_zero() && !self.stop.is_set() {
                let now = left.min(POLL_INTERVAL);
                std::thread::sleep(now);
                left -= now;
            }
        }
        self.began = Instant::now();
    }
}

/// Returns the fraction of a rest that the log's free space permits: 1 while half of the limit or more is free, 0 below
/// a quarter.
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
