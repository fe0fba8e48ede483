//! The images of one crash point: all of them up to a bound, beyond it those that strategies and chance choose.

use super::carry::open;
use super::panics::caught;
use super::{Expected, Explorer, Run, Walk};
use crate::choose::{Chooser, Fresh, Picked, Plan, Random};
use crate::log::{LogEvent, Site};
use crate::media::Ended;
use crate::model::Volatile;
use crate::report::{Failure, Missing, shown};
use crate::{Depth, Subject, Verdict};
use std::rc::Rc;

/// A crash point.
pub(super) struct At<'k, S: Subject> {
    pub(super) expected: &'k Expected<S>,
    /// All operations of the run.
    pub(super) ops: &'k [S::Op],
    pub(super) created: bool,
    pub(super) place: usize,
    pub(super) crashes: u32,
}

/// A probe's outcome.
pub(super) struct Probed {
    pub(super) result: Result<usize, String>,
    pub(super) picked: Vec<Picked>,
    ended: Ended,
}

impl<S: Subject> Explorer<S> {
    /// Judges the images of a crash point.
    pub(super) fn images(&mut self, run: &Run<S>, at: &At<'_, S>, fresh: &Fresh) -> Result<(), Box<Failure>> {
        // One number for all images, so that the same decisions lead to the same next question.
        let chance = self.random.next();
        let mut path = Vec::new();
        for _ in 0..self.settings.exhaustive {
            if self.left == 0 {
                return Ok(());
            }
            let probed = self.image(run, at, Plan::Path(path), chance, fresh.clone())?;
            let mut numbers: Vec<(usize, usize)> =
                probed.iter().map(|picked| (picked.number, picked.of)).collect();
            while let Some((number, of)) = numbers.pop() {
                if number + 1 < of {
                    numbers.push((number + 1, of));
                    break;
                }
            }
            if numbers.is_empty() {
                return Ok(());
            }
            path = numbers.into_iter().map(|(number, _)| number).collect();
        }
        self.report.sampled_points += 1;
        for plan in strategies(&mut self.random, self.settings.samples) {
            if self.left == 0 {
                break;
            }
            let chance = self.random.next();
            self.image(run, at, plan, chance, Fresh::any())?;
        }
        Ok(())
    }

    /// Judges one image, and returns the decisions that made it.
    pub(super) fn image(
        &mut self,
        run: &Run<S>,
        at: &At<'_, S>,
        plan: Plan,
        chance: u64,
        fresh: Fresh,
    ) -> Result<Vec<Picked>, Box<Failure>> {
        let dice = self.random.next();
        let share = |share: u64, part: u64| share > 0 && part.is_multiple_of(share);
        let again_share = match self.walk {
            Walk::Whole => self.settings.again_share,
            Walk::Again(_) if at.crashes == 1 => 1,
            Walk::Again(_) => 50,
            Walk::Differing(_) => 0,
        };
        let depth = if share(self.settings.deep_share, dice & 0xffff) {
            Depth::Deep
        } else {
            Depth::Shallow
        };
        let chooser = Chooser::new(plan, Volatile::of(chance), Random(chance), fresh);
        let random = Random(!chance);
        let mut probed = self.probe(at, chooser, depth, random);
        self.left -= 1;
        self.report.images += 1;
        if self.seen.insert(probed.ended.signature ^ at.expected.hash) {
            self.report.states += 1;
        }
        let state = match &probed.result {
            Ok(which) => Rc::clone(&at.expected.allowed[*which]),
            Err(_) => {
                probed = self.shrink_image(probed, |explorer, plan| {
                    let chooser = Chooser::new(plan, Volatile::of(chance), Random(chance), Fresh::any());
                    explorer.probe(at, chooser, depth, random)
                });
                let message = probed.result.err().unwrap_or_default();
                return Err(self.failure(run, at, &probed.picked, message));
            }
        };
        if at.crashes < self.settings.crashes && share(again_share, dice >> 16 & 0xffff) {
            self.again(run, at, &probed.picked, &state)?;
        }
        Ok(probed.picked)
    }

    /// Opens and judges an image.
    fn probe(&self, at: &At<'_, S>, chooser: Chooser, depth: Depth, random: Random) -> Probed {
        let crash = &self.crash;
        crash.slow().chooser = chooser;
        crash.begin(self.settings.steps);
        let result = caught(|| {
            let live = open(&*self.subject, crash, &self.memory, at.created)?;
            self.subject.recover(&live)?;
            let allowed: Vec<&S::State> = at.expected.allowed.iter().map(|state| &**state).collect();
            let in_flight: Vec<&S::Op> = at.expected.in_flight.iter().collect();
            self.subject.judge(
                &live,
                Verdict {
                    allowed: &allowed,
                    in_flight: &in_flight,
                    ops: at.ops,
                    depth,
                    random,
                },
            )
        });
        let picked = std::mem::take(&mut crash.slow().chooser.picked);
        let mut ended = crash.end();
        Probed {
            result: ended.outcome(result),
            picked,
            ended,
        }
    }

    /// Returns a failure at a crash point.
    pub(super) fn failure(
        &self,
        run: &Run<S>,
        at: &At<'_, S>,
        picked: &[Picked],
        message: String,
    ) -> Box<Failure> {
        let slow = self.crash.slow();
        let mut missing = Vec::new();
        for picked in picked {
            let Some(line) = slow.tracker.line(picked.line) else {
                continue;
            };
            let pending: Vec<_> = line.pending().collect();
            for (i, &(word, value, event, matters)) in pending.iter().enumerate() {
                let there = picked.content[word as usize];
                // A store that a later one has replaced is not missing.
                let replaced = || {
                    pending[i + 1..]
                        .iter()
                        .any(|later| later.0 == word && later.1 == there)
                };
                if matters && there != value && !replaced() {
                    missing.push(Missing {
                        site: run.log.events[event as usize].site,
                        word: picked.line * 8 + word,
                        value,
                        there,
                    });
                }
            }
        }
        let site: Option<Site> = run.log.events.get(at.place).map(|event: &LogEvent| event.site);
        Box::new(Failure {
            message,
            crashes: at.crashes,
            place: at.place,
            site,
            event: run.log.events.get(at.place).map(|event| event.kind),
            in_flight: at.expected.in_flight.iter().map(shown).collect(),
            missing,
            ..Failure::default()
        })
    }
}

/// Returns the plans of the images that are tried, in order, where there are too many.
pub(super) fn strategies(random: &mut Random, samples: usize) -> Vec<Plan> {
    const NONE: usize = usize::MAX;
    let mut plans = vec![Plan::Lead([NONE; 2]), Plan::Lag([NONE; 2])];
    plans.extend((1..8).map(Plan::PointersFirst));
    plans.extend((0..8).map(|i| Plan::Lag([i, NONE])));
    plans.extend((0..8).map(|i| Plan::Lead([i, NONE])));
    for _ in 0..samples {
        let pair = [random.below(12) as usize, random.below(12) as usize];
        plans.push(match random.below(4) {
            0 => Plan::Lag(pair),
            1 => Plan::Lead(pair),
            _ => Plan::Seeded,
        });
    }
    plans
}
