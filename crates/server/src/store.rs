//! The memcached commands' meaning, over any index.
//!
//! I1 Every change of an item is one edit of its key: atomic, and durable when the call returns.
//! I2 A dead item (expired, or older than a `flush_all`) is absent for everyone. Whoever meets it may remove it, by an
//!    edit that looks again.
//! I3 In a transaction, edits are kept back until it is committed, and what is kept beside the index (the record, the
//!    count) is as it was before if it is not.
//! I4 A unique is taken inside the edit, under the lock on the key: of two items of one key the later has the larger.
//!
//! Not here: the words of the protocol (`parse`, `session`), the layouts (`item`, `record`).

pub mod classic;
mod count;
mod edit;
mod evict;
mod pending;
mod puts;
mod seen;
#[cfg(test)]
pub mod tests;
mod usage;

use crate::Error;
use crate::item::{Header, Item};
use crate::record::{self, Record};
use count::Count;
use edit::{Change, Remove};
use index::{Action, Direction, Edit, Guard, Index, Upsert, Value};
pub use pending::Changes;
use pending::Pending;
use seen::Removed;
pub use seen::Seen;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
pub use usage::Usage;

/// Uniques reserved by one write of the record.
const BLOCK: u64 = 1 << 24;

/// A new block is reserved when no more than this many are left: far more than all threads could take meanwhile, each some
/// for what it stores together.
const LOW: u64 = 1 << 16;

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done.
    Done,
    /// Done; the number it left.
    Number(u64),
    /// The condition of `add`, `replace`, `append` or `prepend` does not hold, or the whole would be too large.
    NotStored,
    /// The item has changed since the client saw its unique.
    Exists,
    /// No such item.
    NotFound,
    /// The value is no number.
    NotNumber,
}

/// What an edit decides, and what it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision<T> {
    /// Leave the item as it is.
    Keep(T),
    /// Put what was filled in.
    Put(T),
    /// Remove the item.
    Remove(T),
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The index failed.
    #[error(transparent)]
    Index(#[from] index::Error),
    /// The key's value is not one that this server has written.
    #[error("the value was not written by this server")]
    Foreign,
    /// The items take as much as they may.
    #[error("out of memory storing object")]
    NoRoom,
}

/// The items in an index.
pub struct Store {
    items: Pending,
    /// The largest value, in bytes. It may change.
    largest: Arc<AtomicUsize>,
    /// The next unique, and the one of the first edit.
    next: AtomicU64,
    first: u64,
    /// As in the record, for those who only look.
    reserved: AtomicU64,
    flushed: AtomicU64,
    flush_at: AtomicU64,
    /// The record as it is stored.
    record: Mutex<Record>,
    count: Count,
    usage: Arc<Usage>,
    removed: Removed,
}

/// What a scan calls for each key in order, with its item unless it is dead.
pub type Visit<'f> = dyn FnMut(&[u8], Option<&Item<'_>>) -> ControlFlow<()> + 'f;

/// What is kept beside the index, as it was before a transaction.
pub struct Before {
    record: Record,
    count: count::Saved,
}

/// What a step of the sweep has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Keys looked at.
    pub seen: usize,
    /// Dead items removed.
    pub removed: usize,
}

impl Store {
    /// The items in `index`, which is empty or has been written by a store. What they take counts into `usage`.
    pub fn open(
        index: Arc<dyn Index>,
        largest: Arc<AtomicUsize>,
        usage: Arc<Usage>,
        now: u64,
    ) -> Result<Store, Error> {
        let record = {
            let guard = heap::pin();
            match index.get(record::KEY, &guard)? {
                Some(value) => Record::read(&value)?,
                None if is_empty(&*index, &guard)? => Record::FIRST,
                None => return Err(Error::NotOurs),
            }
        };
        let next = record.reserved;
        let store = Store {
            items: Pending::new(index),
            largest,
            next: AtomicU64::new(next),
            first: next,
            reserved: AtomicU64::new(next),
            flushed: AtomicU64::new(record.flushed),
            flush_at: AtomicU64::new(record.flush_at),
            record: Mutex::new(record),
            count: Count::new(usage.clone()),
            usage,
            removed: Removed::new(),
        };
        store.reserve()?;
        store.tick(now)?;
        Ok(store)
    }

