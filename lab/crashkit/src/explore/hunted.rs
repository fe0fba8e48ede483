//! An explorer's part in a hunt: a mutant's walks along a history that has run.

use super::aim::{self, Persisted};
use super::{Explorer, Run, Settings, Walk, again};
use crate::Subject;
use crate::choose::Random;
use crate::history::History;
use crate::log::EventLog;
use crate::report::Failure;
use std::collections::BTreeSet;

/// What the walk of a mutant has found.
pub(crate) struct Walked {
    /// How many events the mutant omitted or delayed.
    pub(crate) lacking: u64,
    /// The failure that exposes the mutant.
    pub(crate) killed: Option<Box<Failure>>,
}

impl<S: Subject> Explorer<S> {
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Begins the hunt along another history, of whose persists nothing is known yet.
    pub(crate) fn forget_persists(&mut self) {
        self.persisted = Some(Persisted::default());
    }

    /// Records, in a hunt, what the persists of a run have made durable.
    pub(crate) fn note_persisted(&mut self, log: &EventLog) {
        if let Some(persisted) = &mut self.persisted {
            persisted.note(log);
        }
    }

    /// Judges at most `images` images of a mutant along a history that has run. The report gets only the number of
    /// states.
    ///
    /// # Errors
    ///
    /// A failure where the program itself may leave the image: the program fails, which the walk has found because it
    /// judges other images, and runs on from more of them, than the exploration of the program. (Or the program is not
    /// a function of its history.)
    pub(crate) fn walk_as(
        &mut self,
        history: &History<S::Op>,
        run: &Run<S>,
        walk: Walk,
        images: u64,
    ) -> Result<Walked, Box<Failure>> {
        let report = self.report.clone();
        self.seen.clear();
        self.walk = walk;
        self.lacking = 0;
        self.is_beyond = false;
        self.left = images;
        self.one_in = (run.crash_points() / (again::PLACES / 2)).max(1);
        self.random = Random(self.settings.seed ^ history.seed.rotate_left(32));
        let walked = match walk.mutant().and_then(|mutant| mutant.swapped(&run.log)) {
            Some((log, swapped)) => {
                self.lacking += swapped.len() as u64;
                let run = Run {
                    log,
                    swapped,
                    ..run.clone()
                };
                self.walk_aiming(&run)
            }
            None => self.walk_aiming(run),
        };
        self.walk = Walk::Whole;
        self.left = u64::MAX;
        let judged = self.report.states - report.states;
        self.report = report;
        self.report.mutant_states += judged;
        let killed = match walked {
            Ok(()) => None,
            Err(mut failure) => {
                failure.of(history);
                if !self.is_beyond {
                    self.report.failures.push(Failure::clone(&failure));
                    return Err(failure);
                }
                Some(failure)
            }
        };
        Ok(Walked {
            lacking: self.lacking,
            killed,
        })
    }

    /// Walks along a run from its beginning. A walk for second crashes first draws the places where it kills.
    fn walk_aiming(&mut self, run: &Run<S>) -> Result<(), Box<Failure>> {
        self.aims = match self.walk {
            Walk::Again(mutant) => {
                let persisted = self.persisted.as_ref();
                let lines = persisted.and_then(|persisted| persisted.lines(mutant.site, mutant.lacks));
                let file = mutant.site.file();
                aim::places(&run.log, run.from, file, lines, again::PLACES, &mut self.random)
            }
            _ => BTreeSet::new(),
        };
        self.walk(run, self.beginning(), self.nothing(), false)
    }
}
