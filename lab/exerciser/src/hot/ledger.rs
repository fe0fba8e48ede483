//! The ledger of a thread: a record of each operation on each key, written before the call and completed after it.
//!
//! A record is a line of eight words in a mapped file, so it outlives `kill -9`:
//!
//! | word | |
//! |---|---|
//! | 0 | when it was asked, on the clock that all threads share; stored last of 0 to 3, zero until then |
//! | 1 | `call:32`, flags (bit 17: a new value, bit 16: an expected one), `operation:4`, `how:4`, `key:8` |
//! | 2, 3 | the new value, the expected one |
//! | 4 | when it was answered; stored last of 4 to 6, zero until then |
//! | 5, 6 | the answer, and the value in it |
//!
//! A call on several keys has a record for each, with the same number: all of them are there before it begins.

use super::mapped::Mapped;
use index::conformance::{Event, Operation, Outcome};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Release, Ordering::SeqCst};

/// Words of a record.
const RECORD: usize = 8;

/// Records of a thread in one generation at most.
const RECORDS: usize = 1 << 15;

/// The clock's bits below the generation.
const CLOCK: u32 = 40;

/// The function by which an operation was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum How {
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

impl How {
    const ALL: [How; 14] = [
        How::Get,
        How::Borrowed,
        How::MultiGet,
        How::Range,
        How::Visit,
        How::Insert,
        How::Upsert,
        How::Update,
        How::Remove,
        How::CompareAndSwap,
        How::Edit,
        How::Load,
        How::Batch,
        How::Transaction,
    ];

    pub fn name(self) -> &'static str {
        match self {
            How::Get => "Map::get",
            How::Borrowed => "Reader::get",
            How::MultiGet => "Map::multi_get",
            How::Range => "Map::range",
            How::Visit => "Reader::visit",
            How::Insert => "Map::insert",
            How::Upsert => "Map::upsert",
            How::Update => "Map::update",
            How::Remove => "Map::remove",
            How::CompareAndSwap => "Map::compare_and_swap",
            How::Edit => "Map::edit",
            How::Load => "Map::load",
            How::Batch => "Batch::commit",
            How::Transaction => "Db::transact",
        }
    }

    /// Whether its changes happen all or none, whatever crash comes.
    pub fn is_atomic(self) -> bool {
        matches!(self, How::Batch | How::Transaction)
    }
}

/// The first moment of a generation: later than all of the one before, which ends there.
pub(super) fn dawn(generation: u64) -> u64 {
    (generation + 1) << CLOCK
}

/// The generation of a moment, and how often the clock had been read in it.
pub(super) fn of_clock(moment: u64) -> (u64, u64) {
    ((moment >> CLOCK) - 1, moment & ((1 << CLOCK) - 1))
}

pub(super) fn path(directory: &Path, generation: u64, thread: usize) -> PathBuf {
    directory.join(format!("hot.{generation}.{thread}"))
}

/// Where a record begins in the file.
pub(super) fn place(record: u64) -> u64 {
    record * (RECORD * size_of::<u64>()) as u64
}

/// Looks at what a thread of another process writes.
pub(super) struct Watcher {
    file: File,
    record: u64,
}

impl Watcher {
    pub fn open(path: &Path) -> io::Result<Watcher> {
        let file = File::open(path)?;
        Ok(Watcher { file, record: 0 })
    }

    /// Whether a batch or a transaction has been asked and not been answered yet.
    pub fn is_amid_commit(&mut self) -> io::Result<bool> {
        loop {
            let mut bytes = [0; RECORD * size_of::<u64>()];
            self.file.read_exact_at(&mut bytes, place(self.record))?;
            let (words, _) = bytes.as_chunks::<8>();
            let word = |at: usize| u64::from_le_bytes(words[at]);
            if word(0) == 0 || word(4) == 0 {
                let how = How::ALL.get((word(1) >> 8 & 0xf) as usize);
                return Ok(word(0) != 0 && how.is_some_and(|how| how.is_atomic()));
            }
            self.record += 1;
        }
    }
}

/// A call whose answer is not noted yet: its records.
pub(super) struct Call(std::ops::Range<usize>);

/// Where a thread writes.
pub(super) struct Ledger<'c> {
    words: Mapped,
    clock: &'c AtomicU64,
    records: usize,
    calls: u64,
}

