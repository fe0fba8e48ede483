//! The targets: ratios to peers in one run, and space per key.

use super::figures::OURS;
use super::operation::Operation;
use super::{Compared, Section};
use crate::keys::KeyKind;
use crate::summary::Summary;
use serde::Serialize;

/// A target, and the measured value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The target's description.
    target: String,
    /// The required value: a minimum, or for space a maximum.
    asked: f64,
    /// The measured value.
    measured: Summary,
    /// Whether the median reaches it.
    met: bool,
}

impl Verdict {
    fn new(target: String, asked: f64, measured: Summary, at_least: bool) -> Verdict {
        let met = if at_least {
            measured.median >= asked
        } else {
            measured.median <= asked
        };
        Verdict {
            target,
            asked,
            measured,
            met,
        }
    }
}

const MAX_BYTES_PER_KEY: f64 = 100.0;

/// Judges every target whose operands were measured.
pub fn verdicts(all: &[Compared]) -> Vec<Verdict> {
    use Operation::{Get, Load, MultiGet, Scan100};
    let mut verdicts = Vec::new();
    for compared in all.iter().filter(|compared| compared.section == Section::Memory) {
        let kind = crate::name(compared.kind);
        let mut at_least = |what: &str, asked, over, under| {
            if let Some(ratio) = compared.figures.ratio(over, under) {
                verdicts.push(Verdict::new(format!("{kind}: {what}"), asked, ratio, true));
            }
        };
        let (congee, skip, btree) = ("congee", "crossbeam-skiplist", "BTreeMap+RwLock");
        match compared.kind {
            KeyKind::U64 => {
                at_least("get : congee's get, at least", 2.5, (Get, OURS), (Get, congee));
                at_least(
                    "durable load : congee's load, at least",
                    1.0,
                    (Load, OURS),
                    (Load, congee),
                );
            }
            KeyKind::Str => {
                at_least(
                    "get : crossbeam-skiplist's get, at least",
                    6.0,
                    (Get, OURS),
                    (Get, skip),
                );
            }
            _ => {}
        }
        if compared.kind != KeyKind::Print8 {
            at_least(
                "multi_get of 32 : single gets, at least",
                3.0,
                (MultiGet, OURS),
                (Get, OURS),
            );
            at_least(
                "scan of 100 : BTreeMap's, at least",
                2.0,
                (Scan100, OURS),
                (Scan100, btree),
            );
        }
        let bytes = compared
            .bytes_per_key(OURS)
            .filter(|_| compared.kind != KeyKind::Str);
        if let Some(measured) = bytes.map(Summary::same) {
            let target = format!("{kind}: bytes per key, at most");
            verdicts.push(Verdict::new(target, MAX_BYTES_PER_KEY, measured, false));
        }
    }
    verdicts
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::figures::tests::sample;
    use super::*;
    use crate::machine::HugePages;
    use crate::store::Space;

    /// Returns the results of ten keys of a kind that use this many bytes each in our index, with these throughputs.
    pub fn compared(kind: KeyKind, bytes_per_key: u64, done: &[(Operation, &'static str, f64)]) -> Compared {
        let mut compared = Compared {
            section: Section::Memory,
            kind,
            keys: 10,
            figures: Default::default(),
            space: vec![(
                OURS,
                Space {
                    reserved: 10 * bytes_per_key,
                    live: 0,
                },
            )],
            level: pmem::PoolLevel::Process,
            persists: Vec::new(),
            files: Vec::new(),
            memory: HugePages::default(),
            pace: Vec::new(),
        };
        for &(operation, engine, mops) in done {
            compared.figures.note(operation, engine, sample(mops));
        }
        compared
    }

    /// Returns the required value of each verdict, and whether it was met.
    fn judged(all: &[Compared]) -> Vec<(f64, bool)> {
        verdicts(all).iter().map(|one| (one.asked, one.met)).collect()
    }

    /// For words, every target is met at its bound and missed slightly short of it.
    #[test]
    fn words_on_each_side() {
        use Operation::{Get, Load, MultiGet, Scan100};
        let at = |ours: f64, bytes| {
            let done = [
                (Get, OURS, 2.5 * ours),
                (Get, "congee", 1.0),
                (Load, OURS, ours),
                (Load, "congee", 1.0),
                (MultiGet, OURS, 7.5 * ours * ours),
                (Scan100, OURS, 2.0 * ours),
                (Scan100, "BTreeMap+RwLock", 1.0),
            ];
            judged(&[compared(KeyKind::U64, bytes, &done)])
        };
        let asked = [2.5, 1.0, 3.0, 2.0, 100.0];
        assert_eq!(at(1.0, 100), asked.map(|asked| (asked, true)));
        assert_eq!(at(0.99, 101), asked.map(|asked| (asked, false)));
    }

    /// Strings are compared with the skip list, printable keys have a space target only, engines in files have none;
    /// what was not measured is not judged.
    #[test]
    fn each_kind_has_its_targets() {
        use Operation::Get;
        let get = |ours| [(Get, OURS, ours), (Get, "crossbeam-skiplist", 1.0)];
        assert_eq!(judged(&[compared(KeyKind::Str, 500, &get(6.0))]), [(6.0, true)]);
        assert_eq!(judged(&[compared(KeyKind::Str, 500, &get(5.9))]), [(6.0, false)]);
        assert_eq!(
            judged(&[compared(KeyKind::Print8, 99, &get(9.0))]),
            [(100.0, true)]
        );
        let durable = Compared {
            section: Section::Durable,
            ..compared(KeyKind::U64, 10, &get(9.0))
        };
        assert_eq!(judged(&[durable]), []);
    }
}
