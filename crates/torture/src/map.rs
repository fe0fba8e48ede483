//! Any [`Index`] as a subject: its operations, and their sequential specification.
//!
//! What a judge reads and writes is in `judge`, what a thorough one does beside that in `fill`; `together` writes several keys at once; `listed` has the indexes of the list.

mod fill;
mod judge;
mod listed;
mod together;

use crashtest::coverage::Shape;
use crashtest::on_heap::{NameObject, check_accounts, heap, recover, shape};
use crashtest::{Crash, Depth, Random, Subject, Verdict};
use heap::{Heap, Tracers};
use index::Index;
use judge::{read_all, write_a_little};
use pmem::Pool;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A key or a value.
pub type Bytes = Arc<[u8]>;

/// What the index should hold.
pub type Map = BTreeMap<Bytes, Bytes>;

/// An operation of one key.
#[derive(Clone, PartialEq, Eq)]
pub enum Op {
    /// Add it if it is absent.
    Insert(Bytes, Bytes),
    /// Give it this value.
    Upsert(Bytes, Bytes),
    /// The same, at once with such operations right behind it.
    Put(Bytes, Bytes),
    /// Change its value if it is present.
    Update(Bytes, Bytes),
    /// Remove it.
    Remove(Bytes),
    /// Read it.
    Get(Bytes),
}

impl Op {
    /// Its key.
    pub fn key(&self) -> &Bytes {
        match self {
            Op::Insert(key, _)
            | Op::Upsert(key, _)
            | Op::Put(key, _)
            | Op::Update(key, _)
            | Op::Remove(key)
            | Op::Get(key) => key,
        }
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = shown(self.key());
        match self {
            Op::Insert(_, value) => write!(f, "insert {key} = {}", shown(value)),
            Op::Upsert(_, value) => write!(f, "upsert {key} = {}", shown(value)),
            Op::Put(_, value) => write!(f, "put {key} = {}", shown(value)),
            Op::Update(_, value) => write!(f, "update {key} = {}", shown(value)),
            Op::Remove(_) => write!(f, "remove {key}"),
            Op::Get(_) => write!(f, "get {key}"),
        }
    }
}

/// What an operation answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Whether anything was changed.
    Changed(bool),
    /// What was read.
    Value(Option<Bytes>),
}

/// Makes an index in a heap.
pub type Create = dyn Fn(&Heap<Crash>) -> Result<Box<dyn Index>, heap::Error> + Send + Sync;

/// Finds an index in a heap, if it is there.
pub type Open = dyn Fn(&Heap<Crash>) -> Result<Option<Box<dyn Index>>, heap::Error> + Send + Sync;

/// An index as a subject.
pub struct OfIndex {
    name: String,
    create: Box<Create>,
    open: Box<Open>,
    tracers: Tracers<Crash>,
    name_object: Option<NameObject>,
}

/// An index in use.
pub struct LiveIndex {
    /// The index.
    pub index: Box<dyn Index>,
    /// The heap in which it is.
    pub heap: Heap<Crash>,
    /// Whether it was made in this heap, and not found in it.
    made: bool,
}

impl OfIndex {
    /// The index that `create` makes and `open` finds again, with the tracers of its heap.
    pub fn new(
        name: impl Into<String>,
        create: impl Fn(&Heap<Crash>) -> Result<Box<dyn Index>, heap::Error> + Send + Sync + 'static,
        open: impl Fn(&Heap<Crash>) -> Result<Option<Box<dyn Index>>, heap::Error> + Send + Sync + 'static,
        tracers: Tracers<Crash>,
    ) -> OfIndex {
        OfIndex {
            name: name.into(),
            create: Box::new(create),
            open: Box::new(open),
            tracers,
            name_object: None,
        }
    }

    /// The same, whose objects have these names in reports.
    #[must_use]
    pub fn named_by(self, name_object: NameObject) -> OfIndex {
        OfIndex {
            name_object: Some(name_object),
            ..self
        }
    }
}

impl Subject for OfIndex {
    type Op = Op;
    type Answer = Answer;
    type State = Map;
    type Live = LiveIndex;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn create(&self, pool: Pool<Crash>) -> Result<LiveIndex, String> {
        let heap = heap(pool)?;
        recover(&heap, &self.tracers)?;
        let index = (self.create)(&heap).map_err(|error| format!("creation failed: {error}"))?;
        Ok(LiveIndex {
            index,
            heap,
            made: true,
        })
    }

    fn open(&self, pool: Pool<Crash>) -> Result<Option<LiveIndex>, String> {
        let heap = heap(pool)?;
        let index = (self.open)(&heap).map_err(|error| format!("the index does not open: {error}"))?;
        Ok(index.map(|index| LiveIndex {
            index,
            heap,
            made: false,
        }))
    }

    fn recover(&self, live: &LiveIndex) -> Result<(), String> {
        recover(&live.heap, &self.tracers)
    }

