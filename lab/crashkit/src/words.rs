//! Any map from words to words as a subject: one trait, and a few lines that make its tests.
//!
//! It serves indexes that are being converted from DRAM to persistent memory. Its model is a `BTreeMap`. `judge` has
//! the reads and writes of the judge.

mod judge;
mod tests;

use crate::choose::Random;
use crate::on_heap::{audit, check_accounts, heap, recover};
use crate::{Crash, Depth, Forgiven, Lacks, Subject, Verdict};
use heap::{Heap, Tracers};
use pmem::Pool;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
#[doc(hidden)]
pub use tests::{agrees_with_a_model, misses_each_persist, survives_crashes, survives_races};

/// What a call of a [`WordMap`] returns: any error fails the history.
pub type Done<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// A map from words to words on a heap. What a call has answered is durable.
pub trait WordMap: Sized + Send + Sync + 'static {
    /// Makes an empty map under the root `name`.
    fn create(heap: &Heap<Crash>, name: &[u8]) -> Done<Self>;

    /// Finds it again; `None` if there is no such root.
    fn open(heap: &Heap<Crash>, name: &[u8]) -> Done<Option<Self>>;

    /// The tracer: tells the heap which objects are alive.
    fn tracers() -> Tracers<Crash>;

    /// The key's value.
    fn get(&self, key: u64) -> Done<Option<u64>>;

    /// Gives the key this value, whether it is there or not.
    fn put(&self, key: u64, value: u64) -> Done<()>;

    /// Removes the key; whether it was there.
    fn remove(&self, key: u64) -> Done<bool>;

    /// The pairs with keys from this one on, ascending. A map without order sorts them.
    fn scan(&self, from: u64) -> Done<Vec<(u64, u64)>>;

    /// Whether everything is in order once each key has been written since the last crash: what a crash leaves half
    /// done and a writer mends (RECIPE's Conditions #2 and #3) is mended then. No other thread uses the map.
    fn check(&self) -> Done<()> {
        Ok(())
    }

    /// Persists that nothing need miss, with their reasons: [`ROOT_OBJECT`] if not said.
    fn forgiven() -> &'static [Forgiven] {
        &[ROOT_OBJECT]
    }
}

/// The fence of a new root's object. `create` names it, by `media.site("words: root object")` right before that fence.
pub const ROOT_OBJECT: Forgiven = Forgiven {
    site: "words: root object",
    lacks: &[Lacks::Fence, Lacks::Order],
    why: "a new map: the heap fences the entry of its root before the link too, which the tokens cannot show",
};

/// The root's name: longer than what shares a line with the root's link, so that each of its lines is missed.
const ROOT: &[u8] = &[b'w'; 100];

/// An operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Give the key this value.
    Put(u64, u64),
    /// Remove the key.
    Remove(u64),
    /// Read the key.
    Get(u64),
    /// Read the keys from this one on.
    Scan(u64),
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Put(key, value) => write!(f, "put {key} = {value}"),
            Op::Remove(key) => write!(f, "remove {key}"),
            Op::Get(key) => write!(f, "get {key}"),
            Op::Scan(from) => write!(f, "scan from {from}"),
        }
    }
}

/// What an operation answers.
#[derive(Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Done,
    /// Whether the key was there.
    Removed(bool),
    /// The key's value.
    Value(Option<u64>),
    /// What a scan has found.
    Pairs(Vec<(u64, u64)>),
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Done => f.write_str("done"),
            Answer::Removed(there) => write!(f, "{there}"),
            Answer::Value(Some(value)) => write!(f, "{value}"),
            Answer::Pairs(pairs) if !pairs.is_empty() => write!(f, "{pairs:?}"),
            Answer::Value(None) | Answer::Pairs(_) => f.write_str("nothing"),
        }
    }
}

/// Any operation on one of `keys` keys: half of them puts.
pub fn operation(keys: u64) -> impl Fn(&mut Random) -> Op {
    move |random| {
        let key = random.below(keys);
        match random.below(8) {
            0..4 => Op::Put(key, 1 + random.below(1000)),
            4 | 5 => Op::Remove(key),
            6 => Op::Get(key),
            _ => Op::Scan(key),
        }
    }
}

/// A [`WordMap`] as a subject.
pub struct OfWordMap<T> {
    accounts: bool,
    map: PhantomData<fn() -> T>,
}

impl<T: WordMap> Default for OfWordMap<T> {
    fn default() -> Self {
        OfWordMap {
            accounts: true,
            map: PhantomData,
        }
    }
}

