//! Reports of a database: statistics, checks, descriptions. Everything here serializes.

use index::{Faults, Merges};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// A database at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    /// The pool's file; `None` for an anonymous one. Serialized as text, whatever bytes its name has.
    #[serde(serialize_with = "in_text")]
    pub path: Option<PathBuf>,
    /// The pool's identity, given to it when it was created.
    pub uuid: String,
    /// How often the pool has been opened, but to be read.
    pub generation: u32,
    /// The durability level: `process`, `disk` or `power`.
    pub level: String,
    /// How the pool was left before this opening: `new`, `clean`, `process crash` or `machine crash`.
    pub last_shutdown: String,
    /// Whether the machine stopped while the pool was open at level `process`, and the loss was not
    /// [accepted](crate::AfterPowerLoss::Accept): what it holds may not fit together.
    pub suspect: bool,
    /// Whether it is opened to be read, and its file does not change.
    pub read_only: bool,
    /// How often it was not closed properly.
    pub crashes: u64,
    /// The heap's page, in bytes.
    pub page_size: u64,
    /// The size to which the pool may grow, in bytes.
    pub max_size: u64,
    /// Whether huge pages back it.
    pub huge_pages: bool,
    /// How long opening took, in seconds.
    pub opened_in: f64,
    /// Where the bytes are.
    pub space: Space,
    /// How far the recovery is that follows every opening.
    pub recovery: Recovery,
    /// For a database of level `disk`: its log.
    pub log: Option<LogStats>,
    /// The maps, by name.
    pub maps: Vec<MapInfo>,
    /// The merges of each map that has a handle and an index that gathers writes.
    pub merges: BTreeMap<String, Merges>,
}

fn in_text<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_ref()
        .map(|path| path.to_string_lossy())
        .serialize(serializer)
}

/// What a checkpoint has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checkpoint {
    /// Whether it has all entries, or only what has changed since the one before.
    pub full: bool,
    /// Entries written, removed keys included.
    pub entries: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Where replaying of the log begins now.
    pub from: u64,
}

/// The log of a database of level `disk`, and its checkpoints.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LogStats {
    /// The end of the last record, in bytes since the log's beginning.
    pub appended: u64,
    /// Up to where all records are durable.
    pub durable: u64,
    /// Bytes that are kept.
    pub kept: u64,
    /// Bytes that may be kept: beyond, writes wait for a checkpoint.
    pub limit: u64,
    /// Records appended since the opening.
    pub records: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Of these records, those that the syncs below have made durable.
    pub synced: u64,
    /// Syncs of the disk since the opening.
    pub syncs: u64,
    /// Seconds spent in them.
    pub sync_seconds: f64,
    /// How many syncs took how long: of each number, those of less than as many microseconds as its place's power of
    /// two.
    pub sync_micros: Vec<u64>,
    /// How many records the syncs made durable, in the same way.
    pub group_sizes: Vec<u64>,
    /// Calls that have waited for a sync.
    pub waits: u64,
    /// Writes refused since the log had reached its limit.
    pub refused_at_limit: u64,
    /// Times that a write has waited for a checkpoint, since the log had reached its limit.
    pub room_waits: u64,
    /// Seconds that writes have waited so.
    pub room_wait_seconds: f64,
    /// Why the log takes no more records, if it does not: nothing can be written until the database is opened again.
    pub failure: Option<String>,
    /// Where replaying begins after a loss of power.
    pub replayed_from: u64,
    /// Checkpoints taken since the opening.
    pub checkpoints: u64,
    /// Bytes of these.
    pub checkpoint_bytes: u64,
    /// The last of them.
    pub last_checkpoint: Option<Checkpoint>,
    /// Seconds that it took.
    pub last_checkpoint_seconds: Option<f64>,
    /// Whether one is being taken.
    pub is_checkpointing: bool,
    /// Seconds since the last was taken, or else since the opening.
    pub seconds_since_checkpoint: f64,
    /// Why the last one failed, if it did.
    pub checkpoint_failure: Option<String>,
}

impl LogStats {
    pub(crate) fn of(log: &log::Stats) -> LogStats {
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
            room_waits: log.room_waits,
            room_wait_seconds: log.room_wait_time.as_secs_f64(),
            failure: log.failure.clone(),
            ..LogStats::default()
        }
    }
}

/// Where a pool's bytes are: `used + free + unswept == reserved`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Space {
    /// Bytes of the pool: blocks of the device, or memory.
    pub reserved: u64,
    /// Bytes in use.
    pub used: u64,
    /// Bytes ready for use.
    pub free: u64,
    /// Of these, bytes of which the file system has the blocks back.
    pub given_back: u64,
    /// Bytes of pages from before the opening, in which recovery has yet to tell used from free.
    pub unswept: u64,
    /// Objects in use, outside of these pages.
    pub objects: u64,
}

/// A map's name and what holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MapInfo {
    /// The map's name.
    pub name: String,
    /// The index that holds it.
    pub index: String,
}

/// Where recovery stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RecoveryState {
    /// Not started: the database was opened with no thread for it.
    Idle,
    /// Tracing what is reachable, or sweeping the rest.
    Running,
    /// Everything is accounted for.
    Done,
    /// Given up, for this reason. Every operation goes on, but old space is not reused.
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

/// How far the search for unused space has come. Reads and writes do not wait for it.
#[derive(Clone, Debug, Serialize)]
pub struct Recovery {
    /// Where it stands.
    pub state: RecoveryState,
    /// Objects found reachable so far.
    pub objects: u64,
    /// Pages swept so far.
    pub pages_swept: u64,
    /// Pages to sweep in all.
    pub pages: u64,
    /// Since it began, or how long it took, in seconds.
    pub seconds: f64,
}

/// What walking everything found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Check {
    /// Each map's structure.
    pub maps: Vec<MapCheck>,
    /// The heap's account.
    pub heap: HeapCheck,
}

impl Check {
    /// Whether no fault was found.
    pub fn is_clean(&self) -> bool {
        self.maps.iter().all(|map| map.faults.is_empty()) && self.heap.is_clean()
    }
}

/// What walking one map found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MapCheck {
    /// The map's name.
    pub name: String,
    /// The index that holds it.
    pub index: String,
    /// Keys met.
    pub keys: u64,
    /// Nodes, leaf arrays and leaves met.
    pub objects: u64,
    /// One line for each fault; at most a thousand are kept.
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

/// How the heap's account compares with what is reachable from its roots.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HeapCheck {
    /// Objects reachable from the roots.
    pub reachable: u64,
    /// Their bytes.
    pub reachable_bytes: u64,
    /// Chunks that the heap holds to be in use and no root leads to.
    pub unreachable: u64,
    /// Chunks to which more than one link leads.
    pub doubly_reachable: u64,
    /// One line for each fault; at most a thousand are kept.
    pub faults: Vec<String>,
}

impl HeapCheck {
    pub(crate) fn fault(fault: String) -> HeapCheck {
        HeapCheck {
            faults: vec![fault],
            ..HeapCheck::default()
        }
    }

    /// Whether no fault was found.
    pub fn is_clean(&self) -> bool {
        self.unreachable == 0 && self.doubly_reachable == 0 && self.faults.is_empty()
    }
}
