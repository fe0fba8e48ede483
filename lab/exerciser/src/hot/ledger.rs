//! The ledger of a thread: a record of each operation on each key, written before the call and completed after it.
//!
//! A record is a line of eight words in a mapped file, so it outlives `kill -9`:
//!
//! | word | |
//! |---|---|
//! | 0 | the time of the request, on the clock that all threads share; stored last of 0 to 3, zero until then |
//! | 1 | `call:32`, flags (bit 17: a new value, bit 16: an expected one), `operation:4`, `function:4`, `key:8` |
//! | 2, 3 | the new value, the expected one |
//! | 4 | the time of the answer; stored last of 4 to 6, zero until then |
//! | 5, 6 | the kind of answer, and its value |
//!
//! A call on several keys has a record for each of them, all with the number of the call and written before it begins.

use super::mapped::Mapped;
use index::conformance::{HistoryEvent, Operation, Outcome};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Release, Ordering::SeqCst};

/// Length of a record in words.
const RECORD: usize = 8;

/// Maximum number of records of a thread in one generation.
const RECORDS: usize = 1 << 15;

/// The number of clock bits below the generation.
const CLOCK: u32 = 40;

/// The function by which an operation was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Function {
    Get,
    Borrowed,
    MultiGet,
    Range,
    Visit,
    Insert,
    Upsert,
    Update,
    Remove,
    CompareAndSwap,
    Edit,
    Load,
    Batch,
    Transaction,
}

impl Function {
    const ALL: [Function; 14] = [
        Function::Get,
        Function::Borrowed,
        Function::MultiGet,
        Function::Range,
        Function::Visit,
        Function::Insert,
        Function::Upsert,
        Function::Update,
        Function::Remove,
        Function::CompareAndSwap,
        Function::Edit,
        Function::Load,
        Function::Batch,
        Function::Transaction,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Function::Get => "Map::get",
            Function::Borrowed => "Reader::get",
            Function::MultiGet => "Map::multi_get",
            Function::Range => "Map::range",
            Function::Visit => "Reader::visit",
            Function::Insert => "Map::insert",
            Function::Upsert => "Map::upsert",
            Function::Update => "Map::update",
            Function::Remove => "Map::remove",
            Function::CompareAndSwap => "Map::compare_and_swap",
            Function::Edit => "Map::edit",
            Function::Load => "Map::load",
            Function::Batch => "Batch::commit",
            Function::Transaction => "Db::transact",
        }
    }

    /// Returns whether all of its changes happen or none, whenever a crash comes.
    pub fn is_atomic(self) -> bool {
        matches!(self, Function::Batch | Function::Transaction)
    }
}

/// Returns the first moment of a generation, which is later than all moments of the one before.
pub(super) fn first_moment(generation: u64) -> u64 {
    (generation + 1) << CLOCK
}

/// Splits a moment into its generation and the clock's count within it.
pub(super) fn split_moment(moment: u64) -> (u64, u64) {
    ((moment >> CLOCK) - 1, moment & ((1 << CLOCK) - 1))
}

pub(super) fn path(directory: &Path, generation: u64, thread: usize) -> PathBuf {
    directory.join(format!("hot.{generation}.{thread}"))
}

/// Returns the offset of a record in the file, in bytes.
pub(super) fn place(record: u64) -> u64 {
    record * (RECORD * size_of::<u64>()) as u64
}

/// Reads the ledger that a thread of another process is writing.
pub(super) struct Watcher {
    file: File,
    record: u64,
}

impl Watcher {
    pub fn open(path: &Path) -> io::Result<Watcher> {
        let file = File::open(path)?;
        Ok(Watcher { file, record: 0 })
    }

    /// Returns whether a batch or a transaction is recorded and not answered yet.
    pub fn is_amid_commit(&mut self) -> io::Result<bool> {
        loop {
            let mut bytes = [0; RECORD * size_of::<u64>()];
            self.file.read_exact_at(&mut bytes, place(self.record))?;
            let (words, _) = bytes.as_chunks::<8>();
            let word = |at: usize| u64::from_le_bytes(words[at]);
            if word(0) == 0 || word(4) == 0 {
                let function = Function::ALL.get((word(1) >> 8 & 0xf) as usize);
                return Ok(word(0) != 0 && function.is_some_and(|function| function.is_atomic()));
            }
            self.record += 1;
        }
    }
}

/// The records of a call whose answer is not recorded yet.
pub(super) struct Call(std::ops::Range<usize>);

/// The ledger that a thread writes.
pub(super) struct Ledger<'c> {
    words: Mapped,
    clock: &'c AtomicU64,
    records: usize,
    calls: u64,
}

