//! Mutants: programs that omit a persist, or swap it with the next one, to see whether that is detected.
//!
//! A run without a crash cannot see write-backs and fences, so a mutant needs no run of its own: its log is the same
//! without the events of its site, or with two publications in the other order (`swap`). Only images that the unmutated
//! program cannot leave are of interest: the mutant's walk follows both models, and judges where they differ.
//!
//! If no explored image detects the absence of a persist, the persist is not needed, or not reached ([`Fate`]), or
//! [forgiven](crate::forgiven): a table says why it stays.

use crate::explore::{Start, Walk, Walked, apart};
use crate::mutant::Mutant;
use crate::report::{Persist, persist};
use crate::{Explorer, Failure, History, Lacks, Report, Subject};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Instant;

/// The outcome of the hunt for a mutant.
#[derive(Clone, Debug)]
pub enum Fate {
    /// It left a wrong image, or gave a wrong answer.
    Killed(Box<Failure>),
    /// No explored image detects the absence of the persist.
    Survived,
    /// No explored run reached the persist, or the time ended before.
    Untried,
}

/// A mutant that was hunted.
#[derive(Clone, Debug)]
pub struct Hunted {
    /// The mutant.
    pub mutant: Mutant,
    /// How many events it omitted or delayed in all explored runs.
    pub lacking: u64,
    /// The outcome.
    pub fate: Fate,
    /// Why the persist stays although its absence need not be detected ([`Forgiven`](crate::Forgiven)).
    pub reason: Option<&'static str>,
}

impl Hunted {
    /// Returns whether an image or an answer exposes the mutant.
    pub fn is_killed(&self) -> bool {
        matches!(self.fate, Fate::Killed(_))
    }

    /// Returns whether the missing persist went unnoticed and the table gives no reason for it.
    pub fn is_unexplained(&self) -> bool {
        !self.is_killed() && self.reason.is_none()
    }
}

impl fmt::Display for Hunted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Hunted {
            mutant,
            lacking,
            fate,
            ..
        } = self;
        match fate {
            Fate::Killed(failure) => {
                let Failure { seed, message, .. } = &**failure;
                write!(f, "killed    {mutant}: history {seed}, {message}")
            }
            Fate::Survived => write!(f, "survived  {mutant}, {lacking} times"),
            Fate::Untried => write!(f, "untried   {mutant}"),
        }
    }
}

/// A run in which threads are held back behind a persist gets one in this many of a walk's images.
const BEHIND: u64 = 8;

/// What is judged of a mutant along one history.
#[derive(Clone, Copy)]
enum Step {
    /// What a first crash leaves.
    First,
    /// What a second one leaves.
    Again,
    /// A run in which threads are held back behind the persist.
    Behind,
}

/// The mutants that are hunted.
#[derive(Default)]
struct Quarry {
    all: BTreeMap<Persist, Hunted>,
    /// Mutants that can change the order of a history that has run, tried or not.
    moving: BTreeSet<Persist>,
}

impl<S: Subject> Explorer<S> {
    /// Hunts the mutants of all source lines that the histories reach, along one history after the other, until each is
    /// killed: judges images that a first crash leaves, then images that a second one leaves, at most `images` of each
    /// kind for one mutant in one history; and if the history has several threads, another run of it in which each is
    /// held back behind the persist.
    ///
    /// Asks `more` before each of these bounded steps whether to continue.
    ///
    /// # Errors
    ///
    /// The failure of a history that fails without any mutant, or of an image of a mutant's walk that the program itself
    /// may leave.
    pub fn hunt(
        &mut self,
        histories: impl IntoIterator<Item = History<S::Op>>,
        images: u64,
        mut more: impl FnMut(&Report) -> bool + Send,
    ) -> Result<Vec<Hunted>, Box<Failure>> {
        let mut quarry = Quarry::default();
        for history in histories {
            if !more(self.report()) {
                break;
            }
            self.forget_persists();
            self.explore(&history)?;
            if !apart(|| self.hunt_along(&history, images, &mut quarry, &mut more))? {
                break;
            }
        }
        let Quarry { mut all, moving } = quarry;
        // The histories gave the other order mutants nothing to swap.
        all.retain(|persist, hunted| {
            persist.3 != Lacks::Order || !matches!(hunted.fate, Fate::Untried) || moving.contains(persist)
        });
        all.retain(|_, hunted| (self.settings().hunted)(&hunted.mutant));
        for (persist, hunted) in &mut all {
            hunted.reason = self.report().reasons.get(persist).copied();
        }
        Ok(all.into_values().collect())
    }

