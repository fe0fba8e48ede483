//! The first block of a pool.
//!
//! ```text
//!    0  magic                    89 'W' 'O' 'L' 'L' 'E' 'M' 'I'
//!    8  format version           checked word; may not move in any later version, nor may the magic
//!   16  page size                checked word: bytes, a power of two
//!   24  uuid                     3 checked words: bits 0 to 47, 48 to 95, 96 to 127
//!   48  zeros
//!   64  state                    checked word, see below
//!   72  boot id                  3 checked words, like the uuid: the machine's boot during the last opening
//!   96  zeros
//!  128  allocated                checked word: bytes from the base to the end of the last allocated page
//!  136  log position             checked word: see below; all bits zero in a pool without a log
//!  144  zeros
//! 4096  the heap's root directory, up to the end of page 0
//!
//! state   47          34   33      32   31            0
//!        +--------------+-------+-------+--------------+
//!        | dirty count  | power | clean |  generation  |
//!        +--------------+-------+-------+--------------+
//! ```
//!
//! All words are little-endian. The generation goes up by one with each opening for writing; `clean` is set by a close
//! and cleared by such an opening; `power` is the durability level of the last one; the dirty count is the number of
//! openings for writing that found the pool not clean, and saturates.
//!
//! The log position belongs to a log outside of the pool, which a database may keep: the pool contains all of that
//! log below this position. Programs that know of no log refuse a pool that has one, since they take the word for
//! damage.
//!
//! I1 Every word in use but the magic carries its checksum, and all other bytes are zero. So damage is detected, as far
//!    as a [`CheckedWord`] detects it.
//! I2 The state changes by one store. A pool whose state says clean was whole, and on its medium, at that store.
//! I3 A generation is durable before anything else is stored in it, and so is the end of the pages that it starts
//! from.

use super::checked::{CheckedWord, seal, unseal};
use super::version::VERSION;
use super::{ErrorKind, LastShutdown, PoolLevel, PoolOptions, Uuid};
use crate::{Media, PWord, Persistent, Purpose, persist_scope, platform};

/// Bytes of the header.
pub(super) const HEADER: usize = 4096;

/// The first bytes of every pool.
pub(super) const MAGIC: [u8; 8] = *b"\x89WOLLEMI";

/// The header in the mapping.
#[repr(C)]
pub(super) struct Header {
    magic: PWord,
    version: CheckedWord,
    page_size: CheckedWord,
    uuid: [CheckedWord; 3],
    _zeros_1: [u64; 2],
    state: CheckedWord,
    boot_id: [CheckedWord; 3],
    _zeros_2: [u64; 4],
    pub(super) allocated: CheckedWord,
    log: PWord,
    _zeros_3: [u64; (HEADER - 144) / 8],
}

// SAFETY: `repr(C)` of words without padding; the plain fields are never written; any bytes are valid.
unsafe impl Persistent for Header {}

const _: () = assert!(size_of::<Header>() == HEADER);
const _: () = assert!(std::mem::offset_of!(Header, state) == 64);
const _: () = assert!(std::mem::offset_of!(Header, allocated) == 128);
const _: () = assert!(std::mem::offset_of!(Header, log) == 136);

/// The values of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contents {
    pub(super) page_size: u64,
    pub(super) uuid: u128,
    pub(super) state: State,
    pub(super) boot_id: u128,
    pub(super) allocated: u64,
    pub(super) log_position: Option<u64>,
}

/// The state word: how the pool was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) generation: u32,
    pub(super) clean: bool,
    pub(super) level: PoolLevel,
    pub(super) dirty_count: u16,
}

const CLEAN: u64 = 1 << 32;
const POWER: u64 = 1 << 33;
const DIRTY_SHIFT: u32 = 34;
pub(super) const DIRTY_MAX: u16 = (1 << 14) - 1;

impl State {
    fn to_word(self) -> u64 {
        u64::from(self.generation)
            | if self.clean { CLEAN } else { 0 }
            | if self.level == PoolLevel::Power { POWER } else { 0 }
            | u64::from(self.dirty_count.min(DIRTY_MAX)) << DIRTY_SHIFT
    }

    fn from_word(word: u64) -> State {
        State {
            generation: word as u32,
            clean: word & CLEAN != 0,
            level: if word & POWER != 0 {
                PoolLevel::Power
            } else {
                PoolLevel::Process
            },
            dirty_count: (word >> DIRTY_SHIFT) as u16 & DIRTY_MAX,
        }
    }
}

impl State {
    /// The state after another opening at this level.
    pub(super) fn opened(self, last_shutdown: LastShutdown, level: PoolLevel) -> Result<State, ErrorKind> {
        let dirty = u16::from(last_shutdown != LastShutdown::Clean);
        Ok(State {
            generation: self.generation.checked_add(1).ok_or(ErrorKind::Generations)?,
            clean: false,
            level,
            dirty_count: self.dirty_count.saturating_add(dirty).min(DIRTY_MAX),
        })
    }
}

impl Contents {
    /// The header of a new pool.
    pub(super) fn new(options: &PoolOptions, level: PoolLevel) -> Result<Contents, ErrorKind> {
        let page_size = options.page_size;
        Ok(Contents {
            page_size,
            uuid: match options.uuid {
                Some(Uuid(uuid)) => uuid,
                None => Uuid::random()?.0,
            },
            state: State {
                generation: 1,
                clean: false,
                level,
                dirty_count: 0,
            },
            boot_id: platform::boot_id(),
            allocated: page_size,
            log_position: options.log_position,
        })
    }
}

