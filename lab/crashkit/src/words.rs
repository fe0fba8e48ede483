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

/// The result of a [`WordMap`] call. Any error fails the history.
pub type Done<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// A map from words to words on a heap. Everything that a call's answer shows is durable when it returns.
///
/// Implement it in the crate that defines the map, for instance in a module of its tests: a file in `tests` is another
/// crate, in which neither the trait nor the map is local.
pub trait WordMap: Sized + Send + Sync + 'static {
    /// Creates an empty map under the root `name`.
    fn create(heap: &Heap<Crash>, name: &[u8]) -> Done<Self>;

    /// Opens the map; `None` if there is no such root.
    fn open(heap: &Heap<Crash>, name: &[u8]) -> Done<Option<Self>>;

    /// Returns the tracers, which report live objects to the heap.
    fn tracers() -> Tracers<Crash>;

    /// Returns the key's value.
    fn get(&self, key: u64) -> Done<Option<u64>>;

    /// Sets the key's value, whether the key is present or not.
    fn put(&self, key: u64, value: u64) -> Done<()>;

    /// Removes the key. Returns whether it was present.
    fn remove(&self, key: u64) -> Done<bool>;

    /// Returns the pairs with keys from this one on, ascending. A map without order sorts them.
    fn scan(&self, from: u64) -> Done<Vec<(u64, u64)>>;

    /// Checks the structure once each key has been written since the last crash: by then, writers have mended what the
    /// crash left half done (RECIPE's Conditions #2 and #3). No other thread uses the map.
    fn check(&self) -> Done<()> {
        Ok(())
    }

    /// Returns the persists whose absence need not be detected, with their reasons. Default: [`ROOT_OBJECT`].
    fn forgiven() -> &'static [Forgiven] {
        &[ROOT_OBJECT]
    }
}

/// The fence of a new root's object. `create` names it by `media.site("words: root object")` right before that fence.
pub const ROOT_OBJECT: Forgiven = Forgiven {
    site: "words: root object",
    lacks: &[Lacks::Fence, Lacks::Order],
    why: "a new map: the heap also fences its root entry before the link, which the tokens cannot show",
};

/// The root's name: too long to fit into the line of the root's link, so that images show the absence of the persist of
/// each of its lines.
const ROOT: &[u8] = &[b'w'; 100];

/// An operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Set the key's value.
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

/// The answer of an operation.
#[derive(Clone, PartialEq, Eq)]
pub enum Answer {
    /// The put is done.
    Done,
    /// Whether the key was present.
    Removed(bool),
    /// The key's value.
    Value(Option<u64>),
    /// The pairs that a scan found.
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

/// Draws an operation on one of `keys` keys: half of them are puts.
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
    /// For a map that frees no memory yet: does not recover the heap, and does not check its accounts.
    ///
    /// ```
    /// # use wollemi_crashkit::words::{OfWordMap, WordMap, operation};
    /// # fn survives<MyIndex: WordMap>() {
    /// wollemi_crashkit::silence_findings();
    /// let map = OfWordMap::<MyIndex>::without_accounts();
    /// let run = wollemi_crashkit::torture(map, operation(16)).operations(40).threads(1..=2).run();
    /// println!("{}", run.unwrap_or_else(|failure| panic!("{failure}")));
    /// # }
    /// ```
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
    /// Whether it was created in this heap rather than opened.
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
        let map = T::open(&heap, ROOT).map_err(|error| format!("the map does not open: {error}"))?;
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
            _ => Err("the answer is not that of a scan".into()),
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

/// Returns what a scan of the model finds.
fn pairs(model: &BTreeMap<u64, u64>, from: u64) -> Vec<(u64, u64)> {
    model.range(from..).map(|(key, value)| (*key, *value)).collect()
}
