//! The workloads by name: what the papers and YCSB run.
//!
//! Not here: the steps in order (`script`), the loops (`pass`).

use crate::distribution::Distribution::{self, Latest, Permutation, Uniform, Zipfian};
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
    /// From 1 to so many, each as likely.
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

const fn workload(name: &'static str, about: &'static str, mix: Mix, distribution: Distribution) -> Workload {
    Workload {
        name,
        about,
        mix,
        distribution,
        scans: ScanLength::Keys(100),
    }
}

const fn scanning(workload: Workload, scans: ScanLength) -> Workload {
    Workload { scans, ..workload }
}

use Mix::{Batches, Load, Mixed, Only};
use Step::{Insert, Miss, Modify, Read, Remove, Scan, Update};

const HALF_READ_HALF_UPDATE: Mix = Mixed(&[(50, Read), (50, Update)]);
const HALF_READ_HALF_INSERT: Mix = Mixed(&[(50, Read), (50, Insert)]);
const MOSTLY_READ: Mix = Mixed(&[(95, Read), (5, Update)]);
const MOSTLY_READ_SOME_INSERT: Mix = Mixed(&[(95, Read), (5, Insert)]);
const MOSTLY_SCAN: Mix = Mixed(&[(95, Scan), (5, Insert)]);
/// DPTree §4.4: a mean of 0.001% of the keys, with a deviation of 0.0006%.
const DPTREE_SCANS: ScanLength = ScanLength::Share(0.00001, 0.000_006);
const YCSB_SCANS: ScanLength = ScanLength::UpTo(100);

/// All of them.
pub const ALL: &[Workload] = &[
    workload("load", "Insert every key into an empty index", Load, Permutation),
    workload("get", "Read single keys", Only(Read), Permutation),
    workload(
        "get-absent",
        "Look for single keys that are absent",
        Only(Miss),
        Permutation,
    ),
    workload(
        "multi_get",
        "Read keys in batches of 32; operations count keys, latencies are of a batch",
        Batches,
        Permutation,
    ),
    workload(
        "insert",
        "Insert new keys into the loaded index",
        Only(Insert),
        Permutation,
    ),
    workload("update", "Give keys new values", Only(Update), Permutation),
    workload("remove", "Remove keys", Only(Remove), Permutation),
    workload(
        "scan100",
        "Read the values of 100 keys from a random key onward",
        Only(Scan),
        Permutation,
    ),
    workload(
        "ycsb-a",
        "YCSB A: 50% reads, 50% updates",
        HALF_READ_HALF_UPDATE,
        Zipfian,
    ),
    workload("ycsb-b", "YCSB B: 95% reads, 5% updates", MOSTLY_READ, Zipfian),
    workload("ycsb-c", "YCSB C: reads", Only(Read), Zipfian),
    workload(
        "ycsb-d",
        "YCSB D: 95% reads of the latest, 5% inserts",
        MOSTLY_READ_SOME_INSERT,
        Latest,
    ),
    scanning(
        workload(
            "ycsb-e",
            "YCSB E: 95% scans of 1 to 100 keys, 5% inserts",
            MOSTLY_SCAN,
            Zipfian,
        ),
        YCSB_SCANS,
    ),
    workload(
        "ycsb-f",
        "YCSB F: 50% reads, 50% read-modify-writes",
        Mixed(&[(50, Read), (50, Modify)]),
        Zipfian,
    ),
    workload(
        "recipe-load-a",
        "RECIPE Load A: inserts into an empty index",
        Load,
        Permutation,
    ),
    workload(
        "recipe-a",
        "RECIPE A: 50% reads, 50% inserts",
        HALF_READ_HALF_INSERT,
        Uniform,
    ),
    workload(
        "recipe-b",
        "RECIPE B: 95% reads, 5% inserts",
        MOSTLY_READ_SOME_INSERT,
        Uniform,
    ),
    workload("recipe-c", "RECIPE C: reads", Only(Read), Uniform),
    scanning(
        workload(
            "recipe-e",
            "RECIPE E: 95% scans of 1 to 100 keys, 5% inserts",
            MOSTLY_SCAN,
            Uniform,
        ),
        YCSB_SCANS,
    ),
    workload(
        "roart-a",
        "ROART (a): 50% lookups, 50% inserts",
        HALF_READ_HALF_INSERT,
        Uniform,
    ),
    workload(
        "roart-b",
        "ROART (b): 95% lookups, 5% inserts",
        MOSTLY_READ_SOME_INSERT,
        Uniform,
    ),
    workload("roart-c", "ROART (c): lookups", Only(Read), Uniform),
    workload("roart-d", "ROART (d): inserts", Only(Insert), Permutation),
    scanning(
        workload(
            "roart-e",
            "ROART (e): 95% scans, 5% inserts",
            MOSTLY_SCAN,
            Uniform,
        ),
        YCSB_SCANS,
    ),
    workload(
        "roart-skew",
        "ROART Fig. 19: 50% lookups, 50% updates, skewed",
        HALF_READ_HALF_UPDATE,
        Zipfian,
    ),
    workload("dptree-insert", "DPTree InsertOnly", Load, Permutation),
    workload("dptree-read", "DPTree ReadOnly", Only(Read), Uniform),
    workload(
        "dptree-read-update",
        "DPTree ReadUpdate: 50% reads, 50% updates",
        HALF_READ_HALF_UPDATE,
        Uniform,
    ),
    scanning(
        workload(
            "dptree-scan-insert",
            "DPTree ScanInsert: 95% scans, 5% inserts",
            MOSTLY_SCAN,
            Uniform,
        ),
        DPTREE_SCANS,
    ),
    scanning(
        workload(
            "dptree-mixed",
            "DPTree Mixed: 50% lookups, 20% updates, 10% scans, 20% inserts",
            Mixed(&[(50, Read), (20, Update), (10, Scan), (20, Insert)]),
            Uniform,
        ),
        DPTREE_SCANS,
    ),
];

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
            Load => vec![(100, Insert)],
            Batches => vec![(100, Read)],
            Only(step) => vec![(100, step)],
            Mixed(shares) => shares.to_vec(),
        }
    }

    /// How many operations to do on so many keys when nothing is said.
    pub fn default_ops(&self, keys: usize) -> usize {
        let scans = self
            .shares()
            .iter()
            .any(|&(share, step)| step == Scan && share >= 50);
        if scans { keys.div_ceil(50) } else { keys }
    }

    /// Whether it starts from nothing.
    pub fn fills(&self) -> bool {
        self.mix == Load
    }

    /// Whether it does nothing but look keys up.
    pub fn looks_up(&self) -> bool {
        self.shares().iter().all(|(_, step)| matches!(step, Read | Miss))
    }

    /// Whether it looks for keys that are absent: for as many of them as are loaded.
    pub fn misses(&self) -> bool {
        self.shares().iter().any(|(_, step)| *step == Miss)
    }

    /// Whether its operations can be done over again.
    pub fn repeats(&self) -> bool {
        !self
            .shares()
            .iter()
            .any(|(_, step)| matches!(step, Insert | Remove))
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
            Some(most) => length(most).map(ScanLength::UpTo),
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
