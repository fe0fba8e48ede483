//! The heap alone as a subject: a table of slots, each with an object of any size, and a few temporary roots.
//!
//! It tests that the heap hands out no chunk twice; that reachable objects are intact after every crash, including
//! large ones and those in new pages; that everything else is found free, whether recovery runs before, after or beside
//! the use of the heap; and that roots are made and removed atomically. `live` implements the operations.

mod live;

use crate::choose::Random;
use crate::coverage::Shape;
use crate::history::History;
use crate::on_heap::{audit, check_accounts, heap, recover, shape};
use crate::{Crash, Depth, Forgiven, Lacks, Subject, Verdict};
pub use live::Live;
use live::{KIND, Table, tracers};
use pmem::{Media, PSlot, Pool, Purpose, Tag, persist_scope};
use std::collections::BTreeMap;

/// Slots of the table.
const SLOTS: usize = 16;

/// Named roots besides the table's.
const ROOTS: u8 = 3;

/// The name of the table's root: too long to fit into the cache line of the root's link.
const ROOT: &[u8] = &[b't'; 100];

/// An object: the length of its tail and the seed of its bytes.
pub type Held = (u64, u64);

/// A place that holds a link to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// A slot of the table.
    Slot(u8),
    /// A named root.
    Root(u8),
}

/// An operation.
#[derive(Clone, Debug)]
pub enum Op {
    /// Put a new object into a slot and retire the old one.
    Put(u8, Held),
    /// Make a root that leads to a new object, unless the name is taken.
    MakeRoot(u8, Held),
    /// Remove a root and its object.
    RemoveRoot(u8),
    /// Read the object at a place.
    Get(Place),
}

/// The answer of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Whether the operation changed anything.
    Done(bool),
    /// The object found.
    Holds(Option<Held>),
    /// The pool is full, and nothing was changed.
    Full,
}

/// The object at each place.
pub type State = BTreeMap<Place, Held>;

/// The heap alone.
#[derive(Debug, Default)]
pub struct Blobs;

/// The heap fences a root's entry before its link; the tokens cannot express that to the caller that makes the object.
const FORGIVEN: &[Forgiven] = &[
    Forgiven {
        site: "blobs: object under a name",
        lacks: &[Lacks::Fence],
        why: "a new object under a name: the heap also fences its root entry before the link, which the tokens \
              cannot show",
    },
    Forgiven {
        site: "blobs: object under a name",
        lacks: &[Lacks::Order],
        why: "a new object, and then its name: each must be durable before the link of the root entry, neither \
              before the other",
    },
    Forgiven {
        site: "blobs: table",
        lacks: &[Lacks::Fence],
        why: "a new table: the heap also fences its root entry before the link, which the tokens cannot show",
    },
    Forgiven {
        site: "blobs: table",
        lacks: &[Lacks::Order],
        why: "a new table, and then its name: each must be durable before the link of the root entry, neither before \
              the other",
    },
];

impl Blobs {
    /// Whether the heap claims to survive the model `word`: it never relies on the order of stores within a cache line.
    pub const CLAIMS_WORD: bool = true;
}

impl Subject for Blobs {
    type Op = Op;
    type Answer = Answer;
    type State = State;
    type Live = Live;

    fn name(&self) -> String {
        "heap".into()
    }

