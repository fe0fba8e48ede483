//! Pools: one growing file, or memory, in a reserved range of addresses.
//!
//! A pool is a header (`header.rs` draws it), the heap's root directory up to the end of page 0, and pages. The heap
//! decides what the pages hold; one persistent word, [`allocated`](Pool::allocated), records which of them exist.
//!
//! I1 The base never moves while the pool is open, and may differ at the next opening: nothing in a pool is an
//!    address.
//! I2 Every byte below [`len`](Pool::len) is backed: by blocks that the file system has allocated, or by memory;
//!    except pages that the allocator has [given back](Pool::give_back), or that an opening has found without blocks.
//!    The allocator [backs](Pool::back_again) these again before it hands them out.
//! I3 Either one process has the pool open for writing (an exclusive `flock`), or any number for reading (a shared
//!    one).
//! I4 A pool is clean from a close, or the drop of the pool, to the next opening for writing, and at no other time. It
//!    is not clean after a drop during a panic, or if its owner [leaves it unclosed](Pool::leave_unclosed).
//! I5 An opening for reading does not change the file. Neither does a forked child of the process that has the pool
//!    open when it closes or drops the pool.

mod checked;
mod error;
mod file;
mod header;
mod holes;
mod lock;
mod mapping;
mod memory;
mod open;
mod options;
mod parts;
mod permissions;
mod room;
mod version;

pub use checked::CheckedWord;
pub use error::{Error, ErrorKind, Fault};
pub use file::{lock_named, rename_new};
pub use memory::Memory;
pub use options::{AfterPowerLoss, LastShutdown, PoolLevel, PoolOptions, Uuid};
pub use parts::{behind_links, create_part, folder_of, part_of, sync_folder};
pub use permissions::Permissions;

use crate::{Hardware, Media, Offset, PersistBatch, PersistenceDomain, Persistent};
use file::PoolFile;
use header::{HEADER, Header, State};
use holes::Holes;
use mapping::Mapping;
use memory::Taken;
use open::Opened;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The size of the requested huge pages.
const HUGE_PAGE: u64 = 2 << 20;

/// The name of a pool without a file in errors.
const ANONYMOUS: &str = "anonymous";

/// An open pool.
///
/// Dropping it closes it, as [`close`](Pool::close) does, but ignores errors; a drop during a panic leaves the pool as
/// a crash does. In a forked child of the process that opened it, both leave the file and its lock alone.
#[derive(Debug)]
pub struct Pool<M: Media = Hardware> {
    /// Start of the mapping: a copy, so that [`at`](Pool::at) needs only this line.
    base: NonNull<u8>,
    /// Backed bytes; only grows.
    len: AtomicU64,
    media: M,
    mapping: Arc<Mapping>,
    /// `None` for memory.
    file: Option<PoolFile>,
    holes: Holes,
    /// The memory that outlives the pool, if the pool is in one.
    memory: Option<Taken>,
    /// Held while the pool grows.
    growing: Mutex<()>,
    max_size: u64,
    page_size: u64,
    uuid: Uuid,
    state: State,
    last_shutdown: LastShutdown,
    suspect: bool,
    huge_pages: bool,
    /// Whether a close was attempted; there is no second attempt, since it could not know what the first one left.
    closed: bool,
    /// Whether a close must not mark the pool clean.
    stays_unclosed: AtomicBool,
    /// Whether its owner removes it next.
    abandoned: AtomicBool,
}

// SAFETY: `base` is an address inside `mapping`; shared data behind it is accessed through words only.
unsafe impl<M: Media> Send for Pool<M> {}
// SAFETY: as above.
unsafe impl<M: Media> Sync for Pool<M> {}

