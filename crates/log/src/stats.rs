//! A log's statistics.

use crate::Lsn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A log's counts since it was opened, and its positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogStats {
    /// The position from which on records are kept.
    pub begin: Lsn,
    /// The end of the last record.
    pub appended: Lsn,
    /// The position below which all records are durable.
    pub durable: Lsn,
    /// Records appended.
    pub records: u64,
    /// Bytes of the records with their headers.
    pub bytes: u64,
    /// Records that are durable.
    pub synced: u64,
    /// Syncs of groups.
    pub syncs: u64,
    /// Time spent in them.
    pub sync_time: Duration,
    /// Histogram of sync times, in microseconds.
    pub sync_micros: Histogram,
    /// Histogram of records per group.
    pub group_sizes: Histogram,
    /// Calls that had to wait until a record was durable.
    pub waits: u64,
    /// Segments made ready, new or recycled.
    pub segments_prepared: u64,
    /// Those of them that were recycled.
    pub segments_recycled: u64,
    /// Number of times that an append had to make segments ready itself, because they were not ready.
    pub segments_late: u64,
    /// Appends refused because the log had reached its limit.
    pub refused_at_limit: u64,
    /// Segments that could not be made because the disk was full, for an append, which was refused, or ahead of one.
    pub refused_disk_full: u64,
    /// Number of times that a thread waited for room below the limit.
    pub room_waits: u64,
    /// Time spent in these waits.
    pub room_wait_time: Duration,
    /// Histogram of these waits, in microseconds.
    pub room_wait_micros: Histogram,
    /// Why the log accepts no more records, if it has failed.
    pub failure: Option<String>,
}

/// Counts by powers of two: bucket 0 counts zeros, bucket `n` numbers from `2^(n-1)` to `2^n - 1`, the last all above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Histogram(pub [u64; Histogram::BUCKETS]);

impl Histogram {
    /// Number of buckets.
    pub const BUCKETS: usize = 32;

    /// The bucket that counts a number.
    pub fn bucket(number: u64) -> usize {
        (u64::BITS - number.leading_zeros()).min(Self::BUCKETS as u32 - 1) as usize
    }

    /// Counts a number.
    pub fn add(&mut self, number: u64) {
        self.0[Self::bucket(number)] += 1;
    }

    /// The largest number that a bucket counts.
    pub fn upper(bucket: usize) -> u64 {
        match bucket {
            0..31 => (1 << bucket) - 1,
            _ => u64::MAX,
        }
    }
}

/// Counters that are read without a lock.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Records appended, written under the tail's lock.
    pub(crate) records: AtomicU64,
    pub(crate) prepared: AtomicU64,
    pub(crate) recycled: AtomicU64,
    pub(crate) late: AtomicU64,
    pub(crate) at_limit: AtomicU64,
    pub(crate) disk_full: AtomicU64,
    /// Calls of `wait_durable` that had to wait.
    pub(crate) own_waits: AtomicU64,
    pub(crate) room_waits: AtomicU64,
    pub(crate) room_wait_nanos: AtomicU64,
    /// The buckets of a [`Histogram`].
    pub(crate) room_wait_micros: [AtomicU64; Histogram::BUCKETS],
}

impl Counters {
    pub(crate) fn count(&self, stats: &mut LogStats) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        stats.segments_prepared = load(&self.prepared);
        stats.segments_recycled = load(&self.recycled);
        stats.segments_late = load(&self.late);
        stats.refused_at_limit = load(&self.at_limit);
        stats.refused_disk_full = load(&self.disk_full);
        stats.room_waits = load(&self.room_waits);
        stats.room_wait_time = Duration::from_nanos(load(&self.room_wait_nanos));
        stats.room_wait_micros = Histogram(self.room_wait_micros.each_ref().map(load));
    }
}