    fn forgiven(&self) -> &'static [Forgiven] {
        FORGIVEN
    }

    fn create(&self, pool: Pool<Crash>) -> Result<Live, String> {
        let heap = heap(pool)?;
        recover(&heap, &tracers())?;
        let table = persist_scope(heap.media(), Purpose::Node, |batch| {
            let table: Table = [const { PSlot::null() }; SLOTS];
            let flushed = heap.draft(table, 0, &batch)?.flush(&batch);
            heap.media().site("blobs: table");
            let fenced = batch.fence();
            // SAFETY: the tracer knows a table by its tag.
            unsafe { heap.create_root(ROOT, KIND, flushed.persisted(&fenced), Tag::default()) }
        });
        let table = table.map_err(|error| format!("creation failed: {error}"))?;
        Ok(Live {
            heap,
            table,
            made: true,
        })
    }

    fn open(&self, pool: Pool<Crash>) -> Result<Option<Live>, String> {
        let heap = heap(pool)?;
        let root = heap.root(ROOT).map_err(|error| error.to_string())?;
        Ok(root.map(|root| Live {
            heap,
            table: root.link,
            made: false,
        }))
    }

    fn recover(&self, live: &Live) -> Result<(), String> {
        recover(&live.heap, &tracers())
    }

    fn apply(&self, live: &Live, op: &Op) -> Result<Answer, String> {
        let done = match op {
            Op::Put(slot, held) => live.put(*slot, *held).map(|()| true),
            Op::MakeRoot(number, held) => live.make_root(*number, *held),
            Op::RemoveRoot(number) => live.remove_root(*number),
            Op::Get(place) => return get(live, *place).map(Answer::Holds),
        };
        live.unless_full(done)
            .map(|done| done.map_or(Answer::Full, Answer::Done))
    }

    fn is_refusal(&self, answer: &Answer) -> bool {
        *answer == Answer::Full
    }

    fn check_end(&self, live: &Live) -> Result<(), String> {
        audit(&live.heap, &tracers())
    }

    fn specify(&self, state: &mut State, op: &Op) -> Answer {
        match op {
            Op::Put(slot, held) => {
                state.insert(Place::Slot(*slot), *held);
                Answer::Done(true)
            }
            Op::MakeRoot(number, held) => {
                let absent = !state.contains_key(&Place::Root(*number));
                state.entry(Place::Root(*number)).or_insert(*held);
                Answer::Done(absent)
            }
            Op::RemoveRoot(number) => Answer::Done(state.remove(&Place::Root(*number)).is_some()),
            Op::Get(place) => Answer::Holds(state.get(place).copied()),
        }
    }

    fn judge(&self, live: &Live, mut verdict: Verdict<'_, Self>) -> Result<usize, String> {
        if !live.made {
            check_accounts(&live.heap)?;
        }
        let held = all(live)?;
        let Some(which) = verdict.allowed.iter().position(|state| **state == held) else {
            return Err(format!(
                "it holds {held:?} instead of one of {:?}",
                verdict.allowed
            ));
        };
        // The chunks that recovery found free can be allocated, and no allocation overwrites an object in use.
        let rounds = if verdict.depth == Depth::Deep { 400 } else { 4 };
        let mut held = held;
        for _ in 0..rounds {
            let (slot, blob) = put(&mut verdict.random);
            let put = live.unless_full(live.put(slot, blob));
            let put = put.map_err(|error| format!("after recovery, a put failed: {error}"))?;
            if put.is_some() {
                held.insert(Place::Slot(slot), blob);
            }
        }
        for number in 0..ROOTS {
            let there = held.remove(&Place::Root(number)).is_some();
            let removed = live.remove_root(number).map_err(|error| error.to_string())?;
            if removed != there {
                return Err(format!(
                    "after recovery, removing root {number} answers {removed}"
                ));
            }
        }
        if all(live)? != held {
            return Err("after recovery, the content differs from what was put".into());
        }
        if verdict.depth == Depth::Deep {
            audit(&live.heap, &tracers()).map_err(|wrong| format!("after recovery and use, {wrong}"))?;
        }
        Ok(which)
    }

    fn shape(&self, live: &Live) -> Result<Shape, String> {
        // Objects are named by the number of pages they take.
        let name = |_, len: u64| match len.div_ceil(64 << 10) {
            1 => None,
            pages => Some(format!("object of {pages} pages")),
        };
        shape(&live.heap, &tracers(), name).map_err(|error| error.to_string())
    }

    fn follow_up(&self, _state: &State, in_flight: &[&Op], random: &mut Random) -> Vec<Op> {
        let first = random.below(3) as usize;
        let each = |number: usize| match number.checked_sub(first).and_then(|number| in_flight.get(number)) {
            Some(Op::Put(slot, _)) => Op::Get(Place::Slot(*slot)),
            Some(Op::MakeRoot(number, _) | Op::RemoveRoot(number)) => Op::Get(Place::Root(*number)),
            Some(Op::Get(place)) => Op::Get(*place),
            None => op(random),
        };
        (0..4).map(each).collect()
    }
}

fn get(live: &Live, place: Place) -> Result<Option<Held>, String> {
    match place {
        Place::Slot(slot) => live.get(slot),
        Place::Root(number) => live.get_root(number),
    }
}

fn all(live: &Live) -> Result<State, String> {
    let slots = (0..SLOTS as u8).map(Place::Slot);
    let mut held = State::new();
    for place in slots.chain((0..ROOTS).map(Place::Root)) {
        if let Some(blob) = get(live, place)? {
            held.insert(place, blob);
        }
    }
    Ok(held)
}

fn op(random: &mut Random) -> Op {
    let number = random.below(u64::from(ROOTS)) as u8;
    match random.below(16) {
        0..3 => Op::Get(Place::Slot(slot(random))),
        3 => Op::Get(Place::Root(number)),
        4 => Op::MakeRoot(number, put(random).1),
        5 => Op::RemoveRoot(number),
        _ => {
            let (slot, held) = put(random);
            Op::Put(slot, held)
        }
    }
}

/// Draws a slot: half of the time one of the first three, where threads meet.
fn slot(random: &mut Random) -> u8 {
    let of = *random.pick(&[3, SLOTS as u64]);
    random.below(of) as u8
}

/// Draws a slot and an object: mostly small, sometimes of a class with few chunks a page, rarely of several pages.
fn put(random: &mut Random) -> (u8, Held) {
    let slot = slot(random);
    let len = match random.below(40) {
        0..30 => random.below(100),
        30..38 => random.below(2000),
        38 => 10_000 + random.below(10_000),
        _ => 66_000 + random.below(70_000),
    };
    (slot, (len, random.next()))
}

/// Draws a history of `ops` operations on the heap by `threads` threads.
///
/// One history in three reopens its pool after a preparation. One in five has little room: pages for the objects of a
/// few slots.
pub fn history(seed: u64, ops: usize, threads: u32) -> History<Op> {
    let mut random = Random(seed);
    let reopened = seed % 3 == 2;
    let prepared = if reopened {
        4 + random.below(20) as usize
    } else {
        0
    };
    History {
        seed,
        ops: (0..prepared + ops).map(|_| op(&mut random)).collect(),
        prepared: prepared as u32,
        threads,
        reopened,
        legs: None,
        room: match seed % 5 {
            3 => (4 + random.below(8)) << 16,
            _ => u64::MAX,
        },
    }
}