impl<M: Media> Pool<M> {
    /// Creates a pool in memory, which is gone when the pool is dropped.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PageSize`], [`ErrorKind::NotPower`] if the options ask for more than level
    /// [`Process`](PoolLevel::Process), and [`ErrorKind::Io`] if the system refuses the memory or a random number.
    pub fn anonymous(options: &PoolOptions, mut media: M) -> Result<Pool<M>, Error> {
        media.stores_survive_in(PersistenceDomain::Process);
        match Opened::anonymous(options, &media) {
            Ok(opened) => Ok(Self::new(opened, media)),
            Err(kind) => Err(kind.of(Path::new(ANONYMOUS))),
        }
    }

    /// Creates a pool in a file at `path`, which must not exist. A creation that fails leaves nothing there.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Exists`], [`ErrorKind::PageSize`], [`ErrorKind::NotAFile`] if the path does not end with a name,
    /// [`ErrorKind::NotPower`] if the file system does not support the requested level, [`ErrorKind::NoSpace`],
    /// [`ErrorKind::Denied`], and [`ErrorKind::Io`].
    pub fn create(path: impl AsRef<Path>, options: &PoolOptions, mut media: M) -> Result<Pool<M>, Error> {
        match Opened::create(path.as_ref(), options, &mut media) {
            Ok(opened) => Ok(Self::new(opened, media)),
            Err(kind) => Err(kind.of(path.as_ref())),
        }
    }

