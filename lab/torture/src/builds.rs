//! Indexes built from sorted pairs ([`index::Bulk`]), as a subject. A history builds an index once under each of a few
//! names, and then writes to it. Some builds fail at their end, and later ones reuse the memory they leave behind.

use crate::map::reads::{get_agrees, walks_agree};
use crate::map::{Bytes, Map, shown};
use crashkit::coverage::Shape;
use crashkit::on_heap::{audit, check_accounts, heap, may_be_full, recover, shape};
use crashkit::{Crash, Depth, Forgiven, History, Random, Subject, Verdict};
use heap::Heap;
use index::{Direction, Error, Index, Pair, Pairs, Parts};
use pmem::Pool;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use wollemi::indexes::{IndexKind, WithIndex};

/// The number of keys, of any operations, that a shallow judge gets from each index beside those that it holds.
const GETS: usize = 8;

/// The number of indexes that a history builds.
const NAMES: u8 = 3;

/// The name of the first root. It is too long to share a line with the root's link.
const FIRST_ROOT: &[u8] = &[b'f'; 100];

/// An operation.
#[derive(Clone)]
pub enum Op {
    /// Build an index from these pairs, unless one of that name exists.
    Build(u8, Arc<Map>),
    /// The same, with a source that fails after its last pair.
    Fail(u8, Arc<Map>),
    /// Put a key into an index, if that index exists.
    Put(u8, Bytes, Bytes),
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Build(name, pairs) => write!(f, "build {name} of {} pairs", pairs.len()),
            Op::Fail(name, pairs) => write!(f, "build {name} of {} pairs, and fail", pairs.len()),
            Op::Put(name, key, value) => write!(f, "in {name}, put {} = {}", shown(key), shown(value)),
        }
    }
}

/// The answer to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Whether it changed anything.
    Done(bool),
    /// The pool is full; nothing changed.
    Full,
}

/// The indexes built, and the content of each.
pub type State = BTreeMap<u8, Map>;

/// The subject: built indexes of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Builds(pub IndexKind);

/// A heap that holds such indexes.
pub struct Live {
    heap: Heap<Crash>,
    /// Whether this run created the first index; `false`: it opened it.
    made: bool,
    first: Box<dyn Index>,
}

struct Boxed;

impl WithIndex for Boxed {
    type Out = Box<dyn Index>;
    fn with<I: Index + 'static>(self, index: I) -> Self::Out {
        Box::new(index)
    }
}

/// Yields the pairs of a map, then fails if `fails` is set.
struct Source<'m> {
    pairs: std::collections::btree_map::Iter<'m, Bytes, Bytes>,
    fails: bool,
}

impl Pairs for Source<'_> {
    fn next(&mut self) -> Result<Option<Pair<'_>>, Error> {
        match self.pairs.next() {
            Some((key, value)) => Ok(Some((key, value))),
            None if self.fails => Err(Error::Stopped),
            None => Ok(None),
        }
    }
}

impl Builds {
    fn open_index(self, heap: &Heap<Crash>, name: u8) -> Result<Option<Box<dyn Index>>, String> {
        let found = self.0.open(heap, &[name; 90], Boxed);
        found.map_err(|error| format!("index {name} does not open: {error}"))
    }