    /// Carries out a delayed `flush_all` that is due. Called with the time before requests are: an item stored later
    /// than the flush was due is then newer than the flush.
    #[inline]
    pub fn tick(&self, now: u64) -> Result<(), index::Error> {
        match self.flush_at.load(Ordering::Acquire) {
            0 => Ok(()),
            due if now < due => Ok(()),
            _ => {
                let mut record = self.lock();
                // Unless another thread was faster.
                if record.flush_at == 0 || now < record.flush_at {
                    Ok(())
                } else {
                    self.flush_now(&mut record)
                }
            }
        }
    }

    /// Drops all items, at once or at a millisecond since 1970. Either takes the place of an earlier call that was to drop
    /// them later.
    pub fn flush(&self, at: Option<u64>) -> Result<(), index::Error> {
        let mut record = self.lock();
        let Some(flush_at) = at else {
            return self.flush_now(&mut record);
        };
        let changed = Record { flush_at, ..*record };
        self.write_record(&mut record, changed)
    }

    fn flush_now(&self, record: &mut MutexGuard<'_, Record>) -> Result<(), index::Error> {
        // What is flushed is not counted any more, and an edit comes wholly before the flush or after it: its unique, too.
        self.count.restart(|| {
            let flushed = self.next.load(Ordering::SeqCst);
            let changed = Record {
                // A transaction that was not committed may have given uniques that it had reserved.
                reserved: record.reserved.max(flushed),
                flushed,
                flush_at: 0,
            };
            self.write_record(record, changed)
        })
    }

    /// Keeps edits back from now on. Nobody else acts until the transaction ends.
    pub fn begin(&self) -> Before {
        self.items.begin();
        Before {
            record: *self.lock(),
            count: self.count.save(),
        }
    }

    /// Whether a transaction runs.
    #[inline]
    pub fn in_transaction(&self) -> bool {
        self.items.is_on()
    }

    /// What the transaction changes; `None` where that is too much.
    pub fn changes(&self) -> Option<Changes> {
        self.items.changes()
    }

    /// Makes one of the changes of a transaction that has ended, by itself.
    pub fn make(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), index::Error> {
        match value {
            Some(value) => self.items.index().upsert(key, value),
            None => self.items.index().remove(key).map(drop),
        }
    }

    /// Ends the transaction. If it was not committed, all is as it was `before`.
    pub fn end(&self, before: Before, committed: bool) {
        self.items.end();
        if !committed {
            self.adopt(&mut self.lock(), before.record);
            self.count.restore(before.count);
        }
    }

