//! The database's own root in use: the slots of the intents, and the completion of leftover intents at an opening.
//!
//! The committing thread claims a slot, publishes its intent in it, applies the changes, and clears it. The claims are
//! kept in DRAM only. At the opening of the database, every intent found in a slot is applied and cleared before the
//! first commit.
//!
//! The first commit of several changes creates the root, while the gate is closed. In a pool whose root is of the older
//! kind with one slot, that commit removes it, which is empty by then, and creates the current kind.

use crate::write::intent::{self, INTENT, Intent, KeyChange, Own, SLOTS, SingleSlot};
use crate::write::map_index::{KeyState, MapIndex, Recording, make};
use crate::write::store::Store;
use crate::{Error, Media};
use heap::{Access, Guard, SetApart, footprint};
use pmem::{Link, LinkAndPersist, Offset, PSlot, Purpose, Tag, persist_scope};
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes that a change may need beyond its own, for nodes that it splits.
const CHANGE_ROOM: usize = 4096;

/// Bytes of a log page of a DPTree, and the maximum number of partitions of its log: a change may need a new page in
/// its key's partition.
const LOG_PAGE: usize = 17 << 10;
const LOG_PAGES: usize = 64;

/// Maximum number of size classes that one change allocates from, and the number of classes of all nodes and short
/// values; each class may leave most of a page empty.
const CLASSES_OF_CHANGE: usize = 6;
const CLASSES: usize = 32;

/// A value whose own object has at most this many bytes counts as short.
const SHORT: usize = 2048;

/// Bytes of the object that holds a value, beyond its key and its value.
const HEADER: usize = 64;

/// The database's root, of either kind.
enum Root {
    Slots(Offset),
    SingleSlot(Offset),
}

/// An intent to which a slot links.
#[derive(Clone, Copy)]
pub(crate) struct Standing {
    link: Link,
    footprint: usize,
}

/// The maps opened so far, by name.
type Opened = HashMap<String, Arc<dyn MapIndex>>;

impl<M: Media> Store<M> {
    /// Returns the database's root object; creates the root if it does not exist.
    pub fn own(&self) -> Result<&Own, Error> {
        let offset = match self.slots.root.get() {
            Some(offset) => *offset,
            None => self.make_own()?,
        };
        Ok(self.access().at(offset).map_err(heap::Error::from)?)
    }

    #[cold]
    fn make_own(&self) -> Result<Offset, Error> {
        let media = self.heap.media();
        let _closed = self.traffic.gate.close(media)?;
        // Pinned, so that the heap does not wait for recovery: recovery may wait for the guard of a thread that waits
        // at the gate.
        let _guard = heap::pin();
        let offset = match self.find_own()? {
            Some(Root::Slots(offset)) => offset,
            found => {
                if found.is_some() {
                    self.remove_single_slot()?;
                }
                media.comes_to("batch: root made");
                self.create_own()?
            }
        };
        Ok(*self.slots.root.get_or_init(|| offset))
    }

    /// Removes a root of the older kind. The gate is closed, so it has no intent.
    fn remove_single_slot(&self) -> Result<(), Error> {
        // SAFETY: only the opening, which is over, and recovery read the slot of such a root.
        let removed = unsafe { self.heap.remove_root(intent::NAME) }?;
        match removed {
            Some(removed) => Ok(removed.retire(&intent::Tracer::SINGLE_SLOT)?),
            None => Ok(()),
        }
    }

    fn create_own(&self) -> Result<Offset, Error> {
        let link = persist_scope(self.heap.media(), Purpose::Log, |batch| {
            let own = Own {
                intents: [const { PSlot::null() }; SLOTS],
            };
            let media = self.heap.media();
            media.site("database: root");
            let flushed = self.heap.draft(own, 0, &batch)?.flush(&batch);
            let fenced = batch.fence();
            let own = flushed.persisted(&fenced);
            // SAFETY: it is a root of that kind.
            unsafe {
                self.heap
                    .create_root(intent::NAME, intent::KIND, own, Tag::default())
            }
        })?;
        let gone = damaged("the link to the database's root is null");
        Ok(link.offset().ok_or(gone)?)
    }

    /// Returns the heap, for reads.
    fn access(&self) -> &Access<M> {
        // SAFETY: it is used to read the database's root, which stays while there are commits, and intents, each of
        // which is withdrawn only by the thread that has published it, or by the opening.
        unsafe { self.heap.access() }
    }

    fn find_own(&self) -> Result<Option<Root>, Error> {
        let Some(root) = self.heap.root(intent::NAME)? else {
            return Ok(None);
        };
        match (root.link.offset(), root.kind) {
            (Some(offset), intent::KIND) => Ok(Some(Root::Slots(offset))),
            (Some(offset), intent::SINGLE_SLOT) => Ok(Some(Root::SingleSlot(offset))),
            _ => Err(damaged("a root without a name is not the database's").into()),
        }
    }

