//! A pool's options and properties.

use super::ErrorKind;
use crate::platform;
use std::fmt;
use std::time::Duration;

/// The crash that durable stores survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PoolLevel {
    /// The end of the process, however it comes: the page cache, or a tmpfs, holds the stores.
    Process,
    /// A power loss: a DAX file, mapped with `MAP_SYNC`.
    Power,
}

impl fmt::Display for PoolLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PoolLevel::Process => "process",
            PoolLevel::Power => "power",
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
    /// The machine stopped or was restarted before the pool was closed.
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

/// How to treat a pool of level [`Process`](PoolLevel::Process) that was open when the machine stopped: some of its
/// pages reached the medium and some did not, in no order. Such a pool is *suspect*, until an opening for writing
/// accepts the loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterPowerLoss {
    /// Refuses to open it.
    #[default]
    Refuse,
    /// Opens it if the opening is [read-only](PoolOptions::read_only), and leaves it suspect; refuses to open it for
    /// writing.
    Look,
    /// Accepts the present content as the pool's: an opening for writing ends the suspicion. Check the pool first, by
    /// a read-only opening.
    Accept,
}

/// Options for creating or opening a pool.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// The unit of the heap's space in bytes, for new pools: a power of two from 64 KiB to 128 MiB.
    pub page_size: u64,
    /// The maximum size of the pool in bytes; as many addresses are reserved. Less if the system refuses them, but
    /// never less than an existing pool has.
    pub max_size: u64,
    /// The minimum durability level.
    pub level: PoolLevel,
    /// The id of a new pool that is to replace another one. Otherwise a random one is drawn.
    pub uuid: Option<Uuid>,
    /// The log position of a new pool, set before the pool gets its name.
    pub log_position: Option<u64>,
    /// Whether to request huge pages for anonymous pools.
    pub huge_pages: bool,
    /// How to treat a pool that lost its page cache.
    pub after_power_loss: AfterPowerLoss,
    /// Whether the file is opened read-only: stores into the pool stay in copies of the pages in this process's
    /// memory, and no byte of the file changes. Other processes may open the pool for reading at the same time.
    pub read_only: bool,
    /// Whether to open a pool that has a log position. If not, the opening fails with
    /// [`ErrorKind::HasLog`](crate::pool::ErrorKind::HasLog) and changes nothing of the pool.
    pub with_log: bool,
    /// How long to wait for other processes that have the pool open. A killed process holds it until the kernel has
    /// torn the process down, which takes longer for larger pools.
    pub lock_wait: Duration,
}

impl Default for PoolOptions {
    fn default() -> PoolOptions {
        PoolOptions {
            page_size: 256 << 10,
            max_size: 1 << 40,
            level: PoolLevel::Process,
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

/// A pool's unique id: a random (version 4) UUID.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Uuid(pub(super) u128);

impl Uuid {
    /// Draws an id for a new pool.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if the system has no random numbers.
    pub fn random() -> Result<Uuid, ErrorKind> {
        // Version 4, variant 1 (RFC 9562).
        let mut bytes = platform::random().map_err(|e| ErrorKind::io("drawing a random number", e))?;
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Ok(Uuid(u128::from_be_bytes(bytes)))
    }

    /// The UUID as a number.
    pub const fn to_u128(self) -> u128 {
        self.0
    }

    /// The UUID of a number.
    pub const fn from_u128(uuid: u128) -> Uuid {
        Uuid(uuid)
    }

    /// Its 16 bytes, most significant first.
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
