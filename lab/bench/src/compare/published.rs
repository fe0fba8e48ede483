//! What the published C++ programs of the papers reached on another machine, in units of its `BTreeMap`.
//!
//! They are no crates, so no run here measures them. One run of them, on a two-core Sapphire Rapids virtual machine with
//! one pinned thread, huge pages for all, write-backs and fences issued, 10 million u64 and 5 million str keys, also
//! measured `BTreeMap` under a lock. Divided by it, their speed can be set beside ours divided by this run's `BTreeMap`.
//! The quotient is rough: two machines differ in how fast they are at each program, and of `BTreeMap` only loads, gets
//! and scans were measured there, so that inserts and removals are divided by its loads on both sides.

use super::figures::OURS;
use super::operation::Operation;
use super::{Compared, Section};
use crate::keys::KeyKind;
use crate::summary::Summary;
use serde::Serialize;
use wollemi::indexes::IndexKind;

/// A column of a published program, beside one of our indexes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Published {
    key_kind: KeyKind,
    column: Column,
    program: &'static str,
    index: &'static str,
    /// Its throughput to that of `BTreeMap` on the other machine; or its bytes per key.
    theirs: f64,
    /// Our throughput to that of `BTreeMap` in this run; or our bytes per key.
    ours: Summary,
    /// The latter to the former.
    ratio: Summary,
}

/// A column of the published programs' table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", untagged)]
enum Column {
    Operation(Operation),
    Bytes(BytesPerKey),
}

/// The column that is no operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum BytesPerKey {
    BytesPerKey,
}

/// The operations of the table, and those of `BTreeMap` by which they are divided.
const OPERATIONS: [(Operation, Operation); 5] = [
    (Operation::Load, Operation::Load),
    (Operation::Get, Operation::Get),
    (Operation::Insert, Operation::Load),
    (Operation::Scan100, Operation::Scan100),
    (Operation::Remove, Operation::Load),
];

/// The peer that was measured on both machines.
const YARDSTICK: &str = "BTreeMap+RwLock";

/// Millions of operations per second of `BTreeMap` on the machine of the published programs.
fn yardstick(kind: KeyKind, operation: Operation) -> f64 {
    match (kind, operation) {
        (KeyKind::Str, Operation::Get) => 0.58,
        (KeyKind::Str, Operation::Scan100) => 0.18,
        (KeyKind::Str, _) => 0.69,
        (_, Operation::Get) => 1.13,
        (_, Operation::Scan100) => 0.20,
        _ => 1.38,
    }
}

/// A program's name, its millions of operations per second in the order of [`OPERATIONS`], and its bytes per key. What
/// was not measured is not a number.
type Row = (&'static str, [f64; 5], f64);

/// Was not measured.
const NONE: f64 = f64::NAN;

/// The published programs for a kind of keys.
fn programs(kind: KeyKind) -> &'static [Row] {
    match kind {
        KeyKind::U64 => &[
            ("P-ART", [0.73, 4.10, 0.71, 0.096, 1.61], 97.0),
            ("P-CLHT", [1.35, 13.1, NONE, NONE, 1.59], 34.0),
            ("P-HOT", [0.65, 2.9, 0.58, 0.20, NONE], 80.0),
            ("P-Masstree", [0.76, 1.18, 0.63, 0.33, 0.85], 33.0),
            ("P-BwTree", [0.66, 0.81, NONE, 0.32, 0.49], 31.0),
            ("WOART", [1.24, 3.20, 1.25, NONE, NONE], 97.0),
            ("DPTree", [1.70, 3.06, 1.07, 0.478, NONE], 55.0),
        ],
        KeyKind::Str => &[
            ("P-ART", [0.59, 3.54, 0.57, 0.104, 1.35], NONE),
            ("P-HOT", [0.50, 2.34, 0.44, 0.185, NONE], NONE),
            ("P-Masstree", [0.53, 0.99, 0.45, 0.182, 0.67], NONE),
            ("ROART", [0.48, 1.11, 0.51, 0.060, 0.62], NONE),
        ],
        _ => &[],
    }
}

/// Sets every published figure beside each of our indexes, where ours and `BTreeMap` were measured. `index` is the
/// compared one.
pub fn beside(index: IndexKind, all: &[Compared]) -> Vec<Published> {
    let mut beside = Vec::new();
    for compared in all.iter().filter(|compared| compared.section == Section::Memory) {
        for &(engine, _) in &compared.space {
            let index = if engine == OURS { index.name() } else { engine };
            beside.extend(rows(compared, engine, index));
        }
    }
    beside
}

/// Sets every published figure beside this engine, which is the index called `index`.
fn rows(compared: &Compared, engine: &str, index: &'static str) -> Vec<Published> {
    let mut rows = Vec::new();
    for &(program, speeds, bytes) in programs(compared.kind) {
        let mut row = |column, theirs: f64, ours: Option<Summary>| {
            if let Some(ours) = ours.filter(|_| theirs.is_finite()) {
                rows.push(Published {
                    key_kind: compared.kind,
                    column,
                    program,
                    index,
                    theirs,
                    ours,
                    ratio: ours.map(|ours| ours / theirs),
                });
            }
        };
        for ((operation, unit), speed) in OPERATIONS.into_iter().zip(speeds) {
            let ours = compared.figures.ratio((operation, engine), (unit, YARDSTICK));
            let theirs = speed / yardstick(compared.kind, operation);
            row(Column::Operation(operation), theirs, ours);
        }
        let ours = compared.bytes_per_key(engine).map(Summary::same);
        row(Column::Bytes(BytesPerKey::BytesPerKey), bytes, ours);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::targets::tests::compared;
    use super::*;

    /// Ours twice as fast as `BTreeMap` is beside a program that was four times as fast as its own: half as fast.
    /// Removals are divided by the loads of `BTreeMap`.
    #[test]
    fn units_are_those_of_one_machine() {
        let done = [
            (Operation::Get, OURS, 4.0),
            (Operation::Get, YARDSTICK, 2.0),
            (Operation::Load, YARDSTICK, 0.5),
            (Operation::Remove, OURS, 1.0),
            (Operation::Scan100, OURS, 1.0),
        ];
        let beside = beside(IndexKind::default(), &[compared(KeyKind::Str, 50, &done)]);
        let of = |wanted: Operation| {
            let found = beside
                .iter()
                .filter(|one| one.column == Column::Operation(wanted));
            found.map(|one| one.program).collect::<Vec<_>>()
        };
        assert_eq!(of(Operation::Get), ["P-ART", "P-HOT", "P-Masstree", "ROART"]);
        assert_eq!(of(Operation::Remove), ["P-ART", "P-Masstree", "ROART"]);
        assert_eq!(beside.len(), 7, "only what was measured on both sides");
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        let [get, remove] = &beside[..2] else {
            panic!("{beside:?}")
        };
        assert!(
            near(get.theirs, 3.54 / 0.58) && near(get.ours.median, 2.0),
            "{get:?}"
        );
        assert!(near(get.ratio.median, 2.0 / (3.54 / 0.58)), "{get:?}");
        assert!(
            near(remove.theirs, 1.35 / 0.69) && near(remove.ours.median, 2.0),
            "{remove:?}"
        );
    }

    /// Bytes per key need no unit.
    #[test]
    fn space_is_beside_space() {
        let beside = beside(IndexKind::default(), &[compared(KeyKind::U64, 97, &[])]);
        let ratios: Vec<_> = beside.iter().map(|one| (one.program, one.ratio.median)).collect();
        assert_eq!(ratios.len(), 7, "{ratios:?}");
        assert_eq!(ratios[0], ("P-ART", 1.0));
    }
}
