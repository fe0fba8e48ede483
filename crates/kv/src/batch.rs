//! Batches: changes to many keys, of any of a database's maps, that happen together or not at all.
//!
//! How a batch is carried out:
//!
//! 1. The [gate](crate::gate) is closed: no other writer is in any map, and no snapshot begins.
//! 2. What was expected is compared. If it does not hold, that was all.
//! 3. The changes are written into an [intent](crate::intent), which is persisted.
//! 4. A link to it is published in the database's own root. This is the commit point.
//! 5. Each change is made by an ordinary write of its key.
//! 6. The link is taken away, and the gate opened.
//!
//! A crash before 4 leaves nothing; opening after a later one begins again with 5, before anybody is served. Changes say
//! what a key shall hold, so to make one twice is to make it once, and no other write comes between the first time and
//! the last.
//!
//! A batch of one change is an ordinary write: it needs neither 3, 4 nor 6.

use crate::guarded::MapIndex;
use crate::intent::{self, Change, INTENT, Intent, Own};
use crate::store::Store;
use crate::{Error, Hardware, MAX_KEY, MAX_VALUE, Map, Media};
use heap::{Access, Guard, SetApart};
use index::{Remove, Upsert};
use pmem::{Lacks, Link, LinkAndPersist, Offset, PSlot, Purpose, Tag, persist_scope};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Bytes that a change may need beside its own, for nodes that it splits.
const CHANGE_ROOM: usize = 4096;

/// A write of a DPTree may need a new log page, but not more of them than its log has partitions.
const LOG_PAGE: usize = 17 << 10;
const LOG_PAGES: usize = 64;

/// A change allocates objects of so many size classes at most, and all nodes and short values are of so many; each class
/// may leave most of a page empty.
const CLASSES_OF_CHANGE: usize = 6;
const CLASSES: usize = 32;

/// Values in whose own object there is no more than this are counted among the short ones.
const SHORT: usize = 2048;

/// Bytes of the object that holds a value, beside its key and its value.
const HEADER: usize = 64;

/// Changes to be made together: all of them or, whatever crash comes, none.
///
/// * **Crashes**: after one, either every change is there or none is. A batch that [`commit`](Batch::commit) has
///   acknowledged is there.
/// * **Writers**: batches and all other writes of the database happen one after the other. Writers wait while a batch is
///   carried out; nobody waits for one that is being put together.
/// * **Snapshots** show a batch whole or not at all.
/// * **Readers** do not wait. While a batch is carried out they may see some of its changes and not yet others; what
///   they see is durable, and the others follow. Each key goes from what it held before the batch to what it holds
///   after it, and holds nothing else in between. Read a [`Snapshot`](crate::Snapshot) where several keys matter.
///
/// Of several changes to one key the one that was added last is made, and no other.
///
/// ```
/// let db = wollemi::Db::anonymous()?;
/// let (stock, orders) = (db.map("stock")?, db.map("orders")?);
/// stock.upsert("apples", "12")?;
///
/// let mut batch = db.batch();
/// batch.expect(&stock, "apples", Some("12")).expect(&orders, "1", None::<&str>);
/// batch.upsert(&stock, "apples", "10").upsert(&orders, "1", "2 apples");
/// assert!(batch.commit()?);
/// assert_eq!(stock.get("apples")?, Some(b"10".to_vec()));
///
/// let mut batch = db.batch();
/// batch.expect(&stock, "apples", Some("12")).remove(&stock, "apples");
/// assert!(!batch.commit()?); // there are 10 by now: nothing was changed
/// assert!(stock.contains("apples")?);
/// # Ok::<(), wollemi::Error>(())
/// ```
#[must_use = "a batch does nothing before it is committed"]
pub struct Batch<'d, M: Media = Hardware> {
    store: &'d Store<M>,
    changes: Vec<Entry>,
    expected: Vec<Entry>,
}

/// A key and what it holds, or shall hold.
#[derive(Clone)]
struct Entry {
    map: Map,
    key: Vec<u8>,
    value: Option<Vec<u8>>,
}

