//! The kit finds memory that is freed too early within a few histories: by a reader without a guard, and by a crash.

use heap::{Access, Guard, Heap, Trace, Tracers};
use pmem::{Link, PSlot, PWord, Pool, Purpose, Tag, persist_scope};
use std::sync::Arc;
use wollemi_crashkit::{Crash, Explorer, Failure, History, Random, Settings, Subject, Verdict};

/// The fault of the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    Nothing,
    /// Readers hold no guard.
    ReadersUnguarded,
    /// The old leaf is freed before the link to its successor is durable.
    FreedBeforeLink,
}

const SLOTS: usize = 2;
const KIND: u32 = u32::from_le_bytes(*b"cell");
const NAME: &[u8] = b"cells";
const LEAF: Tag = Tag::new(1);

type Table = [PSlot; SLOTS];

/// A value and its complement, twice.
type Leaf = [PWord; 4];

/// Two cells, each a slot that leads to a leaf.
struct Cells(Broken);

struct Live {
    heap: Heap<Crash>,
    table: Link,
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Set(usize, u64),
    Get(usize),
}

struct Tracer;

// SAFETY: it reports both slots of a table; leaves have no links.
unsafe impl Trace<Crash> for Tracer {
    fn kind(&self) -> u32 {
        KIND
    }

    fn trace(&self, heap: &Access<Crash>, link: Link, children: &mut Vec<Link>) -> Result<u64, heap::Error> {
        if link.tag() == LEAF {
            return Ok(size_of::<Leaf>() as u64);
        }
        let table = heap.at::<Table>(link.offset().expect("a root"))?;
        children.extend(table.iter().map(|slot| slot.load(heap.media())));
        Ok(size_of::<Table>() as u64)
    }
}

fn tracers() -> Tracers<Crash> {
    vec![Arc::new(Tracer)]
}

impl Live {
    /// Returns the heap, for reads.
    fn access(&self) -> &Access<Crash> {
        // SAFETY: the calls here read where slots lead, under a guard; or they are a broken copy, whose reads the media
        // turns into failures.
        unsafe { self.heap.access() }
    }

    fn slot(&self, cell: usize) -> Result<&PSlot, heap::Error> {
        let table: &Table = self.access().at(self.table.offset().expect("a root"))?;
        Ok(&table[cell])
    }

    fn retire(&self, link: Link, guard: &Guard) {
        if let Some(offset) = link.offset() {
            // SAFETY: the caller has unlinked it, or is a broken copy.
            unsafe { self.heap.retire(guard, offset, size_of::<Leaf>()) };
        }
    }

    fn set(&self, cell: usize, value: u64, broken: Broken) -> Result<(), heap::Error> {
        let early = broken == Broken::FreedBeforeLink;
        let guard = (!early).then(heap::pin);
        let (media, slot) = (self.heap.media(), self.slot(cell)?);
        persist_scope(media, Purpose::Node, |batch| {
            let leaf = [value, !value, value, !value].map(PWord::new);
            let flushed = self.heap.draft(leaf, 0, &batch)?.flush(&batch);
            let mut persisted = flushed.persisted(&batch.fence());
            loop {
                let old = slot.settle(media);
                match slot.publish_if(media, old, persisted, LEAF) {
                    Ok(published) => {
                        if early {
                            self.retire(old, &heap::pin());
                        }
                        let _durable = published.commit();
                        if let Some(guard) = &guard {
                            self.retire(old, guard);
                        }
                        return Ok(());
                    }
                    Err(back) => persisted = back,
                }
            }
        })
    }

    fn get(&self, cell: usize, broken: Broken) -> Result<u64, String> {
        let _guard = (broken != Broken::ReadersUnguarded).then(heap::pin);
        let media = self.heap.media();
        let slot = self.slot(cell).map_err(|error| error.to_string())?;
        let Some(offset) = slot.load(media).offset() else {
            return Ok(0);
        };
        let leaf: &Leaf = self.access().at(offset).map_err(|error| error.to_string())?;
        let [value, complement, ..] = [0, 1, 2, 3].map(|word: usize| leaf[word].load(media));
        if value == !complement {
            Ok(value)
        } else {
            Err(format!("{value:#x} and {complement:#x} in one leaf"))
        }
    }
}

impl Subject for Cells {
    type Op = Op;
    type Answer = u64;
    type State = [u64; SLOTS];
    type Live = Live;

    fn name(&self) -> String {
        format!("cells with {:?} broken", self.0)
    }