impl Header {
    /// Fills the header of a new pool, all zeros so far, and persists it.
    pub(super) fn create<M: Media>(&self, contents: &Contents, media: &M) {
        persist_scope(media, Purpose::Alloc, |batch| {
            self.magic.store(u64::from_le_bytes(MAGIC), &batch);
            self.version.store(VERSION, &batch);
            self.page_size.store(contents.page_size, &batch);
            for (word, part) in self.uuid.iter().zip(parts(contents.uuid)) {
                word.store(part, &batch);
            }
            for (word, part) in self.boot_id.iter().zip(parts(contents.boot_id)) {
                word.store(part, &batch);
            }
            self.state.store(contents.state.to_word(), &batch);
            self.allocated.store(contents.allocated, &batch);
            if let Some(position) = contents.log_position {
                self.log.store(seal(position), &batch);
            }
            let _durable = batch.fence().durable();
        });
    }

    /// Persists the id of the boot that has the pool open.
    pub(super) fn set_boot_id<M: Media>(&self, boot_id: u128, media: &M) {
        persist_scope(media, Purpose::Alloc, |batch| {
            for (word, part) in self.boot_id.iter().zip(parts(boot_id)) {
                word.store(part, &batch);
            }
            let _durable = batch.fence().durable();
        });
    }

    /// Persists the state of an opening, and with it the end of the pages: a killed process may have stored that
    /// without making it durable, and the contents of those pages soon depend on it.
    pub(super) fn set_opened<M: Media>(&self, state: State, media: &M) {
        media.site("pool: opening");
        persist_scope(media, Purpose::Alloc, |batch| {
            media.site("pool: end of pages at an opening");
            self.allocated.persist_seen(&batch);
            media.site("pool: generation at an opening");
            self.state.store(state.to_word(), &batch);
            let _durable = batch.fence().durable();
        });
    }

    /// The log position, whose checksum was verified when the pool was opened; `None` if the pool has no log.
    pub(super) fn log_position<M: Media>(&self, media: &M) -> Option<u64> {
        unseal(self.log.load(media))
    }

    /// Persists the log position.
    pub(super) fn set_log_position<M: Media>(&self, position: Option<u64>, media: &M) {
        persist_scope(media, Purpose::Log, |batch| {
            self.log.store(position.map_or(0, seal), &batch);
            let _durable = batch.fence().durable();
        });
    }

    /// Persists the state.
    pub(super) fn set_state<M: Media>(&self, state: State, media: &M) {
        media.site("pool: clean close");
        persist_scope(media, Purpose::Alloc, |batch| {
            self.state.store(state.to_word(), &batch);
            let _durable = batch.fence().durable();
        });
    }
}

/// Reads and validates the header of a file of `len` bytes; `bytes` are the first of them (up to 4096).
pub(super) fn read(bytes: &[u8], len: u64) -> Result<Contents, ErrorKind> {
    let ours = bytes.len().min(MAGIC.len());
    if bytes[..ours] != MAGIC[..ours] {
        let mut first = [0; 4];
        let shown = bytes.len().min(first.len());
        first[..shown].copy_from_slice(&bytes[..shown]);
        return Err(ErrorKind::Foreign { first, shown });
    }
    if bytes.is_empty() {
        return Err(ErrorKind::Empty);
    }
    if bytes.len() < HEADER {
        return Err(ErrorKind::Truncated {
            len,
            needed: HEADER as u64,
        });
    }
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(word)
    };
    let field = |at: usize, name: &'static str| unseal(word(at)).ok_or(ErrorKind::Damaged { what: name });
    let wide = |at: usize, name: &'static str| {
        let [low, middle, high] = [field(at, name)?, field(at + 8, name)?, field(at + 16, name)?];
        if high >> 32 != 0 {
            return Err(ErrorKind::Damaged { what: name });
        }
        Ok(u128::from(high) << 96 | u128::from(middle) << 48 | u128::from(low))
    };

    let version = field(8, "format version")?;
    if version > VERSION {
        return Err(ErrorKind::Newer { version });
    }
    if version == 0 {
        return Err(ErrorKind::Damaged {
            what: "format version",
        });
    }
    let log_position = match word(136) {
        0 => None,
        _ => Some(field(136, "log position")?),
    };
    let contents = Contents {
        page_size: field(16, "page size")?,
        uuid: wide(24, "uuid")?,
        state: State::from_word(field(64, "state")?),
        boot_id: wide(72, "boot id")?,
        allocated: field(128, "end of the allocated pages")?,
        log_position,
    };
    if !super::options::page_size_is_valid(contents.page_size) {
        return Err(ErrorKind::Damaged { what: "page size" });
    }
    if contents.state.generation == 0 {
        return Err(ErrorKind::Damaged { what: "state" });
    }
    if contents.allocated == 0 || !contents.allocated.is_multiple_of(contents.page_size) {
        return Err(ErrorKind::Damaged {
            what: "end of the allocated pages",
        });
    }
    let unused = [48..64, 96..128, 144..HEADER];
    if unused
        .into_iter()
        .any(|range| bytes[range].iter().fold(0, |all, byte| all | byte) != 0)
    {
        return Err(ErrorKind::Damaged {
            what: "unused bytes are not zero",
        });
    }
    if contents.allocated > len {
        return Err(ErrorKind::Truncated {
            len,
            needed: contents.allocated,
        });
    }
    Ok(contents)
}

fn parts(id: u128) -> [u64; 3] {
    // A checked word keeps the lower 48 bits of each.
    [id as u64, (id >> 48) as u64, (id >> 96) as u64]
}
