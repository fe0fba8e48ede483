//! What the published C++ programs of the papers reached on another machine, in units of its `BTreeMap`.
//!
//! They are no crates, so no run here measures them. One run of them, on a two-core Sapphire Rapids virtual machine with
//! one pinned thread, huge pages for all, write-backs and fences issued, 10 million u64 and 5 million str keys, also
//! measured `BTreeMap` under a lock. Divided by it, their speed can be set beside ours divided by this run's `BTreeMap`.
//! The quotient is rough: two machines differ in how fast they are at each program.

use super::figures::OURS;
use super::operation::Operation;
use super::{Compared, Section};
use crate::keys::KeyKind;
use crate::summary::Summary;
use serde::Serialize;

/// An operation of a published program, beside ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Published {
    key_kind: KeyKind,
    operation: Operation,
    program: &'static str,
    /// Its throughput to that of `BTreeMap` on the other machine.
    theirs: f64,
    /// Our throughput to that of `BTreeMap` in this run.
    ours: Summary,
    /// The latter to the former.
    ratio: Summary,
}

const OPERATIONS: [Operation; 3] = [Operation::Insert, Operation::Get, Operation::Scan100];

/// Millions of operations per second, in the order of [`OPERATIONS`]; `None` was not measured.
type Row = (&'static str, [Option<f64>; 3]);

/// `BTreeMap` on the machine of the published programs.
fn yardstick(kind: KeyKind) -> [f64; 3] {
    match kind {
        KeyKind::Str => [0.69, 0.58, 0.18],
        _ => [1.38, 1.13, 0.20],
    }
}

/// The published programs for a kind of keys.
fn programs(kind: KeyKind) -> &'static [Row] {
    match kind {
        KeyKind::U64 => &[
            ("P-ART", [Some(0.73), Some(4.10), Some(0.096)]),
            ("P-CLHT", [Some(1.35), Some(13.1), None]),
            ("P-HOT", [Some(0.65), Some(2.9), Some(0.20)]),
            ("P-Masstree", [Some(0.76), Some(1.18), Some(0.33)]),
            ("P-BwTree", [Some(0.66), Some(0.81), Some(0.32)]),
            ("WOART", [Some(1.24), Some(3.20), None]),
            ("DPTree", [Some(1.70), Some(3.06), Some(0.478)]),
        ],
        KeyKind::Str => &[
            ("P-ART", [Some(0.59), Some(3.54), Some(0.104)]),
            ("P-HOT", [Some(0.50), Some(2.34), Some(0.185)]),
            ("P-Masstree", [Some(0.53), Some(0.99), Some(0.182)]),
            ("ROART", [Some(0.48), Some(1.11), Some(0.060)]),
        ],
        _ => &[],
    }
}

/// Sets every published figure beside ours, where both ours and `BTreeMap` were measured.
pub fn beside(all: &[Compared]) -> Vec<Published> {
    let mut beside = Vec::new();
    for compared in all.iter().filter(|compared| compared.section == Section::Memory) {
        let yardstick = yardstick(compared.kind);
        for (program, mops) in programs(compared.kind) {
            for ((operation, mops), unit) in OPERATIONS.into_iter().zip(mops).zip(yardstick) {
                let ours = compared
                    .figures
                    .ratio((operation, OURS), (operation, "BTreeMap+RwLock"));
                let (Some(mops), Some(ours)) = (mops, ours) else {
                    continue;
                };
                let theirs = mops / unit;
                beside.push(Published {
                    key_kind: compared.kind,
                    operation,
                    program,
                    theirs,
                    ours,
                    ratio: Summary {
                        median: ours.median / theirs,
                        min: ours.min / theirs,
                        max: ours.max / theirs,
                    },
                });
            }
        }
    }
    beside
}

#[cfg(test)]
mod tests {
    use super::super::targets::tests::compared;
    use super::*;

    /// Ours twice as fast as `BTreeMap` is beside a program that was four times as fast as its own: half as fast.
    #[test]
    fn units_are_those_of_one_machine() {
        let done = [
            (Operation::Get, OURS, 4.0),
            (Operation::Get, "BTreeMap+RwLock", 2.0),
            (Operation::Insert, OURS, 1.0),
        ];
        let beside = beside(&[compared(KeyKind::Str, 50, &done)]);
        let found: Vec<_> = beside.iter().map(|one| (one.program, one.operation)).collect();
        let get = Operation::Get;
        let each = ["P-ART", "P-HOT", "P-Masstree", "ROART"].map(|program| (program, get));
        assert_eq!(found, each, "only what was measured on both sides");
        let first = &beside[0];
        assert!((first.theirs - 3.54 / 0.58).abs() < 1e-9, "{first:?}");
        assert_eq!(first.ours.median, 2.0);
        assert!(
            (first.ratio.median - 2.0 / (3.54 / 0.58)).abs() < 1e-9,
            "{first:?}"
        );
    }
}
