//! Checks whether some order of its operations explains a recorded history of one key.
//!
//! The search is Wing and Gong's with memoisation (Wing & Gong 1993; Lowe 2017): repeatedly pick an operation that
//! began before any other remaining one had ended, and check that a register, which may be absent, would have given
//! its answer. Operations of one thread are sequential; therefore a set of ordered operations is one position per
//! thread, and together with the register's content it is the whole state of the search.
//!
//! Keys are independent of each other (linearizability is local), so each key's history is searched alone. A scan
//! enters as one read of every key between its bounds, each sometime during the scan.
//!
//! An operation interrupted by a crash is *pending*: it happened at one moment up to the crash, or never. With the
//! crash as its end it is ordered like any other, and its effect may be left out. So a history across several crashes
//! is checked for durable linearizability: acknowledged operations stay, and one in flight happened at most once,
//! before the crash.

use std::collections::HashSet;

/// An operation on one key. Values are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Read the value.
    Get,
    /// Put the value if the key is absent.
    Insert(u64),
    /// Put the value.
    Upsert(u64),
    /// Put the value if the key is present.
    Update(u64),
    /// Put the value and return the one before.
    Swap(u64),
    /// Remove the key.
    Remove,
    /// Remove the key and return its value.
    Take,
    /// If the key holds the first, replace it by the second.
    CompareAndSwap(Option<u64>, Option<u64>),
}

/// The answer of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Whether it changed something.
    Did(bool),
    /// The value it read.
    Saw(Option<u64>),
    /// It has happened, but its answer was not recorded.
    Untold,
    /// None: it was in flight when its process ended. It happened once or not at all.
    Pending,
}

/// An operation as a thread saw it.
#[derive(Clone, Copy, Debug)]
pub struct HistoryEvent {
    /// The operation.
    pub operation: Operation,
    /// Its outcome.
    pub outcome: Outcome,
    /// When it was called, on a clock that all threads share.
    pub start: u64,
    /// When it returned; for a pending one, when its process ended.
    pub end: u64,
}

impl HistoryEvent {
    /// The contents that the key may have after the event if it has `content` before it.
    fn contents_after(&self, content: Option<u64>) -> impl Iterator<Item = Option<u64>> {
        let (after, answer) = apply(content, self.operation);
        let is_pending = self.outcome == Outcome::Pending;
        let happened = is_pending || self.outcome == Outcome::Untold || self.outcome == answer;
        let left_out = (is_pending && after != content).then_some(content);
        happened.then_some(after).into_iter().chain(left_out)
    }
}

/// Applies an operation to a register: its content afterwards, and the answer.
fn apply(content: Option<u64>, operation: Operation) -> (Option<u64>, Outcome) {
    use Operation::*;
    use Outcome::*;
    match (operation, content) {
        (Get, _) => (content, Saw(content)),
        (Insert(new), None) => (Some(new), Did(true)),
        (Insert(_), Some(_)) => (content, Did(false)),
        (Upsert(new), _) => (Some(new), Did(true)),
        (Update(new), Some(_)) => (Some(new), Did(true)),
        (Update(_), None) => (None, Did(false)),
        (Swap(new), _) => (Some(new), Saw(content)),
        (Remove, _) => (None, Did(content.is_some())),
        (Take, _) => (None, Saw(content)),
        (CompareAndSwap(expected, new), _) if expected == content => (new, Did(true)),
        (CompareAndSwap(..), _) => (content, Did(false)),
    }
}

/// Checks that the threads' events are the operations of a key that was absent at first, each at one moment between
/// its start and its end. Each thread's events are in order and do not overlap.
///
/// # Errors
///
/// The events around the point that no attempt to order them gets past.
pub fn linearizable(threads: &[Vec<HistoryEvent>]) -> Result<(), String> {
    linearizable_from(&[None], threads)
}

/// Like [`linearizable`], for a key that held one of `contents` at first.
///
/// # Errors
///
/// As for [`linearizable`].
pub fn linearizable_from(contents: &[Option<u64>], threads: &[Vec<HistoryEvent>]) -> Result<(), String> {
    let mut furthest = (0, vec![0; threads.len()], None);
    let mut seen = HashSet::new();
    let mut left: Vec<_> = contents
        .iter()
        .map(|&content| (vec![0_usize; threads.len()], content))
        .collect();
    while let Some((positions, content)) = left.pop() {
        let next: Vec<Option<&HistoryEvent>> = threads
            .iter()
            .zip(&positions)
            .map(|(events, &at)| events.get(at))
            .collect();
        let Some(horizon) = next.iter().flatten().map(|event| event.end).min() else {
            return Ok(());
        };
        let ordered: usize = positions.iter().sum();
        if ordered >= furthest.0 {
            furthest = (ordered, positions.clone(), content);
        }
        for (thread, event) in next.iter().enumerate() {
            let Some(event) = event.filter(|event| event.start < horizon) else {
                continue;
            };
            for after in event.contents_after(content) {
                let mut positions = positions.clone();
                positions[thread] += 1;
                if seen.insert((positions.clone(), after)) {
                    left.push((positions, after));
                }
            }
        }
    }
    Err(describe(threads, &furthest.1, furthest.2))
}