impl Entry {
    fn new(map: &Map, key: &[u8], value: Option<&[u8]>) -> Entry {
        Entry {
            map: map.clone(),
            key: key.to_vec(),
            value: value.map(<[u8]>::to_vec),
        }
    }

    fn change(&self) -> Change<'_> {
        Change {
            map: self.map.name(),
            key: &self.key,
            value: self.value.as_deref(),
        }
    }

    fn check<M: Media>(&self, store: &Store<M>) -> Result<(), Error> {
        if !Arc::ptr_eq(self.map.index.traffic(), &store.traffic) {
            return Err(Error::OtherDatabase(self.map.name().to_owned()));
        }
        if self.key.len() > MAX_KEY {
            return Err(index::Error::KeyTooLong(self.key.len()).into());
        }
        match &self.value {
            Some(value) if value.len() > MAX_VALUE => Err(index::Error::ValueTooLong(value.len()).into()),
            _ => Ok(()),
        }
    }

    fn holds(&self, guard: &Guard) -> Result<bool, Error> {
        let found = self.map.index.get(&self.key, guard)?;
        Ok(found.as_deref() == self.value.as_deref())
    }
}

impl<'d, M: Media> Batch<'d, M> {
    pub(crate) fn new(store: &'d Store<M>) -> Batch<'d, M> {
        Batch {
            store,
            changes: Vec::new(),
            expected: Vec::new(),
        }
    }

    /// The key shall have this value, whether it is there or not.
    pub fn upsert(&mut self, map: &Map, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> &mut Self {
        self.changes
            .push(Entry::new(map, key.as_ref(), Some(value.as_ref())));
        self
    }

    /// The key shall be absent.
    pub fn remove(&mut self, map: &Map, key: impl AsRef<[u8]>) -> &mut Self {
        self.changes.push(Entry::new(map, key.as_ref(), None));
        self
    }

    /// The batch is carried out only if, before it, the key has this value; `None`: only if it is absent.
    pub fn expect<V: AsRef<[u8]>>(
        &mut self,
        map: &Map,
        key: impl AsRef<[u8]>,
        value: Option<V>,
    ) -> &mut Self {
        let value = value.as_ref().map(V::as_ref);
        self.expected.push(Entry::new(map, key.as_ref(), value));
        self
    }

    /// How many changes it has.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether it has no change.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Carries the batch out: it is durable when this returns. `false`, and nothing was changed, if something is not as
    /// it was [expected](Batch::expect).
    ///
    /// Costs the writes of its changes and, if there are several, three fences and the persists of a copy of them.
    ///
    /// # Errors
    ///
    /// [`Error::OtherDatabase`], a key or a value that is too long, a pool that is full or damaged: nothing was changed.
    /// [`Error::Unfinished`]: it is committed, and the next opening of the database completes it.
    pub fn commit(mut self) -> Result<bool, Error> {
        for entry in self.expected.iter().chain(&self.changes) {
            entry.check(self.store)?;
        }
        self.keep_last_changes();
        let committed = match self.try_commit() {
            Err(error) if is_full(&error) && self.store.heap.wait_for_room() => self.try_commit()?,
            done => done?,
        };
        if committed {
            self.changes.iter().for_each(|entry| entry.map.index.rest());
        }
        Ok(committed)
    }

    /// Drops each change that a later change to the same key replaces: a reader, or a watch, must not see a value that
    /// the key holds neither before the batch nor after it.
    fn keep_last_changes(&mut self) {
        let mut later = HashSet::with_capacity(self.changes.len());
        let changes = self.changes.iter().rev();
        let mut kept: Vec<bool> = changes
            .map(|entry| later.insert((entry.map.name(), &*entry.key)))
            .collect();
        drop(later);
        self.changes.retain(|_| kept.pop() != Some(false));
    }

    fn try_commit(&self) -> Result<bool, Error> {
        let closed = self.store.traffic.gate.close(self.store.heap.media())?;
        // Pinned, so that the heap does not wait for recovery, which may wait for a guard of who waits at the gate.
        let guard = heap::pin();
        for entry in &self.expected {
            if !entry.holds(&guard)? {
                self.store.heap.media().comes_to("batch: not as expected");
                return Ok(false);
            }
        }
        if !self.changes.is_empty() {
            self.store.refuse_if_read_only()?;
        }
        match &self.changes[..] {
            [] => {}
            [one] => {
                self.store.heap.media().comes_to("batch: one change, made");
                make(&one.change(), &*one.map.index)?;
            }
            many => {
                let slot = self.store.own_slot()?;
                let (link, _apart) = self.store.declare(slot, many, || closed.begin())?;
                self.store.heap.media().comes_to("batch: changes made");
                many.iter()
                    .try_for_each(|entry| make(&entry.change(), &*entry.map.index))
                    .map_err(|error| Error::Unfinished(Box::new(error)))?;
                self.store.withdraw(slot, link, &guard)?;
                closed.finish();
            }
        }
        Ok(true)
    }
}

/// Whether the pool was full, and what recovery finds, or was retired lately, may make room.
fn is_full(error: &Error) -> bool {
    matches!(
        error,
        Error::Heap(heap::Error::Full { .. }) | Error::Index(index::Error::Heap(heap::Error::Full { .. }))
    )
}

/// Makes a change, in the map's index.
fn make(change: &Change<'_>, index: &dyn MapIndex) -> Result<(), Error> {
    match change.value {
        Some(value) => index.write_alone(change.key, &mut Upsert(value))?,
        None => index.write_alone(change.key, &mut Remove)?,
    };
    Ok(())
}

impl<M: Media> Store<M> {
    /// The slot of the intent; the root is made if it is not there. The gate is closed.
    fn own_slot(&self) -> Result<&PSlot, Error> {
        if let Some(slot) = self.find_own_slot()? {
            return Ok(slot);
        }
        self.heap.media().comes_to("batch: root made");
        persist_scope(self.heap.media(), Purpose::Log, |batch| {
            let own = Own {
                intent: PSlot::null(),
            };
            let media = self.heap.media();
            media.unmissed(
                Lacks::WriteBack,
                "the root: a null link, which matters where its chunk has held something before; it is made once a database",
            );
            media.unmissed(
                Lacks::Fence,
                "the root, as its write-back; the heap fences before the link too",
            );
            media.unmissed(
                Lacks::Order,
                "the root, and then its name: each must be durable before the link, neither before the other",
            );
            let flushed = self.heap.draft(own, 0, &batch)?.flush(&batch);
            let fenced = batch.fence();
            let own = flushed.persisted(&fenced);
            // SAFETY: it is a root of that kind.
            unsafe {
                self.heap
                    .create_root(intent::NAME, intent::KIND, own, Tag::default())
            }
        })?;
        self.find_own_slot()?
            .ok_or_else(|| damaged("the database's root is gone").into())
    }

    /// The heap, for reads.
    fn access(&self) -> &Access<M> {
        // SAFETY: what is read is the database's root, which stays, and an intent, which only the holder of the closed gate
        // reads and withdraws.
        unsafe { self.heap.access() }
    }

    fn own(&self, offset: Offset) -> Result<&Own, Error> {
        Ok(self.access().at(offset).map_err(heap::Error::from)?)
    }

    fn find_own_slot(&self) -> Result<Option<&PSlot>, Error> {
        let Some(root) = self.heap.root(intent::NAME)? else {
            return Ok(None);
        };
        match root.link.offset() {
            Some(offset) if root.kind == intent::KIND => Ok(Some(&self.own(offset)?.intent)),
            _ => Err(damaged("a root without a name is not the database's").into()),
        }
    }

    /// Sets apart in the heap what these changes may need.
    fn set_apart<'c>(
        &self,
        changes: impl ExactSizeIterator<Item = Change<'c>>,
    ) -> Result<SetApart<'_, M>, Error> {
        let count = changes.len();
        let mut bytes = LOG_PAGE * count.min(LOG_PAGES);
        let mut long = Vec::new();
        for change in changes {
            let object = HEADER + change.key.len() + change.value.map_or(0, <[u8]>::len);
            // A long key may make nodes all along.
            bytes += CHANGE_ROOM + 16 * change.key.len();
            if object > SHORT {
                long.push(object);
            } else {
                // A size class may be larger than the object by as much.
                bytes += 2 * object;
            }
        }
        let pages = (bytes as u64).div_ceil(self.heap.pool().page_size());
        let classes = CLASSES.min(CLASSES_OF_CHANGE * count) as u64;
        let pages = u32::try_from(pages + classes).unwrap_or(u32::MAX);
        Ok(self.heap.set_apart(pages, long)?)
    }

