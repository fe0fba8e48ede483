//! Mutants: a persist is left out, to see whether it is missed.
//!
//! Write-backs and fences change nothing that a run without a crash can see, so a mutant needs no run of its own: its
//! log is the same without the events of its site. And only images that the whole program cannot leave are of interest:
//! the mutant's walk follows both models, and looks where they differ.
//!
//! A persist that no explored image misses is either not needed or not reached: see [`Fate`].

use crate::explore::{Start, Walk};
use crate::log::{Event, Log, Site, What};
use crate::{Explorer, Failure, History, Report, Subject};
use std::collections::BTreeMap;
use std::fmt;

/// Histories that survivors are put to again.
const AGAIN: usize = 3;

/// What kind of event a mutant lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lacks {
    /// The write-backs that only its site asked for.
    WriteBack,
    /// The fences of its site.
    Fence,
}

/// A program without the persists of one line of source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mutant {
    /// What it lacks.
    pub lacks: Lacks,
    /// Where.
    pub site: Site,
}

impl Mutant {
    /// Whether the event does not happen.
    pub fn leaves_out(&self, log: &Log, event: &Event) -> bool {
        match (self.lacks, event.what) {
            (Lacks::WriteBack, What::WriteBack { .. }) => log.sites(event).all(|site| site == self.site),
            (Lacks::Fence, What::Fence) => event.site == self.site,
            _ => false,
        }
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.lacks {
            Lacks::WriteBack => "write-back",
            Lacks::Fence => "fence",
        };
        write!(f, "{what} at {}", self.site)
    }
}

/// What became of a mutant.
#[derive(Clone, Debug)]
pub enum Fate {
    /// An image that it leaves is wrong.
    Killed(Box<Failure>),
    /// Others always asked for the same write-back too: leaving the site out leaves nothing out.
    Shared,
    /// No image of those explored misses it.
    Survived,
}

/// A mutant that was hunted.
#[derive(Clone, Debug)]
pub struct Hunted {
    /// Which.
    pub mutant: Mutant,
    /// How many events it lacks in all the histories that it was put to.
    pub lacking: u64,
    /// What became of it.
    pub fate: Fate,
}

impl fmt::Display for Hunted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Hunted {
            mutant,
            lacking,
            fate,
        } = self;
        match fate {
            Fate::Killed(failure) => {
                write!(
                    f,
                    "killed    {mutant}: history {}, {}",
                    failure.seed, failure.message
                )
            }
            Fate::Shared => write!(f, "shared    {mutant}"),
            Fate::Survived => write!(f, "survived  {mutant}, {lacking} times"),
        }
    }
}

impl<S: Subject> Explorer<S> {
    /// Puts the mutants of all lines of source that the histories meet to these histories; those that survive, to the
    /// first few again, with most of the images crashing again. `more` says whether to go on to the next history.
    ///
    /// # Errors
    ///
    /// A history that fails without any mutant.
    pub fn hunt(
        &mut self,
        histories: impl IntoIterator<Item = History<S::Op>>,
        mut more: impl FnMut(&Report) -> bool,
    ) -> Result<Vec<Hunted>, Box<Failure>> {
        let mut first = Vec::new();
        let mut all: BTreeMap<_, Hunted> = BTreeMap::new();
        // Those that are missed by what runs before the first crash.
        for history in histories {
            if !more(self.report()) {
                break;
            }
            self.explore(&history)?;
            let run = self.record(&history, Start::Empty, 0)?;
            self.meet(&mut all);
            for hunted in all.values_mut() {
                let events = run.log.events.iter();
                let lacking = events
                    .filter(|event| hunted.mutant.leaves_out(&run.log, event))
                    .count();
                if lacking > 0 && !matches!(hunted.fate, Fate::Killed(_)) {
                    hunted.put_to(
                        self.walk_as(&history, &run, Walk::Differing(hunted.mutant)),
                        lacking as u64,
                    );
                }
            }
            if first.len() < AGAIN {
                first.push(history);
            }
        }
        // Those that only a second crash can miss.
        for history in &first {
            let run = self.record(history, Start::Empty, 0)?;
            for hunted in all.values_mut() {
                if matches!(hunted.fate, Fate::Killed(_)) {
                    continue;
                }
                hunted.put_to(self.walk_as(history, &run, Walk::Again(hunted.mutant)), 0);
            }
        }
        Ok(all.into_values().collect())
    }

    fn meet(&self, all: &mut BTreeMap<(&'static str, u32, u32, Lacks), Hunted>) {
        for (&key, &(site, _)) in &self.report().sites {
            let mutant = Mutant { lacks: key.3, site };
            all.entry(key).or_insert(Hunted {
                mutant,
                lacking: 0,
                fate: Fate::Shared,
            });
        }
    }
}

impl Hunted {
    fn put_to(&mut self, (walked, lacking_again): (Result<(), Box<Failure>>, u64), lacking: u64) {
        self.lacking += lacking + lacking_again;
        match walked {
            Err(failure) => self.fate = Fate::Killed(failure),
            Ok(()) if self.lacking > 0 => self.fate = Fate::Survived,
            Ok(()) => {}
        }
    }
}
