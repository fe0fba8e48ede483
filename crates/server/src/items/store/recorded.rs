//! The record's part of the items: which uniques may be given, and what a flush has dropped or will drop.
//!
//! The record's lock is held while the index writes the record, so that records are stored in the order in which they
//! are adopted. Edits go on meanwhile, except in two cases: a flush parts all edits into those before it and those
//! after it, and an edit that finds few uniques left waits for the block that is being reserved.

use super::Store;
use crate::items::record::{self, Record};
use index::Upsert;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError, TryLockError};

/// Uniques reserved by one write of the record.
pub(super) const BLOCK: u64 = 1 << 24;

/// A new block is reserved when fewer than this many are left.
pub(super) const LOW: u64 = 1 << 18;

/// While this many are left, an edit does not wait for the thread that reserves the next block. Threads that pass
/// together take fewer: each a [`BATCH`](super::BATCH) of uniques, or two where a full pool has it decide again.
pub const ENOUGH: u64 = 1 << 17;

impl Store {
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

    /// Drops all items, at once or at a millisecond since 1970. Either takes the place of an earlier call that was to
    /// drop them later.
    pub fn flush(&self, at: Option<u64>) -> Result<(), index::Error> {
        let mut record = self.lock();
        let Some(flush_at) = at else {
            return self.flush_now(&mut record);
        };
        let changed = Record { flush_at, ..*record };
        self.write_record(&mut record, changed)
    }

    fn flush_now(&self, record: &mut MutexGuard<'_, Record>) -> Result<(), index::Error> {
        // Flushed items no longer count, and an edit, with its unique, comes wholly before the flush or after it.
        self.count.restart(|| {
            let flushed = self.next.load(Ordering::SeqCst);
            let changed = Record {
                flushed,
                flush_at: 0,
                ..**record
            };
            self.write_record(record, changed)
        })
    }

    pub(super) fn reserve_if_few(&self) -> Result<(), index::Error> {
        let reserved = self.reserved.load(Ordering::Acquire);
        match reserved.saturating_sub(self.next.load(Ordering::Relaxed)) {
            LOW.. => Ok(()),
            ENOUGH.. => match self.record.try_lock() {
                Ok(mut record) => self.reserve_in(&mut record),
                Err(TryLockError::Poisoned(record)) => self.reserve_in(&mut record.into_inner()),
                // Its holder reserves, or the next edit will.
                Err(TryLockError::WouldBlock) => Ok(()),
            },
            _ => self.reserve(),
        }
    }

    pub(super) fn reserve(&self) -> Result<(), index::Error> {
        self.reserve_in(&mut self.lock())
    }

    fn reserve_in(&self, record: &mut MutexGuard<'_, Record>) -> Result<(), index::Error> {
        if self.next.load(Ordering::SeqCst) + LOW <= record.reserved {
            return Ok(()); // Another thread was faster.
        }
        let reserved = record.reserved.saturating_add(BLOCK);
        let changed = Record { reserved, ..**record };
        if !self.in_transaction() {
            return self.write_record(record, changed);
        }
        // A reservation is no part of the transaction: it stands whether or not that is committed, and is durable
        // before the transaction's answers are given, also where commits are eventual. A flush is a part.
        let at_rest = {
            let guard = heap::pin();
            let value = self.items.index().get(record::KEY, &guard)?;
            Record::read(value.as_deref().unwrap_or_default())
                .map_err(|error| index::Error::Refused(error.into()))?
        };
        let stored = Record { reserved, ..at_rest };
        self.items
            .write_at_once(record::KEY, &mut Upsert(&stored.bytes()))?;
        self.write_record(record, changed)
    }

    fn write_record(&self, record: &mut MutexGuard<'_, Record>, changed: Record) -> Result<(), index::Error> {
        self.items
            .write_durably(record::KEY, &mut Upsert(&changed.bytes()))?;
        if changed.reserved != record.reserved {
            // Other clients are given these uniques, and are not in this thread's turn.
            self.items.settle_turn()?;
        }
        self.adopt(record, changed);
        Ok(())
    }

    pub(super) fn adopt(&self, record: &mut MutexGuard<'_, Record>, changed: Record) {
        **record = changed;
        self.reserved.store(changed.reserved, Ordering::Release);
        self.flushed.store(changed.flushed, Ordering::Release);
        self.flush_at.store(changed.flush_at, Ordering::Release);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Record> {
        // The record changes only after the index has taken it, so it is whole whatever panicked.
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
