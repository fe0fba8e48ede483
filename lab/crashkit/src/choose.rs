//! Choosers: they choose the version of a line in an image.
//!
//! The chooser decides a line in which images differ when it is first touched, so that only lines that are read branch
//! (lazy exploration, as in Jaaru). Exhaustive search is depth first over these decisions, with a run for each image; a
//! run is a function of what it reads, so the same decisions lead to the same next question.
//!
//! I1 Every decision is recorded, so that the image can be made again without asking again.

use crate::model::{Content, LineHasher, Tracker, Version, Volatile};
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;

pub(crate) type Contents = HashMap<u32, Content, BuildHasherDefault<LineHasher>>;

pub(crate) type LineSet = HashSet<u32, BuildHasherDefault<LineHasher>>;

/// A decision that was made.
#[derive(Clone, Debug)]
pub(crate) struct Picked {
    pub(crate) line: u32,
    pub(crate) content: Content,
    /// The number of what was picked, and of how many.
    pub(crate) number: usize,
    pub(crate) of: usize,
}

/// How decisions are made.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    /// These numbers, then the first of each.
    Path(Vec<usize>),
    /// This many of the first lines met where there is a choice have their newest version, the others their oldest:
    /// pointers are durable, what they lead to is not.
    PointersFirst(usize),
    /// All have their newest version but those met as these numbers.
    Lag([usize; 2]),
    /// All have their oldest version but those met as these numbers.
    Lead([usize; 2]),
    /// By chance.
    Seeded,
    /// These contents; other lines are as the base.
    Fixed(Contents),
    /// These contents; other lines have their newest version.
    But(Contents),
}

/// Decides, and writes down.
#[derive(Debug)]
pub(crate) struct Chooser {
    plan: Plan,
    volatile: Volatile,
    random: Random,
    fresh: Fresh,
    /// Lines met so far where there was a choice.
    choices: usize,
    pub(crate) picked: Vec<Picked>,
}

/// What makes an image one that was not judged before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fresh {
    /// It holds a store from this place of the log on.
    pub(crate) since: u32,
    /// Lines that were read before and have such stores now: the last of them that is met has one of these, if none
    /// has been met yet.
    pub(crate) lines: LineSet,
    /// It needs none any more.
    pub(crate) met: bool,
}

impl Fresh {
    /// Any image will do.
    pub(crate) fn any() -> Fresh {
        Fresh {
            met: true,
            ..Fresh::default()
        }
    }
}

impl Default for Chooser {
    fn default() -> Chooser {
        Chooser::new(Plan::Path(Vec::new()), Volatile::Last, Random(1), Fresh::any())
    }
}

impl Chooser {
    pub(crate) fn new(plan: Plan, volatile: Volatile, random: Random, fresh: Fresh) -> Chooser {
        Chooser {
            plan,
            volatile,
            random,
            fresh,
            choices: 0,
            picked: Vec::new(),
        }
    }

    /// What the image has in a line whose base is this.
    pub(crate) fn image_of(&mut self, tracker: &Tracker, number: u32, base: Content) -> Content {
        if let Plan::Fixed(contents) = &self.plan {
            return contents.get(&number).copied().unwrap_or(base);
        }
        let Some(line) = tracker.line(number) else {
            return base;
        };
        let mut versions = line.versions(base, tracker.model().mode, self.random.next());
        self.leave_fresh(number, &mut versions);
        let of = versions.len();
        let picked = self.decide(of).min(of - 1);
        let version = &versions[picked];
        self.fresh.met |= version.newest > self.fresh.since;
        let mut content = version.content;
        let random = &mut self.random;
        line.spoil(&mut content, self.volatile, || random.next());
        if let Plan::But(contents) = &self.plan {
            content = contents.get(&number).copied().unwrap_or(content);
        }
        self.picked.push(Picked {
            line: number,
            content,
            number: picked,
            of,
        });
        content
    }

    /// Leaves only fresh versions, where this is the last line that can make the image a fresh one.
    fn leave_fresh(&mut self, number: u32, versions: &mut Vec<Version>) {
        if self.fresh.met || !self.fresh.lines.remove(&number) || !self.fresh.lines.is_empty() {
            return;
        }
        let since = self.fresh.since;
        if versions.iter().any(|version| version.newest > since) {
            versions.retain(|version| version.newest > since);
        }
    }

    fn decide(&mut self, of: usize) -> usize {
        if let Plan::Path(numbers) = &self.plan {
            return numbers.get(self.picked.len()).copied().unwrap_or(0);
        }
        if of == 1 {
            return 0;
        }
        let met = self.choices;
        self.choices += 1;
        let newest = |yes| if yes { of - 1 } else { 0 };
        match &self.plan {
            Plan::PointersFirst(early) => newest(met < *early),
            Plan::Lag(which) => newest(!which.contains(&met)),
            Plan::Lead(which) => newest(which.contains(&met)),
            Plan::But(_) => newest(true),
            Plan::Seeded | Plan::Path(_) | Plan::Fixed(_) => (self.random.next() % of as u64) as usize,
        }
    }
}

/// SplitMix64: small, and the same everywhere.
#[derive(Clone, Copy, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// One of them.
    pub fn pick<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len() as u64) as usize]
    }
}
