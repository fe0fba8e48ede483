//! Levels of durability.

use std::fmt;
use std::str::FromStr;

/// The failures that acknowledged operations survive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The end of the process, for whatever reason; any file supports it.
    #[default]
    Process,
    /// Also a crash of the kernel and a loss of power, on any file system with a working `fdatasync`, by a log and
    /// checkpoints beside the pool.
    Disk,
    /// The same on persistent memory: a DAX file, mapped with `MAP_SYNC`, which needs no log.
    Power,
}

impl Level {
    /// All levels.
    pub const ALL: [Level; 3] = [Level::Process, Level::Disk, Level::Power];

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Process => "process",
            Level::Disk => "disk",
            Level::Power => "power",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error for a name that no level has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no level is called '{0}': there are process, disk and power")]
pub struct UnknownLevel(pub String);

impl FromStr for Level {
    type Err = UnknownLevel;
    fn from_str(name: &str) -> Result<Level, UnknownLevel> {
        let found = Level::ALL.into_iter().find(|level| level.name() == name);
        found.ok_or_else(|| UnknownLevel(name.to_owned()))
    }
}