impl<'c> Ledger<'c> {
    /// Creates the file. `clock` begins after the generation's [`first_moment`].
    pub fn create(path: &Path, clock: &'c AtomicU64) -> io::Result<Ledger<'c>> {
        Ok(Ledger {
            words: Mapped::create(path, RECORDS * RECORD)?,
            clock,
            records: 0,
            calls: 0,
        })
    }

    /// Records a call before it is made; returns `None` if the ledger is full.
    pub fn ask(&mut self, function: Function, operations: &[(usize, Operation)]) -> Option<Call> {
        let records = self.records..self.records + operations.len();
        if records.end > RECORDS {
            return None;
        }
        let line = |at: usize| &self.words[at * RECORD..];
        for (at, &(key, operation)) in records.clone().zip(operations) {
            let (number, new, expected) = encode(operation);
            let flags = u64::from(new.is_some()) << 17 | u64::from(expected.is_some()) << 16;
            let what = self.calls << 32 | flags | number << 12 | (function as u64) << 8 | key as u64;
            line(at)[1].store(what, Release);
            line(at)[2].store(new.unwrap_or(0), Release);
            line(at)[3].store(expected.unwrap_or(0), Release);
        }
        let start = self.clock.fetch_add(1, SeqCst);
        for at in records.clone() {
            line(at)[0].store(start, Release);
        }
        self.records = records.end;
        self.calls += 1;
        Some(Call(records))
    }

    /// Records the answers, in the order of the operations. `None` marks an operation without effect and result.
    pub fn answer(&mut self, call: Call, answers: impl IntoIterator<Item = Option<Outcome>>) {
        let end = self.clock.fetch_add(1, SeqCst);
        for (at, answer) in call.0.zip(answers) {
            let line = &self.words[at * RECORD..];
            let (number, value) = match answer {
                None => (0, 0),
                Some(Outcome::Did(did)) => (1, u64::from(did)),
                Some(Outcome::Saw(None)) => (2, 0),
                Some(Outcome::Saw(Some(value))) => (3, value),
                Some(Outcome::Untold | Outcome::Pending) => (4, 0),
            };
            line[5].store(number, Release);
            line[6].store(value, Release);
            line[4].store(end, Release);
        }
    }
}

/// Returns an operation's number, its new value, and the value that it expects.
fn encode(operation: Operation) -> (u64, Option<u64>, Option<u64>) {
    match operation {
        Operation::Get => (0, None, None),
        Operation::Insert(new) => (1, Some(new), None),
        Operation::Upsert(new) => (2, Some(new), None),
        Operation::Update(new) => (3, Some(new), None),
        Operation::Swap(new) => (4, Some(new), None),
        Operation::Remove => (5, None, None),
        Operation::Take => (6, None, None),
        Operation::CompareAndSwap(expected, new) => (7, new, expected),
    }
}

fn decode(number: u64, new: Option<u64>, expected: Option<u64>) -> Option<Operation> {
    Some(match (number, new) {
        (0, _) => Operation::Get,
        (1, Some(new)) => Operation::Insert(new),
        (2, Some(new)) => Operation::Upsert(new),
        (3, Some(new)) => Operation::Update(new),
        (4, Some(new)) => Operation::Swap(new),
        (5, _) => Operation::Remove,
        (6, _) => Operation::Take,
        (7, new) => Operation::CompareAndSwap(expected, new),
        _ => return None,
    })
}

/// A record that was read: one operation on one key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub generation: u64,
    pub thread: usize,
    /// The number of the call in its thread and generation.
    pub call: u64,
    pub function: Function,
    pub key: usize,
    pub event: HistoryEvent,
}

impl Record {
    pub fn is_pending(&self) -> bool {
        self.event.outcome == Outcome::Pending
    }
}