    fn create(&self, pool: Pool<Crash>) -> Result<Live, String> {
        let heap = Heap::new(pool).map_err(|error| error.to_string())?;
        heap.recover_now(&tracers());
        let table = persist_scope(heap.media(), Purpose::Node, |batch| {
            let table: Table = [const { PSlot::null() }; SLOTS];
            let flushed = heap.draft(table, 0, &batch)?.flush(&batch);
            let fenced = batch.fence();
            // SAFETY: a table is what the tracer of this kind expects.
            unsafe { heap.create_root(NAME, KIND, flushed.persisted(&fenced), Tag::default()) }
        });
        let table = table.map_err(|error| error.to_string())?;
        Ok(Live { heap, table })
    }

    fn open(&self, pool: Pool<Crash>) -> Result<Option<Live>, String> {
        let heap = Heap::new(pool).map_err(|error| error.to_string())?;
        let root = heap.root(NAME).map_err(|error| error.to_string())?;
        Ok(root.map(|root| Live {
            heap,
            table: root.link,
        }))
    }

    fn recover(&self, live: &Live) -> Result<(), String> {
        match live.heap.recover_now(&tracers()) {
            heap::RecoveryStage::Failed(why) => Err(why),
            _ => Ok(()),
        }
    }

    fn apply(&self, live: &Live, op: &Op) -> Result<u64, String> {
        match *op {
            Op::Set(cell, value) => {
                let set = live.set(cell, value, self.0);
                set.map(|()| 0).map_err(|error| error.to_string())
            }
            Op::Get(cell) => live.get(cell, self.0),
        }
    }

    fn specify(&self, state: &mut [u64; SLOTS], op: &Op) -> u64 {
        match *op {
            Op::Set(cell, value) => {
                state[cell] = value;
                0
            }
            Op::Get(cell) => state[cell],
        }
    }

    fn judge(&self, live: &Live, verdict: Verdict<'_, Cells>) -> Result<usize, String> {
        let found = [live.get(0, Broken::Nothing)?, live.get(1, Broken::Nothing)?];
        let which = verdict.allowed.iter().position(|state| **state == found);
        which.ok_or_else(|| format!("it holds {found:?} instead of one of {:?}", verdict.allowed))
    }

    fn follow_up(&self, _state: &[u64; SLOTS], _in_flight: &[&Op], random: &mut Random) -> Vec<Op> {
        ops(random.next(), 4)
    }
}

fn ops(seed: u64, count: usize) -> Vec<Op> {
    let mut random = Random(seed);
    let op = |_| {
        let cell = random.below(SLOTS as u64) as usize;
        match random.below(3) {
            0 => Op::Get(cell),
            _ => Op::Set(cell, 1 + random.below(1000)),
        }
    };
    (0..count).map(op).collect()
}

/// Explores histories of 24 operations by two threads. Returns how many it took, and the first failure.
fn explore(broken: Broken, histories: u64) -> (u64, Option<Box<Failure>>) {
    let settings = Settings {
        memory: 4 << 20,
        ..Settings::default()
    };
    let mut explorer = Explorer::new(Cells(broken), settings).expect("memory");
    for seed in 1..=histories {
        let history = History {
            seed,
            ops: ops(seed, 24),
            prepared: 4,
            threads: 2,
            ..History::default()
        };
        if let Err(failure) = explorer.explore(&history) {
            println!("{broken:?}: history {seed}, {} states", explorer.report().states);
            return (seed, Some(explorer.shrink(&history, failure, 100).1));
        }
    }
    (histories, None)
}

/// The kit finds nothing where every leaf is retired after its successor's link is durable, and every reader has a
/// guard.
#[test]
fn guarded_memory_is_not_reported() {
    if let (seed, Some(failure)) = explore(Broken::Nothing, 30) {
        panic!("history {seed}: {failure}");
    }
}

/// A reader without a guard reads freed memory: the failure names the line that read and the line that retired.
#[test]
fn reading_freed_memory_is_found() {
    let (_, failure) = explore(Broken::ReadersUnguarded, 20);
    let failure = failure.expect("it is broken");
    let text = failure.to_string();
    assert!(text.contains("reads freed memory"), "{text}");
    let (read, retired) = failure
        .message
        .split_once("; the word was taken out of use at ")
        .expect("both lines");
    assert!(read.contains("tests/freed.rs:"), "{text}");
    // Recovery retires again what was retired while it ran.
    assert!(
        retired.contains("tests/freed.rs:") || retired.contains("heap/src/recovery/recover.rs:"),
        "{text}"
    );
}

/// A leaf that is freed before its successor's link is durable is overwritten, and a crash restores the link to it.
#[test]
fn freeing_before_the_link_is_durable_is_found() {
    let (_, failure) = explore(Broken::FreedBeforeLink, 20);
    println!("{}", failure.expect("it is broken"));
}