    /// Shows an item, if it is there: as the transaction would have it, where one runs.
    pub fn read<T>(
        &self,
        key: &[u8],
        now: u64,
        show: impl FnOnce(&Item<'_>) -> T,
    ) -> Result<Option<T>, Failure> {
        self.items.read(key, |value| {
            let Some(value) = value else { return Ok(None) };
            let item = Item::read(value).ok_or(Failure::Foreign)?;
            Ok((!self.is_dead(&item.header, now)).then(|| {
                self.usage.note(key);
                show(&item)
            }))
        })?
    }

    /// Reads items, in no transaction: `found[i]` is filled for each key that is there. Dead items' keys go to `dead`.
    pub fn get<'g>(
        &'g self,
        keys: &[&[u8]],
        now: u64,
        guard: &'g Guard,
        dead: &mut Vec<usize>,
        found: &mut [Option<Value<'g>>],
    ) -> Result<(), Failure> {
        if let [key] = keys {
            found[0] = self.items.index().get(key, guard)?;
        } else {
            self.items
                .index()
                .multi_get(keys, guard, &mut |i, value| found[i] = value)?;
        }
        for (i, slot) in found.iter_mut().enumerate() {
            if let Some(value) = slot {
                let item = Item::read(value).ok_or(Failure::Foreign)?;
                if self.is_dead(&item.header, now) {
                    *slot = None;
                    dead.push(i);
                } else {
                    self.usage.note(keys[i]);
                }
            }
        }
        Ok(())
    }

    /// Brings what edits of these keys will look at into the cache, as [`Index::fetch`] does.
    pub fn fetch(&self, keys: &[&[u8]]) {
        self.items.index().fetch(keys, &heap::pin());
    }

    /// Visits items between the bounds, in order, until told to break; dead ones are shown as `None`.
    pub fn scan(
        &self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        now: u64,
        guard: &Guard,
        visit: &mut Visit<'_>,
    ) -> Result<(), index::Error> {
        // The record's key comes first, and is no item's.
        let lower = match lower {
            Bound::Unbounded | Bound::Included([]) => Bound::Excluded(record::KEY),
            lower => lower,
        };
        self.items
            .scan((lower, upper), direction, guard, &mut |key, value| {
                let item = Item::read(value).filter(|item| !self.is_dead(&item.header, now));
                visit(key, item.as_ref())
            })
    }

    /// Removes the item if it is dead; whether it was.
    pub fn bury(&self, key: &[u8], now: u64) -> Result<bool, Failure> {
        let mut dead = None;
        let mut edit = Remove(|value: Option<&[u8]>| {
            let item = value.and_then(Item::read);
            dead = item.filter(|item| self.is_dead(&item.header, now)).map(unique);
            dead.is_some()
        });
        self.edit(key, &mut edit)?;
        if let Some(unique) = dead {
            self.removed.note(key, unique);
        }
        Ok(dead.is_some())
    }

    /// Removes the item.
    pub fn delete(&self, key: &[u8], now: u64) -> Result<Outcome, Failure> {
        let (mut outcome, mut removed) = (Outcome::NotFound, None);
        let mut edit = Remove(|value: Option<&[u8]>| {
            // Asked again, it answers anew.
            let item = value.and_then(Item::read);
            let is_live = value.is_some() && !item.is_some_and(|item| self.is_dead(&item.header, now));
            outcome = if is_live { Outcome::Done } else { Outcome::NotFound };
            removed = item.map(unique);
            value.is_some()
        });
        self.edit(key, &mut edit)?;
        if let Some(unique) = removed {
            self.removed.note(key, unique);
        }
        Ok(outcome)
    }

    /// Looks at the next keys after `cursor`, at most `limit`, and removes the dead items among them. Fewer keys than
    /// `limit` were left if fewer have been seen, and `cursor` is at the beginning again.
    pub fn sweep(&self, cursor: &mut Vec<u8>, limit: usize, now: u64) -> Result<Swept, Failure> {
        let mut seen = 0;
        let mut dead: Vec<Vec<u8>> = Vec::new();
        let mut last = Vec::new();
        {
            let guard = heap::pin();
            // The record's key comes first, and is never above the bound.
            let lower = Bound::Excluded(cursor.as_slice());
            self.items.index().scan(
                lower,
                Bound::Unbounded,
                Direction::Forward,
                &guard,
                &mut |key, value| {
                    seen += 1;
                    if Item::read(&value).is_some_and(|item| self.is_dead(&item.header, now)) {
                        dead.push(key.to_vec());
                    }
                    if seen < limit {
                        return ControlFlow::Continue(());
                    }
                    last = key.to_vec();
                    ControlFlow::Break(())
                },
            )?;
        }
        *cursor = last;
        let mut removed = 0;
        for key in &dead {
            removed += usize::from(self.bury(key, now)?);
        }
        Ok(Swept { seen, removed })
    }

    /// How many edits there were since it was opened, those that changed nothing included.
    pub fn edits(&self) -> u64 {
        self.next.load(Ordering::Relaxed) - self.first
    }

    /// How many items there are, dead ones that nobody has met included; and whether that is exact, as it is once
    /// [`count_on`](Store::count_on) has said so.
    pub fn items(&self) -> (u64, bool) {
        self.count.get()
    }

    /// How many keys its map has, the record's and those of dead items included, as far as they are counted.
    pub fn keys(&self) -> u64 {
        self.count.keys() + 1
    }

    /// Counts the next items, at most `limit`; whether all are counted.
    pub fn count_on(&self, limit: usize) -> Result<bool, Failure> {
        Ok(self
            .count
            .step(self.items.index(), limit, &|value| self.holds_flushed(value))?)
    }

    /// Whether the item in a value is older than a flush.
    fn holds_flushed(&self, value: &[u8]) -> bool {
        Item::read(value).is_some_and(|item| self.is_flushed(&item.header))
    }

    #[inline]
    fn is_flushed(&self, header: &Header) -> bool {
        header.unique < self.flushed.load(Ordering::Acquire)
    }

    fn edit(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, index::Error> {
        self.count
            .edit(&self.items, key, edit, &|value| self.holds_flushed(value))
    }

    #[inline]
    fn is_dead(&self, header: &Header, now: u64) -> bool {
        self.is_flushed(header) || (header.expiry != 0 && header.expiry <= now)
    }

    /// One edit of an item. `rule` is given the live item and a new unique, and decides; what it puts it fills into its
    /// last argument, where the value still is when this returns.
    pub fn change<T>(
        &self,
        key: &[u8],
        now: u64,
        scratch: &mut Vec<u8>,
        rule: impl FnMut(Option<Item<'_>>, u64, &mut Vec<u8>) -> Decision<T>,
    ) -> Result<T, Failure> {
        self.reserve_if_few()?;
        let mut change = Change {
            store: self,
            now,
            put: scratch,
            rule,
            old: None,
            outcome: None,
        };
        let action = self.edit(key, &mut change)?;
        let old = change.old;
        let outcome = change.outcome.ok_or(Failure::Foreign)?;
        match (action, old) {
            (Action::Put, _) => self.usage.note(key),
            (Action::Remove, Some(unique)) => self.removed.note(key, unique),
            (Action::Remove | Action::Keep, _) => {}
        }
        Ok(outcome)
    }

    fn reserve_if_few(&self) -> Result<(), index::Error> {
        match self.next.load(Ordering::Relaxed) + LOW > self.reserved.load(Ordering::Acquire) {
            true => self.reserve(),
            false => Ok(()),
        }
    }

    fn reserve(&self) -> Result<(), index::Error> {
        let mut record = self.lock();
        if self.next.load(Ordering::SeqCst) + LOW <= record.reserved {
            return Ok(()); // Another thread was faster.
        }
        let changed = Record {
            reserved: record.reserved.saturating_add(BLOCK),
            ..*record
        };
        self.write_record(&mut record, changed)
    }

    fn write_record(&self, record: &mut MutexGuard<'_, Record>, changed: Record) -> Result<(), index::Error> {
        self.items.write(record::KEY, &mut Upsert(&changed.bytes()))?;
        self.adopt(record, changed);
        Ok(())
    }

    fn adopt(&self, record: &mut MutexGuard<'_, Record>, changed: Record) {
        **record = changed;
        self.reserved.store(changed.reserved, Ordering::Release);
        self.flushed.store(changed.flushed, Ordering::Release);
        self.flush_at.store(changed.flush_at, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        // The record changes only after the index has taken it, so it is whole whatever panicked.
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unique(item: Item<'_>) -> u64 {
    item.header.unique
}

fn is_empty(index: &dyn Index, guard: &Guard) -> Result<bool, index::Error> {
    let mut empty = true;
    index.scan(
        Bound::Unbounded,
        Bound::Unbounded,
        Direction::Forward,
        guard,
        &mut |_, _| {
            empty = false;
            ControlFlow::Break(())
        },
    )?;
    Ok(empty)
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("record", &self.lock())
            .finish_non_exhaustive()
    }
}