    /// Persists an intent of these changes and publishes it, which commits them: the intent, and what is set apart for
    /// its changes. Calls `begin` when nothing can go wrong any more and nothing is committed yet.
    fn declare(
        &self,
        slot: &PSlot,
        changes: &[Entry],
        begin: impl FnOnce(),
    ) -> Result<(Link, SetApart<'_, M>), Error> {
        let media = self.heap.media();
        let bytes = changes.iter().map(|entry| entry.change().len()).sum();
        media.comes_to("batch: intent written");
        persist_scope(media, Purpose::Log, |batch| {
            let mut draft = self
                .heap
                .draft(Intent::new(bytes, changes.len()), bytes, &batch)?;
            Intent::write(changes.iter().map(Entry::change), draft.tail_mut());
            let flushed = draft.flush(&batch);
            // The intent is there by now: it takes nothing of what is set apart.
            let apart = self.set_apart(changes.iter().map(Entry::change))?;
            let persisted = flushed.persisted(&batch.fence());
            begin();
            media.comes_to("batch: intent published");
            let _durable = slot
                .publish::<LinkAndPersist, M, Intent>(media, persisted, INTENT)
                .commit();
            Ok((slot.load(media), apart))
        })
    }

    /// Takes the intent away: what it says is done.
    fn withdraw(&self, slot: &PSlot, link: Link, guard: &Guard) -> Result<(), Error> {
        let (_, footprint) = Intent::read(self.access(), link)?;
        self.heap.media().comes_to("batch: intent withdrawn");
        let _durable = slot
            .publish_link::<LinkAndPersist, M>(self.heap.media(), Link::NULL)
            .commit();
        if let Some(offset) = link.offset() {
            // SAFETY: the slot led to the intent until the line above, under the guard, and the thread whose batch it is
            // alone withdraws it.
            unsafe { self.heap.retire(guard, offset, footprint) };
        }
        Ok(())
    }

