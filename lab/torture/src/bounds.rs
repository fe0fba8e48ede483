//! Explores histories of ascending seeds within bounds, and reports on them.

use crashkit::disk::Site;
use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

/// What is explored.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The seed of the first history; the others follow.
    pub seed: u64,
    /// Steps of a history.
    pub steps: usize,
    /// Images of one moment, at most.
    pub images: usize,
    /// One image in this many goes on and crashes again, and so does the image at each process's end.
    pub again: u64,
    /// No further history begins after this many.
    pub histories: u64,
    /// Exploring ends after this many states, also during a history.
    pub states: u64,
    /// And after this time.
    pub budget: Duration,
    /// A sync to leave out.
    pub skip: Option<Site>,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            seed: 1,
            steps: 40,
            images: 10,
            again: 50,
            histories: u64::MAX,
            states: u64::MAX,
            budget: Duration::from_secs(60),
            skip: None,
        }
    }
}

/// What was explored.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Histories.
    pub histories: u64,
    /// Moments at which the power went or the process was killed.
    pub crash_points: u64,
    /// States that were judged: what was left, and what must be there.
    pub states: u64,
    /// Of these, what a kill left.
    pub kills: u64,
    /// Histories that began with what a crash had left.
    pub again: u64,
    /// Histories of several threads.
    pub together: u64,
    /// Histories in which a call failed.
    pub faults: u64,
    /// Places that have called a sync.
    pub sync_sites: Vec<Site>,
    /// What was come to, and how often.
    pub reached: BTreeMap<&'static str, u64>,
    /// When exploring ends: after these states, or at this time, if any.
    end: (u64, Option<Instant>),
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} states ({} of kills) at {} crash points of {} histories, {} of them with failing calls and {} of several \
             threads, and {} after a crash",
            self.states,
            self.kills,
            self.crash_points,
            self.histories,
            self.faults,
            self.together,
            self.again
        )
    }
}

impl Bounds {
    /// Has histories explored, each by its seed, until one fails or the bounds are reached.
    ///
    /// # Errors
    ///
    /// What is wrong with a history, its seed, and what was explored before.
    pub(crate) fn explore(
        &self,
        mut history: impl FnMut(&mut Report, u64) -> Result<(), String>,
    ) -> Result<Report, String> {
        let mut report = Report {
            end: (self.states, Instant::now().checked_add(self.budget)),
            ..Report::default()
        };
        for number in 0..self.histories {
            if report.is_over() {
                break;
            }
            let seed = self.seed.wrapping_add(number);
            report.histories += 1;
            let explored = history(&mut report, seed);
            explored.map_err(|what| format!("history {seed}: {what}\n{report}"))?;
        }
        Ok(report)
    }
}

impl Report {
    /// Whether the bounds are reached: a history may be too long to be explored to its end.
    pub(crate) fn is_over(&self) -> bool {
        let (states, time) = self.end;
        self.states >= states || time.is_some_and(|time| Instant::now() >= time)
    }

    /// Notes which places have called a sync.
    pub(crate) fn note_syncs(&mut self, sites: &[Site]) {
        for &site in sites {
            if !self.sync_sites.contains(&site) {
                self.sync_sites.push(site);
            }
        }
    }
}