    /// Opens the pool in the file at `path`. Its page size is that of its creation. The bytes of a refused file are
    /// left unchanged (a sparse copy may have got its missing blocks), and so is a file that is opened
    /// [read-only](PoolOptions::read_only).
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`] for all that can be wrong with a file.
    pub fn open(path: impl AsRef<Path>, options: &PoolOptions, mut media: M) -> Result<Pool<M>, Error> {
        match Opened::open(path.as_ref(), options, &mut media) {
            Ok(opened) => Ok(Self::new(opened, media)),
            Err(kind) => Err(kind.of(path.as_ref())),
        }
    }

    /// Opens the pool in the file at `path`, creating it if it does not exist.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Pool::open) and of [`create`](Pool::create).
    pub fn open_or_create(
        path: impl AsRef<Path>,
        options: &PoolOptions,
        mut media: M,
    ) -> Result<Pool<M>, Error> {
        let path = path.as_ref();
        let mut opened = Opened::open(path, options, &mut media);
        if let Err(ErrorKind::Missing) = opened {
            opened = Opened::create(path, options, &mut media);
        }
        if let Err(ErrorKind::Exists) = opened {
            // Another process has just created it.
            opened = Opened::open(path, options, &mut media);
        }
        match opened {
            Ok(opened) => Ok(Self::new(opened, media)),
            Err(kind) => Err(kind.of(path)),
        }
    }

    /// Creates a pool in memory that outlives it. The memory must be zeros; the pool takes all whole pages of it and
    /// does not grow.
    ///
    /// # Errors
    ///
    /// As [`anonymous`](Pool::anonymous), [`ErrorKind::Busy`] while another pool is open there, [`ErrorKind::Full`] if
    /// the memory is smaller than a page, and [`ErrorKind::Exists`] if it does not begin with zeros.
    pub fn create_in(memory: &Memory, options: &PoolOptions, mut media: M) -> Result<Pool<M>, Error> {
        media.stores_survive_in(PersistenceDomain::Process);
        match Opened::create_in(memory, options, &media) {
            Ok(opened) => Ok(Self::new(opened, media)),
            Err(kind) => Err(kind.of(Path::new(memory::NAME))),
        }
    }

    /// Opens the pool that an earlier one has left in the memory. Such a pool models one that survives its process
    /// but not its machine: [`LastShutdown`] is never [`MachineCrash`](LastShutdown::MachineCrash). Costs no system
    /// call.
    ///
    /// # Errors
    ///
    /// See [`ErrorKind`] for all that can be wrong with a header; and [`ErrorKind::Busy`].
    pub fn open_in(memory: &Memory, mut media: M) -> Result<Pool<M>, Error> {
        media.stores_survive_in(PersistenceDomain::Process);
        match Opened::open_in(memory, &media) {
            Ok(opened) => Ok(Self::new(opened, media)),
            Err(kind) => Err(kind.of(Path::new(memory::NAME))),
        }
    }

    fn new(opened: Opened, media: M) -> Pool<M> {
        Pool {
            base: opened.mapping.start(),
            len: opened.len.into(),
            media,
            mapping: opened.mapping,
            file: opened.file,
            holes: opened.holes,
            memory: opened.memory,
            growing: Mutex::new(()),
            max_size: opened.max_size,
            page_size: opened.contents.page_size,
            uuid: Uuid(opened.contents.uuid),
            state: opened.contents.state,
            last_shutdown: opened.last_shutdown,
            suspect: opened.suspect,
            huge_pages: opened.huge_pages,
            closed: false,
            stays_unclosed: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
        }
    }

    /// The address of the mapping.
    #[inline]
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Number of backed bytes, from the base on: a multiple of the page size.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a pool always has its first page")]
    pub fn len(&self) -> u64 {
        // Acquire: a thread that sees the length can reach what was mapped before the length was stored.
        self.len.load(Ordering::Acquire)
    }

    /// The object at `offset`.
    ///
    /// Checks only the place: `offset` may come from a damaged file, and the object is then whatever value these
    /// bytes form, which is valid by the contract of [`Persistent`].
    ///
    /// # Errors
    ///
    /// A [`Fault`] if the object would lie outside the pool or be misaligned.
    ///
    /// # Safety
    ///
    /// While the reference lives:
    ///
    /// * No draft is made of these bytes: their object is not retired, or the caller's guard keeps the allocator from
    ///   reusing it.
    /// * No thread stores into them but through words, and words of `T` cover all bytes that are stored into.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn at<T: Persistent>(&self, offset: Offset) -> Result<&T, Fault> {
        let start = self.place(offset, offset.get() + size_of::<T>() as u64)?;
        // The base is aligned to 2 MiB and an offset to 16, so for most types this is decided at compile time.
        if align_of::<T>() > 16 && !offset.get().is_multiple_of(align_of::<T>() as u64) {
            return Err(misaligned(offset));
        }
        if !T::WORDS_ONLY {
            self.media.touched(start.as_ptr(), size_of::<T>());
        }
        // SAFETY: the bytes are mapped for as long as the pool lives (checked by `place`) and aligned; any bytes are
        // a valid `T`, and only its words change (the caller's promise).
        Ok(unsafe { start.cast::<T>().as_ref() })
    }

    /// The `len` objects in a row from `offset` on. Checks only the place, as [`at`](Pool::at) does.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if they would lie outside the pool or be misaligned.
    ///
    /// # Safety
    ///
    /// As for [`at`](Pool::at).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn slice<T: Persistent>(&self, offset: Offset, len: usize) -> Result<&[T], Fault> {
        let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
        let start = self.place(offset, offset.get().saturating_add(bytes))?;
        if align_of::<T>() > 16 && !offset.get().is_multiple_of(align_of::<T>() as u64) {
            return Err(misaligned(offset));
        }
        if !T::WORDS_ONLY {
            self.media.touched(start.as_ptr(), len * size_of::<T>());
        }
        // SAFETY: the bytes are mapped for as long as the pool lives (checked by `place`) and aligned; any bytes are
        // valid `T`s, and only their words change (the caller's promise).
        Ok(unsafe { std::slice::from_raw_parts(start.cast::<T>().as_ptr(), len) })
    }

    /// The `len` bytes at `offset`, which do not change while a durable link leads to them.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if they would lie outside the pool.
    ///
    /// # Safety
    ///
    /// While the reference lives, no thread stores into these bytes: they are part of a published object, no word
    /// covers them, and the object is not reused.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn bytes(&self, offset: Offset, len: usize) -> Result<&[u8], Fault> {
        let start = self.place(offset, offset.get().saturating_add(len as u64))?;
        self.media.touched(start.as_ptr(), len);
        // SAFETY: the bytes are mapped for as long as the pool lives (checked by `place`) and do not change (the
        // caller's promise).
        Ok(unsafe { std::slice::from_raw_parts(start.as_ptr(), len) })
    }

    /// The address of the `len` bytes at `offset`, for the allocator.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if they would lie outside the pool.
    #[inline]
    pub fn chunk_start(&self, offset: Offset, len: usize) -> Result<NonNull<u8>, Fault> {
        self.place(offset, offset.get().saturating_add(len as u64))
    }

    /// The address of `offset`, if the pool is backed up to `end`.
    #[inline(always)]
    fn place(&self, offset: Offset, end: u64) -> Result<NonNull<u8>, Fault> {
        if end > self.len() {
            return Err(outside(offset));
        }
        // SAFETY: the offset lies inside the mapping, whose length is below `isize::MAX`.
        Ok(unsafe { self.base.add(offset.get() as usize) })
    }

    /// The unit of the heap's space in the pool, in bytes: a power of two.
    #[inline]
    pub fn page_size(&self) -> u64 {
        self.page_size
    }

    /// The number of times the pool has been opened for writing: one more each time, never the same twice, never
    /// zero. An opening for reading uses the next number without consuming it.
    #[inline]
    pub fn generation(&self) -> u32 {
        self.state.generation
    }

    /// The crash that stores into the pool survive: at least the level requested in the options.
    pub fn level(&self) -> PoolLevel {
        self.state.level
    }

    /// The pool's unique id, drawn at creation.
    pub fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// The path of the file; `None` for memory.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(PoolFile::path)
    }

    /// Whether the file is opened read-only: stores into the pool vanish with this process.
    pub fn is_read_only(&self) -> bool {
        self.file.as_ref().is_some_and(|file| !file.is_writable())
    }

    /// The file, if it is writable.
    #[inline]
    fn writable_file(&self) -> Option<&PoolFile> {
        self.file.as_ref().filter(|file| file.is_writable())
    }

    /// The pool's name in errors.
    fn name(&self) -> &Path {
        self.path().unwrap_or(Path::new(ANONYMOUS))
    }

    /// How the pool was left before this opening.
    pub fn last_shutdown(&self) -> LastShutdown {
        self.last_shutdown
    }

    /// Whether the pool lost its page cache in a [machine crash](LastShutdown::MachineCrash), and no opening for
    /// writing has [accepted](AfterPowerLoss::Accept) the loss: the pool's contents may be inconsistent.
    pub fn is_suspect(&self) -> bool {
        self.suspect
    }

    /// The number of openings, this one included, that found the pool not closed; at most 16383.
    pub fn dirty_count(&self) -> u16 {
        self.state.dirty_count
    }

    /// The media that the pool is written through.
    #[inline(always)]
    pub fn media(&self) -> &M {
        &self.media
    }

    /// Whether the pool is anonymous memory for which huge pages were requested, and the system provides them.
    pub fn huge_pages(&self) -> bool {
        self.huge_pages
    }

    /// The maximum size of the pool in bytes.
    pub fn max_size(&self) -> u64 {
        self.max_size
    }

    /// Bytes from the base to the end of the last allocated page: DCMM's `offset`, which the heap persists (ROART
    /// §3.4.2).
    #[inline]
    pub fn allocated(&self) -> &CheckedWord {
        &self.header().allocated
    }

    /// Stores the end of the last allocated page; durable once the batch is fenced.
    ///
    /// # Safety
    ///
    /// Every object lies below `end`: the next opening hands out the space above.
    #[inline]
    #[track_caller]
    pub unsafe fn set_allocated<'m>(&'m self, end: u64, batch: &PersistBatch<'_, 'm, M>) {
        self.header().allocated.store(end, batch);
    }

    /// The position up to which a log beside the pool is contained in it; `None` if the pool has no log.
    pub fn log_position(&self) -> Option<u64> {
        self.header().log_position(&self.media)
    }

    /// Persists the log position (below 2^48), or that the pool has no log: one write-back and one fence. When the
    /// pool gains or loses its log, the store is also on the medium when this returns, so that a machine crash leaves
    /// no doubt whether there is a log.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if the medium fails.
    pub fn set_log_position(&self, position: Option<u64>) -> Result<(), Error> {
        let is_new = position.is_some() != self.log_position().is_some();
        self.header().set_log_position(position, &self.media);
        if is_new && self.writable_file().is_some() {
            let synced = self.mapping.sync(HEADER as u64, &self.media);
            synced.map_err(|kind| kind.of(self.name()))?;
        }
        Ok(())
    }

    /// The place of the heap's root directory and its length in bytes: page 0 after the header, zeros at first.
    pub fn directory(&self) -> (Offset, usize) {
        const START: Offset = Offset::new(HEADER as u64).expect("a multiple of 16 above 0");
        (START, self.page_size as usize - HEADER)
    }

    fn header(&self) -> &Header {
        // SAFETY: the first page is always backed, the base is aligned, and any bytes are a valid header.
        unsafe { self.base.cast::<Header>().as_ref() }
    }

    /// Sets whether a close leaves the pool marked as not closed, as after a crash: for an owner that has not yet
    /// written data elsewhere that belongs to the pool. Such a close writes nothing to the medium either.
    pub fn leave_unclosed(&self, wanted: bool) {
        self.stays_unclosed.store(wanted, Ordering::Release);
    }

    /// Makes a close write nothing to the medium, and leave the pool marked as not closed, whatever
    /// [`leave_unclosed`](Pool::leave_unclosed) says: for an owner that removes the pool next.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
    }

    /// Closes the pool: writes everything in it to its medium, then marks it clean. Does neither if the pool is
    /// anonymous, is opened read-only, is [abandoned](Pool::abandon), or is to be left
    /// [unclosed](Pool::leave_unclosed).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if the medium fails. The pool then counts as not closed, as after a crash.
    pub fn close(mut self) -> Result<(), Error> {
        self.mark_clean().map_err(|kind| kind.of(self.name()))
    }

    /// Closes the pool, and then records that it has no log any more. A machine that stops in between leaves a closed
    /// pool.
    ///
    /// # Errors
    ///
    /// As for [`close`](Pool::close). If the pool could not be closed, it keeps its log. If only the second step has
    /// failed, the pool is closed, and the record of its log may be left.
    pub fn close_without_log(mut self) -> Result<(), Error> {
        self.leave_unclosed(false);
        self.mark_clean().map_err(|kind| kind.of(self.name()))?;
        if self.lives_on() {
            self.set_log_position(None)?;
        }
        Ok(())
    }

    /// Whether stores into the pool outlive this `Pool` (in a file that this process may write and has opened itself,
    /// or in a [`Memory`]).
    fn lives_on(&self) -> bool {
        self.writable_file().is_some_and(PoolFile::is_ours) || self.memory.is_some()
    }

    fn mark_clean(&mut self) -> Result<(), ErrorKind> {
        let is_left = *self.stays_unclosed.get_mut() || *self.abandoned.get_mut();
        if !self.lives_on() || std::mem::replace(&mut self.closed, true) || is_left {
            return Ok(());
        }
        if self.file.is_some() {
            self.mapping.sync(self.len(), &self.media)?;
        }
        let state = State {
            clean: true,
            ..self.state
        };
        self.header().set_state(state, &self.media);
        if self.file.is_some() {
            self.mapping.sync(HEADER as u64, &self.media)?;
        }
        Ok(())
    }
}

impl<M: Media> Drop for Pool<M> {
    fn drop(&mut self) {
        // A panic may have left an operation half done, as a crash does.
        if !std::thread::panicking() {
            let _ = self.mark_clean();
        }
    }
}

#[cold]
#[inline(never)]
fn outside(offset: Offset) -> Fault {
    Fault {
        what: "a link leads outside the pool",
        offset: offset.get(),
    }
}

#[cold]
#[inline(never)]
fn misaligned(offset: Offset) -> Fault {
    Fault {
        what: "a link is misaligned",
        offset: offset.get(),
    }
}

#[cfg(test)]
mod tests;
