//! The judge's verdicts on made-up histories.

use super::*;
use crate::hot::ledger::Function;
use crate::hot::values::identity;
use Operation::*;
use Outcome::*;

/// Returns an operation on key 0 by `Map::edit`.
fn record(
    generation: u64,
    thread: usize,
    moments: std::ops::Range<u64>,
    operation: Operation,
    outcome: Outcome,
) -> Record {
    Record {
        generation,
        thread,
        call: moments.start,
        function: Function::Edit,
        key: 0,
        event: HistoryEvent {
            operation,
            outcome,
            start: first_moment(generation) + moments.start,
            end: match outcome {
                Pending => first_moment(generation + 1),
                _ => first_moment(generation) + moments.end,
            },
        },
    }
}

fn judge(records: &[Record]) -> Result<(), Wrong> {
    Ledgers::of(records.to_vec()).judge(&[b"hot".to_vec(), b"hotter".to_vec()])
}

/// Returns the operations that a failure shows.
fn shown(records: &[Record]) -> Vec<String> {
    let wrong = judge(records).expect_err("it cannot be explained");
    let lines = wrong.lines().filter(|line| line.starts_with("  generation"));
    lines.map(str::to_owned).collect()
}

const A: u64 = 1;
const B: u64 = 2;

/// A write acknowledged before the kill must be visible after it.
#[test]
fn a_lost_acknowledged_write_is_found() {
    let write = record(0, 0, 1..2, Upsert(A), Did(true));
    let after = |value| record(1, 1, 1..2, Get, Saw(value));
    assert!(judge(&[write, after(Some(A))]).is_ok());
    let lines = shown(&[write, after(None)]);
    assert!(
        lines.len() == 2 && lines[0].contains("upsert") && lines[1].contains("get"),
        "{lines:#?}"
    );
}

/// A removed key must not reappear in the next generation.
#[test]
fn a_resurrected_key_is_found() {
    let history = |value| {
        [
            record(0, 0, 1..2, Insert(A), Did(true)),
            record(0, 1, 3..4, Remove, Did(true)),
            record(1, 0, 1..2, Get, Saw(value)),
        ]
    };
    assert!(judge(&history(None)).is_ok());
    assert!(judge(&history(Some(A))).is_err());
}

/// An operation in flight at the kill happened before it or never.
#[test]
fn what_was_in_flight_happened_or_did_not() {
    let history = |first, second| {
        [
            record(0, 0, 1..2, Upsert(A), Did(true)),
            record(0, 0, 3..4, Upsert(B), Pending),
            record(1, 0, 1..2, Get, Saw(first)),
            record(1, 1, 3..4, Get, Saw(second)),
        ]
    };
    for value in [A, B] {
        assert!(judge(&history(Some(value), Some(value))).is_ok());
    }
    // The write happens late, is undone, or both values are lost.
    assert!(judge(&history(Some(A), Some(B))).is_err());
    assert!(judge(&history(Some(B), Some(A))).is_err());
    assert!(judge(&history(None, None)).is_err());
}

/// An operation in flight that happened must not happen again after another kill.
#[test]
fn what_was_in_flight_happens_once() {
    let history = |last| {
        [
            record(0, 0, 1..2, Insert(A), Pending),
            record(1, 0, 1..2, Get, Saw(Some(A))),
            record(1, 1, 3..4, Remove, Did(true)),
            record(2, 1, 1..2, Get, Saw(last)),
        ]
    };
    assert!(judge(&history(None)).is_ok());
    assert!(judge(&history(Some(A))).is_err());
}

/// Two operations in flight at once may both have happened, in either order.
#[test]
fn two_in_flight_take_either_order() {
    let history = |swapped, after| {
        [
            record(0, 0, 1..2, Upsert(A), Pending),
            record(0, 1, 1..2, CompareAndSwap(Some(A), Some(B)), Pending),
            record(1, 0, 1..2, Swap(3), Saw(swapped)),
            record(1, 1, 5..6, Get, Saw(after)),
        ]
    };
    for before in [None, Some(A), Some(B)] {
        assert!(judge(&history(before, Some(3))).is_ok());
    }
    assert!(judge(&history(Some(B), Some(A))).is_err());
}

/// All keys of an atomic call in flight show its change, or none does.
#[test]
fn a_batch_in_flight_is_whole_or_not_there() {
    let history = |first, second| {
        let mut history = [
            record(0, 0, 1..2, Upsert(A), Pending),
            record(0, 0, 1..2, Remove, Pending),
            record(1, 0, 1..2, Get, Saw(first)),
            record(1, 0, 3..4, Get, Saw(second)),
            // The second key's value before.
            record(0, 1, 0..1, Insert(B), Did(true)),
        ];
        for change in &mut history[..2] {
            change.function = Function::Batch;
        }
        for at in [1, 3, 4] {
            history[at].key = 1;
        }
        history
    };
    assert!(judge(&history(Some(A), None)).is_ok());
    assert!(judge(&history(None, Some(B))).is_ok());
    for half in [history(Some(A), Some(B)), history(None, None)] {
        let wrong = judge(&half).expect_err("one half");
        assert!(wrong.contains("carried out in part"), "{wrong}");
    }
}

/// Of a long history with one fault, a failure shows only the few operations that prove it.
#[test]
fn a_long_history_is_cut_down() {
    let mut history = Vec::new();
    let mut held = None;
    for turn in 0..300 {
        let (generation, at) = (turn / 100, 10 * (turn % 100));
        let mut push = |thread, from, operation, outcome| {
            history.push(record(
                generation,
                thread,
                at + from..at + from + 2,
                operation,
                outcome,
            ));
        };
        let new = identity(generation, 0, turn + 1);
        push(0, 0, Swap(new), Saw(held));
        push(1, 1, Update(A), Did(false));
        push(2, 3, Get, Saw(Some(new)));
        push(0, 4, Remove, Did(true));
        held = None;
        if turn == 150 {
            // This write is lost: the next swap does not see it.
            push(1, 6, Insert(B), Did(true));
        } else {
            push(1, 6, Get, Saw(None));
        }
    }
    // The failure may also show operations under way at either end.
    let lines = shown(&history);
    assert!(lines.len() <= 4, "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("insert")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("swap")), "{lines:#?}");
}
