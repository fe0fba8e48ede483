//! Explores a history: crash points, images, second crashes.

use super::removal;
use super::script::{Draw, History, run, run_together};
use super::truth::{Trouble, Truth};
use crate::bounds::{Bounds, Report};
use crashkit::Random;
use crashkit::disk::{CrashDisk, Medium, images};
use std::collections::HashSet;
use std::sync::Arc;

/// Judges a removal, and then explores histories until one fails or the bounds are reached.
///
/// # Errors
///
/// The failure, with the crashes before it and the history's seed. The seed reproduces the failure; with several
/// threads it does so only probably.
pub fn torture(bounds: &Bounds) -> Result<Report, String> {
    removal::judge(bounds.skip)?;
    bounds.explore(|report, seed| {
        let seen = HashSet::new();
        Explorer { bounds, report, seen }.history(seed)
    })
}

struct Explorer<'b> {
    bounds: &'b Bounds,
    report: &'b mut Report,
    /// States of this history judged so far: an image's hash, the number of required records, and a hash of what the
    /// image may hold.
    seen: HashSet<(u64, usize, u64)>,
}

/// The maximum number of consecutive crashes.
const DEPTH: u32 = 3;

impl Explorer<'_> {
    fn history(&mut self, seed: u64) -> Result<(), String> {
        let mut random = Random(seed);
        let draw = Draw {
            steps: self.bounds.steps,
            first: 0,
            faults: seed.is_multiple_of(3),
            skip: self.bounds.skip,
        };
        let history = if seed % 8 == 7 && self.bounds.skip.is_none() {
            self.report.together += 1;
            run_together(2 + seed / 8 % 3, self.bounds.steps as u64 / 4, &mut random)
        } else {
            self.report.faults += u64::from(draw.faults);
            run(Medium::new(), Truth::nothing(), 0, draw, &mut random)
        };
        let history = history.map_err(|trouble| trouble.to_string())?;
        self.explore(&history, 1, &mut random)
    }

    /// Crashes before each event; in a history after a crash, before a share of the events.
    fn explore(&mut self, history: &History, depth: u32, random: &mut Random) -> Result<(), String> {
        self.report.note_syncs(&history.sync_sites);
        let mut medium = history.base.clone();
        // A history after a crash mostly repeats moments that a first history reaches sooner, so a share suffices.
        let share = if depth == 1 { 1 } else { 4 };
        for event in 0..=history.events.len() {
            if self.report.is_over() {
                return Ok(());
            }
            if random.below(share) == 0 {
                let crash = |what: &str, trouble: String| {
                    format!(
                        "{what} before event {event} of {}: {trouble}",
                        history.events.len()
                    )
                };
                self.report.crash_points += 1;
                let truth = history.truth_at(event);
                let ways = medium.choices();
                for picks in images(&ways, self.bounds.images, random) {
                    let image = medium.image(&picks);
                    let again = random.below(self.bounds.again) == 0;
                    let judged = self.judge(image, (&truth, truth.durable), history, (depth, again), random);
                    judged.map_err(|trouble| crash("power cut", trouble))?;
                }
                let killed = medium.killed(history.events.get(event), random);
                self.report.kills += 1;
                // A run always continues from the end of a process, even if its log has failed.
                let again = event == history.events.len() || random.below(self.bounds.again) == 0;
                let judged = self.judge(killed, (&truth, truth.there), history, (depth, again), random);
                judged.map_err(|trouble| crash("kill", trouble))?;
            }
            if let Some(event) = history.events.get(event) {
                medium.apply(event);
            }
        }
        Ok(())
    }

    /// Judges a crash state, which must hold at least `least` records; or runs on from it, which judges it too.
    fn judge(
        &mut self,
        medium: Medium,
        (truth, least): (&Truth, usize),
        history: &History,
        (depth, again): (u32, bool),
        random: &mut Random,
    ) -> Result<(), String> {
        if self.report.is_over() || !self.seen.insert((medium.hash(), least, truth.hash())) {
            return Ok(());
        }
        self.report.states += 1;
        let again = again && depth < DEPTH;
        let say = |trouble: Trouble| trouble.to_string();
        if again {
            self.report.again += 1;
            let draw = Draw {
                steps: self.bounds.steps / 4,
                first: history.next_number(),
                faults: random.below(3) == 0,
                skip: self.bounds.skip,
            };
            let left = Truth {
                there: least,
                ..truth.clone()
            };
            let next = run(medium, left, least, draw, random).map_err(say)?;
            return self.explore(&next, depth + 1, random);
        }
        let disk = CrashDisk::new(medium);
        disk.skip(self.bounds.skip);
        let (_log, _found) = truth.open(Arc::new(disk), least, random).map_err(say)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::truth::BEGIN;

    /// An image that was judged is judged again when other things are required of it: an empty disk is right until the
    /// log's creation has returned, although no record is required before or after.
    #[test]
    fn an_image_is_judged_by_what_is_required_now() {
        let mut random = Random(1);
        let bounds = Bounds {
            histories: 1,
            ..Bounds::default()
        };
        let history = run(Medium::new(), Truth::nothing(), 0, draw(), &mut random).expect("no fault");
        let explored = bounds.explore(|report, _| {
            let seen = HashSet::new();
            let bounds = &bounds;
            let mut explorer = Explorer { bounds, report, seen };
            let mut judge = |exists| {
                let truth = Truth {
                    exists,
                    keep: BEGIN,
                    ..Truth::nothing()
                };
                explorer.judge(Medium::new(), (&truth, 0), &history, (DEPTH, false), &mut random)
            };
            judge(false)?;
            judge(true)
        });
        let failure = explored.expect_err("the log is missing");
        assert!(failure.contains("the log returned an error"), "{failure}");
    }

    fn draw() -> Draw {
        Draw {
            steps: 0,
            first: 0,
            faults: false,
            skip: None,
        }
    }
}
