//! Explores a history: crash points, images, second crashes.

use super::faults::draw_fault;
use super::history::{CrashState, Draw, History, run};
use super::notes::Allowed;
use super::pool::{ID, draw_options, pool};
use super::state::State;
use super::together;
use super::trouble::Trouble;
use crate::bounds::{Bounds, Report};
use crashkit::Random;
use crashkit::disk::{CrashDisk, images};
use crashkit::killed::told;
use std::collections::HashSet;
use std::sync::Arc;

/// The maximum number of consecutive crashes.
const DEPTH: u32 = 3;

/// The judge writes to one in this many judged states.
const WRITE_SHARE: u64 = 16;

/// Explores histories until one fails or the bounds are reached.
///
/// # Errors
///
/// The failure, with the crashes before it and the history's seed. The seed reproduces the failure; with several
/// threads it does so only probably.
pub fn torture(bounds: &Bounds) -> Result<Report, String> {
    bounds.explore(|report, seed| {
        let seen = HashSet::new();
        Explorer { bounds, report, seen }.history(seed)
    })
}

struct Explorer<'b> {
    bounds: &'b Bounds,
    report: &'b mut Report,
    /// States of this history judged so far: hashes of disk, pool and allowed contents.
    seen: HashSet<(u64, Option<u64>, u64)>,
}

impl Explorer<'_> {
    fn history(&mut self, seed: u64) -> Result<(), String> {
        let mut random = Random(seed);
        if seed % 8 == 7 && self.bounds.skip.is_none() {
            self.report.together += 1;
            return self.together(&mut random);
        }
        let draw = Draw {
            steps: self.bounds.steps,
            last_value: 0,
            fault: seed
                .is_multiple_of(3)
                .then(|| draw_fault(self.bounds.steps, &mut random)),
            skip: self.bounds.skip,
        };
        let left = CrashState {
            medium: Default::default(),
            pool: None,
        };
        let nothing = Allowed::only(State::default());
        let history = self.run(&left, &nothing, draw, &mut random);
        let history = history.map_err(|trouble| trouble.to_string())?;
        self.explore(&history, 1, &mut random)
    }

    fn run(
        &mut self,
        left: &CrashState,
        allowed: &Allowed,
        draw: Draw,
        random: &mut Random,
    ) -> Result<History, Trouble> {
        self.report.faults += u64::from(draw.fault.is_some());
        let history = run(left, allowed, draw, random)?;
        for (what, times) in &history.reached {
            *self.report.reached.entry(what).or_default() += times;
        }
        self.report.note_syncs(&history.sync_sites);
        Ok(history)
    }

    /// Crashes before a share of the events, and at the recorded kills.
    fn explore(&mut self, history: &History, depth: u32, random: &mut Random) -> Result<(), String> {
        let mut medium = history.base.clone();
        let mut kills = history.kills.iter().peekable();
        // A history after a crash mostly repeats moments that a first history reaches sooner, so a share suffices. In a
        // hunt many images run on; it takes fewer moments and images, so that it reaches the end of a history.
        let (share, images_of_each) = match (depth, self.bounds.skip) {
            (1, _) => (2, self.bounds.images),
            (_, None) => (6, self.bounds.images),
            (2, Some(_)) => (6, 6),
            (_, Some(_)) => (20, 4),
        };
        let len = history.events.len();
        for event in 0..=len {
            if self.report.is_over() {
                return Ok(());
            }
            let crash =
                |what: &str, trouble: String| format!("{what} before event {event} of {len}: {trouble}");
            if random.below(share) == 0 || event == len {
                self.report.crash_points += 1;
                let allowed = history.notes.allowed(history.bounds[event]);
                let ways = medium.choices();
                for picks in images(&ways, images_of_each, random) {
                    let left = CrashState {
                        medium: medium.image(&picks),
                        pool: None,
                    };
                    let judged = self.judge(left, &allowed, history, depth, random);
                    judged.map_err(|trouble| crash("power cut", trouble))?;
                }
            }
            while let Some(kill) = kills.next_if(|kill| kill.events <= event) {
                self.report.crash_points += 1;
                self.report.kills += 1;
                let allowed = history.notes.allowed(kill.bounds);
                let next = history.events.get(event).filter(|_| kill.amid);
                let left = CrashState {
                    medium: medium.killed(next, random),
                    pool: kill.pool.clone(),
                };
                let judged = self.judge(left, &allowed, history, depth, random);
                judged.map_err(|trouble| crash("kill", trouble))?;
            }
            if let Some(event) = history.events.get(event) {
                medium.apply(event);
            }
        }
        self.judge_closed(history, medium, depth, random)
    }

    /// Judges the state after a clean close, where the pool survives a loss of power too.
    fn judge_closed(
        &mut self,
        history: &History,
        medium: crashkit::disk::Medium,
        depth: u32,
        random: &mut Random,
    ) -> Result<(), String> {
        let Some(closed) = &history.closed else {
            return Ok(());
        };
        let allowed = history.notes.allowed(history.bounds[history.events.len()]);
        let ways = medium.choices();
        let cuts = images(&ways, self.bounds.images, random);
        let cuts = cuts.iter().map(|picks| medium.image(picks));
        let left = std::iter::once(medium.clone()).chain(cuts);
        for medium in left.collect::<Vec<_>>() {
            let left = CrashState {
                medium,
                pool: Some(closed.clone()),
            };
            let judged = self.judge(left, &allowed, history, depth, random);
            judged.map_err(|trouble| format!("after a clean close: {trouble}"))?;
        }
        Ok(())
    }

    /// Judges a crash state; or runs on from it, which judges it too.
    fn judge(
        &mut self,
        left: CrashState,
        allowed: &Allowed,
        history: &History,
        depth: u32,
        random: &mut Random,
    ) -> Result<(), String> {
        let pool = left.pool.as_ref().map(|pool| pool.hash());
        let seen = (left.medium.hash(), pool, allowed.hash(pool.is_some()));
        if self.report.is_over() || !self.seen.insert(seen) {
            return Ok(());
        }
        self.report.states += 1;
        let say = |trouble: Trouble| trouble.to_string();
        if depth < DEPTH && random.below(self.bounds.again) == 0 {
            self.report.again += 1;
            let steps = self.bounds.steps / 4;
            let draw = Draw {
                steps,
                last_value: history.last_value,
                fault: (random.below(3) == 0).then(|| draw_fault(steps, random)),
                skip: self.bounds.skip,
            };
            let next = self.run(&left, allowed, draw, random).map_err(say)?;
            return self.explore(&next, depth + 1, random);
        }
        let writes = random.below(WRITE_SHARE) == 0;
        open_and_judge(&left, allowed, writes, self.bounds.skip, random).map_err(say)
    }

    fn together(&mut self, random: &mut Random) -> Result<(), String> {
        let history = together::run(random).map_err(|trouble| trouble.to_string())?;
        let mut medium = crashkit::disk::Medium::new();
        for event in 0..=history.events.len() {
            if random.below(4) == 0 || event == history.events.len() {
                self.report.crash_points += 1;
                for picks in images(&medium.choices(), self.bounds.images.min(4), random) {
                    let image = medium.image(&picks);
                    self.report.states += 1;
                    history.judge(image, event, random).map_err(|trouble| {
                        let all = history.events.len();
                        format!("several threads, power cut before event {event} of {all}: {trouble}")
                    })?;
                }
            }
            if let Some(event) = history.events.get(event) {
                medium.apply(event);
            }
        }
        Ok(())
    }
}

