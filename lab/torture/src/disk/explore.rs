//! Crash points, images, second crashes.

use super::history::{Draw, History, Left, run};
use super::notes::{Allowed, Trouble};
use super::pool::{ID, on_disk, pool};
use super::state::State;
use super::together;
use crate::bounds::{Bounds, Report};
use crashkit::Random;
use crashkit::disk::{CrashDisk, images};
use crashkit::killed::told;
use std::collections::HashSet;
use std::sync::Arc;

/// How often crashes follow each other, at most.
const DEPTH: u32 = 3;

/// One in this many judged states is used further.
const USED: u64 = 16;

/// Explores histories until one fails or the bounds are reached.
///
/// # Errors
///
/// What is wrong, after which crashes, and the seed of the history, which fails again alone, except for those of
/// several threads, which are likely to.
pub fn torture(bounds: &Bounds) -> Result<Report, String> {
    bounds.explore(|report, seed| {
        let seen = HashSet::new();
        Explorer { bounds, report, seen }.history(seed)
    })
}

struct Explorer<'b> {
    bounds: &'b Bounds,
    report: &'b mut Report,
    /// States of this history that were judged.
    seen: HashSet<(u64, u64, usize, usize)>,
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
            next: 0,
            faults: seed.is_multiple_of(3),
            skip: self.bounds.skip,
        };
        let left = Left {
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
        left: &Left,
        allowed: &Allowed,
        draw: Draw,
        random: &mut Random,
    ) -> Result<History, Trouble> {
        self.report.faults += u64::from(draw.faults);
        let history = run(left, allowed, draw, random)?;
        for (what, times) in &history.reached {
            *self.report.reached.entry(what).or_default() += times;
        }
        self.report.note_syncs(&history.sync_sites);
        Ok(history)
    }

    /// Crashes before each event, and where the process was killed.
    fn explore(&mut self, history: &History, depth: u32, random: &mut Random) -> Result<(), String> {
        let mut medium = history.base.clone();
        let mut kills = history.kills.iter().peekable();
        // What comes after a crash is a longer way to the same moments: a share of them. A hunt, in which many images
        // go on, takes few of them, and few images, so that it comes to the end of a history.
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
                    let left = Left {
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
                let left = Left {
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
        self.closed(history, medium, depth, random)
    }

    /// The pool was closed: it stays as it is after a loss of power, too.
    fn closed(
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
            let left = Left {
                medium,
                pool: Some(closed.clone()),
            };
            let judged = self.judge(left, &allowed, history, depth, random);
            judged.map_err(|trouble| format!("after it was closed: {trouble}"))?;
        }
        Ok(())
    }

    /// Judges what a crash has left.
    fn judge(
        &mut self,
        left: Left,
        allowed: &Allowed,
        history: &History,
        depth: u32,
        random: &mut Random,
    ) -> Result<(), String> {
        let pool = left.pool.as_ref().map_or(0, |pool| pool.hash());
        let kept = if left.pool.is_some() { allowed.kept } else { 0 };
        if self.report.is_over()
            || !self
                .seen
                .insert((left.medium.hash(), pool, kept, allowed.states.len()))
        {
            return Ok(());
        }
        self.report.states += 1;
        let say = |trouble: Trouble| trouble.to_string();
        if depth < DEPTH && random.below(self.bounds.again) == 0 {
            self.report.again += 1;
            let draw = Draw {
                steps: self.bounds.steps / 4,
                next: history.next,
                faults: random.below(3) == 0,
                skip: self.bounds.skip,
            };
            let next = self.run(&left, allowed, draw, random).map_err(say)?;
            return self.explore(&next, depth + 1, random);
        }
        let used = random.below(USED) == 0;
        open_and_judge(&left, allowed, used, self.bounds.skip, random).map_err(say)
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
                        format!("of several threads: power cut before event {event} of {all}: {trouble}")
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

/// Opens what a crash has left, and compares; uses it after that, if asked to.
fn open_and_judge(
    left: &Left,
    allowed: &Allowed,
    used: bool,
    skip: Option<crashkit::disk::Site>,
    random: &mut Random,
) -> Result<(), Trouble> {
    let disk = CrashDisk::new(left.medium.clone());
    disk.skip(skip);
    let (pool, _memory) = pool(left.pool.as_ref(), ID, told(|| ()))?;
    let db = on_disk(random).open(pool, Arc::new(disk))?;
    let found = State::of(&db)?;
    allowed.check(&found, left.pool.is_some())?;
    if used {
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
                "it does not hold what was written after that".into(),
            ));
        }
    }
    db.recover();
    let check = db.check()?;
    match check.is_clean() {
        true => Ok(()),
        false => Err(Trouble::Wrong(format!("the check says {check:?}"))),
    }
}
