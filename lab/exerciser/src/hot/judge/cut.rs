//! Reduces a history that cannot be explained.
//!
//! A linearizable history stays linearizable under these cuts, so the reduced history is still a proof:
//!
//! 1. Remove everything after a moment; operations in flight at that moment become pending.
//! 2. Remove everything that ended before a moment; the key may have held any value then, and operations in flight
//!    become pending.
//! 3. Remove a single operation that has changed nothing: a read, or a write whose answer says that it had no effect.

use super::{History, is_linearizable};
use crate::hot::ledger::Record;
use index::conformance::{HistoryEvent, Operation, Outcome};
use std::collections::BTreeSet;

/// An identity that no value has. It stands for any value of a key that the rest of the history does not mention.
const ANYTHING_ELSE: u64 = u64::MAX;

/// Replaces the event of each operation by the result of `change`; `None` removes the operation. Also removes reads
/// that become pending.
fn cut(history: &History, change: impl Fn(&Record) -> Option<HistoryEvent>) -> History {
    let of_thread = |records: &Vec<Record>| {
        let left = records.iter().filter_map(|record| {
            let event = change(record)?;
            let is_nothing = event.operation == Operation::Get && event.outcome == Outcome::Pending;
            (!is_nothing).then_some(Record { event, ..*record })
        });
        left.collect()
    };
    history.iter().map(of_thread).collect()
}

/// Returns the values that the key may have held at first, as far as the history distinguishes them.
fn possible(history: &History) -> Vec<Option<u64>> {
    let mut contents = BTreeSet::from([None, Some(ANYTHING_ELSE)]);
    for record in history.iter().flatten() {
        if let Outcome::Saw(value) = record.event.outcome {
            contents.insert(value);
        }
        if let Operation::CompareAndSwap(expected, _) = record.event.operation {
            contents.insert(expected);
        }
    }
    contents.into_iter().collect()
}

/// Returns the first moment for which the condition holds, which must then hold for all later ones.
fn first_of(moments: &[u64], holds: impl Fn(u64) -> bool) -> Option<u64> {
    let at = moments.partition_point(|&moment| !holds(moment));
    moments.get(at).copied()
}

/// Cuts down a history that is not linearizable. Returns the operations left, in the order of their starts.
pub(super) fn cut_down(history: &History) -> Vec<Record> {
    let (mut history, mut contents) = (history.clone(), vec![None]);
    let count = |history: &History| history.iter().map(Vec::len).sum::<usize>();
    loop {
        let before = count(&history);
        history = cut_end(&history, &contents);
        (history, contents) = cut_beginning(history, contents);
        leave_out_idle(&mut history, &contents);
        if count(&history) == before {
            break;
        }
    }
    let mut left = history.concat();
    left.sort_by_key(|record| (record.event.start, record.event.end));
    left
}

/// Returns all moments at which an operation begins or ends.
fn moments(history: &History) -> Vec<u64> {
    let events = history.iter().flatten().map(|record| record.event);
    let mut moments: Vec<u64> = events.flat_map(|event| [event.start, event.end]).collect();
    moments.sort_unstable();
    moments.dedup();
    moments
}

/// Returns the shortest beginning of the history that is not linearizable.
fn cut_end(history: &History, contents: &[Option<u64>]) -> History {
    let until = |moment: u64| {
        cut(history, |record| match record.event {
            HistoryEvent { start, .. } if start > moment => None,
            HistoryEvent { end, .. } if end > moment => Some(pending(record)),
            event => Some(event),
        })
    };
    let end = first_of(&moments(history), |moment| {
        !is_linearizable(contents, &until(moment))
    });
    end.map_or_else(|| history.clone(), until)
}

/// Returns the shortest end of the history that is not linearizable whatever value the key held, and the values that it
/// may have held. Returns the whole history if the proof needs the key's first value.
fn cut_beginning(history: History, contents: Vec<Option<u64>>) -> (History, Vec<Option<u64>>) {
    let since = |moment: u64| {
        cut(&history, |record| match record.event {
            HistoryEvent { end, .. } if end < moment => None,
            HistoryEvent { start, .. } if start < moment => Some(pending(record)),
            event => Some(event),
        })
    };
    let explained = |moment: u64| {
        let history = since(moment);
        is_linearizable(&possible(&history), &history)
    };
    // The history can be explained from some moment on; the moment before that one is the last from which it cannot.
    let moments = moments(&history);
    let after = moments.partition_point(|&moment| !explained(moment));
    match after.checked_sub(1) {
        Some(last) => {
            let history = since(moments[last]);
            let contents = possible(&history);
            (history, contents)
        }
        None => (history, contents),
    }
}

fn pending(record: &Record) -> HistoryEvent {
    HistoryEvent {
        outcome: Outcome::Pending,
        ..record.event
    }
}

/// Removes each operation that has changed nothing, unless the rest is linearizable without it.
fn leave_out_idle(history: &mut History, contents: &[Option<u64>]) {
    for thread in 0..history.len() {
        for at in (0..history[thread].len()).rev() {
            let HistoryEvent {
                operation, outcome, ..
            } = history[thread][at].event;
            let is_idle = matches!(
                (operation, outcome),
                (Operation::Get, _) | (Operation::Take, Outcome::Saw(None)) | (_, Outcome::Did(false))
            );
            if !is_idle {
                continue;
            }
            let left_out = history[thread].remove(at);
            if is_linearizable(contents, history) {
                history[thread].insert(at, left_out);
            }
        }
    }
}