/// Opens a crash state and compares its content; with `writes`, then writes to it.
pub(super) fn open_and_judge(
    left: &CrashState,
    allowed: &Allowed,
    writes: bool,
    skip: Option<crashkit::disk::Site>,
    random: &mut Random,
) -> Result<(), Trouble> {
    let disk = CrashDisk::new(left.medium.clone());
    disk.skip(skip);
    let (pool, _memory) = pool(left.pool.as_ref(), ID, told(|| ()))?;
    let db = draw_options(random).open(pool, Arc::new(disk))?;
    let found = State::of(&db)?;
    allowed.check(&found, left.pool.is_some())?;
    if writes {
        let map = db.map("a")?;
        let mut then = State::of(&db)?;
        for _ in 0..3 {
            let key = super::state::key(random);
            let value = super::state::value(7, random);
            map.upsert(&key, &value)?;
            then.set("a", &key, Some(&value));
            db.checkpoint(random.below(2) == 0)?;
        }
        if State::of(&db)? != then {
            return Err(Trouble::Wrong(
                "it lacks a write made after recovery, or holds something else".into(),
            ));
        }
    }
    db.recover();
    let check = db.check()?;
    match check.is_clean() {
        true => Ok(()),
        false => Err(Trouble::Wrong(format!("the check reports {check:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::state::Entries;

    /// An image that was judged is judged again when another state is allowed, even if as many are: an empty database
    /// is right until the creation of a map is acknowledged.
    #[test]
    fn an_image_is_judged_by_what_is_allowed_now() {
        let mut random = Random(1);
        let nothing = || CrashState {
            medium: Default::default(),
            pool: None,
        };
        let draw = Draw {
            steps: 0,
            last_value: 0,
            fault: None,
            skip: None,
        };
        let empty = State::default();
        let made = State([("a".to_owned(), Entries::default())].into());
        let history = run(&nothing(), &Allowed::only(empty.clone()), draw, &mut random).expect("no fault");
        // No image runs on.
        let bounds = Bounds {
            again: u64::MAX,
            histories: 1,
            ..Bounds::default()
        };
        let explored = bounds.explore(|report, _| {
            let (seen, bounds) = (HashSet::new(), &bounds);
            let mut explorer = Explorer { bounds, report, seen };
            let mut judge = |state: &State| {
                let allowed = Allowed::only(state.clone());
                explorer.judge(nothing(), &allowed, &history, DEPTH, &mut random)
            };
            judge(&empty)?;
            judge(&made)
        });
        let failure = explored.expect_err("the map is missing");
        assert!(failure.contains("instead of one of"), "{failure}");
    }
}