impl<T: WordMap> OfWordMap<T> {
    /// The map, while it gives no memory back yet: the heap is not recovered, and its accounts are not looked at.
    #[must_use]
    pub fn without_accounts() -> Self {
        OfWordMap {
            accounts: false,
            map: PhantomData,
        }
    }
}

/// A map in use.
#[derive(Debug)]
pub struct Live<T> {
    map: T,
    heap: Heap<Crash>,
    /// Whether it was made in this heap, and not found in it.
    made: bool,
}

impl<T: WordMap> Subject for OfWordMap<T> {
    type Op = Op;
    type Answer = Answer;
    type State = BTreeMap<u64, u64>;
    type Live = Live<T>;

    fn name(&self) -> String {
        std::any::type_name::<T>().into()
    }

    fn forgiven(&self) -> &'static [Forgiven] {
        T::forgiven()
    }

    fn create(&self, pool: Pool<Crash>) -> Result<Live<T>, String> {
        let heap = heap(pool)?;
        if self.accounts {
            recover(&heap, &T::tracers())?;
        }
        let map = T::create(&heap, ROOT).map_err(|error| format!("creation failed: {error}"))?;
        Ok(Live {
            map,
            heap,
            made: true,
        })
    }

    fn open(&self, pool: Pool<Crash>) -> Result<Option<Live<T>>, String> {
        let heap = heap(pool)?;
        let map = T::open(&heap, ROOT).map_err(|error| format!("it does not open: {error}"))?;
        Ok(map.map(|map| Live {
            map,
            heap,
            made: false,
        }))
    }

    fn recover(&self, live: &Live<T>) -> Result<(), String> {
        match self.accounts {
            true => recover(&live.heap, &T::tracers()),
            false => Ok(()),
        }
    }

    fn apply(&self, Live { map, .. }: &Live<T>, op: &Op) -> Result<Answer, String> {
        let done = match *op {
            Op::Put(key, value) => map.put(key, value).map(|()| Answer::Done),
            Op::Remove(key) => map.remove(key).map(Answer::Removed),
            Op::Get(key) => map.get(key).map(Answer::Value),
            Op::Scan(from) => map.scan(from).map(Answer::Pairs),
        };
        done.map_err(|error| format!("{op:?} failed: {error}"))
    }

    fn check_end(&self, live: &Live<T>) -> Result<(), String> {
        match self.accounts {
            true => audit(&live.heap, &T::tracers()),
            false => Ok(()),
        }
    }

    fn specify(&self, map: &mut BTreeMap<u64, u64>, op: &Op) -> Answer {
        match *op {
            Op::Put(key, value) => {
                map.insert(key, value);
                Answer::Done
            }
            Op::Remove(key) => Answer::Removed(map.remove(&key).is_some()),
            Op::Get(key) => Answer::Value(map.get(&key).copied()),
            Op::Scan(from) => Answer::Pairs(pairs(map, from)),
        }
    }

    fn reads_piecemeal(&self, op: &Op) -> bool {
        matches!(op, Op::Scan(_))
    }

    fn check_reading(&self, op: &Op, answer: &Answer, states: &[&BTreeMap<u64, u64>]) -> Result<(), String> {
        match (op, answer) {
            (Op::Scan(from), Answer::Pairs(found)) => judge::check_scan(*from, found, states),
            _ => Err("that is no answer to it".into()),
        }
    }

    fn judge(&self, live: &Live<T>, mut verdict: Verdict<'_, Self>) -> Result<usize, String> {
        if self.accounts && !live.made {
            check_accounts(&live.heap)?;
        }
        let which = judge::read_all(&live.map, verdict.allowed)?;
        let mut model = verdict.allowed[which].clone();
        let key = judge::near(verdict.in_flight, &model, &mut verdict.random);
        judge::write_a_little(&live.map, &mut model, key)?;
        if verdict.depth == Depth::Deep {
            judge::write_all(&live.map, &mut model)?;
            self.check_end(live)?;
        }
        Ok(which)
    }

    fn follow_up(&self, state: &BTreeMap<u64, u64>, in_flight: &[&Op], random: &mut Random) -> Vec<Op> {
        let key = |random: &mut Random| judge::near(in_flight, state, random);
        let each = |random: &mut Random| match random.below(4) {
            0 => Op::Get(key(random)),
            1 => Op::Remove(key(random)),
            2 => Op::Scan(key(random)),
            _ => Op::Put(key(random), random.below(1000)),
        };
        (0..4).map(|_| each(random)).collect()
    }
}

/// What a scan of the model finds.
fn pairs(model: &BTreeMap<u64, u64>, from: u64) -> Vec<(u64, u64)> {
    model.range(from..).map(|(key, value)| (*key, *value)).collect()
}
