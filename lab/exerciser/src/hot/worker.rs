//! A calling thread: draws random operations on hot keys, records them, and carries them out.

use super::keys::{is_neighbour, neighbours};
use super::ledger::{Call, Function, Ledger};
use super::values::{self, identity, read};
use crate::random::Random;
use crate::worker::Wrong;
use index::conformance::{Operation, Outcome};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use wollemi::{Action, Db, Durability, Edit, Error, Level, Map};

/// A thread's handles and state.
pub(super) struct Worker<'a> {
    pub db: &'a Db,
    pub map: Map,
    pub keys: &'a [Vec<u8>],
    pub generation: u64,
    pub thread: usize,
    pub random: Random,
    pub ledger: Ledger<'a>,
    /// The value last read or put, by key, which `compare_and_swap` then expects.
    pub last: Vec<Option<u64>>,
    /// The number of values drawn.
    pub values: u64,
}

/// An edit that carries out an operation. Half of them let other threads run while they hold the lock on the key.
struct OperationEdit {
    operation: Operation,
    value: Vec<u8>,
    found: Result<Option<u64>, Wrong>,
    yields: bool,
}

impl Edit for OperationEdit {
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        self.found = read(current);
        if self.yields {
            std::thread::yield_now();
        }
        let found = *self.found.as_ref().unwrap_or(&None);
        match (self.operation, found) {
            (Operation::Get, _) => Action::Keep,
            (Operation::Insert(_), Some(_)) | (Operation::Update(_), None) => Action::Keep,
            (Operation::CompareAndSwap(expected, _), _) if expected != found => Action::Keep,
            (Operation::Remove | Operation::Take | Operation::CompareAndSwap(_, None), None) => Action::Keep,
            (Operation::Remove | Operation::Take | Operation::CompareAndSwap(_, None), Some(_)) => {
                Action::Remove
            }
            (
                Operation::Insert(_)
                | Operation::Upsert(_)
                | Operation::Update(_)
                | Operation::Swap(_)
                | Operation::CompareAndSwap(_, Some(_)),
                _,
            ) => Action::Put,
        }
    }

    fn value(&self) -> &[u8] {
        &self.value
    }
}

fn failed(error: Error) -> Wrong {
    error.to_string()
}

fn bytes_of(new: Option<u64>) -> Vec<u8> {
    new.map(values::bytes).unwrap_or_default()
}

/// Returns the value that the operation writes.
fn written_value(operation: Operation) -> Option<u64> {
    match operation {
        Operation::Get | Operation::Remove | Operation::Take => None,
        Operation::Insert(new) | Operation::Upsert(new) | Operation::Update(new) | Operation::Swap(new) => {
            Some(new)
        }
        Operation::CompareAndSwap(_, new) => new,
    }
}