impl<'c> Ledger<'c> {
    /// `clock` begins behind the generation's [`dawn`].
    pub fn create(path: &Path, clock: &'c AtomicU64) -> io::Result<Ledger<'c>> {
        Ok(Ledger {
            words: Mapped::create(path, RECORDS * RECORD)?,
            clock,
            records: 0,
            calls: 0,
        })
    }

    /// Notes a call before it is made; `None` if there is no room for it.
    pub fn ask(&mut self, how: How, operations: &[(usize, Operation)]) -> Option<Call> {
        let records = self.records..self.records + operations.len();
        if records.end > RECORDS {
            return None;
        }
        let line = |at: usize| &self.words[at * RECORD..];
        for (at, &(key, operation)) in records.clone().zip(operations) {
            let (number, new, expected) = encode(operation);
            let flags = u64::from(new.is_some()) << 17 | u64::from(expected.is_some()) << 16;
            let what = self.calls << 32 | flags | number << 12 | (how as u64) << 8 | key as u64;
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

    /// Notes the answers, in the order of the operations; `None`: it has done nothing and told nothing.
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

/// An operation's number, its new value, and what it expects.
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

/// A record as it was read: one operation on one key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub generation: u64,
    pub thread: usize,
    /// The number of the call in its thread and generation.
    pub call: u64,
    pub how: How,
    pub key: usize,
    pub event: Event,
}

impl Seen {
    pub fn is_pending(&self) -> bool {
        self.event.outcome == Outcome::Pending
    }
}

/// What a thread has written in a generation, in order, without what did nothing and told nothing. Nothing, where the
/// process was killed before it began. A call of which some answers are noted and others are not has returned: it did
/// something wherever that is not told.
pub(super) fn read(directory: &Path, generation: u64, thread: usize) -> io::Result<Vec<Seen>> {
    let bytes = match std::fs::read(path(directory, generation, thread)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let (words, _) = bytes.as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let records = words.chunks_exact(RECORD).take_while(|record| record[0] != 0);
    let seen = records.map(|record| -> Option<Option<Seen>> {
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
        Some(Some(Seen {
            generation,
            thread,
            call: what >> 32,
            how: *How::ALL.get((what >> 8 & 0xf) as usize)?,
            key: (what & 0xff) as usize,
            event: Event {
                operation: decode(what >> 12 & 0xf, new, expected)?,
                outcome,
                start,
                end: if end == 0 { dawn(generation + 1) } else { end },
            },
        }))
    });
    let seen: Option<Vec<Option<Seen>>> = seen.collect();
    let seen = seen.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not a ledger of hot keys"))?;
    let mut seen: Vec<Seen> = seen.into_iter().flatten().collect();
    for call in seen.chunk_by_mut(|a, b| a.call == b.call) {
        if call
            .iter()
            .any(|seen| !seen.is_pending() && seen.event.operation != Operation::Get)
        {
            let untold = call.iter_mut().filter(|seen| seen.is_pending());
            untold.for_each(|seen| seen.event.outcome = Outcome::Untold);
        }
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Operation::*;
    use Outcome::*;

    /// What was written is read: operations, answers, and which were in flight.
    #[test]
    fn a_ledger_is_read_as_it_was_written() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let clock = AtomicU64::new(dawn(3) + 1);
        let written = [
            (How::Get, vec![(0, Get)], vec![Some(Saw(Some(7)))]),
            (How::Insert, vec![(1, Insert(8))], vec![Some(Did(true))]),
            (
                How::Batch,
                vec![(2, Upsert(9)), (3, Remove)],
                vec![Some(Did(true)), Some(Untold)],
            ),
            (How::Transaction, vec![(4, Swap(10)), (5, Take)], vec![None, None]),
            (
                How::CompareAndSwap,
                vec![(6, CompareAndSwap(None, Some(11)))],
                vec![Some(Did(false))],
            ),
            (How::Edit, vec![(15, Update(12))], vec![]),
        ];
        let mut ledger = Ledger::create(&path(directory.path(), 3, 2), &clock)?;
        for (how, operations, answers) in &written {
            let call = ledger.ask(*how, operations).expect("room");
            ledger.answer(call, answers.iter().copied());
        }
        drop(ledger);
        let read = read(directory.path(), 3, 2)?;
        let mut read = read.iter();
        for (call, (how, operations, answers)) in written.iter().enumerate() {
            for (i, &(key, operation)) in operations.iter().enumerate() {
                let answer = answers.get(i).copied().unwrap_or(Some(Pending));
                let Some(answer) = answer else { continue };
                let seen = read.next().expect("a record");
                assert_eq!(
                    (seen.generation, seen.thread, seen.call, seen.how, seen.key),
                    (3, 2, call as u64, *how, key)
                );
                assert_eq!((seen.event.operation, seen.event.outcome), (operation, answer));
                assert!(seen.event.start < seen.event.end && seen.event.end <= dawn(4));
            }
        }
        assert!(read.next().is_none());
        Ok(())
    }

    /// A ledger that is full takes no more calls.
    #[test]
    fn a_full_ledger_takes_no_more() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let clock = AtomicU64::new(dawn(0) + 1);
        let mut ledger = Ledger::create(&path(directory.path(), 0, 0), &clock)?;
        let mut calls = 0;
        while let Some(call) = ledger.ask(How::MultiGet, &[(0, Get); 7]) {
            ledger.answer(call, [Some(Saw(None)); 7]);
            calls += 1;
        }
        assert_eq!(calls, RECORDS / 7);
        Ok(())
    }
}
