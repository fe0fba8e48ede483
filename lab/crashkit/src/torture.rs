//! The kit in one call: explores random histories one after the other, and shrinks the first that fails.

use crate::{Explorer, Failure, History, Hunted, Random, Report, Settings, Subject};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Tortures a subject with operations that `operation` draws: [`run`](Torture::run) explores histories of them until
/// one fails or the bounds are reached.
///
/// ```
/// # use wollemi_crashkit::{Failure, Subject, torture};
/// # use std::time::Duration;
/// # fn test<S: Subject<Op = u64>>(list: S) -> Result<(), Box<Failure>> {
/// let report = torture(list, |random| random.below(100))
///     .seeds(1..=200)
///     .threads(1..=1)
///     .budget(Duration::from_secs(20))
///     .run()?;
/// println!("{report}");
/// # Ok(())
/// # }
/// ```
pub fn torture<S, F>(subject: S, operation: F) -> Torture<S, F>
where
    S: Subject,
    F: Fn(&mut Random) -> S::Op,
{
    Torture {
        subject: Arc::new(subject),
        operation,
        seeds: 1..=100,
        prepared: 0,
        operations: 30,
        threads: 1..=3,
        budget: Duration::from_secs(60),
        tries: 300,
        settings: Settings {
            again_share: 40,
            kill_share: 20,
            ..Settings::default()
        },
    }
}

/// What to explore, and how much of it: see [`torture`].
#[must_use = "nothing is explored before it runs"]
pub struct Torture<S, F> {
    subject: Arc<S>,
    operation: F,
    seeds: RangeInclusive<u64>,
    prepared: usize,
    operations: usize,
    threads: RangeInclusive<u32>,
    budget: Duration,
    tries: usize,
    settings: Settings,
}

impl<S: Subject, F: Fn(&mut Random) -> S::Op> Torture<S, F> {
    /// Sets the seeds of the histories, one history each. Default: 1 to 100.
    pub fn seeds(self, seeds: RangeInclusive<u64>) -> Self {
        Torture { seeds, ..self }
    }

    /// Sets the number of operations of a history. Default: 30.
    pub fn operations(self, operations: usize) -> Self {
        Torture { operations, ..self }
    }

    /// Sets the number of operations before these, by one thread. Their answers are checked, and crashes come after
    /// them. Default: none.
    pub fn prepared(self, prepared: usize) -> Self {
        Torture { prepared, ..self }
    }

    /// Sets the numbers of logical threads, which the histories use in turn. Default: 1 to 3. For a single-threaded
    /// structure, use `1..=1`.
    pub fn threads(self, threads: RangeInclusive<u32>) -> Self {
        Torture { threads, ..self }
    }

    /// Sets the time after which no further history begins and no further crash point is judged. Default: a minute.
    /// [`run`](Torture::run) follows a single history to its end all the same. Shrinking a failure may take up to
    /// [`Settings::shrink_for`] beyond it.
    pub fn budget(self, budget: Duration) -> Self {
        Torture { budget, ..self }
    }

    /// Sets how many smaller histories to try, at most, in place of one that fails. Default: 300; 0 leaves it as it is.
    pub fn shrinking(self, tries: usize) -> Self {
        Torture { tries, ..self }
    }

    /// Sets the model, the bounds on images, and the shares of images that are judged deeply or crash again.
    pub fn settings(self, settings: Settings) -> Self {
        Torture { settings, ..self }
    }

    /// Explores the histories. To reproduce a failure, run the seed of its history alone (`seeds(7..=7)`): it fails in
    /// the same way.
    ///
    /// # Errors
    ///
    /// Returns the first failure, shrunk. Also fails if the system refuses the memory.
    pub fn run(self) -> Result<Report, Box<Failure>> {
        let explorer = Explorer::<S>::new(self.subject.clone(), self.settings.clone());
        let mut explorer = explorer.map_err(Failure::outright)?;
        let end = Instant::now().checked_add(self.budget);
        let is_late = || end.is_some_and(|end| Instant::now() >= end);
        // A history asked for by its seed is followed to its end.
        if self.seeds.start() != self.seeds.end() {
            end.into_iter().for_each(|end| explorer.stop_at(end));
        }
        for seed in self.seeds.clone() {
            if is_late() {
                break;
            }
            let history = self.history(seed);
            if let Err(failure) = explorer.explore(&history) {
                return Err(explorer.shrink(&history, failure, self.tries).1);
            }
        }
        Ok(explorer.into_report())
    }

    /// Omits each write-back and each fence in turn, and swaps consecutive publications, to see whether an image or an
    /// answer exposes that ([`Explorer::hunt`]).
    ///
    /// # Errors
    ///
    /// Returns the first failure, not shrunk, of a history with all its persists. Also fails if the system refuses the
    /// memory.
    pub fn hunt(self) -> Result<Vec<Hunted>, Box<Failure>> {
        /// Maximum number of images of one mutant judged in one history, before a second crash and again after it.
        const IMAGES: u64 = 2000;
        let explorer = Explorer::<S>::new(self.subject.clone(), self.settings.clone());
        let mut explorer = explorer.map_err(Failure::outright)?;
        let end = Instant::now().checked_add(self.budget);
        end.into_iter().for_each(|end| explorer.stop_at(end));
        let histories = self.seeds.clone().map(|seed| self.history(seed));
        explorer.hunt(histories, IMAGES, |_| end.is_none_or(|end| Instant::now() < end))
    }

    fn history(&self, seed: u64) -> History<S::Op> {
        let mut random = Random(seed);
        let (least, max) = (*self.threads.start(), *self.threads.end());
        let numbers = u64::from(max.saturating_sub(least)) + 1;
        History {
            seed,
            ops: (0..self.prepared + self.operations)
                .map(|_| (self.operation)(&mut random))
                .collect(),
            prepared: self.prepared as u32,
            threads: least.max(1) + (seed % numbers) as u32,
            ..History::default()
        }
    }
}