impl Worker<'_> {
    /// Makes a random call. Returns `false`, without a call, if the ledger is full.
    ///
    /// # Errors
    ///
    /// An answer that is wrong whatever other threads write, or a failed call.
    pub fn step(&mut self) -> Result<bool, Wrong> {
        match self.random.below(1000) {
            0..730 => {
                let at = self.random.index(self.keys.len());
                let operation = self.operation(at);
                self.single(at, operation)
            }
            730..770 => self.multi_get(),
            770..810 => self.scan(),
            810..850 => self.load(),
            850..930 => self.batch(),
            930..990 => self.transaction(),
            990..998 => self.neighbours(),
            _ => self.rare(),
        }
    }

    fn new_value(&mut self) -> u64 {
        self.values += 1;
        identity(self.generation, self.thread, self.values)
    }

    fn operation(&mut self, at: usize) -> Operation {
        let new = self.new_value();
        match self.random.below(20) {
            0..4 => Operation::Get,
            4..7 => Operation::Insert(new),
            7..9 => Operation::Upsert(new),
            9..11 => Operation::Update(new),
            11..13 => Operation::Swap(new),
            13..16 => Operation::Remove,
            16 => Operation::Take,
            17 if self.last[at].is_some() => Operation::CompareAndSwap(self.last[at], None),
            _ => Operation::CompareAndSwap(self.last[at], Some(new)),
        }
    }

    /// Records the answers of a call, and remembers the keys' values after it.
    fn answer(&mut self, call: Call, operations: &[(usize, Operation)], answers: &[Option<Outcome>]) {
        self.ledger.answer(call, answers.iter().copied());
        for (&(at, operation), &answer) in operations.iter().zip(answers) {
            match (operation, answer) {
                (Operation::Get, Some(Outcome::Saw(value))) => self.last[at] = value,
                (_, None | Some(Outcome::Did(false))) => {}
                _ => self.last[at] = written_value(operation),
            }
        }
    }

    fn single(&mut self, at: usize, operation: Operation) -> Result<bool, Wrong> {
        let direct = !self.random.one_in(3);
        let function = match operation {
            Operation::Get if direct => Function::Get,
            Operation::Get => Function::Borrowed,
            Operation::Insert(_) if direct => Function::Insert,
            Operation::Upsert(_) if direct => Function::Upsert,
            Operation::Update(_) if direct => Function::Update,
            Operation::Remove if direct => Function::Remove,
            Operation::CompareAndSwap(..) if direct => Function::CompareAndSwap,
            _ => Function::Edit,
        };
        let yields = self.random.one_in(2);
        let operations = [(at, operation)];
        let Some(call) = self.ledger.ask(function, &operations) else {
            return Ok(false);
        };
        let outcome = self.carry_out(function, at, operation, yields);
        let outcome =
            outcome.map_err(|wrong| format!("{} {operation:x?} of key {at}: {wrong}", function.name()))?;
        self.answer(call, &operations, &[Some(outcome)]);
        Ok(true)
    }

    fn carry_out(
        &self,
        function: Function,
        at: usize,
        operation: Operation,
        yields: bool,
    ) -> Result<Outcome, Wrong> {
        let (map, key) = (&self.map, &self.keys[at]);
        let value = bytes_of(written_value(operation));
        let did = |answer: Result<bool, Error>| answer.map(Outcome::Did).map_err(failed);
        match (function, operation) {
            (Function::Get, _) => Ok(Outcome::Saw(read(map.get(key).map_err(failed)?.as_deref())?)),
            (Function::Borrowed, _) => {
                let reader = map.reader();
                let found = reader.get(key).map_err(failed)?;
                Ok(Outcome::Saw(read(found.as_deref())?))
            }
            (Function::Insert, _) => did(map.insert(key, value)),
            (Function::Upsert, _) => did(map.upsert(key, value).map(|()| true)),
            (Function::Update, _) => did(map.update(key, value)),
            (Function::Remove, _) => did(map.remove(key)),
            (Function::CompareAndSwap, Operation::CompareAndSwap(expected, new)) => {
                did(map.compare_and_swap(key, expected.map(values::bytes), new.map(|_| value)))
            }
            _ => {
                let mut edit = OperationEdit {
                    operation,
                    value,
                    found: Ok(None),
                    yields,
                };
                let action = map.edit(key, &mut edit).map_err(failed)?;
                let found = edit.found?;
                Ok(match operation {
                    Operation::Swap(_) | Operation::Take => Outcome::Saw(found),
                    _ => Outcome::Did(action != Action::Keep),
                })
            }
        }
    }

    /// Draws two or more neighbouring keys, beginning anywhere and wrapping around.
    fn several(&mut self) -> Vec<usize> {
        let count = self.keys.len();
        let first = self.random.index(count);
        let some = match self.random.one_in(2) {
            true => 2,
            false => 2 + self.random.index(count - 1),
        };
        (first..first + some).map(|at| at % count).collect()
    }

    fn multi_get(&mut self) -> Result<bool, Wrong> {
        let operations: Vec<_> = (0..self.keys.len()).map(|at| (at, Operation::Get)).collect();
        let Some(call) = self.ledger.ask(Function::MultiGet, &operations) else {
            return Ok(false);
        };
        let found = self.map.multi_get(self.keys).map_err(failed)?;
        let answers = found
            .iter()
            .map(|found| Ok(Some(Outcome::Saw(read(found.as_deref())?))));
        let answers: Vec<_> = answers.collect::<Result<_, Wrong>>()?;
        self.answer(call, &operations, &answers);
        Ok(true)
    }

    /// Reads a range of the hot keys, or all of them if the index has no key order.
    pub fn scan(&mut self) -> Result<bool, Wrong> {
        let is_ordered = self.map.index_kind().is_ordered();
        let (first, last) = if is_ordered {
            let first = self.random.index(self.keys.len());
            (first, first + self.random.index(self.keys.len() - first))
        } else {
            (0, self.keys.len() - 1)
        };
        let function = if is_ordered && self.random.one_in(2) {
            Function::Range
        } else {
            Function::Visit
        };
        let reverse = self.random.one_in(2);
        let operations: Vec<_> = (first..=last).map(|at| (at, Operation::Get)).collect();
        let Some(call) = self.ledger.ask(function, &operations) else {
            return Ok(false);
        };
        let bounds = &*self.keys[first]..=&*self.keys[last];
        let mut found: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let mut visit = |key: &[u8], value: wollemi::Value<'_>| {
            found.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        };
        match (function, is_ordered) {
            (Function::Range, _) => {
                let range = self.map.range(bounds);
                let entries: Result<Vec<_>, Error> = if reverse {
                    range.rev().collect()
                } else {
                    range.collect()
                };
                found = entries.map_err(failed)?;
                if reverse {
                    found.reverse();
                }
            }
            (_, true) => self.map.reader().visit(bounds, &mut visit).map_err(failed)?,
            (_, false) => self.map.reader().visit(.., &mut visit).map_err(failed)?,
        }
        if is_ordered && !found.is_sorted_by(|a, b| a.0 < b.0) {
            let keys: Vec<_> = found
                .iter()
                .map(|(key, _)| key.escape_ascii().to_string())
                .collect();
            return Err(format!("{} out of order: {keys:?}", function.name()));
        }
        let mut hot = BTreeMap::new();
        for (key, value) in found.iter().filter(|(key, _)| !is_neighbour(key)) {
            match self.keys.binary_search(key) {
                Ok(at) if (first..=last).contains(&at) && !hot.contains_key(&at) => {
                    hot.insert(at, read(Some(value))?);
                }
                Ok(at) if hot.contains_key(&at) => {
                    return Err(format!("{} shows {} twice", function.name(), key.escape_ascii()));
                }
                _ => return Err(format!("{} shows {}", function.name(), key.escape_ascii())),
            }
        }
        let answers: Vec<_> = (first..=last)
            .map(|at| Some(Outcome::Saw(hot.get(&at).copied().flatten())))
            .collect();
        self.answer(call, &operations, &answers);
        Ok(true)
    }

    fn load(&mut self) -> Result<bool, Wrong> {
        let keys = self.several();
        let operations: Vec<_> = keys
            .into_iter()
            .map(|at| (at, Operation::Upsert(self.new_value())))
            .collect();
        let Some(call) = self.ledger.ask(Function::Load, &operations) else {
            return Ok(false);
        };
        let entries = operations
            .iter()
            .map(|&(at, operation)| (&self.keys[at], bytes_of(written_value(operation))));
        self.map.load(entries).map_err(failed)?;
        self.answer(
            call,
            &operations,
            &vec![Some(Outcome::Did(true)); operations.len()],
        );
        Ok(true)
    }

    /// Commits a batch; one in three expects a value of its first key.
    fn batch(&mut self) -> Result<bool, Wrong> {
        let keys = self.several();
        let expects = self.random.one_in(3);
        let mut operations = Vec::new();
        for (i, &at) in keys.iter().enumerate() {
            let new = self.new_value();
            let removes = self.random.one_in(3);
            operations.push((
                at,
                match (expects && i == 0, removes) {
                    (true, true) if self.last[at].is_some() => Operation::CompareAndSwap(self.last[at], None),
                    (true, _) => Operation::CompareAndSwap(self.last[at], Some(new)),
                    (false, true) => Operation::Remove,
                    (false, false) => Operation::Upsert(new),
                },
            ));
        }
        let Some(call) = self.ledger.ask(Function::Batch, &operations) else {
            return Ok(false);
        };
        let mut batch = self.db.batch();
        for &(at, operation) in &operations {
            if let Operation::CompareAndSwap(expected, _) = operation {
                batch.expect(&self.map, &self.keys[at], expected.map(values::bytes));
            }
            match written_value(operation) {
                Some(new) => batch.upsert(&self.map, &self.keys[at], values::bytes(new)),
                None => batch.remove(&self.map, &self.keys[at]),
            };
        }
        let done = batch.commit().map_err(failed)?;
        let answers: Vec<_> = operations
            .iter()
            .map(|&(_, operation)| match (operation, done) {
                (Operation::CompareAndSwap(..), _) => Some(Outcome::Did(done)),
                (_, false) => None,
                (Operation::Remove, true) => Some(Outcome::Untold),
                (_, true) => Some(Outcome::Did(true)),
            })
            .collect();
        self.answer(call, &operations, &answers);
        Ok(true)
    }

    /// Runs a transaction that reads several keys and changes some of them.
    fn transaction(&mut self) -> Result<bool, Wrong> {
        let keys = self.several();
        let mut operations = Vec::new();
        for at in keys {
            let new = self.new_value();
            operations.push((
                at,
                match self.random.below(4) {
                    0 => Operation::Get,
                    1 => Operation::Take,
                    _ => Operation::Swap(new),
                },
            ));
        }
        let Some(call) = self.ledger.ask(Function::Transaction, &operations) else {
            return Ok(false);
        };
        let (map, keys) = (&self.map, self.keys);
        let done = self.db.transact(|tx| {
            let mut found = Vec::new();
            for &(at, operation) in &operations {
                found.push(tx.get(map, &keys[at])?);
                match operation {
                    Operation::Swap(new) => tx.upsert(map, &keys[at], values::bytes(new))?,
                    Operation::Take => _ = tx.remove(map, &keys[at])?,
                    _ => {}
                }
            }
            Ok::<_, Error>(found)
        });
        let answers = match done {
            // Every try met a conflict.
            Err(Error::Conflict { .. }) => vec![None; operations.len()],
            Err(error) => return Err(failed(error)),
            Ok(found) => {
                let answers = found
                    .iter()
                    .map(|found| Ok(Some(Outcome::Saw(read(found.as_deref())?))));
                answers.collect::<Result<_, Wrong>>()?
            }
        };
        self.answer(call, &operations, &answers);
        Ok(true)
    }

    /// Puts or removes a run of neighbours of a hot key. The judge ignores these keys.
    fn neighbours(&mut self) -> Result<bool, Wrong> {
        let at = self.random.index(self.keys.len());
        let (from, count) = (self.random.index(256), self.random.pick(&[1, 5, 20, 256]));
        let removes = self.random.one_in(2);
        // With immediate durability a run at level `disk` would wait for the disk hundreds of times.
        let map = self.map.with_durability(Durability::Eventual);
        for key in neighbours(&self.keys[at]).skip(from).take(count) {
            if removes {
                map.remove(key).map_err(failed)?;
            } else {
                map.upsert(key, "neighbour").map_err(failed)?;
            }
        }
        Ok(true)
    }

    /// Makes calls that leave the content alone but may move it or give space back.
    fn rare(&mut self) -> Result<bool, Wrong> {
        match self.random.below(4) {
            0 => _ = self.db.recover(),
            1 => _ = self.db.give_back().map_err(failed)?,
            2 if self.db.level() == Level::Disk => _ = self.db.request_checkpoint(),
            3 if self.db.level() == Level::Disk => {
                let full = self.random.one_in(2);
                self.db.checkpoint(full).map_err(failed)?;
            }
            _ => _ = self.db.stats().map_err(failed)?,
        }
        Ok(true)
    }

    /// Reads every key.
    pub fn read_all(&mut self) -> Result<(), Wrong> {
        for at in 0..self.keys.len() {
            self.single(at, Operation::Get)?;
        }
        Ok(())
    }
}
