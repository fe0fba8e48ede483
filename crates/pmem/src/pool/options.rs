//! A pool's options, and its properties.

use super::ErrorKind;
use std::fmt;
use std::time::Duration;

/// What stores survive once they are durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The end of the process, however it comes: the page cache, or a tmpfs, holds the stores.
    Process,
    /// The loss of power: a DAX file, mapped with `MAP_SYNC`.
    Power,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Process => "process",
            Level::Power => "power",
        })
    }
}

/// How a pool was left before it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastShutdown {
    /// It was created just now.
    New,
    /// It was closed.
    Clean,
    /// Its process ended without closing it.
    ProcessCrash,
    /// The machine stopped, or was started anew, without the pool being closed.
    MachineCrash,
}

impl fmt::Display for LastShutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LastShutdown::New => "new",
            LastShutdown::Clean => "clean",
            LastShutdown::ProcessCrash => "process crash",
            LastShutdown::MachineCrash => "machine crash",
        })
    }
}

/// What to do with a pool of level [`Process`](Level::Process) that was open when the machine stopped: some of its
/// pages reached the medium and some did not, in no order. Such a pool is *suspect*, and stays so until an opening to
/// write accepts the loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterPowerLoss {
    /// Refuse to open it.
    #[default]
    Refuse,
    /// Open it to read, if that is what is [asked for](PoolOptions::read_only), and leave it suspect; refuse to open it
    /// to write.
    Look,
    /// Take what there is for the pool's content from now on: an opening to write ends the suspicion. Check the pool
    /// before, by an opening to read.
    Accept,
}

/// How to create or open a pool.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// The unit in which the heap takes space, in bytes, for pools to be created: a power of two from 64 KiB to
    /// 128 MiB.
    pub page_size: u64,
    /// Maximum number of bytes that the pool may have; as many addresses are reserved. Less if the system refuses them,
    /// but never less than an existing pool has.
    pub max_size: u64,
    /// The minimum durability level.
    pub level: Level,
    /// The name of a pool to be created, where it is to take another pool's place. Otherwise a new one is drawn.
    pub uuid: Option<Uuid>,
    /// The log position of a pool to be created, which it has as soon as it has its name.
    pub log_position: Option<u64>,
    /// Whether to ask for huge pages, for anonymous pools.
    pub huge_pages: bool,
    /// What to do with a pool that lost its page cache.
    pub after_power_loss: AfterPowerLoss,
    /// Whether the file is only read: what is stored into the pool stays in this process's memory, a page's copy for
    /// each page, and no byte of the file changes. Others may open the pool to read at the same time.
    pub read_only: bool,
    /// Whether a pool with a log position is opened. If not, [`ErrorKind::HasLog`](crate::pool::ErrorKind::HasLog) is the
    /// answer, and nothing of the pool has changed.
    pub with_log: bool,
    /// How long to wait for other processes that have the pool open. One that was killed has it until the kernel has
    /// taken the process apart, which takes longer for larger pools.
    pub lock_wait: Duration,
}

impl Default for PoolOptions {
    fn default() -> PoolOptions {
        PoolOptions {
            page_size: 256 << 10,
            max_size: 1 << 40,
            level: Level::Process,
            uuid: None,
            log_position: None,
            huge_pages: false,
            after_power_loss: AfterPowerLoss::Refuse,
            read_only: false,
            with_log: true,
            lock_wait: Duration::from_secs(2),
        }
    }
}

impl PoolOptions {
    pub(super) fn validate(&self) -> Result<(), ErrorKind> {
        if page_size_is_valid(self.page_size) {
            Ok(())
        } else {
            Err(ErrorKind::PageSize(self.page_size))
        }
    }
}

pub(super) fn page_size_is_valid(bytes: u64) -> bool {
    bytes.is_power_of_two() && (64 << 10..=128 << 20).contains(&bytes)
}

/// A pool's own name: a random (version 4) UUID.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Uuid(pub(super) u128);

impl Uuid {
    /// Draws a name for a new pool.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] where the system has no random numbers.
    pub fn random() -> Result<Uuid, ErrorKind> {
        super::header::new_uuid().map(Uuid)
    }

    /// As a number.
    pub const fn to_u128(self) -> u128 {
        self.0
    }

    /// Of a number.
    pub const fn from_u128(uuid: u128) -> Uuid {
        Uuid(uuid)
    }

    /// Its 16 bytes, the first digits first.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |shift: u32, digits: u32| self.0 >> shift & ((1 << (4 * digits)) - 1);
        let (a, b, c, d, e) = (part(96, 8), part(80, 4), part(64, 4), part(48, 4), part(0, 12));
        write!(f, "{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}")
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