    /// Carries out what was committed before the opening and not carried out to its end; how many changes that are.
    /// Nobody is served yet.
    pub(crate) fn finish_batch(&self) -> Result<usize, Error> {
        let Some(slot) = self.find_own_slot()? else {
            return Ok(0);
        };
        let link = slot.settle(self.heap.media());
        if link.is_null() {
            return Ok(0);
        }
        let (changes, _) = Intent::read(self.access(), link)?;
        self.heap.media().comes_to("opening: batch made again");
        let mut indexes = HashMap::new();
        for change in &changes {
            if !indexes.contains_key(change.map) {
                let (_, index) = self
                    .open(change.map, None)?
                    .ok_or_else(|| Error::from(damaged("an intent names a map that is not there")))?;
                indexes.insert(change.map, index);
            }
        }
        let make_all = || {
            let mut changes = changes.iter();
            changes.try_for_each(|change| make(change, &*indexes[change.map]))
        };
        let made = make_all();
        if let Err(Error::Index(index::Error::Heap(heap::Error::Full { .. }))) = made {
            // What the pool has to give is known when recovery has ended.
            self.recover_here();
            // Merges of the maps that are open by now allocate as well. Where too little is left, the changes may do with
            // less.
            let _apart = self.set_apart(changes.iter().copied()).ok();
            make_all().map_err(|error| Error::Unfinished(Box::new(error)))?;
        } else {
            made?;
        }
        self.withdraw(slot, link, &heap::pin())?;
        Ok(changes.len())
    }
}

fn damaged(what: &'static str) -> heap::Error {
    heap::Error::Damaged { what, offset: 0 }
}

impl<M: Media> std::fmt::Debug for Batch<'_, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch")
            .field("changes", &self.changes.len())
            .field("expected", &self.expected.len())
            .finish_non_exhaustive()
    }
}