    /// Hunts all living mutants along one history. Returns whether to continue.
    fn hunt_along(
        &mut self,
        history: &History<S::Op>,
        images: u64,
        quarry: &mut Quarry,
        more: &mut (impl FnMut(&Report) -> bool + Send),
    ) -> Result<bool, Box<Failure>> {
        let run = self.record(history, Start::Empty, 0);
        let run = run.map_err(|mut failure| {
            failure.of(history);
            failure
        })?;
        self.note_persisted(&run.log);
        self.add_mutants(&mut quarry.all);
        let forgiven =
            |persist| !self.settings().hunt_forgiven && self.report().reasons.contains_key(persist);
        let living = quarry
            .all
            .iter_mut()
            .filter(|(_, hunted)| (self.settings().hunted)(&hunted.mutant))
            .filter(|(persist, hunted)| !hunted.is_killed() && !forgiven(persist));
        let living: Vec<_> = living
            .map(|(persist, hunted)| (hunted.mutant.lacking(&run.log), *persist, hunted))
            .collect();
        let moving = living
            .iter()
            .filter(|(lacking, persist, _)| *lacking > 0 && persist.3 == Lacks::Order);
        quarry.moving.extend(moving.map(|(_, persist, _)| *persist));
        for (lacking, _, hunted) in living {
            let mutant = hunted.mutant;
            // A mutant that omits nothing before the first crash may omit something after it.
            let steps = [Step::First, Step::Again, Step::Behind];
            let is_met = mutant.lacks != Lacks::Order && history.threads > 1;
            for step in steps.into_iter().skip(usize::from(lacking == 0)) {
                if matches!(step, Step::Behind) && !(is_met && lacking > 0) {
                    continue;
                }
                if !more(self.report()) {
                    return Ok(false);
                }
                let started = Instant::now();
                let walked = match step {
                    Step::First => self.walk_as(history, &run, Walk::Differing(mutant), images),
                    Step::Again => self.walk_as(history, &run, Walk::Again(mutant), images),
                    Step::Behind => self.walk_behind(history, mutant, images / BEHIND),
                };
                let Walked { lacking, killed } = walked?;
                hunted.lacking += lacking;
                match killed {
                    Some(failure) => hunted.fate = Fate::Killed(failure),
                    // A walk that the deadline has cut short proves nothing.
                    None if lacking > 0 && !self.is_late() => hunted.fate = Fate::Survived,
                    None => {}
                }
                let report = self.report_mut();
                report.mutant_elapsed += started.elapsed();
                report.mutants.1 += usize::from(hunted.is_killed());
                if hunted.is_killed() {
                    break;
                }
            }
        }
        Ok(true)
    }

    /// Judges a mutant along another run of a history of several threads, in which each is held back just behind the
    /// persist: others meet what is not durable there, and answer.
    fn walk_behind(
        &mut self,
        history: &History<S::Op>,
        mutant: Mutant,
        images: u64,
    ) -> Result<Walked, Box<Failure>> {
        let run = self.record_behind(history, mutant.site).map_err(|mut failure| {
            failure.of(history);
            failure
        })?;
        self.walk_as(history, &run, Walk::Differing(mutant), images)
    }

    fn add_mutants(&mut self, all: &mut BTreeMap<Persist, Hunted>) {
        for (&(.., lacks), &(site, _)) in &self.report().sites {
            let mut add = |lacks| {
                all.entry(persist(site, lacks)).or_insert(Hunted {
                    mutant: Mutant { lacks, site },
                    lacking: 0,
                    fate: Fate::Untried,
                    reason: None,
                });
            };
            add(lacks);
            if lacks == Lacks::Fence {
                add(Lacks::Order);
            }
        }
        self.report_mut().mutants.0 = all.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use crate::blobs::{self, Blobs};

    /// Returns the fates of the order mutants after this many walks.
    fn orders(walks: usize) -> BTreeMap<Persist, Fate> {
        let mut explorer = Explorer::new(Blobs, Settings::default()).expect("memory");
        let mut left = walks + 1;
        let more = |_: &Report| {
            left = left.saturating_sub(1);
            left > 0
        };
        let histories = std::iter::once(blobs::history(1, 10, 1));
        let hunted = explorer.hunt(histories, 100, more).expect("no failure");
        let orders = hunted.into_iter().filter(|one| one.mutant.lacks == Lacks::Order);
        orders
            .map(|one| (persist(one.mutant.site, Lacks::Order), one.fate))
            .collect()
    }

    /// An order mutant that there was no time to try is reported as untried, and not dropped.
    #[test]
    fn an_order_without_time_is_untried() {
        let (cut, whole) = (orders(1), orders(usize::MAX - 1));
        assert!(!cut.is_empty());
        for (persist, fate) in &cut {
            assert!(matches!(fate, Fate::Untried), "{persist:?}");
            assert!(whole.contains_key(persist), "{persist:?}");
        }
        assert!(whole.values().all(|fate| !matches!(fate, Fate::Untried)));
    }
}
