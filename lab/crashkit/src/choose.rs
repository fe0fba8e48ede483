//! Choosers pick the version that each line has in an image.
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

/// A recorded decision.
#[derive(Clone, Debug)]
pub(crate) struct Picked {
    pub(crate) line: u32,
    pub(crate) content: Content,
    /// Index of the picked version, and the number of versions.
    pub(crate) number: usize,
    pub(crate) of: usize,
}

/// How a chooser decides.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    /// These version numbers in turn, then version 0.
    Path(Vec<usize>),
    /// The first lines with a choice, this many, get their newest version, the others their oldest: pointers are
    /// durable, their targets are not.
    PointersFirst(usize),
    /// All lines get their newest version except these, numbered as they are met.
    Lag([usize; 2]),
    /// All lines get their oldest version except these, numbered as they are met.
    Lead([usize; 2]),
    /// Versions are drawn at random.
    Seeded,
    /// These contents; other lines keep the base.
    Fixed(Contents),
    /// These contents; other lines get their newest version.
    But(Contents),
}

/// Makes decisions and records them.
#[derive(Debug)]
pub(crate) struct Chooser {
    plan: Plan,
    volatile: Volatile,
    random: Random,
    fresh: Fresh,
    /// Number of lines with a choice met so far.
    choices: usize,
    pub(crate) picked: Vec<Picked>,
}

/// The condition for an image that was not judged before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fresh {
    /// A fresh image holds a store at or after this place of the log.
    pub(crate) since: u32,
    /// Lines that earlier images read and that have such stores now. If no line met so far took such a store, the last
    /// of these must.
    pub(crate) lines: LineSet,
    /// Whether the image holds such a store already.
    pub(crate) met: bool,
}

impl Fresh {
    /// Accepts any image.
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

    /// Returns the image's content of a line with this base.
    pub(crate) fn image_of(&mut self, tracker: &Tracker, number: u32, base: Content) -> Content {
        if let Plan::Fixed(contents) = &self.plan {
            return contents.get(&number).copied().unwrap_or(base);
        }
        let Some(line) = tracker.line(number) else {
            return base;
        };
        let mut versions = line.versions(base, tracker.model().mode, self.random.next());
        self.retain_fresh(number, &mut versions);
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

    /// Keeps only fresh versions if this is the last line that can make the image fresh.
    fn retain_fresh(&mut self, number: u32, versions: &mut Vec<Version>) {
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

/// The SplitMix64 generator: small, with the same sequence on every platform.
#[derive(Clone, Copy, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Returns the next number.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// Returns an element of `of`, drawn at random.
    pub fn pick<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len() as u64) as usize]
    }
}
