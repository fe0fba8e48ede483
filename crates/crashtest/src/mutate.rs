//! Mutants: a persist is left out, to see whether it is missed.
//!
//! Write-backs and fences change nothing that a run without a crash can see, so a mutant needs no run of its own: its
//! log is the same without the events of its site.

use crate::log::{Event, Log, Site, What};

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

impl std::fmt::Display for Mutant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match self.lacks {
            Lacks::WriteBack => "write-back",
            Lacks::Fence => "fence",
        };
        write!(f, "{what} at {}", self.site)
    }
}
