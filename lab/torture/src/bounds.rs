//! Explores histories with ascending seeds within bounds, and reports the results.

use crashkit::disk::Site;
use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

/// The bounds of an exploration.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The seed of the first history; the others follow.
    pub seed: u64,
    /// Steps per history.
    pub steps: usize,
    /// The maximum number of images per crash point.
    pub images: usize,
    /// One image in this many runs on and crashes again. (For the log, so does what a kill at the end of a process
    /// leaves.)
    pub again: u64,
    /// The maximum number of histories.
    pub histories: u64,
    /// The number of judged states at which the exploration ends, even within a history.
    pub states: u64,
    /// The time after which the exploration ends, even within a history.
    pub budget: Duration,
    /// A sync to omit.
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

/// The counts of an exploration.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Histories begun.
    pub histories: u64,
    /// Moments at which the power failed or the process was killed.
    pub crash_points: u64,
    /// Distinct states judged: an image, with the content that must survive in it.
    pub states: u64,
    /// Crash points at which the process was killed.
    pub kills: u64,
    /// Histories that began from a crash state.
    pub again: u64,
    /// Histories of several threads.
    pub together: u64,
    /// Histories in which disk calls could fail.
    pub faults: u64,
    /// Source locations that called a sync.
    pub sync_sites: Vec<Site>,
    /// Named events of interest, and how often each occurred.
    pub reached: BTreeMap<&'static str, u64>,
    /// The limits: this many states, and a deadline if there is one.
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
    /// Calls `history` with ascending seeds until one fails or the bounds are reached.
    ///
    /// # Errors
    ///
    /// The failure of a history, with its seed and the report so far.
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
    /// Returns whether a limit is reached. Histories poll it, since one history may be too long to explore to its end.
    pub(crate) fn is_over(&self) -> bool {
        let (states, time) = self.end;
        self.states >= states || time.is_some_and(|time| Instant::now() >= time)
    }

    /// Adds the source locations that called a sync.
    pub(crate) fn note_syncs(&mut self, sites: &[Site]) {
        for &site in sites {
            if !self.sync_sites.contains(&site) {
                self.sync_sites.push(site);
            }
        }
    }
}
