//! The heap alone as a subject: a table of slots, each with an object of any size.
//!
//! What it tests is the heap's: that no chunk is handed out twice, that what is reachable is whole after every crash,
//! large objects and new pages included, and that everything else is found free, whether recovery runs before, after or
//! beside the use of the heap.

use crate::choose::Random;
use crate::coverage::Shape;
use crate::history::History;
use crate::map::{check_accounts, heap, recover, shape};
use crate::{Crash, Depth, Subject, Verdict};
use heap::{Heap, Trace, Tracers, footprint};
use pmem::{Lacks, Link, Media, Offset, PSlot, PWord, Persistent, Pool, Purpose, Tag, persist_scope};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Slots of the table.
const SLOTS: usize = 16;

/// The kind of the table's root, which no index has.
const KIND: u32 = u32::from_le_bytes(*b"blob");

/// Longer than what shares a line with the root's link.
const ROOT: &[u8] = &[b't'; 100];

/// The root object.
#[repr(C)]
struct Table([PSlot; SLOTS]);

// SAFETY: `repr(C)` of words, no padding.
unsafe impl Persistent for Table {}

/// The fixed part of an object; `len` bytes follow that depend on the seed.
#[repr(C)]
struct Blob {
    len: PWord,
    seed: PWord,
}

const SIZE: u64 = size_of::<Blob>() as u64;

// SAFETY: `repr(C)` of words, no padding.
unsafe impl Persistent for Blob {}

/// What a slot holds: the length of an object's tail, and what its bytes depend on.
pub type Held = (u64, u64);

/// An operation on a slot.
#[derive(Clone, Debug)]
pub enum Op {
    /// Put a new object there, and take the old one out of use.
    Put(u8, Held),
    /// Look what is there.
    Get(u8),
}

/// The heap alone.
#[derive(Debug, Default)]
pub struct Blobs;

/// A heap with a table.
#[derive(Debug)]
pub struct Live {
    heap: Heap<Crash>,
    table: Link,
    /// Whether it was made in this heap, and not found in it.
    made: bool,
}

struct Tracer;

impl Trace<Crash> for Tracer {
    fn trace(&self, heap: &Heap<Crash>, link: Link, children: &mut Vec<Link>) -> Result<u64, heap::Error> {
        let offset = place(link)?;
        if link.tag() == Tag::default() {
            let table: &Table = heap.at(offset)?;
            children.extend(table.0.iter().map(|slot| slot.load(heap.media())));
            return Ok(size_of::<Table>() as u64);
        }
        let len = heap.at::<Blob>(offset)?.len.load(heap.media());
        let footprint = usize::try_from(len).ok().and_then(footprint::<Blob>);
        footprint.map(|len| len as u64).ok_or(damaged(offset))
    }
}

/// The tag of links to objects; the link to the table has none.
const BLOB: Tag = Tag::new(2);

fn damaged(offset: Offset) -> heap::Error {
    heap::Error::Damaged {
        what: "an object of the table makes no sense",
        offset: offset.get(),
    }
}

fn place(link: Link) -> Result<Offset, heap::Error> {
    link.offset().ok_or(heap::Error::Damaged {
        what: "null object",
        offset: 0,
    })
}

fn tracers() -> Tracers<Crash> {
    vec![(KIND, Arc::new(Tracer))]
}

/// The bytes of an object.
fn bytes(seed: u64) -> impl Iterator<Item = u8> {
    let mut random = Random(seed);
    std::iter::repeat_with(move || random.next().to_le_bytes()).flatten()
}

impl Live {
    fn table(&self) -> Result<&Table, heap::Error> {
        self.heap.at(place(self.table)?)
    }

    fn slot(&self, slot: u8) -> Result<&PSlot, heap::Error> {
        Ok(&self.table()?.0[usize::from(slot) % SLOTS])
    }

    fn put(&self, slot: u8, (len, seed): Held) -> Result<(), heap::Error> {
        let guard = heap::pin();
        let (media, slot) = (self.heap.media(), self.slot(slot)?);
        persist_scope(media, Purpose::Node, |batch| {
            let blob = Blob {
                len: PWord::new(len),
                seed: PWord::new(seed),
            };
            let mut draft = self.heap.draft(blob, len as usize, &batch)?;
            draft
                .tail_mut()
                .iter_mut()
                .zip(bytes(seed))
                .for_each(|(to, from)| *to = from);
            let flushed = draft.flush(&batch);
            let mut persisted = flushed.persisted(&batch.fence());
            let old = loop {
                let old = slot.settle(media);
                match slot.publish_if(media, old, persisted, BLOB) {
                    Ok(published) => {
                        let _durable = published.commit();
                        break old;
                    }
                    Err(back) => persisted = back,
                }
            };
            if let Some(offset) = old.offset() {
                let len = self.heap.at::<Blob>(offset)?.len.load(media);
                let footprint = usize::try_from(len).ok().and_then(footprint::<Blob>);
                self.heap
                    .retire(&guard, offset, footprint.ok_or(damaged(offset))?);
            }
            Ok(())
        })
    }

