//! A program that lacks a persist.

mod swap;

use crate::log::{Event, Log, Site, What};
use std::fmt;
use std::ops::Range;

/// What a mutant lacks of the program, at one of its persists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lacks {
    /// The write-backs that its line of source asked for, with whoever else asked for the same.
    WriteBack,
    /// The fences of its line of source.
    Fence,
    /// The order of what its fences end and what the same operation persists next.
    Order,
}

/// A program without the persists of one line of source, or with one too late.
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
            (Lacks::WriteBack, What::WriteBack { .. }) => log.sites(event).any(|site| site == self.site),
            (Lacks::Fence, What::Fence) => event.site == self.site,
            _ => false,
        }
    }

    /// The log with its order changed, and where; `None` if the mutant changes none.
    pub(crate) fn swapped(&self, log: &Log) -> Option<(Log, Vec<Range<usize>>)> {
        (self.lacks == Lacks::Order).then(|| swap::swapped(log, self.site))
    }

    /// How many events of a log it leaves out or puts off.
    pub(crate) fn lacking(&self, log: &Log) -> u64 {
        match self.swapped(log) {
            Some((_, swapped)) => swapped.len() as u64,
            None => {
                let events = log.events.iter();
                events.filter(|event| self.leaves_out(log, event)).count() as u64
            }
        }
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.lacks {
            Lacks::WriteBack => "write-back",
            Lacks::Fence => "fence",
            Lacks::Order => "order after the fence",
        };
        write!(f, "{what} at {}", self.site)
    }
}
