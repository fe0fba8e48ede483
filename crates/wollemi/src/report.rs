//! Reports of a database: statistics, checks, descriptions. Everything here serializes.

use index::{Faults, Merges};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// Statistics of a database at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    /// The pool's file; `None` for an anonymous pool. Serialized as text, whatever bytes its name has.
    #[serde(serialize_with = "in_text")]
    pub path: Option<PathBuf>,
    /// The pool's identity, assigned at its creation.
    pub uuid: String,
    /// Number of times the pool has been opened to write.
    pub generation: u32,
    /// The durability level: `process`, `disk` or `power`.
    pub level: String,
    /// How the pool was left before this opening: `new`, `clean`, `process crash` or `machine crash`.
    pub last_shutdown: String,
    /// Whether the machine stopped while the pool was open at level `process`, and the loss was not
    /// [accepted](crate::AfterPowerLoss::Accept): its content may be inconsistent.
    pub suspect: bool,
    /// Whether it is opened read-only, so that its file does not change.
    pub read_only: bool,
    /// Number of times it was not closed properly.
    pub crashes: u64,
    /// The heap's page size, in bytes.
    pub page_size: u64,
    /// The maximum size of the pool, in bytes.
    pub max_size: u64,
    /// Whether huge pages back it.
    pub huge_pages: bool,
    /// Duration of the opening, in seconds.
    pub opened_in: f64,
    /// How the pool's bytes are used.
    pub space: Space,
    /// Progress of the recovery that follows every opening.
    pub recovery: Recovery,
    /// The log, in a database of level `disk`.
    pub log: Option<LogStats>,
    /// The maps, by name.
    pub maps: Vec<MapInfo>,
    /// The merges of each map that has a handle and an index that buffers writes.
    pub merges: BTreeMap<String, Merges>,
}

fn in_text<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_ref()
        .map(|path| path.to_string_lossy())
        .serialize(serializer)
}

/// The result of a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checkpoint {
    /// Whether it contains all entries, or only the changes since the previous one.
    pub full: bool,
    /// Entries written, removed keys included.
    pub entries: u64,
    /// Bytes written.
    pub bytes: u64,
    /// The log position at which replay now begins.
    pub from: u64,
}

/// What an opening rebuilt a pool from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rebuilt {
    /// Entries of the checkpoint; removed keys count.
    pub entries: u64,
    /// Bytes of the log.
    pub log: u64,
    /// Duration of the rebuild, in seconds.
    pub seconds: f64,
}

/// The log of a database of level `disk`, and its checkpoints.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LogStats {
    /// The log position of the end of the last record, in bytes since the log was created.
    pub appended: u64,
    /// The position up to which all records are durable.
    pub durable: u64,
    /// Bytes of log kept.
    pub kept: u64,
    /// Maximum bytes of log kept; beyond that, writes wait for a checkpoint.
    pub limit: u64,
    /// Records appended since the opening.
    pub records: u64,
    /// Bytes of these records.
    pub bytes: u64,
    /// Number of these records that the syncs below have made durable.
    pub synced: u64,
    /// Syncs of the disk since the opening.
    pub syncs: u64,
    /// Seconds spent in these syncs.
    pub sync_seconds: f64,
    /// Histogram of sync durations: element `i` counts the syncs that took less than 2^i microseconds, and not less
    /// than the previous bound.
    pub sync_micros: Vec<u64>,
    /// Histogram of records per sync, with the same bounds.
    pub group_sizes: Vec<u64>,
    /// Calls that waited for a sync.
    pub waits: u64,
    /// Number of times that the log refused a record because it had reached its limit. The write waited for a
    /// checkpoint and tried again, or failed.
    pub refused_at_limit: u64,
    /// Number of times that a segment of the log could not be made because the disk was full. A write that needed it
    /// failed.
    pub refused_disk_full: u64,
    /// Number of times a write waited for a checkpoint because the log had reached its limit.
    pub room_waits: u64,
    /// Seconds that writes spent in these waits.
    pub room_wait_seconds: f64,
    /// Histogram of these waits in microseconds, with the bounds of `sync_micros`.
    pub room_wait_micros: Vec<u64>,
    /// Why the log has failed, if it has: all writes fail until the database is reopened.
    pub failure: Option<String>,
    /// The rebuild with which the opening began, if the pool had been lost.
    pub rebuilt: Option<Rebuilt>,
    /// The log position at which replay begins after a loss of power.
    pub replayed_from: u64,
    /// Checkpoints taken since the opening.
    pub checkpoints: u64,
    /// Bytes of these checkpoints.
    pub checkpoint_bytes: u64,
    /// The last checkpoint.
    pub last_checkpoint: Option<Checkpoint>,
    /// Duration of the last checkpoint, in seconds.
    pub last_checkpoint_seconds: Option<f64>,
    /// Histogram of the checkpoints' durations: element `i` counts those that took less than 2^i milliseconds, and not
    /// less than the previous bound.
    pub checkpoint_millis: Vec<u64>,
    /// Seconds spent in checkpoints.
    pub checkpoint_seconds: f64,
    /// Whether a checkpoint is in progress.
    pub is_checkpointing: bool,
    /// Seconds since the last checkpoint, or, before the first, since the opening.
    pub seconds_since_checkpoint: f64,
    /// Why the last checkpoint failed, if it did.
    pub checkpoint_failure: Option<String>,
}

