//! Objects, and the table of slots and the roots that lead to them.

use super::{Held, SLOTS};
use crate::on_heap::may_be_full;
use crate::{Crash, Random};
use heap::{Access, Guard, Heap, Trace, Tracers, footprint};
use pmem::{
    Fault, Flushed, Link, Media, Offset, PSlot, PWord, PersistBatch, Purpose, Tag, persist_scope, persistent,
};
use std::sync::Arc;

/// The kind of the table's root and of the named roots, which no index has.
pub(super) const KIND: u32 = u32::from_le_bytes(*b"blob");

/// The root object.
pub(super) type Table = [PSlot; SLOTS];

persistent! {
    /// The fixed part of an object; `len` bytes drawn from `seed` follow it.
    struct Blob [size: 16] {
        len: PWord,
        seed: PWord,
    }
}

const SIZE: u64 = size_of::<Blob>() as u64;

/// A heap with a table.
#[derive(Debug)]
pub struct Live {
    pub(super) heap: Heap<Crash>,
    pub(super) table: Link,
    /// Whether it was created in this heap rather than opened.
    pub(super) made: bool,
}

struct Tracer;

// SAFETY: it reports all slots of a table; objects have no links.
unsafe impl Trace<Crash> for Tracer {
    fn kind(&self) -> u32 {
        KIND
    }

    fn trace(&self, heap: &Access<Crash>, link: Link, children: &mut Vec<Link>) -> Result<u64, heap::Error> {
        let offset = place(link)?;
        if link.tag() == Tag::default() {
            let table: &Table = heap.at(offset)?;
            children.extend(table.iter().map(|slot| slot.load(heap.media())));
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
        what: "an object of the table has an invalid length",
        offset: offset.get(),
    }
}

fn place(link: Link) -> Result<Offset, heap::Error> {
    link.offset().ok_or(heap::Error::Damaged {
        what: "null object",
        offset: 0,
    })
}

pub(super) fn tracers() -> Tracers<Crash> {
    vec![Arc::new(Tracer)]
}

/// Returns the endless bytes of an object's tail.
fn bytes(seed: u64) -> impl Iterator<Item = u8> {
    let mut random = Random(seed);
    std::iter::repeat_with(move || random.next().to_le_bytes()).flatten()
}

impl Live {
    /// Returns the heap, for reads.
    fn access(&self) -> &Access<Crash> {
        // SAFETY: the calls here hold a guard since before they read a link, or find the history standing still.
        unsafe { self.heap.access() }
    }

    /// Returns the result, or `None` if the pool was full and is meant to be full now and then.
    pub(super) fn unless_full<T>(&self, done: Result<T, heap::Error>) -> Result<Option<T>, String> {
        match done {
            Err(heap::Error::Full { .. }) if may_be_full(self.heap.pool()) => Ok(None),
            done => done.map(Some).map_err(|error| error.to_string()),
        }
    }

    fn table(&self) -> Result<&Table, heap::Error> {
        Ok(self.access().at(place(self.table)?)?)
    }

    fn slot(&self, slot: u8) -> Result<&PSlot, heap::Error> {
        Ok(&self.table()?[usize::from(slot) % SLOTS])
    }

    /// Makes a new object, flushed but not yet fenced.
    fn blob<'e, 'm>(
        &'m self,
        (len, seed): Held,
        batch: &PersistBatch<'e, 'm, Crash>,
    ) -> Result<Flushed<'e, 'm, Blob>, heap::Error> {
        let blob = Blob {
            len: PWord::new(len),
            seed: PWord::new(seed),
        };
        let mut draft = self.heap.draft(blob, len as usize, batch)?;
        draft
            .tail_mut()
            .iter_mut()
            .zip(bytes(seed))
            .for_each(|(to, from)| *to = from);
        Ok(draft.flush(batch))
    }

    /// Retires an object to which no link leads any more.
    fn retire(&self, link: Link, guard: &Guard) -> Result<(), heap::Error> {
        let offset = place(link)?;
        let len = self.access().at::<Blob>(offset)?.len.load(self.heap.media());
        let footprint = usize::try_from(len).ok().and_then(footprint::<Blob>);
        let footprint = footprint.ok_or(damaged(offset))?;
        // SAFETY: the caller has unlinked it under this guard.
        unsafe { self.heap.retire(guard, offset, footprint) };
        Ok(())
    }

    pub(super) fn put(&self, slot: u8, held: Held) -> Result<(), heap::Error> {
        let guard = heap::pin();
        let (media, slot) = (self.heap.media(), self.slot(slot)?);
        persist_scope(media, Purpose::Node, |batch| {
            let flushed = self.blob(held, &batch)?;
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
            if old.is_null() {
                return Ok(());
            }
            self.retire(old, &guard)
        })
    }

    /// Makes a root that leads to a new object. Returns whether the name was free.
    pub(super) fn make_root(&self, number: u8, held: Held) -> Result<bool, heap::Error> {
        let made = persist_scope(self.heap.media(), Purpose::Node, |batch| {
            let flushed = self.blob(held, &batch)?;
            self.heap.media().site("blobs: object under a name");
            let fenced = batch.fence();
            let persisted = flushed.persisted(&fenced);
            // SAFETY: the tracer knows objects by their tag.
            unsafe { self.heap.create_root(&name(number), KIND, persisted, BLOB) }
        });
        match made {
            Ok(_) => Ok(true),
            Err(heap::Error::RootExists(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes a root and its object. Returns whether there was one.
    pub(super) fn remove_root(&self, number: u8) -> Result<bool, heap::Error> {
        // SAFETY: each reader below a root holds a guard.
        let removed = unsafe { self.heap.remove_root(&name(number)) }?;
        removed.map_or(Ok(false), |removed| removed.retire(&Tracer).map(|()| true))
    }

    /// Returns the object in a slot, if every byte of it is right.
    pub(super) fn get(&self, slot: u8) -> Result<Option<Held>, String> {
        let _guard = heap::pin();
        let link = self.slot(slot).map_err(|error| error.to_string())?;
        let held = self.held(link.load(self.heap.media()));
        held.map_err(|wrong| format!("in slot {slot}: {wrong}"))
    }

    /// Returns the object of a root, if every byte of it is right.
    pub(super) fn get_root(&self, number: u8) -> Result<Option<Held>, String> {
        let _guard = heap::pin();
        let root = self.heap.root(&name(number));
        let link = root
            .map_err(|error| error.to_string())?
            .map_or(Link::NULL, |root| root.link);
        self.held(link)
            .map_err(|wrong| format!("below root {number}: {wrong}"))
    }

    fn held(&self, link: Link) -> Result<Option<Held>, String> {
        let failed = |fault: Fault| fault.to_string();
        let Some(offset) = link.offset() else {
            return Ok(None);
        };
        let blob: &Blob = self.access().at(offset).map_err(failed)?;
        let media = self.heap.media();
        let (len, seed) = (blob.len.load(media), blob.seed.load(media));
        let tail = Offset::new(offset.get() + SIZE).ok_or("an object ends beyond the last offset")?;
        let tail = self.access().bytes(tail, len as usize).map_err(failed)?;
        match tail
            .iter()
            .copied()
            .zip(bytes(seed))
            .position(|(is, should)| is != should)
        {
            Some(at) => Err(format!("byte {at} of {len} is wrong")),
            None => Ok(Some((len, seed))),
        }
    }
}

/// Returns the name of a root. The names differ in length, so that the roots' entries take different parts of a line,
/// or several lines.
fn name(number: u8) -> Vec<u8> {
    vec![b'a' + number; 1 + 60 * usize::from(number)]
}