    fn build(self, live: &Live, name: u8, pairs: &Map, fails: bool) -> Result<bool, Error> {
        let mut source = Source {
            pairs: pairs.iter(),
            fails,
        };
        let parts = Parts::new(&mut source);
        match self.0.build(&live.heap, &[name; 90], parts, Boxed) {
            Ok(_) => Ok(true),
            Err(Error::Stopped | Error::Heap(heap::Error::RootExists(_))) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn put(self, live: &Live, name: u8, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        match self.0.open(&live.heap, &[name; 90], Boxed)? {
            Some(index) => index.upsert(key, value).map(|()| true),
            None => Ok(false),
        }
    }

    /// Reads all indexes, and checks that a get of each key agrees with the walk, and so does one of each key of
    /// `others`.
    fn all(self, live: &Live, others: &[Bytes]) -> Result<State, String> {
        let mut state = State::new();
        for name in 0..NAMES {
            if let Some(index) = self.open_index(&live.heap, name)? {
                state.insert(name, read_all(&*index, others)?);
            }
        }
        Ok(state)
    }
}

/// Reads an index: walks in both directions, and gets of each key and of each key of `others`.
fn read_all(index: &dyn Index, others: &[Bytes]) -> Result<Map, String> {
    let guard = heap::pin();
    let walk = |direction| {
        let (all, mut entries) = (Bound::Unbounded, Vec::<(Bytes, Bytes)>::new());
        let walked = index.walk(all, all, direction, &guard, &mut |key, value| {
            entries.push((key.into(), value[..].into()));
            ControlFlow::Continue(())
        });
        match walked {
            Ok(()) => Ok(entries),
            Err(error) => Err(format!("a walk failed: {error}")),
        }
    };
    let up = walk(Direction::Forward)?;
    walks_agree(index.order(), &up, &walk(Direction::Reverse)?)?;
    let map: Map = up.into_iter().collect();
    for key in map.keys().chain(others) {
        let got = index.get(key, &guard);
        let got = got.map_err(|error| format!("a get failed: {error}"))?;
        get_agrees(key, map.get(key).map(|value| &value[..]), got.as_deref())?;
    }
    Ok(map)
}

/// Returns the keys of the operations: also of those whose indexes were not built.
fn keys_of<'o>(ops: impl IntoIterator<Item = &'o Op>) -> impl Iterator<Item = &'o Bytes> {
    ops.into_iter().flat_map(|op| match op {
        Op::Build(_, pairs) | Op::Fail(_, pairs) => pairs.keys().collect(),
        Op::Put(_, key, _) => vec![key],
    })
}

fn answer(live: &Live, done: Result<bool, Error>) -> Result<Answer, String> {
    match done {
        Ok(done) => Ok(Answer::Done(done)),
        Err(Error::Heap(heap::Error::Full { .. })) if may_be_full(live.heap.pool()) => Ok(Answer::Full),
        Err(error) => Err(error.to_string()),
    }
}

impl Subject for Builds {
    type Op = Op;
    type Answer = Answer;
    type State = State;
    type Live = Live;

    fn name(&self) -> String {
        format!("{}, built", self.0)
    }