    /// What is in a slot, if every byte of it is right.
    fn get(&self, slot: u8) -> Result<Option<Held>, String> {
        let _guard = heap::pin();
        let failed = |error: heap::Error| error.to_string();
        let link = self.slot(slot).map_err(failed)?.load(self.heap.media());
        let Some(offset) = link.offset() else {
            return Ok(None);
        };
        let blob: &Blob = self.heap.at(offset).map_err(failed)?;
        let media = self.heap.media();
        let (len, seed) = (blob.len.load(media), blob.seed.load(media));
        let tail = Offset::new(offset.get() + SIZE).ok_or("an object at the end of everything")?;
        let tail = self.heap.bytes(tail, len as usize).map_err(failed)?;
        match tail
            .iter()
            .copied()
            .zip(bytes(seed))
            .position(|(is, should)| is != should)
        {
            Some(at) => Err(format!("byte {at} of the {len} in slot {slot} is wrong")),
            None => Ok(Some((len, seed))),
        }
    }
}

impl Subject for Blobs {
    type Op = Op;
    type Answer = Option<Held>;
    type State = BTreeMap<u8, Held>;
    type Live = Live;

    fn name(&self) -> String {
        "heap".into()
    }

    fn create(&self, pool: Pool<Crash>) -> Result<Live, String> {
        let heap = heap(pool)?;
        recover(&heap, &tracers())?;
        let table = persist_scope(heap.media(), Purpose::Node, |batch| {
            let table = Table([const { PSlot::null() }; SLOTS]);
            let flushed = heap.draft(table, 0, &batch)?.flush(&batch);
            heap.media().unmissed(
                Lacks::Fence,
                "a new table: the heap fences its root entry before the link too, which the tokens cannot show",
            );
            heap.media().unmissed(
                Lacks::Order,
                "a new table, and then its name: each must be durable before the link of the root entry, neither before \
                 the other",
            );
            let fenced = batch.fence();
            heap.create_root(ROOT, KIND, flushed.persisted(&fenced), Tag::default())
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

    fn apply(&self, live: &Live, op: &Op) -> Result<Option<Held>, String> {
        match op {
            Op::Put(slot, held) => live
                .put(*slot, *held)
                .map(|()| None)
                .map_err(|error| error.to_string()),
            Op::Get(slot) => live.get(*slot),
        }
    }

    fn specify(&self, state: &mut BTreeMap<u8, Held>, op: &Op) -> Option<Held> {
        match op {
            Op::Put(slot, held) => {
                state.insert(*slot, *held);
                None
            }
            Op::Get(slot) => state.get(slot).copied(),
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
        // What recovery found free serves again, and nothing that is in use.
        let rounds = if verdict.depth == Depth::Deep { 400 } else { 4 };
        let mut held = held;
        for _ in 0..rounds {
            let (slot, blob) = put(&mut verdict.random);
            live.put(slot, blob)
                .map_err(|error| format!("after recovery, a put failed: {error}"))?;
            held.insert(slot, blob);
        }
        if all(live)? != held {
            return Err("after recovery, something is not what was put there".into());
        }
        if verdict.depth == Depth::Deep {
            let audit = live
                .heap
                .audit(&tracers(), 1)
                .map_err(|error| error.to_string())?;
            if !audit.is_clean() {
                return Err(format!("after recovery and use, the audit says {audit:?}"));
            }
        }
        Ok(which)
    }

    fn shape(&self, live: &Live) -> Result<Shape, String> {
        // By how many pages an object takes.
        let name = |_, len: u64| match len.div_ceil(64 << 10) {
            1 => None,
            pages => Some(format!("object of {pages} pages")),
        };
        shape(&live.heap, &tracers(), name).map_err(|error| error.to_string())
    }

    fn follow_up(&self, _state: &BTreeMap<u8, Held>, in_flight: &[&Op], random: &mut Random) -> Vec<Op> {
        let first = random.below(3) as usize;
        let each = |number: usize| match number.checked_sub(first).and_then(|number| in_flight.get(number)) {
            Some(Op::Put(slot, _) | Op::Get(slot)) => Op::Get(*slot),
            None => op(random),
        };
        (0..4).map(each).collect()
    }
}

fn all(live: &Live) -> Result<BTreeMap<u8, Held>, String> {
    let mut held = BTreeMap::new();
    for slot in 0..SLOTS as u8 {
        if let Some(blob) = live.get(slot)? {
            held.insert(slot, blob);
        }
    }
    Ok(held)
}

fn op(random: &mut Random) -> Op {
    if random.below(4) == 0 {
        return Op::Get(slot(random));
    }
    let (slot, held) = put(random);
    Op::Put(slot, held)
}

/// Any of them; half of the time one of three, where several threads meet.
fn slot(random: &mut Random) -> u8 {
    let of = *random.pick(&[3, SLOTS as u64]);
    random.below(of) as u8
}

/// Mostly small; sometimes of a class with few chunks a page, seldom of several pages.
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

/// A history of `ops` operations on the heap by so many threads.
pub fn history(seed: u64, ops: usize, threads: u32) -> History<Op> {
    let mut random = Random(seed);
    History {
        seed,
        ops: (0..ops).map(|_| op(&mut random)).collect(),
        prepared: 0,
        threads,
    }
}
