//! Creating and opening.
//!
//! A file is created under a temporary name, and renamed to the pool's when its header is on the medium: at the
//! pool's path there is either nothing or a whole pool.
//!
//! An opening writes in this order, and each step is durable before the next: the boot id; then, by one store, the
//! new generation, with `clean` cleared. That page is also written to the medium, because at level
//! [`Process`](PoolLevel::Process) other pages may reach it long before, and a half-written pool must not be marked
//! clean.
//!
//! An opening for reading does the same in memory alone: it maps the file so that stores stay in this process, leaves
//! its blocks as they are, and shares the lock with other readers.

use super::file::PoolFile;
use super::header::{self, Contents, HEADER, Header};
use super::holes::Holes;
use super::lock::Access;
use super::mapping::Mapping;
use super::memory::{Memory, Taken};
use super::options::{AfterPowerLoss, LastShutdown, PoolLevel, PoolOptions, Uuid};
use super::{ErrorKind, HUGE_PAGE};
use crate::{Media, PersistenceDomain, platform};
use std::path::Path;
use std::sync::Arc;

/// The state of a pool that was opened.
pub(super) struct Opened {
    pub(super) mapping: Arc<Mapping>,
    /// `None` for memory.
    pub(super) file: Option<PoolFile>,
    /// The memory that outlives the pool, if the pool is in one.
    pub(super) memory: Option<Taken>,
    /// Backed bytes.
    pub(super) len: u64,
    pub(super) holes: Holes,
    pub(super) max_size: u64,
    pub(super) contents: Contents,
    pub(super) last_shutdown: LastShutdown,
    /// Whether it lost its page cache, and no opening for writing has accepted the loss.
    pub(super) suspect: bool,
    pub(super) huge_pages: bool,
}

impl Opened {
    /// Creates a pool in memory.
    pub(super) fn anonymous<M: Media>(options: &PoolOptions, media: &M) -> Result<Opened, ErrorKind> {
        options.validate()?;
        if options.level == PoolLevel::Power {
            return Err(ErrorKind::NotPower);
        }
        let mapping = Mapping::reserve(options.max_size, options.page_size)?;
        let huge_pages = options.huge_pages && mapping.advise_huge_pages();
        let unit = if huge_pages { HUGE_PAGE } else { 0 };
        let len = options.page_size.max(unit);
        mapping
            .back_with_memory(0, len)
            .map_err(|e| ErrorKind::io("mapping memory", e))?;
        Self::created(mapping, None, options, len, PoolLevel::Process, huge_pages, media)
    }

    /// Creates a pool at `path`, which must not exist.
    pub(super) fn create<M: Media>(
        path: &Path,
        options: &PoolOptions,
        media: &mut M,
    ) -> Result<Opened, ErrorKind> {
        options.validate()?;
        if path.symlink_metadata().is_ok() {
            return Err(ErrorKind::Exists);
        }
        path.file_name().ok_or(ErrorKind::NotAFile)?;
        // Of fixed length, so that the pool's own name may be as long as the file system allows.
        let new_path = path.with_file_name(format!(".{}.new", Uuid::random()?));
        let file = PoolFile::create(&new_path)?;
        let created = Self::fill(file, path, options, media);
        if created.is_err() {
            // After the rename nothing is left under this name.
            let _ = std::fs::remove_file(&new_path);
        }
        created
    }

    fn fill<M: Media>(
        file: PoolFile,
        path: &Path,
        options: &PoolOptions,
        media: &mut M,
    ) -> Result<Opened, ErrorKind> {
        let len = options.page_size;
        file.allocate(0, len)?;
        file.mark_filled();
        let mapping = Mapping::reserve(options.max_size, len)?;
        let level = file.map(&mapping, len, options.level)?;
        media.stores_survive_in(file.domain(level));
        let mut opened = Self::created(mapping, Some(file), options, len, level, false, media)?;
        opened.mapping.sync(len, media)?;
        if let Some(file) = &mut opened.file {
            file.sync()?;
            file.rename(path)?;
        }
        Ok(opened)
    }

    /// Writes the header of a pool whose page 0 is mapped and zero.
    fn created<M: Media>(
        mapping: Mapping,
        file: Option<PoolFile>,
        options: &PoolOptions,
        len: u64,
        level: PoolLevel,
        huge_pages: bool,
        media: &M,
    ) -> Result<Opened, ErrorKind> {
        let opened = Opened {
            contents: Contents::new(options, level)?,
            max_size: options.max_size.max(len).min(mapping.reserved()),
            mapping: Arc::new(mapping),
            file,
            memory: None,
            len,
            holes: Holes::default(),
            last_shutdown: LastShutdown::New,
            suspect: false,
            huge_pages,
        };
        opened.header().create(&opened.contents, media);
        Ok(opened)
    }

