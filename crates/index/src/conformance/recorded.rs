//! Concurrent histories, recorded and searched for an order that explains them.

use super::crew::{Dawdling, crew, decode, decode_read, encode};
use super::linearizability::{HistoryEvent, Operation, Outcome, linearizable};
use super::together::write_somehow;
use super::{Brief, Family, Plan, Random, Reopen, TestedIndex, assert_emptied, assert_sound, done, keys};
use crate::{Action, CompareAndSwap, Direction, Edit, Index, Insert, Range, Remove, Update, Upsert, Value};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicU64, Ordering};

const THREADS: usize = 4;
const ROUNDS: usize = 4;

/// One thread's events, by the key's position in `Recorder::keys`.
type Log = BTreeMap<usize, Vec<HistoryEvent>>;

/// The state that the threads of a history share.
struct Recorder<'k> {
    /// In the index's order.
    keys: &'k [Vec<u8>],
    clock: AtomicU64,
}

/// Puts or removes, and keeps the value that it finds.
struct Exchange<'v> {
    action: Action,
    value: &'v [u8],
    found: Option<u64>,
}

impl Edit for Exchange<'_> {
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        self.found = current.map(decode);
        self.action
    }
    fn value(&self) -> &[u8] {
        self.value
    }
}

impl Recorder<'_> {
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn write(&self, index: &dyn Index, log: &mut Log, at: usize, operation: Operation, random: &mut Random) {
        let key = &self.keys[at][..];
        let start = self.now();
        // The edits' delays use the same random numbers.
        let mut own = Random::new(random.number());
        let mut put = |edit: &mut dyn Edit| {
            let written = write_somehow(index, self.keys, key, edit, &mut own);
            Outcome::Did(done(written, "write") != Action::Keep)
        };
        let outcome = match operation {
            Operation::Get => {
                let guard = heap::pin();
                Outcome::Saw(decode_read(done(index.get(key, &guard), "get")))
            }
            Operation::Insert(new) => put(&mut Dawdling(Insert(&encode(new)), random)),
            Operation::Upsert(new) => put(&mut Dawdling(Upsert(&encode(new)), random)),
            Operation::Update(new) => put(&mut Dawdling(Update(&encode(new)), random)),
            Operation::Remove => put(&mut Dawdling(Remove, random)),
            Operation::CompareAndSwap(expected, new) => {
                let (expected, new) = (expected.map(encode), new.map(encode));
                let edit = CompareAndSwap {
                    expected: expected.as_deref(),
                    new: new.as_deref(),
                };
                put(&mut Dawdling(edit, random))
            }
            Operation::Swap(new) => {
                let value = &encode(new);
                let mut edit = Dawdling(
                    Exchange {
                        action: Action::Put,
                        value,
                        found: None,
                    },
                    random,
                );
                put(&mut edit);
                Outcome::Saw(edit.0.found)
            }
            Operation::Take => {
                let mut edit = Dawdling(
                    Exchange {
                        action: Action::Remove,
                        value: &[],
                        found: None,
                    },
                    random,
                );
                put(&mut edit);
                Outcome::Saw(edit.0.found)
            }
        };
        let end = self.now();
        log.entry(at).or_default().push(HistoryEvent {
            operation,
            outcome,
            start,
            end,
        });
    }

    /// Records a read of many keys: each counts as one read of its own, sometime between start and end.
    fn note_reads(&self, log: &mut Log, start: u64, reads: impl Iterator<Item = (usize, Option<u64>)>) {
        let end = self.now();
        for (at, value) in reads {
            let event = HistoryEvent {
                operation: Operation::Get,
                outcome: Outcome::Saw(value),
                start,
                end,
            };
            log.entry(at).or_default().push(event);
        }
    }

    fn multi_get(&self, index: &dyn Index, log: &mut Log, random: &mut Random) {
        let first = random.below(self.keys.len());
        let asked: Vec<_> = (first..self.keys.len()).take(8).collect();
        let keys: Vec<_> = asked.iter().map(|&at| &self.keys[at][..]).collect();
        let mut found = vec![None; asked.len()];
        let start = self.now();
        let guard = heap::pin();
        let each = &mut |i: usize, value: Option<Value<'_>>| found[i] = decode_read(value);
        done(index.multi_get(&keys, &guard, each), "multi_get");
        self.note_reads(log, start, asked.into_iter().zip(found));
    }

    fn scan(&self, index: &dyn Index, log: &mut Log, random: &mut Random) {
        let first = random.below(self.keys.len());
        let last = first + random.below((self.keys.len() - first).min(100));
        let (lower, upper) = (
            Bound::Included(&self.keys[first][..]),
            Bound::Included(&self.keys[last][..]),
        );
        let direction = *random.pick(&[Direction::Forward, Direction::Reverse]);
        let mut found: Vec<(Vec<u8>, u64)> = Vec::new();
        let start = self.now();
        let guard = heap::pin();
        let mut visit = |key: &[u8], value: Value<'_>| found.push((key.to_vec(), decode(&value)));
        let order = index.order();
        if random.one_in(2) || !order.is_by_keys() {
            let visit = &mut |key: &_, value: Value<'_>| {
                visit(key, value);
                ControlFlow::Continue(())
            };
            done(
                super::visit(index, (lower, upper), direction, &guard, visit),
                "scan",
            );
        } else {
            let range = Range::new(index, lower, upper, &guard);
            let mut visit = |entry| {
                let (key, value) = done(entry, "range");
                visit(key, value);
            };
            match direction {
                Direction::Forward => range.for_each(&mut visit),
                Direction::Reverse => range.rev().for_each(&mut visit),
            }
        }
        if direction == Direction::Reverse {
            found.reverse();
        }
        if let Some(pair) = found
            .windows(2)
            .find(|pair| order.compare(&pair[0].0, &pair[1].0).is_ge())
        {
            panic!(
                "{direction:?} scan out of order: {:?}, {:?}",
                Brief(&pair[0].0),
                Brief(&pair[1].0)
            );
        }
        let mut found: BTreeMap<_, _> = found.into_iter().collect();
        let reads: Vec<_> = (first..=last)
            .map(|at| (at, found.remove(&self.keys[at])))
            .collect();
        if let Some(key) = found.keys().next() {
            panic!("a scan visits {:?}, which is no key or out of bounds", Brief(key));
        }
        self.note_reads(log, start, reads.into_iter());
    }

    /// One thread's part of one round.
    fn work(&self, index: &dyn Index, log: &mut Log, operations: usize, ids: &mut u64, random: &mut Random) {
        let mut last = vec![None; self.keys.len()];
        for i in 0..operations {
            // Waves of growth and shrinkage, so that nodes and leaf arrays come and go.
            let removing = if (i * 6 / operations).is_multiple_of(2) {
                3
            } else {
                9
            };
            let at = random.below(self.keys.len());
            *ids += 1;
            let new = *ids;
            let operation = match random.below(32) {
                0 => {
                    self.scan(index, log, random);
                    continue;
                }
                1 => {
                    self.multi_get(index, log, random);
                    continue;
                }
                2..8 => Operation::Get,
                kind if random.below(12) < removing => match kind {
                    8..18 => Operation::Remove,
                    18..25 => Operation::Take,
                    _ => Operation::CompareAndSwap(last[at], None),
                },
                8..13 => Operation::Insert(new),
                13..17 => Operation::Upsert(new),
                17..21 => Operation::Update(new),
                21..25 => Operation::Swap(new),
                _ => Operation::CompareAndSwap(last[at], Some(new)),
            };
            if operation == Operation::CompareAndSwap(None, None) {
                continue;
            }
            self.write(index, log, at, operation, random);
            last[at] = match log[&at].last() {
                Some(HistoryEvent {
                    outcome: Outcome::Saw(value),
                    operation: Operation::Get,
                    ..
                }) => *value,
                _ => Some(new),
            };
        }
    }
}

