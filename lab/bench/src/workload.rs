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

/// An operation on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Reads the key.
    Read,
    /// Looks up a key that is absent.
    Miss,
    /// Replaces its value.
    Update,
    /// Inserts the key, which is absent.
    Insert,
    /// Reads the key and those that follow.
    Scan,
    /// Reads the key, then replaces its value.
    Modify,
    /// Removes the key.
    Remove,
}

/// The number of keys that a scan reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScanLength {
    /// The same number for each scan.
    Keys(u32),
    /// Uniform from 1 to this number.
    UpTo(u32),
    /// A share of all keys, approximately normal: mean and deviation.
    Share(f64, f64),
}

/// The operations of a workload.
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
    /// The default distribution of requested keys.
    pub distribution: Distribution,
    /// The default length of scans.
    pub scans: ScanLength,
}

impl Workload {
    /// Returns the workload of this name.
    pub fn named(name: &str) -> Option<&'static Workload> {
        ALL.iter().find(|workload| workload.name == name)
    }

    /// Parses a workload's name on the command line.
    pub fn parser() -> impl TypedValueParser<Value = &'static Workload> {
        let names = ALL
            .iter()
            .map(|workload| PossibleValue::new(workload.name).help(workload.about));
        PossibleValuesParser::new(names)
            .try_map(|name| Workload::named(&name).ok_or_else(|| format!("no workload is called '{name}'")))
    }

    /// Returns its operations and their percentages.
    pub fn shares(&self) -> Vec<(u8, Step)> {
        match self.mix {
            Mix::Load => vec![(100, Step::Insert)],
            Mix::Batches => vec![(100, Step::Read)],
            Mix::Only(step) => vec![(100, step)],
            Mix::Mixed(shares) => shares.to_vec(),
        }
    }

    /// Returns the default number of operations for this many keys.
    pub fn default_ops(&self, keys: usize) -> usize {
        let scans = self
            .shares()
            .iter()
            .any(|&(share, step)| step == Step::Scan && share >= 50);
        if scans { keys.div_ceil(50) } else { keys }
    }

    /// Returns whether it scans keys, which needs an ordered index.
    pub fn scans_keys(&self) -> bool {
        self.shares().iter().any(|(_, step)| *step == Step::Scan)
    }

    /// Returns whether it fills an empty index.
    pub fn fills(&self) -> bool {
        self.mix == Mix::Load
    }

    /// Returns whether it only looks up keys.
    pub fn looks_up(&self) -> bool {
        self.shares()
            .iter()
            .all(|(_, step)| matches!(step, Step::Read | Step::Miss))
    }

    /// Returns whether it looks up absent keys. It needs as many of them as are loaded.
    pub fn misses(&self) -> bool {
        self.shares().iter().any(|(_, step)| *step == Step::Miss)
    }

    /// Returns whether its operations can be repeated.
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

    /// Percentages sum to 100, names are unique, and every workload is found by its name.
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

    /// Scan lengths are parsed; nonsense is rejected.
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