    fn forgiven(&self) -> &'static [Forgiven] {
        crate::forgiven::TABLE
    }

    fn create(&self, pool: Pool<Crash>) -> Result<Live, String> {
        let heap = heap(pool)?;
        recover(&heap, &IndexKind::tracers())?;
        let first = self.0.create(&heap, FIRST_ROOT, Boxed);
        Ok(Live {
            first: first.map_err(|error| format!("creation failed: {error}"))?,
            heap,
            made: true,
        })
    }

    fn open(&self, pool: Pool<Crash>) -> Result<Option<Live>, String> {
        let heap = heap(pool)?;
        let first = self.0.open(&heap, FIRST_ROOT, Boxed);
        let first = first.map_err(|error| format!("the first index does not open: {error}"))?;
        Ok(first.map(|first| Live {
            heap,
            made: false,
            first,
        }))
    }

    fn recover(&self, live: &Live) -> Result<(), String> {
        recover(&live.heap, &IndexKind::tracers())
    }

    fn apply(&self, live: &Live, op: &Op) -> Result<Answer, String> {
        let done = match op {
            Op::Build(name, pairs) => self.build(live, *name, pairs, false),
            Op::Fail(name, pairs) => self.build(live, *name, pairs, true),
            Op::Put(name, key, value) => self.put(live, *name, key, value),
        };
        answer(live, done)
    }

    fn is_refusal(&self, answer: &Answer) -> bool {
        *answer == Answer::Full
    }

    fn check_end(&self, live: &Live) -> Result<(), String> {
        audit(&live.heap, &IndexKind::tracers())
    }

    fn specify(&self, state: &mut State, op: &Op) -> Answer {
        Answer::Done(match op {
            Op::Build(name, pairs) => {
                let absent = !state.contains_key(name);
                state.entry(*name).or_insert_with(|| (**pairs).clone());
                absent
            }
            Op::Fail(..) => false,
            Op::Put(name, key, value) => {
                let map = state.get_mut(name);
                map.map(|map| map.insert(key.clone(), value.clone())).is_some()
            }
        })
    }

    fn judge(&self, live: &Live, mut verdict: Verdict<'_, Self>) -> Result<usize, String> {
        if !live.made {
            check_accounts(&live.heap)?;
        }
        let mut others: Vec<Bytes> = keys_of(verdict.ops).cloned().collect();
        let max = if verdict.depth == Depth::Deep {
            usize::MAX
        } else {
            GETS
        };
        while others.len() > max {
            others.swap_remove(verdict.random.below(others.len() as u64) as usize);
        }
        let found = self.all(live, &others)?;
        let Some(which) = verdict.allowed.iter().position(|state| **state == found) else {
            let sizes = |state: &State| {
                state
                    .iter()
                    .map(|(name, map)| (*name, map.len()))
                    .collect::<Vec<_>>()
            };
            let allowed: Vec<_> = verdict.allowed.iter().map(|state| sizes(state)).collect();
            return Err(format!(
                "it holds {:?} instead of one of {allowed:?}",
                sizes(&found)
            ));
        };
        // Writes must succeed, and they reuse the memory that recovery found free.
        let mut next = found;
        for _ in 0..if verdict.depth == Depth::Deep { 60 } else { 3 } {
            let op = op(&mut verdict.random);
            let done = self.apply(live, &op)?;
            if done != Answer::Full && self.specify(&mut next, &op) != done {
                return Err(format!("after recovery, {op:?} answers {done:?}"));
            }
        }
        if self.all(live, &others)? != next {
            return Err("after recovery, the content differs from what was written".into());
        }
        if verdict.depth == Depth::Deep {
            for name in 0..NAMES {
                let faults = self.open_index(&live.heap, name)?.map(|index| index.check());
                let faults = faults
                    .transpose()
                    .map_err(|error| error.to_string())?
                    .unwrap_or_default();
                if let Some(fault) = faults.found.first() {
                    return Err(format!(
                        "after recovery and use, the check of {name} found {fault}"
                    ));
                }
            }
            live.first
                .upsert(b"one more", &[1; 8])
                .or_else(|error| answer(live, Err(error)).map(drop))?;
            audit(&live.heap, &IndexKind::tracers())
                .map_err(|wrong| format!("after recovery and use, {wrong}"))?;
        }
        Ok(which)
    }

    fn shape(&self, live: &Live) -> Result<Shape, String> {
        shape(&live.heap, &IndexKind::tracers(), IndexKind::name_object).map_err(|error| error.to_string())
    }

    fn follow_up(&self, _: &State, in_flight: &[&Op], random: &mut Random) -> Vec<Op> {
        let again = in_flight.iter().map(|op| (**op).clone());
        again.chain((0..3).map(|_| op(random))).collect()
    }
}

fn value(random: &mut Random) -> Bytes {
    let len = match random.below(20) {
        0..12 => 8,
        12..19 => random.below(30) as usize,
        _ => 1500,
    };
    vec![random.below(256) as u8; len].into()
}

/// Draws a short number or a string with a common stem, so that keys diverge at different bytes.
fn key(random: &mut Random) -> Bytes {
    let number = random.below(900) as u32;
    match random.below(3) {
        0 => (number * 77).to_be_bytes().as_slice().into(),
        1 => [b'a', (number % 5) as u8][..random.below(3) as usize].into(),
        _ => [
            &b"stem/and/more"[..random.below(13) as usize],
            &number.to_be_bytes()[2..],
        ]
        .concat()
        .into(),
    }
}

fn op(random: &mut Random) -> Op {
    let name = random.below(NAMES.into()) as u8;
    if random.below(3) == 0 {
        return Op::Put(name, key(random), value(random));
    }
    let few = *random.pick(&[0, 1, 6, 30, 120]);
    let pairs: Map = (0..few).map(|_| (key(random), value(random))).collect();
    match random.below(3) {
        0 => Op::Fail(name, pairs.into()),
        _ => Op::Build(name, pairs.into()),
    }
}

/// Returns a history of `ops` operations by one thread. One history in five runs in a small pool.
pub fn history(seed: u64, ops: usize) -> History<Op> {
    let mut random = Random(seed);
    History {
        seed,
        ops: (0..ops).map(|_| op(&mut random)).collect(),
        prepared: 0,
        threads: 1,
        reopened: false,
        legs: None,
        room: match seed % 5 {
            3 => (8 + random.below(8)) << 16,
            _ => u64::MAX,
        },
    }
}
