//! The server's items as a subject: memcached's and Redis's commands on two databases, in transactions and alone, with
//! flushes, lifetimes, uniques, counts and evictions.
//!
//! The subject drives the code below the protocols (`wollemi_server::stored`). As in the server, each operation first
//! executes a due flush.
//!
//! I1 The time is constant: a lifetime ends at once, after any run, or never; a delayed flush is due at the next
//!    operation, or never. So a due flush takes effect before every later operation.
//! I2 Uniques depend on the order of edits, which the specification does not know. It identifies an item by the
//!    operation that stored it, and [`Live`] knows the unique of that operation.
//!
//! Not driven: the clock hand of a memory limit, which chooses by the requests since the server's start. Instead, an
//! operation evicts the item after a key, as the hand does in one step. `WATCH` is not driven either: it keeps nothing
//! in the pool.
//!
//! This file has the operations; `specify` defines their effect, `live` executes them (`turns`: the waits between
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
    /// The client's flags.
    pub flags: u32,
    /// The data stored.
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

/// Identifies the operation that gave or read a unique. It is unique within a history.
pub type Token = u64;

/// How a conditional store depends on the present item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Stores only if the key has no item.
    Add,
    /// Stores only if the key has an item.
    Replace,
    /// Appends the data to that of the present item.
    Append,
    /// Prepends the data to that of the present item.
    Prepend,
    /// Stores only if the item still has the unique that the operation of this token gave or read.
    Swap(Token),
}

/// An operation of the server.
#[derive(Clone, Debug)]
pub enum Op {
    /// Store an item unconditionally.
    Set(Place, Shown, Token),
    /// Store an item, in one call with the puts that follow in the same database.
    Put(Place, Shown, Token),
    /// Store an item conditionally.
    Store(Condition, Place, Shown, Token),
    /// Increment a number (`true`) or decrement it.
    Count(Place, u64, bool, Token),
    /// Change the lifetime of an item.
    Touch(Place, Life),
    /// Change the lifetime of an item, and read it.
    GetAndTouch(Place, Life),
    /// Remove an item.
    Delete(Place),
    /// Read an item, and remember its unique under the token.
    Read(Place, Token),
    /// Run these operations in a transaction, and commit it (`true`) or discard it.
    Transaction(Vec<Op>, bool),
    /// Flush a database: drop all its items.
    Flush(u8),
    /// Schedule a flush: it is due when the next operation begins (`true`), or never.
    FlushLater(u8, bool),
    /// Remove the dead items of a database.
    Sweep(u8),
    /// Remove an item if it is dead.
    Bury(Place),
    /// Evict the item after a key.
    Evict(Place),
    /// Report the number of items of a database.
    ItemCount(u8),
    /// Continue the count of the items of a database by one step.
    CountOn(u8),
    /// Skip almost all reserved uniques, and reserve the next ones.
    Spend(u8),
    /// Recover, or wait until another thread has.
    Recover,
}

/// The answer to an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The operation took effect.
    Done,
    /// The outcome of a command.
    Outcome(Outcome),
    /// The item read.
    Item(Option<Shown>),
    /// A number of items.
    Items(u64),
    /// The answers to a transaction's operations.
    Each(Vec<Answer>),
    /// The pool is full; nothing changed.
    Full,
    /// The server has not seen the unique to compare since it started; nothing changed.
    Unseen,
}

impl Op {
    /// Returns the name of the kind of operation.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Set(..) => "set",
            Op::Put(..) => "put",
            Op::Store(Condition::Add, ..) => "add",
            Op::Store(Condition::Replace, ..) => "replace",
            Op::Store(Condition::Append, ..) => "append",
            Op::Store(Condition::Prepend, ..) => "prepend",
            Op::Store(Condition::Swap(_), ..) => "compare and swap",
            Op::Count(..) => "count",
            Op::Touch(..) => "touch",
            Op::GetAndTouch(..) => "get and touch",
            Op::Delete(_) => "delete",
            Op::Read(..) => "get",
            Op::Transaction(_, true) => "transaction",
            Op::Transaction(_, false) => "transaction discarded",
            Op::Flush(_) => "flush",
            Op::FlushLater(_, true) => "flush soon",
            Op::FlushLater(_, false) => "flush never",
            Op::Sweep(_) => "sweep",
            Op::Bury(_) => "bury",
            Op::Evict(_) => "evict",
            Op::ItemCount(_) => "item count",
            Op::CountOn(_) => "count on",
            Op::Spend(_) => "spend uniques",
            Op::Recover => "recover",
        }
    }

    /// Returns the key that it names.
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

    /// Returns the only database that it concerns; `None` for a transaction, which may concern both, and for a
    /// recovery.
    fn database(&self) -> Option<u8> {
        match self {
            Op::Flush(database)
            | Op::FlushLater(database, _)
            | Op::Sweep(database)
            | Op::ItemCount(database)
            | Op::CountOn(database)
            | Op::Spend(database) => Some(*database),
            other => other.place().map(|(database, _)| *database),
        }
    }
}

/// The server's items.
#[derive(Debug, Default)]
pub struct Items {
    /// The names of the operations that were in flight at judged crashes.
    in_flight: Mutex<BTreeSet<&'static str>>,
}

impl Items {
    /// Whether the items claim the model `word`. They do not, since their index, ROART, does not.
    pub const CLAIMS_WORD: bool = false;

    /// Returns the names of the operations that were in flight at judged crashes.
    pub fn in_flight(&self) -> BTreeSet<&'static str> {
        // A panic cannot leave the set inconsistent, so poison is ignored.
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
            // The failure came before the first put.
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

/// Returns whether the pool was full.
fn is_full(failure: &Failure) -> bool {
    matches!(
        failure,
        Failure::Index(index::Error::Heap(heap::Error::Full { .. }))
    )
}
