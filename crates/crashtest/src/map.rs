//! Any [`Index`] as a subject.

use crate::coverage::Shape;
use crate::{Crash, Depth, Random, Subject, Verdict};
use heap::{Heap, State, Tracers};
use index::{Direction, Index, Value};
use pmem::{Link, Pool};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Bound, ControlFlow};
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
            Op::Insert(key, _) | Op::Upsert(key, _) | Op::Update(key, _) | Op::Remove(key) | Op::Get(key) => {
                key
            }
        }
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = shown(self.key());
        match self {
            Op::Insert(_, value) => write!(f, "insert {key} = {}", shown(value)),
            Op::Upsert(_, value) => write!(f, "upsert {key} = {}", shown(value)),
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

/// What an object of these many bytes that a link leads to is called in reports; `None` for leaves.
pub type NameObject = fn(Link, u64) -> Option<String>;

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

/// The objects of a heap that have names.
pub(crate) fn shape(
    heap: &Heap<Crash>,
    tracers: &Tracers<Crash>,
    name_object: NameObject,
) -> Result<Shape, heap::Error> {
    let mut shape = Shape {
        pages: heap.pool().allocated().load(heap.media()),
        ..Shape::default()
    };
    let mut links = Vec::new();
    for (_, root) in heap.roots()? {
        links.push((root.kind, root.link));
    }
    while let Some((kind, link)) = links.pop() {
        let tracer = tracers.iter().find(|(known, _)| *known == kind);
        let (Some(offset), Some((_, tracer))) = (link.offset(), tracer) else {
            continue;
        };
        let mut children = Vec::new();
        let len = tracer.trace(heap, link, &mut children)?;
        if let Some(name) = name_object(link, len) {
            let below = children.iter().filter_map(|child| Some(child.offset()?.get()));
            shape.objects.insert(offset.get(), (name, below.collect()));
        }
        links.extend(children.into_iter().map(|child| (kind, child)));
    }
    Ok(shape)
}

/// The heap of a pool.
pub(crate) fn heap(pool: Pool<Crash>) -> Result<Heap<Crash>, String> {
    Heap::new(pool).map_err(|error| format!("the heap does not open: {error}"))
}

/// Recovers a heap in the calling thread.
pub(crate) fn recover(heap: &Heap<Crash>, tracers: &Tracers<Crash>) -> Result<(), String> {
    match heap.recover_now(tracers) {
        State::Done => Ok(()),
        state => Err(format!("recovery ended as {state:?}")),
    }
}

/// Whether allocated minus reachable is empty, in a heap just recovered.
pub(crate) fn check_accounts(heap: &Heap<Crash>) -> Result<(), String> {
    let (met, stats) = (heap.recovery().traced, heap.stats());
    if stats.objects == met && stats.used + stats.free == stats.reserved {
        return Ok(());
    }
    Err(format!(
        "recovery has met {met} objects, and the heap's accounts say {stats:?}"
    ))
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
            Op::Upsert(key, value) => index.upsert(key, value).map(|()| Answer::Changed(true)),
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

    fn specify(&self, state: &mut Map, op: &Op) -> Answer {
        match op {
            Op::Insert(key, value) => {
                let absent = !state.contains_key(key);
                if absent {
                    state.insert(key.clone(), value.clone());
                }
                Answer::Changed(absent)
            }
            Op::Upsert(key, value) => {
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
            self.grow_and_empty(live, map, &mut verdict.random)?;
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
        let mut ops = Vec::new();
        for number in 0..4_usize {
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

type Entry<'g> = (&'g [u8], Value<'g>);

fn scan<'g>(
    index: &'g dyn Index,
    direction: Direction,
    guard: &'g heap::Guard,
    most: usize,
) -> Result<Vec<Entry<'g>>, String> {
    let mut found: Vec<Entry<'g>> = Vec::with_capacity(most);
    let all = Bound::Unbounded;
    let done = index.scan(all, all, direction, guard, &mut |key, value| {
        found.push((key, value));
        // One too many is enough to be wrong.
        if found.len() > most {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    done.map_err(|error| format!("a scan failed: {error}"))?;
    Ok(found)
}

/// Scans both ways and gets everything: which of the allowed states it is.
fn read_all(index: &dyn Index, verdict: &Verdict<'_, OfIndex>) -> Result<usize, String> {
    let guard = heap::pin();
    let most = verdict.allowed.iter().map(|map| map.len()).max().unwrap_or(0);
    let found = scan(index, Direction::Forward, &guard, most)?;
    let is = |map: &Map| {
        let equal = |((key, value), (other, expected)): (&Entry<'_>, (&Bytes, &Bytes))| {
            **key == **other && value[..] == expected[..]
        };
        map.len() == found.len() && found.iter().zip(map).all(equal)
    };
    let Some(which) = verdict.allowed.iter().position(|map| is(map)) else {
        return Err(difference(&found, verdict.allowed));
    };
    let back = scan(index, Direction::Reverse, &guard, most)?;
    if !found.iter().eq(back.iter().rev()) {
        return Err("the scan downward differs from the scan upward".into());
    }
    let get = |key: &[u8]| {
        index
            .get(key, &guard)
            .map_err(|error| format!("a get failed: {error}"))
    };
    for (key, value) in &found {
        if get(key)?.is_none_or(|other| other != *value) {
            return Err(format!("a get of {} differs from the scan", shown(key)));
        }
    }
    for map in verdict.allowed {
        for key in map
            .keys()
            .filter(|key| !verdict.allowed[which].contains_key(*key))
        {
            if get(key)?.is_some() {
                return Err(format!("a get finds {}, and no scan does", shown(key)));
            }
        }
    }
    Ok(which)
}

/// Writes, reads and removes what was in flight, or else some key.
fn write_a_little(
    index: &dyn Index,
    map: &Map,
    in_flight: &[&Op],
    random: &mut Random,
) -> Result<(), String> {
    let mut keys: Vec<Bytes> = in_flight.iter().map(|op| op.key().clone()).collect();
    keys.dedup();
    if keys.is_empty() {
        let present: Vec<&Bytes> = map.keys().collect();
        keys.push(if present.is_empty() {
            [1_u8; 3].into()
        } else {
            (*random.pick(&present)).clone()
        });
    }
    for key in keys {
        let failed = |what: &str, error: index::Error| {
            format!("{what} of {} after recovery failed: {error}", shown(&key))
        };
        let value = random.next().to_le_bytes();
        let value = &value[..8 - random.below(2) as usize];
        index.upsert(&key, value).map_err(|e| failed("an upsert", e))?;
        let guard = heap::pin();
        if index
            .get(&key, &guard)
            .map_err(|e| failed("a get", e))?
            .as_deref()
            != Some(value)
        {
            return Err(format!(
                "after recovery, {} does not hold what was just put there",
                shown(&key)
            ));
        }
        drop(guard);
        if !index.remove(&key).map_err(|e| failed("a remove", e))? {
            return Err(format!("after recovery, {} cannot be removed", shown(&key)));
        }
        let guard = heap::pin();
        if index.get(&key, &guard).map_err(|e| failed("a get", e))?.is_some() {
            return Err(format!(
                "after recovery, {} is there though it was just removed",
                shown(&key)
            ));
        }
        // Back to how it was, where it was there.
        if in_flight.is_empty()
            && let Some(value) = map.get(&key)
        {
            index.upsert(&key, value).map_err(|e| failed("an upsert", e))?;
        }
    }
    Ok(())
}

impl OfIndex {
    /// Validates everything, inserts until every node must have split or grown, and removes all of it.
    fn grow_and_empty(&self, live: &LiveIndex, mut map: Map, random: &mut Random) -> Result<(), String> {
        let index = &*live.index;
        self.validate(live, &map, "after recovery")?;
        let failed = |error: index::Error| format!("filling failed: {error}");
        let put = |key: &[u8], map: &mut Map, random: &mut Random| {
            let value = random.next().to_le_bytes();
            let value = &value[..8 - random.below(2) as usize];
            index.upsert(key, value).map_err(failed)?;
            map.insert(key.into(), value.into());
            Ok::<_, String>(())
        };
        let old: Vec<Bytes> = map.keys().cloned().collect();
        for key in &old {
            // The byte at each of a few places, so that nodes there grow.
            let at = random.below(key.len() as u64 + 1) as usize;
            let mut other = key.to_vec();
            for _ in 0..4 {
                other.truncate(at);
                other.push(random.below(256) as u8);
                other.extend(&key[(at + 1).min(key.len())..]);
                put(&other, &mut map, random)?;
            }
        }
        for byte in 0..=255 {
            let key = random.pick(&old_or_empty(&old)).clone();
            let at = random.below(3).min(key.len() as u64) as usize;
            let mut other = key[..at].to_vec();
            other.push(byte);
            put(&other, &mut map, random)?;
        }
        self.validate(live, &map, "when filled after recovery")?;
        let mut keys: Vec<Bytes> = map.keys().cloned().collect();
        while !keys.is_empty() {
            let key = keys.swap_remove(random.below(keys.len() as u64) as usize);
            if !index
                .remove(&key)
                .map_err(|error| format!("emptying failed: {error}"))?
            {
                return Err(format!(
                    "when emptied after recovery, {} is not there",
                    shown(&key)
                ));
            }
            map.remove(&key);
        }
        self.validate(live, &map, "when emptied after recovery")
    }

    fn validate(&self, live: &LiveIndex, map: &Map, when: &str) -> Result<(), String> {
        let faults = live
            .index
            .check()
            .map_err(|error| format!("{when}, the check failed: {error}"))?;
        if let Some(fault) = faults.found.first() {
            return Err(format!(
                "{when}, the check found {} faults: {fault}",
                faults.found.len()
            ));
        }
        let guard = heap::pin();
        let found = scan(&*live.index, Direction::Forward, &guard, map.len())?;
        let same = found.len() == map.len()
            && found
                .iter()
                .zip(map)
                .all(|((key, value), (other, expected))| **key == **other && value[..] == expected[..]);
        if !same {
            return Err(format!("{when}: {}", difference(&found, &[map])));
        }
        drop(found);
        drop(guard);
        let audit = live
            .heap
            .audit(&self.tracers, 1)
            .map_err(|error| format!("{when}, the audit failed: {error}"))?;
        if !audit.is_clean() {
            return Err(format!("{when}, the heap's audit found {audit:?}"));
        }
        Ok(())
    }
}

fn old_or_empty(old: &[Bytes]) -> Vec<Bytes> {
    if old.is_empty() {
        vec![[].into()]
    } else {
        old.to_vec()
    }
}

/// What is wrong with what a scan found, seen from the allowed state that is most like it.
fn difference(found: &[Entry<'_>], allowed: &[&Map]) -> String {
    let one = |map: &Map| {
        let mut wrong = Vec::new();
        let mut found = found.iter().peekable();
        let mut last: Option<&[u8]> = None;
        for (key, expected) in map {
            while let Some((other, _)) = found.next_if(|(other, _)| **other < **key) {
                wrong.push(format!("{} is there", shown(other)));
            }
            match found.next_if(|(other, _)| **other == **key) {
                None => wrong.push(format!("{} is missing", shown(key))),
                Some((_, value)) if value[..] != expected[..] => {
                    wrong.push(format!(
                        "{} holds {} instead of {}",
                        shown(key),
                        shown(value),
                        shown(expected)
                    ));
                }
                Some((other, _)) => last = Some(other),
            }
        }
        for (other, _) in found {
            let order = if last.is_some_and(|last| last >= *other) {
                " in the wrong place"
            } else {
                ""
            };
            wrong.push(format!("{} is there{order}", shown(other)));
        }
        wrong
    };
    let wrong = allowed
        .iter()
        .map(|map| one(map))
        .min_by_key(Vec::len)
        .unwrap_or_default();
    let shown: Vec<_> = wrong.iter().take(4).cloned().collect();
    let more = if wrong.len() > 4 {
        format!(" and {} more", wrong.len() - 4)
    } else {
        String::new()
    };
    format!("{}{more}", shown.join("; "))
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
