//! The workloads by name, and their operations.
//!
//! Not here: the steps in order (`script`), the loops (`pass`).

mod all;

use crate::distribution::Distribution;
pub use all::ALL;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// What is done with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Reads it.
    Read,
    /// Looks for it; it is absent.
    Miss,
    /// Gives it another value.
    Update,
    /// Adds it; it is new.
    Insert,
    /// Reads it and the keys that follow.
    Scan,
    /// Reads it, then gives it another value.
    Modify,
    /// Removes it.
    Remove,
}

/// How many keys a scan reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScanLength {
    /// As many each time.
    Keys(u32),
    /// From 1 to this number, each as likely.
    UpTo(u32),
    /// A share of all keys, about normal: mean and deviation.
    Share(f64, f64),
}

/// Of what a workload's operations are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mix {
    /// Inserts of all keys into an empty index.
    Load,
    /// All of one kind.
    Only(Step),
    /// Reads of 32 keys at once.
    Batches,
    /// Percentages that sum up to 100, in random order.
    Mixed(&'static [(u8, Step)]),
}

/// A workload.
#[derive(Debug, PartialEq)]
pub struct Workload {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, for the help text.
    pub about: &'static str,
    /// Its operations.
    pub mix: Mix,
    /// Which keys they ask for, if nothing else is said.
    pub distribution: Distribution,
    /// How far its scans go, if nothing else is said.
    pub scans: ScanLength,
}

impl Workload {
    /// The one of this name.
    pub fn named(name: &str) -> Option<&'static Workload> {
        ALL.iter().find(|workload| workload.name == name)
    }

    /// Reads a name on the command line.
    pub fn parser() -> impl TypedValueParser<Value = &'static Workload> {
        let names = ALL
            .iter()
            .map(|workload| PossibleValue::new(workload.name).help(workload.about));
        PossibleValuesParser::new(names)
            .try_map(|name| Workload::named(&name).ok_or_else(|| format!("no workload is called '{name}'")))
    }

    /// Its operations and their percentages.
    pub fn shares(&self) -> Vec<(u8, Step)> {
        match self.mix {
            Mix::Load => vec![(100, Step::Insert)],
            Mix::Batches => vec![(100, Step::Read)],
            Mix::Only(step) => vec![(100, step)],
            Mix::Mixed(shares) => shares.to_vec(),
        }
    }

    /// How many operations to do on this many keys when nothing is said.
    pub fn default_ops(&self, keys: usize) -> usize {
        let scans = self
            .shares()
            .iter()
            .any(|&(share, step)| step == Step::Scan && share >= 50);
        if scans { keys.div_ceil(50) } else { keys }
    }

    /// Whether it reads ranges of keys, which an index without order does not have.
    pub fn scans_keys(&self) -> bool {
        self.shares().iter().any(|(_, step)| *step == Step::Scan)
    }

    /// Whether it starts from nothing.
    pub fn fills(&self) -> bool {
        self.mix == Mix::Load
    }

    /// Whether it does nothing but look keys up.
    pub fn looks_up(&self) -> bool {
        self.shares()
            .iter()
            .all(|(_, step)| matches!(step, Step::Read | Step::Miss))
    }

    /// Whether it looks for keys that are absent: for as many of them as are loaded.
    pub fn misses(&self) -> bool {
        self.shares().iter().any(|(_, step)| *step == Step::Miss)
    }

    /// Whether its operations can be done over again.
    pub fn repeats(&self) -> bool {
        !self
            .shares()
            .iter()
            .any(|(_, step)| matches!(step, Step::Insert | Step::Remove))
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

impl Serialize for Workload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl FromStr for ScanLength {
    type Err = String;
    fn from_str(text: &str) -> Result<ScanLength, String> {
        let wrong = || "not a length: 100, 1..100 or 0.001%".to_owned();
        if let Some(percent) = text.strip_suffix('%') {
            let share = percent.parse::<f64>().map_err(|_| wrong())? / 100.0;
            return if share > 0.0 && share <= 1.0 {
                Ok(ScanLength::Share(share, 0.0))
            } else {
                Err(wrong())
            };
        }
        let length = |text: &str| {
            let count = crate::count(text).map_err(|_| wrong())?;
            u32::try_from(count).map_err(|_| wrong())
        };
        match text.strip_prefix("1..") {
            Some(max) => length(max).map(ScanLength::UpTo),
            None => length(text).map(ScanLength::Keys),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Percentages are whole, names are unique, and every workload can be asked for.
    #[test]
    fn workloads_are_well_formed() {
        for workload in ALL {
            assert_eq!(
                workload
                    .shares()
                    .iter()
                    .map(|(share, _)| u32::from(*share))
                    .sum::<u32>(),
                100
            );
            assert_eq!(Workload::named(workload.name), Some(workload));
        }
    }

    /// Lengths are read as they are written, and nonsense is refused.
    #[test]
    fn scan_lengths() {
        assert_eq!("100".parse(), Ok(ScanLength::Keys(100)));
        assert_eq!("1..1k".parse(), Ok(ScanLength::UpTo(1000)));
        assert_eq!("50%".parse(), Ok(ScanLength::Share(0.5, 0.0)));
        for text in ["", "0", "2..3", "0%", "101%", "-1", "x%", "1.."] {
            assert!(text.parse::<ScanLength>().is_err(), "{text}");
        }
    }
}
