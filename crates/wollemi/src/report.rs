//! What a database tells about itself. Everything here serializes.

use index::{Faults, Merges};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// A database at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    /// The pool's file; `None` for an anonymous one.
    pub path: Option<PathBuf>,
    /// The pool's identity, given to it when it was created.
    pub uuid: String,
    /// How often the pool has been opened, but to be read.
    pub generation: u32,
    /// The durability level: `process` or `power`.
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
    /// The maps, by name.
    pub maps: Vec<MapInfo>,
    /// Of each map that somebody holds and whose index gathers writes: how its merges stand.
    pub merges: BTreeMap<String, Merges>,
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
