//! The judge: checks that each key's history over all generations is linearizable, and that atomic operations in flight
//! happened as a whole or not at all.
//!
//! | file | idea |
//! |---|---|
//! | `cut` | reduces a history that cannot be explained |
//! | `lines` | histories as text |

mod cut;
mod lines;
#[cfg(test)]
mod tests;

use super::ledger::{Seen, first_moment, read};
use super::plan::{Plan, shown};
use crate::calls::Calls;
use crate::worker::Wrong;
use cut::cut_down;
use index::conformance::{HistoryEvent, Operation, Outcome, linearizable_from};
use lines::{lines, list};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The history of a key: for each thread its operations, in order.
type History = Vec<Vec<Seen>>;

/// The ledgers of all generations of a pool.
pub(super) struct Ledgers {
    seen: Vec<Seen>,
    threads: usize,
}

impl Ledgers {
    pub fn read(plan: &Plan) -> Result<Ledgers, Wrong> {
        let mut seen = Vec::new();
        for generation in 0..=plan.killed {
            for thread in 0..plan.threads {
                let read = read(&plan.directory, generation, thread);
                seen.extend(read.map_err(|error| format!("ledger {generation}.{thread}: {error}"))?);
            }
        }
        Ok(Ledgers {
            seen,
            threads: plan.threads,
        })
    }

    #[cfg(test)]
    pub fn of(seen: Vec<Seen>) -> Ledgers {
        let threads = seen.iter().map(|seen| seen.thread + 1).max().unwrap_or(0);
        Ledgers { seen, threads }
    }

    /// Counts the answered calls of each function, without those that had neither an effect nor a result.
    pub fn calls(&self) -> Calls {
        let answered = self.seen.iter().filter(|seen| !seen.is_pending());
        let calls: BTreeSet<_> = answered
            .map(|seen| (seen.generation, seen.thread, seen.call, seen.function))
            .collect();
        let mut counts = Calls::default();
        calls
            .iter()
            .for_each(|(.., function)| counts.add(function.name()));
        counts
    }

    fn history(&self, key: usize) -> History {
        let mut history = vec![Vec::new(); self.threads];
        for seen in self.seen.iter().filter(|seen| seen.key == key) {
            // A read without an answer proves nothing.
            if !(seen.is_pending() && seen.event.operation == Operation::Get) {
                history[seen.thread].push(*seen);
            }
        }
        history
    }

    /// Judges the history of each key, then the batches and transactions in flight at kills.
    ///
    /// # Errors
    ///
    /// The first key whose history cannot be explained, with the history cut down; or else the first batch or
    /// transaction that was carried out in part.
    pub fn judge(&self, keys: &[Vec<u8>]) -> Result<(), Wrong> {
        for (at, key) in keys.iter().enumerate() {
            let history = self.history(at);
            if !is_linearizable(&[None], &history) {
                return Err(format!(
                    "key {at} {}: no order of these operations explains their answers:\n{}",
                    shown(key),
                    list(&cut_down(&history))
                ));
            }
        }
        self.judge_atomic(keys)
    }

    /// Judges the batches and transactions in flight at kills. A call fails if the history of one of its keys requires
    /// that it happened, and that of another key requires that it did not.
    fn judge_atomic(&self, keys: &[Vec<u8>]) -> Result<(), Wrong> {
        let in_flight = self.seen.iter().filter(|seen| {
            seen.is_pending() && seen.function.is_atomic() && seen.event.operation != Operation::Get
        });
        let mut calls: BTreeMap<_, Vec<&Seen>> = BTreeMap::new();
        for seen in in_flight {
            let call = (seen.generation, seen.thread, seen.call);
            calls.entry(call).or_default().push(seen);
        }
        for changes in calls.values().filter(|changes| changes.len() > 1) {
            let (mut happened, mut did_not) = (None, None);
            for change in changes {
                let with = |outcome: Option<Outcome>| {
                    let mut history = self.history(change.key);
                    let of_thread = &mut history[change.thread];
                    let place = of_thread
                        .iter()
                        .position(|seen| (seen.generation, seen.call) == (change.generation, change.call));
                    match (place, outcome) {
                        (Some(at), Some(outcome)) => of_thread[at].event.outcome = outcome,
                        (Some(at), None) => _ = of_thread.remove(at),
                        (None, _) => {}
                    }
                    is_linearizable(&[None], &history)
                };
                let done = match change.event.operation {
                    Operation::CompareAndSwap(..) => Outcome::Did(true),
                    _ => Outcome::Untold,
                };
                if !with(None) {
                    happened = Some(change);
                }
                if !with(Some(done)) {
                    did_not = Some(change);
                }
            }
            if let (Some(happened), Some(did_not)) = (happened, did_not) {
                let mut text = format!(
                    "{} in flight at the end of generation {} was carried out in part: key {} {} holds its change, and \
                     key {} {} does not\n",
                    happened.function.name(),
                    happened.generation,
                    happened.key,
                    shown(&keys[happened.key]),
                    did_not.key,
                    shown(&keys[did_not.key]),
                );
                for change in [happened, did_not] {
                    // At most 40 moments before the call or after the kill. A call takes two: request and answer.
                    let around = |seen: &&Seen| {
                        seen.event.end + 40 > change.event.start
                            && seen.event.start < first_moment(change.generation + 1) + 40
                    };
                    let of_key = self.history(change.key);
                    let near: Vec<_> = of_key.iter().flatten().filter(around).copied().collect();
                    let _ = write!(text, "key {}, around it:\n{}", change.key, list(&near));
                }
                return Err(text);
            }
        }
        Ok(())
    }

    /// Lists the operations of this generation that have no answer.
    pub fn in_flight(&self, generation: u64) -> String {
        let in_flight = self
            .seen
            .iter()
            .filter(|seen| seen.generation == generation && seen.is_pending());
        list(&in_flight.copied().collect::<Vec<_>>())
    }

    /// Returns the history of a key as text, however long: all its operations except reads without an answer.
    pub fn list(&self, key: usize) -> String {
        lines(&self.history(key).concat(), usize::MAX)
    }
}

fn is_linearizable(contents: &[Option<u64>], history: &History) -> bool {
    let of_thread = |seen: &Vec<Seen>| seen.iter().map(|seen| seen.event).collect();
    let events: Vec<Vec<HistoryEvent>> = history.iter().map(of_thread).collect();
    linearizable_from(contents, &events).is_ok()
}