impl LogStats {
    pub(crate) fn of(log: &log::LogStats) -> LogStats {
        LogStats {
            appended: log.appended.0,
            durable: log.durable.0,
            kept: log.appended.0 - log.begin.0,
            records: log.records,
            bytes: log.bytes,
            synced: log.synced,
            syncs: log.syncs,
            sync_seconds: log.sync_time.as_secs_f64(),
            sync_micros: log.sync_micros.0.to_vec(),
            group_sizes: log.group_sizes.0.to_vec(),
            waits: log.waits,
            refused_at_limit: log.refused_at_limit,
            refused_disk_full: log.refused_disk_full,
            room_waits: log.room_waits,
            room_wait_seconds: log.room_wait_time.as_secs_f64(),
            room_wait_micros: log.room_wait_micros.0.to_vec(),
            failure: log.failure.clone(),
            ..LogStats::default()
        }
    }
}

/// How a pool's bytes are used: `used + free + unswept == reserved`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Space {
    /// Bytes of the pool: blocks of the device, or memory.
    pub reserved: u64,
    /// Bytes in use.
    pub used: u64,
    /// Free bytes.
    pub free: u64,
    /// Free bytes whose blocks were returned to the file system.
    pub given_back: u64,
    /// Bytes of pages from before the opening that recovery has not yet swept.
    pub unswept: u64,
    /// Objects in use, not counting those pages.
    pub objects: u64,
}

/// A map's name and index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MapInfo {
    /// The map's name.
    pub name: String,
    /// The index that holds it.
    pub index: String,
}

/// The state of recovery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RecoveryState {
    /// Not started: the database was opened with no thread for it.
    Idle,
    /// Tracing reachable objects, or sweeping the rest.
    Running,
    /// Everything is accounted for.
    Done,
    /// Abandoned, for this reason. All operations continue, but old space is not reused.
    Failed(String),
}

impl fmt::Display for RecoveryState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecoveryState::Idle => f.write_str("idle"),
            RecoveryState::Running => f.write_str("running"),
            RecoveryState::Done => f.write_str("done"),
            RecoveryState::Failed(why) => write!(f, "failed: {why}"),
        }
    }
}

/// Progress of the search for unused space. Reads and writes do not wait for it.
#[derive(Clone, Debug, Serialize)]
pub struct Recovery {
    /// The state.
    pub state: RecoveryState,
    /// Objects found reachable so far.
    pub objects: u64,
    /// Pages swept so far.
    pub pages_swept: u64,
    /// Pages to sweep in all.
    pub pages: u64,
    /// Seconds since it began, or its duration in seconds.
    pub seconds: f64,
}

/// The result of a check of the whole pool.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Check {
    /// The structure of each map.
    pub maps: Vec<MapCheck>,
    /// The heap's accounting.
    pub heap: HeapCheck,
}

impl Check {
    /// Returns whether no fault was found.
    pub fn is_clean(&self) -> bool {
        self.maps.iter().all(|map| map.faults.is_empty()) && self.heap.is_clean()
    }
}

/// The result of checking one map.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MapCheck {
    /// The map's name.
    pub name: String,
    /// The index that holds it.
    pub index: String,
    /// Keys visited.
    pub keys: u64,
    /// Nodes, leaf arrays and leaves visited.
    pub objects: u64,
    /// One line per fault, at most a thousand.
    pub faults: Vec<String>,
}

impl MapCheck {
    pub(crate) fn new(MapInfo { name, index }: MapInfo, faults: Faults) -> MapCheck {
        MapCheck {
            name,
            index,
            keys: faults.keys,
            objects: faults.objects,
            faults: faults.found,
        }
    }
}

/// Compares the heap's accounting with what is reachable from its roots.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HeapCheck {
    /// Objects reachable from the roots.
    pub reachable: u64,
    /// Their bytes.
    pub reachable_bytes: u64,
    /// Chunks in use that no root leads to.
    pub unreachable: u64,
    /// Chunks with more than one link to them.
    pub doubly_reachable: u64,
    /// One line per fault, at most a thousand.
    pub faults: Vec<String>,
}

impl HeapCheck {
    pub(crate) fn fault(fault: String) -> HeapCheck {
        HeapCheck {
            faults: vec![fault],
            ..HeapCheck::default()
        }
    }

    /// Returns whether no fault was found.
    pub fn is_clean(&self) -> bool {
        self.unreachable == 0 && self.doubly_reachable == 0 && self.faults.is_empty()
    }
}
