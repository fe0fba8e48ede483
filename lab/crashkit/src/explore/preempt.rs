//! Runs a history of several threads again and again, with aimed preemptions (`schedule::aimed`).
//!
//! Crash points are examined from the moment at which the first thread is stopped until all stopped threads have ended
//! their operations; answers and dirty reads are judged from the beginning to the end.

use super::panics::caught;
use super::{Explorer, NOTHING_RAN, Run, Start};
use crate::Subject;
use crate::choose::Random;
use crate::history::History;
use crate::report::Failure;
use crate::schedule::{self, Plan, Scouted};
use std::ops::Range;

/// Maximum number of images judged per run.
const IMAGES: u64 = 200;

/// Maximum number of legs of a plan that is no relay: threads that run one after the other before all resume.
pub(super) const MAX_LEGS: u32 = 3;

/// Number of plans tried to find a failure with few preemptions.
const PLANS: u32 = 48;

/// Of each this many plans, the first is a relay.
const RELAY: u32 = 4;

/// A run along a plan, what it scouted, and the range of events within the plan's legs.
type Steered<S> = (Run<S>, Scouted, Option<Range<usize>>);

impl<S: Subject> Explorer<S> {
    /// Runs a history as often as the settings ask for, each time with an aimed preemption of a few legs, or with a
    /// relay.
    pub(super) fn preempt(&mut self, history: &History<S::Op>) -> Result<(), Box<Failure>> {
        if history.threads < 2 || self.settings.aimed == 0 || self.is_late() {
            return Ok(());
        }
        let seed = self.settings.seed ^ history.seed.rotate_left(29);
        let (_, scouted, _) = self.steered(history, seed, Plan::default())?;
        let mut random = Random(!seed);
        for number in 0..self.settings.aimed {
            // Apart from relays, plans of one leg come first: a failure that they find takes the fewest preemptions.
            let legs = 1 + number * MAX_LEGS / self.settings.aimed;
            let plan = match number % RELAY {
                0 => scouted.relay(&mut random),
                _ => scouted.aim(legs, &mut random),
            };
            if self.is_late() {
                break;
            }
            if let Some(plan) = plan {
                self.run_plan(history, seed, plan)?;
            }
        }
        Ok(())
    }

    /// Runs a history of several threads with its operations in turn, then with preemptions of at most this many legs,
    /// to see whether they make it fail.
    pub(super) fn nearly_in_turn(&mut self, history: &History<S::Op>, legs: u32) -> Result<(), Box<Failure>> {
        let seed = self.settings.seed ^ history.seed.rotate_left(29);
        let (run, scouted, _) = self.steered(history, seed, Plan::default())?;
        self.walk(&run, self.beginning(), self.nothing(), false)?;
        let mut random = Random(!seed);
        for number in 0..PLANS * legs.min(1) {
            if self.is_late() {
                break;
            }
            if let Some(plan) = scouted.aim(1 + number * legs / PLANS, &mut random) {
                self.run_plan(history, seed, plan)?;
            }
        }
        Ok(())
    }

    /// Runs a history along a plan, and judges the run.
    fn run_plan(&mut self, history: &History<S::Op>, seed: u64, plan: Plan) -> Result<(), Box<Failure>> {
        let (run, _, window) = self.steered(history, seed, plan)?;
        let Range { start, end } = window.unwrap_or(usize::MAX..usize::MAX);
        let run = Run {
            from: run.from.max(start),
            until: end,
            ..run
        };
        // These runs are made for their answers; only a part of what crashes leave is judged.
        self.left = IMAGES;
        self.spread = (run.crash_points() / (IMAGES / 4)).max(1);
        let walked = self.walk(&run, self.beginning(), self.nothing(), false);
        (self.left, self.spread) = (u64::MAX, 1);
        walked
    }

    fn steered(
        &mut self,
        history: &History<S::Op>,
        seed: u64,
        plan: Plan,
    ) -> Result<Steered<S>, Box<Failure>> {
        let body = self.body(history, Start::Empty);
        let mut seen = (Scouted::default(), None);
        let ran = caught(|| {
            let steered = schedule::steered(&self.crash, seed, plan, body);
            seen = (steered.scouted, steered.window);
            steered.result.ok_or(NOTHING_RAN.into())
        });
        self.report.met.note(self.crash.take_meetings());
        let (scouted, window) = seen;
        Ok((Run::of(history, 0, ran)?, scouted, window))
    }
}