fn history<S: TestedIndex>(plan: &Plan, random: &mut Random, keys: &[Vec<u8>], operations: usize) {
    let mut subject = S::create();
    let start = subject.used();
    let order = subject.index().order();
    let mut keys = keys.to_vec();
    order.sort(&mut keys, |key| key);
    let keys = &keys[..];
    let recorder = Recorder {
        keys,
        clock: AtomicU64::new(0),
    };
    let threads = 2 + random.below(THREADS - 1);
    // A thread's ids continue from round to round, so its values differ from all others.
    let mut logs: Vec<(Log, u64)> = (0..threads)
        .map(|thread| (Log::new(), (thread as u64) << 32))
        .collect();
    for round in 0..ROUNDS {
        let index = subject.index();
        logs = crew(threads, random, |thread, mut random| {
            let (mut log, mut ids) = logs[thread].clone();
            recorder.work(index, &mut log, plan.sized(operations), &mut ids, &mut random);
            (log, ids)
        });
        // The content after all threads have ended belongs to the history too.
        let (log, ids) = &mut logs[0];
        for at in 0..keys.len() {
            recorder.write(index, log, at, Operation::Get, random);
        }
        *ids += 1;
        let present = keys.iter().enumerate().filter(|(at, _)| {
            matches!(
                log[at].last(),
                Some(HistoryEvent {
                    outcome: Outcome::Saw(Some(_)),
                    ..
                })
            )
        });
        assert_sound(index, present.count());
        if round + 1 < ROUNDS {
            subject = subject.reopen(*random.pick(&[Reopen::Clean, Reopen::Crash]));
        }
    }
    for (at, key) in keys.iter().enumerate() {
        let of_key: Vec<_> = logs
            .iter()
            .map(|(log, _)| log.get(&at).cloned().unwrap_or_default())
            .collect();
        if let Err(why) = linearizable(&of_key) {
            panic!("key {:?}: {why}", Brief(key));
        }
        done(subject.index().remove(key), "remove");
    }
    assert_emptied(&subject, start);
}

/// Threads contend for a few keys.
pub fn hot_keys_are_linearizable<S: TestedIndex>(plan: &Plan) {
    let mut random = plan.random("hot_keys_are_linearizable");
    let sets: [&[&[u8]]; 4] = [
        &[b"only"],
        &[b"a", b"b"],
        &[b"", b"stem", b"stem one", b"stem two"],
        &[
            b"far",
            b"prefix of",
            b"prefix of the next",
            b"prefix of the next one",
            b"wide",
        ],
    ];
    for set in sets {
        let keys: Vec<_> = set.iter().map(|key| key.to_vec()).collect();
        history::<S>(plan, &mut random, &keys, 10_000);
    }
}

/// Threads work on different keys that share leaf arrays and nodes, so that structure changes race.
pub fn neighbours_are_linearizable<S: TestedIndex>(plan: &Plan) {
    let mut random = plan.random("neighbours_are_linearizable");
    let sets: [(Family, usize); 6] = [
        (keys::fans, 70),
        (keys::fans, 600),
        (keys::few_bytes, 150),
        (keys::dense, 300),
        (keys::paths, 100),
        (keys::chain, 60),
    ];
    for (family, count) in sets {
        let keys = family(&mut random, count);
        history::<S>(plan, &mut random, &keys, 12_000);
    }
}