    fn apply(&self, live: &LiveIndex, op: &Op) -> Result<Answer, String> {
        let index = &*live.index;
        let done = match op {
            Op::Insert(key, value) => index.insert(key, value).map(Answer::Changed),
            Op::Upsert(key, value) | Op::Put(key, value) => {
                index.upsert(key, value).map(|()| Answer::Changed(true))
            }
            Op::Update(key, value) => index.update(key, value).map(Answer::Changed),
            Op::Remove(key) => index.remove(key).map(Answer::Changed),
            Op::Get(key) => {
                let guard = heap::pin();
                let value = index.get(key, &guard);
                value.map(|value| Answer::Value(value.map(|value| value[..].into())))
            }
        };
        done.map_err(|error| error.to_string())
    }

    fn goes_with(&self, ops: &[&Op], next: &Op) -> bool {
        let put = |op: &Op| matches!(op, Op::Put(..));
        // Of two of one key the answers do not tell which was the last.
        put(next) && ops.iter().all(|op| put(op) && op.key() != next.key())
    }

    fn apply_together(&self, live: &LiveIndex, ops: &[&Op]) -> Result<Vec<Answer>, String> {
        together::put_all(live, ops)
    }

    fn specify(&self, state: &mut Map, op: &Op) -> Answer {
        match op {
            Op::Insert(key, value) => {
                let absent = !state.contains_key(key);
                if absent {
                    state.insert(key.clone(), value.clone());
                }
                Answer::Changed(absent)
            }
            Op::Upsert(key, value) | Op::Put(key, value) => {
                state.insert(key.clone(), value.clone());
                Answer::Changed(true)
            }
            Op::Update(key, value) => match state.get_mut(key) {
                Some(place) => {
                    *place = value.clone();
                    Answer::Changed(true)
                }
                None => Answer::Changed(false),
            },
            Op::Remove(key) => Answer::Changed(state.remove(key).is_some()),
            Op::Get(key) => Answer::Value(state.get(key).cloned()),
        }
    }

    fn judge(&self, live: &LiveIndex, mut verdict: Verdict<'_, Self>) -> Result<usize, String> {
        if !live.made {
            check_accounts(&live.heap)?;
        }
        let which = read_all(&*live.index, &verdict)?;
        write_a_little(
            &*live.index,
            verdict.allowed[which],
            verdict.in_flight,
            &mut verdict.random,
        )?;
        if verdict.depth == Depth::Deep {
            let mut map = verdict.allowed[which].clone();
            for op in verdict.in_flight {
                map.remove(op.key());
            }
            self.fill_and_empty(live, map, &mut verdict.random)?;
        }
        Ok(which)
    }

    fn shape(&self, live: &LiveIndex) -> Result<Shape, String> {
        let Some(name_object) = self.name_object else {
            return Ok(Shape::default());
        };
        shape(&live.heap, &self.tracers, name_object).map_err(|error| error.to_string())
    }

    fn follow_up(&self, state: &Map, in_flight: &[&Op], random: &mut Random) -> Vec<Op> {
        // Keys close to what was in flight share its nodes.
        let around = in_flight.first().map(|op| op.key().clone());
        let mut near: Vec<&Bytes> = match &around {
            Some(key) => {
                let below = state.range(..key.clone()).rev().take(3);
                let above = state.range(key.clone()..).take(3);
                below.chain(above).map(|(key, _)| key).collect()
            }
            None => Vec::new(),
        };
        if near.is_empty() || random.below(4) == 0 {
            near = state.keys().collect();
        }
        // What was in flight comes up at any of these.
        let first = random.below(3) as usize;
        // Few, mostly; more take what recovery has found free, and show who still leads there.
        let count: usize = if random.below(4) == 0 { 24 } else { 4 };
        let mut ops = Vec::new();
        for number in 0..count {
            let of_flight = number.checked_sub(first).and_then(|number| in_flight.get(number));
            let key: Bytes = if let Some(op) = of_flight {
                op.key().clone()
            } else if near.is_empty() {
                [b'n', random.below(256) as u8].into()
            } else {
                (*random.pick(&near)).clone()
            };
            let mut neighbour = key.to_vec();
            neighbour.push(random.below(256) as u8);
            let value: Bytes = random.next().to_le_bytes()[..8 - random.below(2) as usize].into();
            let reads = if of_flight.is_some() { 4 } else { 0 };
            ops.push(match random.below(5 + reads) {
                0 | 5.. => Op::Get(key),
                1 => Op::Remove(key),
                2 => Op::Upsert(key, value),
                _ => Op::Insert(neighbour.into(), value),
            });
        }
        ops
    }
}

/// Bytes as reports show them.
pub fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 24;
    if bytes.len() > MOST {
        format!("\"{}...\" ({} bytes)", bytes[..MOST].escape_ascii(), bytes.len())
    } else {
        format!("\"{}\"", bytes.escape_ascii())
    }
}
