//! Uniques and flushes, which the record makes durable.
//!
//! A thread holds the record's lock while the index writes the record, so that records are stored in the order in which
//! they are adopted. Edits continue meanwhile, except in two cases: a flush separates the edits before it from those
//! after it, and an edit that finds fewer than [`ENOUGH`] uniques left waits for the block that is being reserved.

use super::ItemStore;
use crate::items::record::{self, StoreRecord};
use index::Upsert;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError, TryLockError};

/// Uniques reserved by one write of the record.
pub(super) const BLOCK: u64 = 1 << 24;

/// An edit that finds fewer uniques than this reserves a new block.
pub(super) const LOW: u64 = 1 << 18;

/// While this many are left, an edit does not wait for the thread that reserves the next block. After a thread has
/// checked how many are left, it takes at most a [`BATCH`](super::BATCH) of uniques before it checks again, or two if a
/// full pool makes it decide again. All threads together take no more than this many.
pub const ENOUGH: u64 = 1 << 17;

impl ItemStore {
    /// Carries out a delayed `flush_all` that is due. Called with the current time before each request, so that an item
    /// stored after the flush was due is newer than the flush.
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

    /// Drops all items, now or at a millisecond since 1970. Either replaces an earlier delayed flush.
    pub fn flush(&self, at: Option<u64>) -> Result<(), index::Error> {
        let mut record = self.lock();
        let Some(flush_at) = at else {
            return self.flush_now(&mut record);
        };
        let changed = StoreRecord { flush_at, ..*record };
        self.write_record(&mut record, changed)
    }

    fn flush_now(&self, record: &mut MutexGuard<'_, StoreRecord>) -> Result<(), index::Error> {
        // Flushed items no longer count, and an edit, with its unique, comes wholly before the flush or after it.
        let dropped = self.count.flush(|| {
            let flushed = self.next.load(Ordering::SeqCst);
            let changed = StoreRecord {
                flushed,
                flush_at: 0,
                ..**record
            };
            self.write_record(record, changed)
        })?;
        self.removals.fetch_add(dropped, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn reserve_if_few(&self) -> Result<(), index::Error> {
        let reserved = self.reserved.load(Ordering::Acquire);
        match reserved.saturating_sub(self.next.load(Ordering::Relaxed)) {
            LOW.. => Ok(()),
            ENOUGH.. => match self.record.try_lock() {
                Ok(mut record) => self.reserve_in(&mut record),
                Err(TryLockError::Poisoned(record)) => self.reserve_in(&mut record.into_inner()),
                // The lock's holder reserves, or the next edit will.
                Err(TryLockError::WouldBlock) => Ok(()),
            },
            _ => self.reserve(),
        }
    }

    pub(super) fn reserve(&self) -> Result<(), index::Error> {
        self.reserve_in(&mut self.lock())
    }

    fn reserve_in(&self, record: &mut MutexGuard<'_, StoreRecord>) -> Result<(), index::Error> {
        if self.next.load(Ordering::SeqCst) + LOW <= record.reserved {
            return Ok(()); // Another thread was faster.
        }
        let reserved = record.reserved.saturating_add(BLOCK);
        let changed = StoreRecord { reserved, ..**record };
        if !self.in_transaction() {
            return self.write_record(record, changed);
        }
        // Unlike a flush, a reservation is no part of the transaction: it stands whether or not that commits, and is
        // durable before the transaction's answers are sent, also if commits are eventual.
        let at_rest = {
            let guard = heap::pin();
            let value = self.items.index().get(record::KEY, &guard)?;
            StoreRecord::read(value.as_deref().unwrap_or_default())
                .map_err(|error| index::Error::Refused(error.into()))?
        };
        let stored = StoreRecord { reserved, ..at_rest };
        self.items
            .write_at_once(record::KEY, &mut Upsert(&stored.bytes()))?;
        self.write_record(record, changed)
    }

    fn write_record(
        &self,
        record: &mut MutexGuard<'_, StoreRecord>,
        changed: StoreRecord,
    ) -> Result<(), index::Error> {
        self.items
            .write_durably(record::KEY, &mut Upsert(&changed.bytes()))?;
        if changed.reserved != record.reserved {
            // Other clients will get these uniques, and they are not in this thread's turn.
            self.items.settle_turn()?;
        }
        self.adopt(record, changed);
        Ok(())
    }

    pub(super) fn adopt(&self, record: &mut MutexGuard<'_, StoreRecord>, changed: StoreRecord) {
        **record = changed;
        self.reserved.store(changed.reserved, Ordering::Release);
        self.flushed.store(changed.flushed, Ordering::Release);
        self.flush_at.store(changed.flush_at, Ordering::Release);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, StoreRecord> {
        // The record changes only after the index has stored it, so it is valid also after a panic.
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
