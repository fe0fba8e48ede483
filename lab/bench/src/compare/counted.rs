//! Counts the persists of our index's writes, in separate runs because counting would slow timed ones.

use super::operation::Operation;
use super::rounds::ycsb_a;
use crate::Error;
use crate::engine::{Engine, Ours};
use crate::keys::{KeyKind, Keys};
use crate::pass::{self, Pace};
use crate::script::Share;
use crate::store::{self, Place};
use crate::workload::Step;
use pmem::{Counting, Hardware, Observed};
use serde::Serialize;
use wollemi::indexes::IndexKind;

/// The maximum number of keys of a kind in a counting run. If a timed run has more keys, these are the first of them.
const MAX_KEYS: usize = 200_000;

/// The persists of one kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Persists {
    /// The operation.
    pub operation: Operation,
    /// Keys loaded in the counting run.
    pub counted_keys: usize,
    /// Write-backs of nodes, allocation and log together.
    pub write_backs_per_op: f64,
    /// Fences, which wait for write-backs.
    pub fences_per_op: f64,
}

/// Counts the persists of loading keys of this kind, and then of `ops` updates, operations of YCSB A, inserts and
/// removals.
pub fn count(
    index: IndexKind,
    kind: KeyKind,
    keys: usize,
    ops: usize,
    seed: u64,
) -> Result<Vec<Persists>, Error> {
    let keys = keys.min(MAX_KEYS);
    let ops = ops.min(keys);
    let mut keys = Keys::generate_more(kind, keys, ops, seed);
    let inserts = keys.split_off(keys.len() - ops);
    let keys = &keys;
    let heap = &Place::Anonymous.create(Observed::Counting(Counting::new(Hardware::as_persistent())))?;
    let Observed::Counting(counting) = heap.media() else {
        return Ok(Vec::new());
    };
    let index = store::create(index, heap)?;
    let engine: &dyn Engine = &Ours(&*index);
    let (updates, removes) = (keys.shuffled(ops, seed), keys.shuffled(ops, !seed));
    let script = ycsb_a(keys, ops, 1, seed)?;
    let shares = [
        (Operation::Load, Share::only(Step::Insert, keys.all())),
        (Operation::Update, Share::only(Step::Update, updates.all())),
    ];
    let mixed = script.shares().into_iter().map(|share| (Operation::YcsbA, share));
    let changes = [
        (Operation::Insert, Share::only(Step::Insert, inserts.all())),
        (Operation::Remove, Share::only(Step::Remove, removes.all())),
    ];
    let mut all = Vec::new();
    for (operation, share) in shares.into_iter().chain(mixed).chain(changes) {
        // Completes DPTree's merges, so that they count for the operation that wrote.
        index.settle()?;
        let before = counting.counts();
        let pass = pass::pass(engine, operation.name(), &[share], Pace::default())?;
        index.settle()?;
        let total = (counting.counts() - before).total();
        all.push(Persists {
            operation,
            counted_keys: keys.len(),
            write_backs_per_op: total.write_backs as f64 / pass.ops as f64,
            fences_per_op: total.fences as f64 / pass.ops as f64,
        });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ROART's update of a value of eight bytes is one write-back and one fence, and half of YCSB A is updates.
    #[test]
    fn updates_are_counted() {
        let all = count(IndexKind::default(), KeyKind::U64, 2000, 1000, 1).unwrap();
        let of = |operation| all.iter().find(|one| one.operation == operation).unwrap();
        let (insert, update, mixed) = (of(Operation::Load), of(Operation::Update), of(Operation::YcsbA));
        assert!(
            insert.write_backs_per_op > 1.0 && insert.fences_per_op > 1.0,
            "{all:?}"
        );
        assert_eq!((update.write_backs_per_op, update.fences_per_op), (1.0, 1.0));
        let share = mixed.fences_per_op;
        assert!(
            (0.4..0.6).contains(&share) && share == mixed.write_backs_per_op,
            "{all:?}"
        );
        assert!(all.iter().all(|one| one.counted_keys == 2000));
    }
}
