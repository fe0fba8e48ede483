//! The server's items as a subject: memcached's and Redis's commands on two databases, in transactions and alone, with
//! flushes, lifetimes, uniques, counts and evictions.
//!
//! The subject drives the code below the protocols (`wollemi_server::stored`). As in the server, each operation first
//! carries out a due flush.
//!
//! I1 Time stands still: a lifetime ends as it begins, or after any run, or never; and a delayed flush is due at the
//!    next operation or never. So a due flush takes effect before every later operation.
//! I2 Uniques depend on the order of edits, which the specification does not know. It identifies an item by the
//!    operation that has stored it, and [`Live`] knows the unique of that operation.
//!
//! Not driven: the clock hand of a memory limit, which chooses by the requests since the server's start. Instead, an
//! operation evicts the item after a key, as the hand does in one step. Nor is `WATCH`, which keeps nothing in the
//! pool.
//!
//! This file has the operations; `specify` defines their effect, `live` carries them out (`turns`: the waits between
//! threads), `judge` judges the content after a crash, `draw` makes histories.

mod draw;
mod judge;
mod live;
mod specify;
mod turns;

pub use crate::batches::Life;
use crashkit::{Crash, Forgiven, Random, Subject, Verdict};
pub use draw::history;
pub use live::Live;
use pmem::Pool;
use server::stored::{Failure, Outcome};
pub use specify::State;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// A database's number and a key.
pub type Place = (u8, Vec<u8>);

/// An item as clients see it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Shown {
    /// The client's own.
    pub flags: u32,
    /// What was stored.
    pub data: Vec<u8>,
    /// How long it lives.
    pub life: Life,
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let data = crate::map::shown(&self.data);
        write!(f, "{data} ({:?}, flags {:x})", self.life, self.flags)
    }
}

/// What names an operation that a unique comes from. No two operations of a history have the same.
pub type Token = u64;

/// When an item is stored that looks at what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Only where there is none.
    Add,
    /// Only where there is one.
    Replace,
    /// The bytes go behind those that are there.
    Append,
    /// The bytes go before those that are there.
    Prepend,
    /// Only where the unique is still the one that the operation of this token gave or read.
    Swap(Token),
}

/// An operation of the server.
#[derive(Clone, Debug)]
pub enum Op {
    /// Store an item whatever is there.
    Set(Place, Shown, Token),
    /// The same, in one call with those that follow it in the same database.
    Put(Place, Shown, Token),
    /// Store an item if what is there allows it.
    Store(How, Place, Shown, Token),
    /// Add to a number, or take from it.
    Count(Place, u64, bool, Token),
    /// Give an item another life.
    Touch(Place, Life),
    /// The same, and read it.
    GetAndTouch(Place, Life),
    /// Remove an item.
    Delete(Place),
    /// Read an item; its unique is remembered under the token.
    Read(Place, Token),
    /// A transaction of these, which is committed or given up.
    Transaction(Vec<Op>, bool),
    /// Drop all items of a database.
    Flush(u8),
    /// Drop them later: at a moment that is past when the next operation begins, or never.
    FlushLater(u8, bool),
    /// Remove the dead items of a database.
    Sweep(u8),
    /// Remove an item if it is dead.
    Bury(Place),
    /// Remove the item that is next behind a key.
    Evict(Place),
    /// Tell how many items a database has.
    Tell(u8),
    /// Go on counting the items of a database.
    CountOn(u8),
    /// Pass over uniques until hardly any is left, and have the next ones reserved.
    Spend(u8),
    /// Recover, or wait until another thread has.
    Recover,
}

/// What an operation answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It is done.
    Done,
    /// What came of it.
    Outcome(Outcome),
    /// What was read.
    Item(Option<Shown>),
    /// A number of items.
    Items(u64),
    /// The answers of a transaction's operations.
    Each(Vec<Answer>),
    /// The pool is full; nothing was changed.
    Full,
    /// The unique to compare was never seen since the server started; nothing was changed.
    Unseen,
}