    /// Creates a pool in a memory that outlives it.
    pub(super) fn create_in<M: Media>(
        memory: &Memory,
        options: &PoolOptions,
        media: &M,
    ) -> Result<Opened, ErrorKind> {
        options.validate()?;
        if options.level == PoolLevel::Power {
            return Err(ErrorKind::NotPower);
        }
        let taken = memory.take()?;
        let len = memory.len() - memory.len() % options.page_size;
        if len == 0 {
            return Err(ErrorKind::Full {
                needed: options.page_size,
                limit: memory.len(),
            });
        }
        let mapping = memory.mapping();
        if first_bytes(&mapping, media).iter().any(|&byte| byte != 0) {
            return Err(ErrorKind::Exists);
        }
        let opened = Opened {
            contents: Contents::new(options, PoolLevel::Process)?,
            max_size: len,
            mapping,
            file: None,
            memory: Some(taken),
            len,
            holes: Holes::default(),
            last_shutdown: LastShutdown::New,
            suspect: false,
            huge_pages: false,
        };
        opened.header().create(&opened.contents, media);
        Ok(opened)
    }

    /// Opens the pool in a memory.
    pub(super) fn open_in<M: Media>(memory: &Memory, media: &M) -> Result<Opened, ErrorKind> {
        let taken = memory.take()?;
        let mapping = memory.mapping();
        let contents = header::read(first_bytes(&mapping, media), memory.len())?;
        let last_shutdown = if contents.state.clean {
            LastShutdown::Clean
        } else {
            LastShutdown::ProcessCrash
        };
        let state = contents.state.opened(last_shutdown, PoolLevel::Process)?;
        let len = memory.len() - memory.len() % contents.page_size;
        let opened = Opened {
            contents: Contents { state, ..contents },
            max_size: len,
            mapping,
            file: None,
            memory: Some(taken),
            len,
            holes: Holes::default(),
            last_shutdown,
            suspect: false,
            huge_pages: false,
        };
        opened.header().set_opened(state, media);
        Ok(opened)
    }

    /// Opens the pool at `path`.
    pub(super) fn open<M: Media>(
        path: &Path,
        options: &PoolOptions,
        media: &mut M,
    ) -> Result<Opened, ErrorKind> {
        let access = if options.read_only {
            Access::Read
        } else {
            Access::Write
        };
        let file = PoolFile::open(path, access, options.lock_wait)?;
        let len = file.len()?;
        let contents = header::read(file.read_start(&mut [0; HEADER])?, len)?;
        // Bytes after the last whole page were left by an incomplete growth.
        let len = len - len % contents.page_size;

        let boot_id = platform::boot_id();
        let last_shutdown = if contents.state.clean {
            LastShutdown::Clean
        } else if boot_id != 0 && boot_id == contents.boot_id {
            LastShutdown::ProcessCrash
        } else {
            LastShutdown::MachineCrash
        };
        let lost = last_shutdown == LastShutdown::MachineCrash && contents.state.level == PoolLevel::Process;
        let writable = file.is_writable();
        match options.after_power_loss {
            AfterPowerLoss::Refuse if lost => return Err(ErrorKind::Lost),
            AfterPowerLoss::Look if lost && writable => return Err(ErrorKind::Lost),
            _ => {}
        }
        // Checked before anything is changed: the generations may be exhausted.
        contents.state.opened(last_shutdown, contents.state.level)?;

        let holes = match writable {
            true => Holes::new(file.holes(len, contents.page_size)?),
            false => Holes::default(),
        };
        let mapping = Mapping::reserve(options.max_size, len)?;
        let level = file.map(&mapping, len, options.level)?;
        media.stores_survive_in(match writable {
            true => file.domain(level),
            false => PersistenceDomain::Process,
        });
        if writable && level > contents.state.level && last_shutdown != LastShutdown::Clean {
            // The stores of the process that left the pool unclosed are in the page cache, and perhaps nowhere else.
            mapping.sync(len, media)?;
        }
        let state = contents.state.opened(last_shutdown, level)?;
        let opened = Opened {
            contents: Contents { state, ..contents },
            max_size: options.max_size.max(len).min(mapping.reserved()),
            mapping: Arc::new(mapping),
            file: Some(file),
            memory: None,
            len,
            holes,
            last_shutdown,
            suspect: lost && !writable,
            huge_pages: false,
        };
        if !options.with_log && opened.header().log_position(media).is_some() {
            return Err(ErrorKind::HasLog);
        }
        if boot_id != contents.boot_id {
            opened.header().set_boot_id(boot_id, media);
        }
        opened.header().set_opened(state, media);
        if writable {
            opened.mapping.sync(HEADER as u64, media)?;
        }
        Ok(opened)
    }

    fn header(&self) -> &Header {
        // SAFETY: the first page is backed, the base is aligned, and any bytes are a valid header.
        unsafe { self.mapping.start().cast::<Header>().as_ref() }
    }
}

/// The header of a pool that is not open yet, so no thread writes it meanwhile.
fn first_bytes<'m, M: Media>(mapping: &'m Mapping, media: &M) -> &'m [u8] {
    let start = mapping.start().as_ptr();
    media.touched(start, HEADER);
    // SAFETY: the first page is backed, and the caller has taken the memory and opens nothing before it is done with
    // these bytes.
    unsafe { std::slice::from_raw_parts(start, HEADER) }
}
