//! Any [`Index`] as a subject.
//!
//! Its operations and their sequential specification are in `op`, scans in `scan`; `together` writes several keys at
//! once. The judge is in `judge`, its additional steps for a thorough check in `fill`; `listed` has the indexes that
//! `wollemi::indexes` lists, and `in_order` replaces the scans of indexes without a key order. Other subjects use
//! `reads` too: walks and gets of a map, which must agree.

mod fill;
mod in_order;
mod judge;
#[cfg(feature = "listed")]
mod listed;
mod op;
pub(crate) mod reads;
mod scan;
mod together;

use crashkit::coverage::Shape;
use crashkit::on_heap::{NameObject, audit, check_accounts, heap, may_be_full, recover, shape};
use crashkit::{Crash, Depth, Forgiven, Random, Subject, Verdict};
use heap::{Heap, Tracers};
use in_order::in_order;
use index::Index;
use judge::{read_all, write_a_little};
pub use op::{Answer, Op};
use pmem::Pool;
pub use scan::Scan;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A key or a value.
pub type Bytes = Arc<[u8]>;

/// The expected content of the index.
pub type Map = BTreeMap<Bytes, Bytes>;

/// Creates an index in a heap.
pub type Create = dyn Fn(&Heap<Crash>) -> Result<Box<dyn Index>, heap::Error> + Send + Sync;

/// Opens an index in a heap; `None` if the heap has none.
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
    /// The heap that holds it.
    pub heap: Heap<Crash>,
    /// Whether this run created it; `false`: it opened it.
    made: bool,
}

impl LiveIndex {
    /// Returns the result of a write; `None` if it found the pool full, and this pool may become full.
    fn unless_full<T>(&self, done: Result<T, index::Error>) -> Result<Option<T>, index::Error> {
        match done {
            Err(index::Error::Heap(heap::Error::Full { .. })) if may_be_full(self.heap.pool()) => Ok(None),
            done => done.map(Some),
        }
    }

    /// Converts an operation's result into an answer: [`Answer::Full`] if a pool that may become full refused it.
    fn answer(&self, done: Result<Answer, index::Error>) -> Result<Answer, String> {
        let done = self.unless_full(done).map_err(|error| error.to_string())?;
        Ok(done.unwrap_or(Answer::Full))
    }
}

impl OfIndex {
    /// Returns the subject of the index that `create` makes and `open` finds again, with the tracers of its heap.
    pub fn new(
        name: impl Into<String>,
        create: impl Fn(&Heap<Crash>) -> Result<Box<dyn Index>, heap::Error> + Send + Sync + 'static,
        open: impl Fn(&Heap<Crash>) -> Result<Option<Box<dyn Index>>, heap::Error> + Send + Sync + 'static,
        tracers: Tracers<Crash>,
    ) -> OfIndex {
        OfIndex {
            name: name.into(),
            create: Box::new(move |heap| create(heap).map(in_order)),
            open: Box::new(move |heap| Ok(open(heap)?.map(in_order))),
            tracers,
            name_object: None,
        }
    }

    /// Sets the names of its objects in reports.
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

    fn forgiven(&self) -> &'static [Forgiven] {
        crate::forgiven::TABLE
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
        live.answer(match op {
            Op::Insert(key, value) => index.insert(key, value).map(Answer::Changed),
            Op::Upsert(key, value) => index.upsert(key, value).map(|()| Answer::Changed(true)),
            Op::Update(key, value) => index.update(key, value).map(Answer::Changed),
            Op::Remove(key) => index.remove(key).map(Answer::Changed),
            Op::Get(key) => {
                let guard = heap::pin();
                let value = index.get(key, &guard);
                value.map(|value| Answer::Value(value.map(|value| value[..].into())))
            }
            Op::Scan(scan) => scan.carry_out(index).map(Answer::Visited),
            Op::Together(op) => return self.apply(live, op),
        })
    }

    fn goes_with(&self, ops: &[&Op], next: &Op) -> bool {
        let is_together = |op: &Op| matches!(op, Op::Together(_));
        is_together(next) && ops.iter().all(|op| is_together(op))
    }

    fn keeps_order(&self, before: &Op, next: &Op) -> bool {
        before.key() == next.key()
    }

    fn apply_together(&self, live: &LiveIndex, ops: &[&Op]) -> Result<Vec<Answer>, String> {
        together::write_all(live, ops)
    }

    fn check_end(&self, live: &LiveIndex) -> Result<(), String> {
        audit(&live.heap, &self.tracers)
    }

    fn specify(&self, state: &mut Map, op: &Op) -> Answer {
        op::specify(state, op)
    }

    fn is_refusal(&self, answer: &Answer) -> bool {
        *answer == Answer::Full
    }

    fn reads_piecemeal(&self, op: &Op) -> bool {
        matches!(op, Op::Scan(_))
    }

    fn check_reading(&self, op: &Op, answer: &Answer, states: &[&Map]) -> Result<(), String> {
        match (op, answer) {
            (Op::Scan(scan), Answer::Visited(visited)) => scan.check(visited, states),
            _ => Err("the answer is of another operation".into()),
        }
    }

    fn judge(&self, live: &LiveIndex, mut verdict: Verdict<'_, Self>) -> Result<usize, String> {
        if !live.made {
            check_accounts(&live.heap)?;
        }
        let which = read_all(&*live.index, &mut verdict)?;
        let left = write_a_little(
            live,
            verdict.allowed[which],
            verdict.in_flight,
            &mut verdict.random,
        )?;
        if verdict.depth == Depth::Deep {
            let mut map = verdict.allowed[which].clone();
            for key in verdict.in_flight.iter().filter_map(|op| op.key()) {
                map.remove(key);
            }
            match left {
                Some((key, Some(value))) => drop(map.insert(key, value)),
                Some((key, None)) => drop(map.remove(&key)),
                None => {}
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
        // Keys close to the one in flight share its nodes.
        let around = in_flight.first().and_then(|op| op.key().cloned());
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
        // From this position on, operations, mostly reads, use the keys of those in flight.
        let first = random.below(3) as usize;
        // Mostly few. More operations take memory that recovery found free, and so reveal links that still lead there.
        let count: usize = if random.below(4) == 0 { 24 } else { 4 };
        let mut ops = Vec::new();
        for number in 0..count {
            let of_flight = number.checked_sub(first).and_then(|number| in_flight.get(number));
            let key: Bytes = if let Some(key) = of_flight.and_then(|op| op.key()) {
                key.clone()
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
                0 if number % 2 == 1 => Op::Scan(Scan::around(&[key], random)),
                0 | 5.. => Op::Get(key),
                1 => Op::Remove(key),
                2 => Op::Upsert(key, value),
                _ => Op::Insert(neighbour.into(), value),
            });
        }
        ops
    }
}

/// Formats bytes for a report, and shortens long ones.
pub fn shown(bytes: &[u8]) -> String {
    const MAX: usize = 24;
    if bytes.len() > MAX {
        format!("\"{}...\" ({} bytes)", bytes[..MAX].escape_ascii(), bytes.len())
    } else {
        format!("\"{}\"", bytes.escape_ascii())
    }
}
