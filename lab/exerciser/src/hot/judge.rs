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

use super::ledger::{Record, first_moment, read};
use super::plan::{Plan, shown};
use crate::calls::Calls;
use crate::worker::Wrong;
use cut::cut_down;
use index::conformance::{HistoryEvent, Operation, Outcome, linearizable_from};
use lines::{lines, list};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Around a call carried out in part, the operations that began or ended this many ticks of the clock before the call
/// or after the kill are shown. A call takes two ticks.
const SHOWN_AROUND: u64 = 40;

/// The history of a key: for each thread its operations, in order.
type History = Vec<Vec<Record>>;

/// The ledgers of all generations of a pool.
pub(super) struct Ledgers {
    records: Vec<Record>,
    threads: usize,
}

impl Ledgers {
    pub fn read(plan: &Plan) -> Result<Ledgers, Wrong> {
        let mut records = Vec::new();
        for generation in 0..=plan.killed {
            for thread in 0..plan.threads {
                let read = read(&plan.directory, generation, thread);
                records.extend(read.map_err(|error| format!("ledger {generation}.{thread}: {error}"))?);
            }
        }
        Ok(Ledgers {
            records,
            threads: plan.threads,
        })
    }

    #[cfg(test)]
    pub fn of(records: Vec<Record>) -> Ledgers {
        let threads = records.iter().map(|record| record.thread + 1).max().unwrap_or(0);
        Ledgers { records, threads }
    }

    /// Counts the answered calls of each function. A transaction is not counted if every try of it met a conflict.
    pub fn calls(&self) -> Calls {
        let answered = self.records.iter().filter(|record| !record.is_pending());
        let calls: BTreeSet<_> = answered
            .map(|record| (record.generation, record.thread, record.call, record.function))
            .collect();
        let mut counts = Calls::default();
        calls
            .iter()
            .for_each(|(.., function)| counts.add(function.name()));
        counts
    }

    fn history(&self, key: usize) -> History {
        let mut history = vec![Vec::new(); self.threads];
        for record in self.records.iter().filter(|record| record.key == key) {
            // A read without an answer proves nothing.
            if !(record.is_pending() && record.event.operation == Operation::Get) {
                history[record.thread].push(*record);
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

    /// Judges the batches and transactions in flight at kills. A call was carried out in part if one key's history is
    /// linearizable only with the call, and another's only without it.
    fn judge_atomic(&self, keys: &[Vec<u8>]) -> Result<(), Wrong> {
        let in_flight = self.records.iter().filter(|record| {
            record.is_pending() && record.function.is_atomic() && record.event.operation != Operation::Get
        });
        let mut calls: BTreeMap<_, Vec<&Record>> = BTreeMap::new();
        for record in in_flight {
            let call = (record.generation, record.thread, record.call);
            calls.entry(call).or_default().push(record);
        }
        for changes in calls.values().filter(|changes| changes.len() > 1) {
            let happened = changes.iter().rfind(|change| !self.holds_if(change, false));
            let did_not = changes.iter().rfind(|change| !self.holds_if(change, true));
            if let (Some(happened), Some(did_not)) = (happened, did_not) {
                return Err(self.in_part(happened, did_not, keys));
            }
        }
        Ok(())
    }

    /// Returns whether the history of the change's key is linearizable if the change, which has no answer, happened, or
    /// if it did not.
    fn holds_if(&self, change: &Record, happened: bool) -> bool {
        let mut history = self.history(change.key);
        let of_thread = &mut history[change.thread];
        let place = of_thread
            .iter()
            .position(|record| (record.generation, record.call) == (change.generation, change.call));
        match place {
            Some(at) if happened => {
                of_thread[at].event.outcome = match change.event.operation {
                    Operation::CompareAndSwap(..) => Outcome::Did(true),
                    _ => Outcome::Untold,
                }
            }
            Some(at) => _ = of_thread.remove(at),
            None => {}
        }
        is_linearizable(&[None], &history)
    }

    /// Describes a call of which one change happened and another did not.
    fn in_part(&self, happened: &Record, did_not: &Record, keys: &[Vec<u8>]) -> String {
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
            let around = |record: &&Record| {
                record.event.end + SHOWN_AROUND > change.event.start
                    && record.event.start < first_moment(change.generation + 1) + SHOWN_AROUND
            };
            let of_key = self.history(change.key);
            let near: Vec<_> = of_key.iter().flatten().filter(around).copied().collect();
            let _ = write!(text, "key {}, around it:\n{}", change.key, list(&near));
        }
        text
    }

    /// Lists the operations of this generation that have no answer.
    pub fn in_flight(&self, generation: u64) -> String {
        let in_flight = self
            .records
            .iter()
            .filter(|record| record.generation == generation && record.is_pending());
        list(&in_flight.copied().collect::<Vec<_>>())
    }

    /// Returns the history of a key as text, however long: all its operations except reads without an answer.
    pub fn whole_history(&self, key: usize) -> String {
        lines(&self.history(key).concat(), usize::MAX)
    }
}

fn is_linearizable(contents: &[Option<u64>], history: &History) -> bool {
    let of_thread = |records: &Vec<Record>| records.iter().map(|record| record.event).collect();
    let events: Vec<Vec<HistoryEvent>> = history.iter().map(of_thread).collect();
    linearizable_from(contents, &events).is_ok()
}