fn describe(threads: &[Vec<HistoryEvent>], positions: &[usize], content: Option<u64>) -> String {
    let mut text =
        format!("not linearizable; the furthest order ends with the key holding {content:x?}, and");
    for (thread, (events, &at)) in threads.iter().zip(positions).enumerate() {
        text += &format!("\n  thread {thread}:");
        for (i, event) in events.iter().enumerate().take(at + 3).skip(at.saturating_sub(5)) {
            let HistoryEvent {
                operation,
                outcome,
                start,
                end,
            } = event;
            let mark = if i < at { "ordered" } else { "left   " };
            text += &format!("\n    {mark} {start:>8}..{end:<8} {operation:x?} -> {outcome:x?}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{HistoryEvent, Operation::*, Outcome::*, linearizable, linearizable_from};

    fn event(start: u64, end: u64, operation: super::Operation, outcome: super::Outcome) -> HistoryEvent {
        HistoryEvent {
            operation,
            outcome,
            start,
            end,
        }
    }

    #[test]
    fn overlapping_operations_may_take_either_order() {
        for seen in [None, Some(1)] {
            let writer = vec![event(0, 10, Insert(1), Did(true))];
            let reader = vec![event(1, 9, Get, Saw(seen))];
            assert!(linearizable(&[writer, reader]).is_ok());
        }
    }

    #[test]
    fn a_read_after_a_write_sees_it() {
        let writer = vec![event(0, 1, Insert(1), Did(true))];
        let reader = vec![event(2, 3, Get, Saw(None))];
        assert!(linearizable(&[writer, reader]).is_err());
    }

    #[test]
    fn readers_agree_on_the_order_of_writes() {
        let first = vec![event(0, 20, Upsert(1), Did(true))];
        let second = vec![event(1, 21, Upsert(2), Did(true))];
        let reader = |order: [u64; 2]| {
            vec![
                event(2, 3, Get, Saw(Some(order[0]))),
                event(4, 5, Get, Saw(Some(order[1]))),
            ]
        };
        assert!(linearizable(&[first.clone(), second.clone(), reader([1, 2])]).is_ok());
        assert!(linearizable(&[first.clone(), second.clone(), reader([1, 2]), reader([1, 2])]).is_ok());
        assert!(linearizable(&[first, second, reader([1, 2]), reader([2, 1])]).is_err());
    }

    #[test]
    fn a_read_does_not_go_back() {
        let writer = vec![event(0, 20, Insert(1), Did(true))];
        let reader = vec![event(2, 3, Get, Saw(Some(1))), event(4, 5, Get, Saw(None))];
        assert!(linearizable(&[writer, reader]).is_err());
    }

    #[test]
    fn one_of_two_overlapping_inserts_wins() {
        let insert = |value, did| vec![event(value, 10 + value, Insert(value), Did(did))];
        assert!(linearizable(&[insert(0, true), insert(1, false)]).is_ok());
        assert!(linearizable(&[insert(0, true), insert(1, true)]).is_err());
        assert!(linearizable(&[insert(0, false), insert(1, false)]).is_err());
    }

    #[test]
    fn an_update_does_not_bring_a_removed_key_back() {
        let writer = vec![
            event(0, 1, Insert(1), Did(true)),
            event(2, 20, Update(2), Did(true)),
        ];
        let remover = vec![event(3, 19, Remove, Did(true)), event(22, 23, Get, Saw(Some(2)))];
        assert!(linearizable(&[writer, remover]).is_err());
    }

    #[test]
    fn a_value_is_taken_once() {
        let writer = vec![event(0, 1, Insert(1), Did(true))];
        let taker = |at| vec![event(at, at + 10, Take, Saw(Some(1)))];
        assert!(linearizable(&[writer.clone(), taker(2)]).is_ok());
        assert!(linearizable(&[writer, taker(2), taker(3)]).is_err());
    }

    #[test]
    fn compare_and_swap_needs_what_it_expects() {
        let history = |did| {
            [vec![
                event(0, 1, CompareAndSwap(None, Some(1)), Did(true)),
                event(2, 3, CompareAndSwap(Some(2), Some(3)), Did(did)),
                event(4, 5, Swap(4), Saw(Some(1))),
                event(6, 7, CompareAndSwap(Some(4), None), Did(true)),
                event(8, 9, Get, Saw(None)),
            ]]
        };
        assert!(linearizable(&history(false)).is_ok());
        assert!(linearizable(&history(true)).is_err());
    }

    /// An operation in flight at a crash happened before it or not at all, and later operations show which.
    #[test]
    fn a_pending_operation_happens_once_or_never() {
        let pending = event(2, 10, Upsert(2), Pending);
        let history = |reads: &[Option<u64>]| {
            let reads = (11_u64..).zip(reads).map(|(at, &seen)| (20 * at, seen));
            let first = [event(0, 1, Insert(1), Did(true)), pending];
            let after = reads.map(|(at, seen)| event(at, at + 1, Get, Saw(seen)));
            vec![first.into_iter().chain(after).collect::<Vec<_>>()]
        };
        for seen in [Some(1), Some(2)] {
            assert!(linearizable(&history(&[seen, seen])).is_ok());
        }
        assert!(linearizable(&history(&[Some(1), Some(2)])).is_err());
        assert!(linearizable(&history(&[None])).is_err());
    }

    /// An operation whose answer was not recorded has happened all the same.
    #[test]
    fn an_untold_operation_has_happened() {
        let history = |seen| {
            [vec![
                event(0, 1, Upsert(1), Did(true)),
                event(2, 3, Remove, Untold),
                event(4, 5, Get, Saw(seen)),
            ]]
        };
        assert!(linearizable(&history(None)).is_ok());
        assert!(linearizable(&history(Some(1))).is_err());
    }

    /// A history may begin with any of the contents given, and with no other.
    #[test]
    fn a_history_begins_with_one_of_the_contents() {
        let history = [vec![event(0, 1, Swap(3), Saw(Some(2)))]];
        assert!(linearizable_from(&[None, Some(2)], &history).is_ok());
        assert!(linearizable_from(&[None, Some(1)], &history).is_err());
    }
}