    /// Reserves in the heap what these changes may need.
    fn set_apart<'c>(
        &self,
        changes: impl ExactSizeIterator<Item = KeyChange<'c>>,
    ) -> Result<SetApart<'_, M>, Error> {
        let count = changes.len();
        let mut bytes = LOG_PAGE * count.min(LOG_PAGES);
        let mut long = Vec::new();
        for change in changes {
            let object = HEADER + change.key.len() + change.value.map_or(0, <[u8]>::len);
            // A long key may create nodes along its length: P-Masstree one of 256 bytes for every eight bytes of the
            // key.
            bytes += CHANGE_ROOM + 32 * change.key.len();
            if object > SHORT {
                long.push(object);
            } else {
                // A size class may exceed the object by as much.
                bytes += 2 * object;
            }
        }
        let pages = (bytes as u64).div_ceil(self.heap.pool().page_size());
        let classes = CLASSES.min(CLASSES_OF_CHANGE * count) as u64;
        let pages = u32::try_from(pages + classes).unwrap_or(u32::MAX);
        Ok(self.heap.set_apart(pages, long)?)
    }

    /// Persists an intent of these changes and publishes it in a slot, which commits them. Returns the intent and the
    /// space reserved for its changes. Calls `begin` when nothing else can fail and nothing is committed yet.
    pub fn declare(
        &self,
        slot: &PSlot,
        changes: &[KeyState],
        begin: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(Standing, SetApart<'_, M>), Error> {
        let media = self.heap.media();
        let bytes = changes.iter().map(|key| key.change().len()).sum();
        let footprint = footprint::<Intent>(bytes).unwrap_or(usize::MAX);
        media.comes_to("batch: intent written");
        persist_scope(media, Purpose::Log, |batch| {
            let mut draft = self
                .heap
                .draft(Intent::new(bytes, changes.len()), bytes, &batch)?;
            Intent::write(changes.iter().map(KeyState::change), draft.tail_mut());
            let flushed = draft.flush(&batch);
            // The intent is already allocated, so it uses none of the reserved space.
            let apart = self.set_apart(changes.iter().map(KeyState::change))?;
            let persisted = flushed.persisted(&batch.fence());
            begin()?;
            media.comes_to("batch: intent published");
            let _durable = slot
                .publish::<LinkAndPersist, M, Intent>(media, persisted, INTENT)
                .commit();
            let link = slot.load(media);
            Ok((Standing { link, footprint }, apart))
        })
    }

    /// Withdraws an intent whose changes are applied. The guard was pinned before.
    pub fn withdraw(&self, slot: &PSlot, standing: Standing, guard: &Guard) -> Result<(), Error> {
        self.heap.media().comes_to("batch: intent withdrawn");
        let _durable = slot
            .publish_link::<LinkAndPersist, M>(self.heap.media(), Link::NULL)
            .commit();
        if let Some(offset) = standing.link.offset() {
            // SAFETY: the slot led to the intent until the line above, under the guard, and only the thread of its
            // commit withdraws it.
            unsafe { self.heap.retire(guard, offset, standing.footprint) };
        }
        Ok(())
    }

    /// Completes the commits that were published but not completed before the opening; returns the number of their
    /// changes. No operation runs yet.
    pub(crate) fn finish_commits(&self) -> Result<usize, Error> {
        let mut indexes = Opened::new();
        match self.find_own()? {
            None => Ok(0),
            Some(Root::SingleSlot(offset)) => {
                let own: &SingleSlot = self.access().at(offset).map_err(heap::Error::from)?;
                self.finish_commit(&own.intent, &mut indexes)
            }
            Some(Root::Slots(offset)) => {
                let _ = self.slots.root.set(offset);
                let (mut changes, mut intents) = (0, 0);
                for slot in &self.own()?.intents {
                    let made = self.finish_commit(slot, &mut indexes)?;
                    changes += made;
                    intents += usize::from(made > 0);
                }
                if intents > 1 {
                    self.heap.media().comes_to("opening: several batches made again");
                }
                Ok(changes)
            }
        }
    }

    /// Completes the intent in a slot, if there is one.
    fn finish_commit(&self, slot: &PSlot, indexes: &mut Opened) -> Result<usize, Error> {
        let link = slot.settle(self.heap.media());
        if link.is_null() {
            return Ok(0);
        }
        let (changes, footprint) = Intent::read(self.access(), link)?;
        self.heap.media().comes_to("opening: batch made again");
        for change in &changes {
            if !indexes.contains_key(change.map) {
                let (_, index) = self
                    .open(change.map, None)?
                    .ok_or_else(|| Error::from(damaged("an intent names a map that does not exist")))?;
                indexes.insert(change.map.to_owned(), index);
            }
        }
        let make_all = || {
            let mut changes = changes.iter();
            changes.try_for_each(|change| make(change, &*indexes[change.map], Recording::Done))
        };
        let made = make_all();
        if let Err(Error::Index(index::Error::Heap(heap::Error::Full { .. }))) = made {
            // The pool's free space is known once recovery has ended.
            self.recover_here();
            // Merges of the maps opened so far allocate as well. If too little space is left to reserve, the changes
            // may still succeed with less.
            let _apart = self.set_apart(changes.iter().copied()).ok();
            make_all().map_err(|error| Error::Unfinished(Box::new(error)))?;
        } else {
            made?;
        }
        let done = changes.len();
        self.withdraw(slot, Standing { link, footprint }, &heap::pin())?;
        Ok(done)
    }
}

fn damaged(what: &'static str) -> heap::Error {
    heap::Error::Damaged { what, offset: 0 }
}