/// Reads the records of a thread in a generation, in order, without operations that had no effect and no result. There
/// are none if the process was killed before it created the file. If the recorded answer to one of a call's operations
/// says that it has changed something, the call has returned and has changed all of its keys: its changes without a
/// recorded answer count as carried out, with unknown results.
pub(super) fn read(directory: &Path, generation: u64, thread: usize) -> io::Result<Vec<Record>> {
    let bytes = match std::fs::read(path(directory, generation, thread)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let (words, _) = bytes.as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let records = words.chunks_exact(RECORD).take_while(|record| record[0] != 0);
    let read = records.map(|record| -> Option<Option<Record>> {
        let [start, what, new, expected, end, answer, value, _] = *record else {
            return None;
        };
        let (new, expected) = (
            (what >> 17 & 1 == 1).then_some(new),
            (what >> 16 & 1 == 1).then_some(expected),
        );
        let outcome = match (end, answer) {
            (0, _) => Outcome::Pending,
            (_, 0) => return Some(None),
            (_, 1) => Outcome::Did(value == 1),
            (_, 2) => Outcome::Saw(None),
            (_, 3) => Outcome::Saw(Some(value)),
            (_, 4) => Outcome::Untold,
            _ => return None,
        };
        Some(Some(Record {
            generation,
            thread,
            call: what >> 32,
            function: *Function::ALL.get((what >> 8 & 0xf) as usize)?,
            key: (what & 0xff) as usize,
            event: HistoryEvent {
                operation: decode(what >> 12 & 0xf, new, expected)?,
                outcome,
                start,
                end: if end == 0 {
                    first_moment(generation + 1)
                } else {
                    end
                },
            },
        }))
    });
    let read: Option<Vec<Option<Record>>> = read.collect();
    let read = read.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not a ledger of hot keys"))?;
    let mut read: Vec<Record> = read.into_iter().flatten().collect();
    for call in read.chunk_by_mut(|a, b| a.call == b.call) {
        let has_changed = |record: &Record| {
            let HistoryEvent {
                operation, outcome, ..
            } = record.event;
            operation != Operation::Get && !matches!(outcome, Outcome::Pending | Outcome::Did(false))
        };
        if call.iter().any(has_changed) {
            let untold = call.iter_mut().filter(|record| record.is_pending());
            untold.for_each(|record| record.event.outcome = Outcome::Untold);
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Operation::*;
    use Outcome::*;

    /// Reading returns the operations and answers written, and those in flight as pending.
    #[test]
    fn a_ledger_is_read_as_it_was_written() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let clock = AtomicU64::new(first_moment(3) + 1);
        let written = [
            (Function::Get, vec![(0, Get)], vec![Some(Saw(Some(7)))]),
            (Function::Insert, vec![(1, Insert(8))], vec![Some(Did(true))]),
            (
                Function::Batch,
                vec![(2, Upsert(9)), (3, Remove)],
                vec![Some(Did(true)), Some(Untold)],
            ),
            (
                Function::Transaction,
                vec![(4, Swap(10)), (5, Take)],
                vec![None, None],
            ),
            (
                Function::CompareAndSwap,
                vec![(6, CompareAndSwap(None, Some(11)))],
                vec![Some(Did(false))],
            ),
            (Function::Edit, vec![(15, Update(12))], vec![]),
        ];
        let mut ledger = Ledger::create(&path(directory.path(), 3, 2), &clock)?;
        for (function, operations, answers) in &written {
            let call = ledger.ask(*function, operations).expect("room");
            ledger.answer(call, answers.iter().copied());
        }
        drop(ledger);
        let read = read(directory.path(), 3, 2)?;
        let mut read = read.iter();
        for (call, (function, operations, answers)) in written.iter().enumerate() {
            for (i, &(key, operation)) in operations.iter().enumerate() {
                let answer = answers.get(i).copied().unwrap_or(Some(Pending));
                let Some(answer) = answer else { continue };
                let record = read.next().expect("a record");
                assert_eq!(
                    (
                        record.generation,
                        record.thread,
                        record.call,
                        record.function,
                        record.key
                    ),
                    (3, 2, call as u64, *function, key)
                );
                assert_eq!(
                    (record.event.operation, record.event.outcome),
                    (operation, answer)
                );
                assert!(record.event.start < record.event.end && record.event.end <= first_moment(4));
            }
        }
        assert!(read.next().is_none());
        Ok(())
    }

    /// If only the first answers of a call were recorded, its other operations count as carried out if the first has
    /// changed something, and as pending if it has not: a batch whose expectation fails changes nothing.
    #[test]
    fn a_half_recorded_call_is_told_by_its_first_answer() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let clock = AtomicU64::new(first_moment(0) + 1);
        let mut ledger = Ledger::create(&path(directory.path(), 0, 0), &clock)?;
        let operations = [(0, CompareAndSwap(Some(1), Some(2))), (1, Upsert(3))];
        for did in [true, false] {
            let call = ledger.ask(Function::Batch, &operations).expect("room");
            ledger.answer(call, [Some(Did(did))]);
        }
        drop(ledger);
        let outcomes: Vec<_> = read(directory.path(), 0, 0)?
            .iter()
            .map(|record| record.event.outcome)
            .collect();
        assert_eq!(outcomes, [Did(true), Untold, Did(false), Pending]);
        Ok(())
    }

    /// A full ledger rejects further calls.
    #[test]
    fn a_full_ledger_takes_no_more() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let clock = AtomicU64::new(first_moment(0) + 1);
        let mut ledger = Ledger::create(&path(directory.path(), 0, 0), &clock)?;
        let mut calls = 0;
        while let Some(call) = ledger.ask(Function::MultiGet, &[(0, Get); 7]) {
            ledger.answer(call, [Some(Saw(None)); 7]);
            calls += 1;
        }
        assert_eq!(calls, RECORDS / 7);
        Ok(())
    }
}