impl Op {
    /// What it is called.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Set(..) => "set",
            Op::Put(..) => "put",
            Op::Store(How::Add, ..) => "add",
            Op::Store(How::Replace, ..) => "replace",
            Op::Store(How::Append, ..) => "append",
            Op::Store(How::Prepend, ..) => "prepend",
            Op::Store(How::Swap(_), ..) => "compare and swap",
            Op::Count(..) => "count",
            Op::Touch(..) => "touch",
            Op::GetAndTouch(..) => "get and touch",
            Op::Delete(_) => "delete",
            Op::Read(..) => "get",
            Op::Transaction(_, true) => "transaction",
            Op::Transaction(_, false) => "transaction given up",
            Op::Flush(_) => "flush",
            Op::FlushLater(_, true) => "flush soon",
            Op::FlushLater(_, false) => "flush never",
            Op::Sweep(_) => "sweep",
            Op::Bury(_) => "bury",
            Op::Evict(_) => "evict",
            Op::Tell(_) => "tell the number",
            Op::CountOn(_) => "count on",
            Op::Spend(_) => "spend uniques",
            Op::Recover => "recover",
        }
    }

    /// The key that it is about.
    fn place(&self) -> Option<&Place> {
        match self {
            Op::Set(place, ..)
            | Op::Put(place, ..)
            | Op::Store(_, place, ..)
            | Op::Count(place, ..)
            | Op::Touch(place, _)
            | Op::GetAndTouch(place, _)
            | Op::Delete(place)
            | Op::Read(place, _)
            | Op::Bury(place)
            | Op::Evict(place) => Some(place),
            _ => None,
        }
    }

    /// The database that it is about; a transaction is about both.
    fn database(&self) -> Option<u8> {
        match self {
            Op::Flush(database)
            | Op::FlushLater(database, _)
            | Op::Sweep(database)
            | Op::Tell(database)
            | Op::CountOn(database)
            | Op::Spend(database) => Some(*database),
            other => other.place().map(|(database, _)| *database),
        }
    }
}

/// The server's items.
#[derive(Debug, Default)]
pub struct Items {
    /// The names of the operations that were in flight at crashes that were judged.
    in_flight: Mutex<BTreeSet<&'static str>>,
}

impl Items {
    /// Whether the items claim the model `word`: they are in a ROART, which does not.
    pub const CLAIMS_WORD: bool = false;

    /// The names of the operations that were in flight at crashes that were judged.
    pub fn in_flight(&self) -> BTreeSet<&'static str> {
        // Each change is one insert.
        let names = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        names.clone()
    }

    fn note(&self, ops: &[&Op]) {
        let mut names = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        names.extend(ops.iter().map(|op| op.name()));
    }
}

impl Subject for Items {
    type Op = Op;
    type Answer = Answer;
    type State = State;
    type Live = Live;

    fn name(&self) -> String {
        "items".into()
    }

    fn forgiven(&self) -> &'static [Forgiven] {
        crate::forgiven::TABLE
    }

    fn create(&self, pool: Pool<Crash>) -> Result<Live, String> {
        Live::create(pool)
    }

    fn open(&self, pool: Pool<Crash>) -> Result<Option<Live>, String> {
        Live::open(pool)
    }

    fn recover(&self, live: &Live) -> Result<(), String> {
        live.recover()
    }

    fn apply(&self, live: &Live, op: &Op) -> Result<Answer, String> {
        live.unless_full(live.apply(op))
    }

    fn is_refusal(&self, answer: &Answer) -> bool {
        matches!(answer, Answer::Full | Answer::Unseen)
    }

    fn goes_with(&self, ops: &[&Op], next: &Op) -> bool {
        let is_put = |op: &Op| matches!(op, Op::Put(..)) && op.database() == next.database();
        is_put(next) && ops.iter().all(|op| is_put(op))
    }

    fn keeps_order(&self, before: &Op, next: &Op) -> bool {
        matches!((before, next), (Op::Put(one, ..), Op::Put(other, ..)) if one == other)
    }

    fn apply_together(&self, live: &Live, ops: &[&Op]) -> Result<Vec<Answer>, String> {
        let each = match live.put_many(ops) {
            Ok(each) => each,
            // None of them was begun.
            Err(failure) => return Ok(vec![live.unless_full(Err(failure))?; ops.len()]),
        };
        each.into_iter().map(|done| live.unless_full(done)).collect()
    }

    fn check_end(&self, live: &Live) -> Result<(), String> {
        live.check()
    }

    fn specify(&self, state: &mut State, op: &Op) -> Answer {
        state.specify(op)
    }

    fn judge(&self, live: &Live, verdict: Verdict<'_, Self>) -> Result<usize, String> {
        self.note(verdict.in_flight);
        judge::judge(self, live, verdict)
    }

    fn follow_up(&self, _: &State, in_flight: &[&Op], random: &mut Random) -> Vec<Op> {
        draw::follow_up(in_flight, random)
    }
}

/// Whether the pool was full.
fn is_full(failure: &Failure) -> bool {
    matches!(
        failure,
        Failure::Index(index::Error::Heap(heap::Error::Full { .. }))
    )
}
