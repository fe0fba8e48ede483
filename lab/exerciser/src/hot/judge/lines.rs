//! Histories as text.

use crate::hot::ledger::{Record, split_moment};
use crate::hot::values::name;
use index::conformance::{Operation, Outcome};
use std::fmt::Write as _;

/// Maximum number of operations shown of a history.
const MAX_SHOWN: usize = 200;

pub(super) fn list(records: &[Record]) -> String {
    lines(records, MAX_SHOWN)
}

/// Returns the last `max` operations, a line each, in the order of their starts, with the kills between them.
pub(super) fn lines(records: &[Record], max: usize) -> String {
    let mut records = records.to_vec();
    records.sort_by_key(|record| (record.event.start, record.event.end));
    let mut text = String::new();
    let left_out = records.len().saturating_sub(max);
    if left_out > 0 {
        let _ = writeln!(text, "  ({left_out} operations before)");
    }
    let mut last = None;
    for record in &records[left_out..] {
        let generation = record.generation;
        if let Some(last) = last.filter(|&last| last != generation) {
            let _ = writeln!(text, "  ---- kill of generation {last}");
        }
        last = Some(generation);
        let start = split_moment(record.event.start).1;
        let (end, answer) = match (split_moment(record.event.end), record.event.outcome) {
            ((of, _), _) if of != generation => ("kill".into(), "in flight, happened or did not".into()),
            ((_, end), Outcome::Pending) => {
                (end.to_string(), "under way at the edge of what is shown".into())
            }
            ((_, end), outcome) => (end.to_string(), answer(outcome)),
        };
        let _ = writeln!(
            text,
            "  generation {generation} thread {} {start:>7}..{end:<7} {} by {}: {answer}",
            record.thread,
            operation(record.event.operation),
            record.function.name(),
        );
    }
    text
}

fn value(value: Option<u64>) -> String {
    value.map_or("nothing".into(), name)
}

fn operation(operation: Operation) -> String {
    match operation {
        Operation::Get => "get".into(),
        Operation::Insert(new) => format!("insert {}", name(new)),
        Operation::Upsert(new) => format!("upsert {}", name(new)),
        Operation::Update(new) => format!("update to {}", name(new)),
        Operation::Swap(new) => format!("swap for {}", name(new)),
        Operation::Remove => "remove".into(),
        Operation::Take => "take".into(),
        Operation::CompareAndSwap(expected, new) => {
            format!("compare and swap {} for {}", value(expected), value(new))
        }
    }
}

fn answer(outcome: Outcome) -> String {
    match outcome {
        Outcome::Did(true) => "done".into(),
        Outcome::Did(false) => "nothing done".into(),
        Outcome::Saw(seen) => value(seen),
        Outcome::Untold => "done, result unknown".into(),
        Outcome::Pending => "no answer".into(),
    }
}
