//! Pools: one growing file, or memory, in a reserved range of addresses.
//!
//! A pool is a header (`header.rs` draws it), the heap's root directory up to the end of page 0, and pages. The heap
//! decides what the pages hold; one persistent word says which of them exist, [`allocated`](Pool::allocated).
//!
//! I1 The base never moves while the pool is open, and need not be the same the next time: nothing in a pool is an
//!    address.
//! I2 Every byte below [`len`](Pool::len) is backed: by blocks that the file system has allocated, or by memory; except
//!    pages that the allocator has [given back](Pool::give_back), or that an opening has found without blocks. The
//!    allocator has these [backed](Pool::back_again) before it hands them out.
//! I3 One process has the pool open to write (an exclusive `flock`), or any number to read (a shared one).
//! I4 A pool is clean from a close, or the drop of the pool, to the next opening to write, and at no other time; unless
//!    its owner [wants it otherwise](Pool::leave_unclosed).
//! I5 An opening to read, and a forked child of the process that has the pool open, change nothing of the file.

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

pub use checked::CheckedWord;
pub use error::{Error, ErrorKind, Fault};
pub use file::{lock_named, rename_new};
pub use memory::Memory;
pub use options::{AfterPowerLoss, LastShutdown, Level, PoolOptions, Uuid};
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

/// The size of the huge pages asked for.
const HUGE_PAGE: u64 = 2 << 20;

/// What errors call a pool without a file.
const ANONYMOUS: &str = "anonymous";

/// An open pool.
///
/// Dropping it closes it, as [`close`](Pool::close) does, but drops errors. In a forked child of the process that
/// opened it, both leave the file and its lock alone.
#[derive(Debug)]
pub struct Pool<M: Media = Hardware> {
    /// Where the mapping starts: a copy, so that [`at`](Pool::at) needs only this line.
    base: NonNull<u8>,
    /// Backed bytes; only grows.
    len: AtomicU64,
    media: M,
    mapping: Arc<Mapping>,
    /// `None` for memory.
    file: Option<PoolFile>,
    holes: Holes,
    /// The memory that outlives the pool, if it is in one.
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
    /// Whether it was closed, or an attempt made; there is no second one, as it could not tell what the first left.
    closed: bool,
    /// Whether it is not to be marked clean.
    stays_unclosed: AtomicBool,
}

// SAFETY: `base` is an address inside `mapping`; all that is shared behind it is reached through words.
unsafe impl<M: Media> Send for Pool<M> {}
// SAFETY: as above.
unsafe impl<M: Media> Sync for Pool<M> {}

impl<M: Media> Pool<M> {
    /// A pool in memory, which is gone when it is dropped.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PageSize`], [`ErrorKind::NotPower`] where the options ask for more than level
    /// [`Process`](Level::Process), and [`ErrorKind::Io`] where the system refuses memory.
    pub fn anonymous(options: &PoolOptions, mut media: M) -> Result<Pool<M>, Error> {
        media.stores_survive_in(PersistenceDomain::Process);
        match Opened::anonymous(options, &media) {
            Ok(opened) => Ok(Self::new(opened, media)),
            Err(kind) => Err(kind.of(Path::new(ANONYMOUS))),
        }
    }

    /// A new pool in a file at `path`, where nothing may be. A creation that fails leaves nothing there.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Exists`], [`ErrorKind::PageSize`], [`ErrorKind::NotPower`] where the file system cannot give the
    /// level asked for, [`ErrorKind::NoSpace`], [`ErrorKind::Denied`], and [`ErrorKind::Io`].
    pub fn create(path: impl AsRef<Path>, options: &PoolOptions, mut media: M) -> Result<Pool<M>, Error> {
        match Opened::create(path.as_ref(), options, &mut media) {
            Ok(opened) => Ok(Self::new(opened, media)),
            Err(kind) => Err(kind.of(path.as_ref())),
        }
    }

    /// The pool in the file at `path`. Its page size is that of its creation. A file that is refused is left as it
    /// was, and so is one that is opened [to be read](PoolOptions::read_only).
    ///
    /// # Errors
    ///
    /// [`ErrorKind`] names all that can be wrong with a file.
    pub fn open(path: impl AsRef<Path>, options: &PoolOptions, mut media: M) -> Result<Pool<M>, Error> {
        match Opened::open(path.as_ref(), options, &mut media) {
            Ok(opened) => Ok(Self::new(opened, media)),
            Err(kind) => Err(kind.of(path.as_ref())),
        }
    }

    /// The pool in the file at `path`, which is created if there is none.
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

    /// A new pool in memory that outlives it: one as long as the memory, which must be zeros. It does not grow.
    ///
    /// # Errors
    ///
    /// As [`anonymous`](Pool::anonymous), [`ErrorKind::Busy`] while another pool is open there, and
    /// [`ErrorKind::Exists`] where there is a pool already.
    pub fn create_in(memory: &Memory, options: &PoolOptions, mut media: M) -> Result<Pool<M>, Error> {
        media.stores_survive_in(PersistenceDomain::Process);
        match Opened::create_in(memory, options, &media) {
            Ok(opened) => Ok(Self::new(opened, media)),
            Err(kind) => Err(kind.of(Path::new(memory::NAME))),
        }
    }

    /// The pool in the memory, as another one has left it there. A pool in memory survives its process, as it were,
    /// and not its machine: [`LastShutdown`] is never [`MachineCrash`](LastShutdown::MachineCrash). Costs no system
    /// call.
    ///
    /// # Errors
    ///
    /// [`ErrorKind`] names all that can be wrong with a header, and [`ErrorKind::Busy`].
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
        }
    }

    /// Where the pool is mapped.
    #[inline]
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Bytes that are backed, from the base on: a multiple of the page size.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a pool always has its first page")]
    pub fn len(&self) -> u64 {
        // Acquire: a thread that sees the length can reach what was mapped before the length was stored.
        self.len.load(Ordering::Acquire)
    }

    /// The object at `offset`.
    ///
    /// Only the place is checked: `offset` may come from a damaged file, and the object is then whatever these bytes
    /// make of it, which [`Persistent`] says is some valid value.
    ///
    /// # Errors
    ///
    /// A [`Fault`] where the object would lie outside the pool or be misaligned.
    ///
    /// # Safety
    ///
    /// While the reference lives:
    ///
    /// * No draft is made of these bytes: their object is not retired, or not reused since the caller holds off the
    ///   allocator's epochs.
    /// * No thread stores into them but through words, and words of `T` cover what is stored into.
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

    /// `len` objects, one after the other, from `offset` on. Only the place is checked, as by [`at`](Pool::at).
    ///
    /// # Errors
    ///
    /// A [`Fault`] where they would lie outside the pool or be misaligned.
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

    /// `len` bytes at `offset`, which do not change while something durable leads to them.
    ///
    /// # Errors
    ///
    /// A [`Fault`] where they would lie outside the pool.
    ///
    /// # Safety
    ///
    /// While the reference lives, nothing stores into these bytes: they are part of a published object, no word covers
    /// them, and the object is not reused.
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
    /// A [`Fault`] where they would lie outside the pool.
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

    /// The unit in which the heap takes the pool's space, in bytes: a power of two.
    #[inline]
    pub fn page_size(&self) -> u64 {
        self.page_size
    }

    /// How often the pool has been opened to write: one more each time, never the same twice, never zero. An opening to
    /// read has the next one, and leaves it to the next.
    #[inline]
    pub fn generation(&self) -> u32 {
        self.state.generation
    }

    /// What stores into the pool survive: at least what the options asked for.
    pub fn level(&self) -> Level {
        self.state.level
    }

    /// The pool's own name, made at creation.
    pub fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// The file; `None` for anonymous memory.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(PoolFile::path)
    }

    /// Whether the file is only read, and all that is stored goes with this process.
    pub fn is_read_only(&self) -> bool {
        self.file.as_ref().is_some_and(|file| !file.is_writable())
    }

    /// The file, if it may be written.
    #[inline]
    fn writable_file(&self) -> Option<&PoolFile> {
        self.file.as_ref().filter(|file| file.is_writable())
    }

    /// What errors call the pool.
    fn name(&self) -> &Path {
        self.path().unwrap_or(Path::new(ANONYMOUS))
    }

    /// How the pool was left before this opening.
    pub fn last_shutdown(&self) -> LastShutdown {
        self.last_shutdown
    }

    /// Whether the pool lost its page cache in a [machine's crash](LastShutdown::MachineCrash), and the loss was not
    /// [accepted](AfterPowerLoss::Accept): what it holds may not fit together.
    pub fn is_suspect(&self) -> bool {
        self.suspect
    }

    /// How many openings, this one included, found the pool not closed; at most 16383.
    pub fn dirty_count(&self) -> u16 {
        self.state.dirty_count
    }

    /// The media that the pool is written through.
    #[inline(always)]
    pub fn media(&self) -> &M {
        &self.media
    }

    /// Whether the pool is anonymous memory for which the system was asked for huge pages, and gives them at all.
    pub fn huge_pages(&self) -> bool {
        self.huge_pages
    }

    /// Maximum number of bytes that the pool may have.
    pub fn max_size(&self) -> u64 {
        self.max_size
    }

    /// Bytes from the base to the end of the last allocated page: DCMM's `offset`, which the heap persists (ROART
    /// §3.4.2).
    #[inline]
    pub fn allocated(&self) -> &CheckedWord {
        &self.header().allocated
    }

    /// Stores where the last allocated page ends; durable once the batch is fenced.
    ///
    /// # Safety
    ///
    /// Every object lies below: the next opening hands out what lies above.
    #[inline]
    #[track_caller]
    pub unsafe fn set_allocated<'m>(&'m self, end: u64, batch: &PersistBatch<'_, 'm, M>) {
        self.header().allocated.store(end, batch);
    }

    /// The position up to which a log beside the pool is contained in it; `None` if the pool has no log.
    pub fn log_position(&self) -> Option<u64> {
        self.header().log_position(&self.media)
    }

    /// Persists the log position (below 2^48), or that the pool has no log: one write-back and one fence. The first and
    /// the last such store are on the medium when this returns, so that a machine's crash leaves no doubt whether there
    /// is a log.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] where the medium fails.
    pub fn set_log_position(&self, position: Option<u64>) -> Result<(), Error> {
        let is_new = position.is_some() != self.log_position().is_some();
        self.header().set_log_position(position, &self.media);
        if is_new && self.writable_file().is_some() {
            let synced = self.mapping.sync(HEADER as u64);
            synced.map_err(|e| ErrorKind::io("writing to the medium", e).of(self.name()))?;
        }
        Ok(())
    }

    /// Where the heap's root directory is, and how many bytes it has: page 0 after the header, zeros at first.
    pub fn directory(&self) -> (Offset, usize) {
        const START: Offset = Offset::new(HEADER as u64).expect("a multiple of 16 above 0");
        (START, self.page_size as usize - HEADER)
    }

    fn header(&self) -> &Header {
        // SAFETY: the first page is always backed, the base is aligned, and any bytes are a valid header.
        unsafe { self.base.cast::<Header>().as_ref() }
    }

    /// Has the pool count as not closed when it is, as after a crash, or not: for an owner that has not yet written
    /// what belongs to the pool elsewhere.
    pub fn leave_unclosed(&self, wanted: bool) {
        self.stays_unclosed.store(wanted, Ordering::Release);
    }

    /// Closes the pool: everything in it is written to its medium, and then it is marked clean.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] where the medium fails. The pool then counts as not closed, as after a crash.
    pub fn close(mut self) -> Result<(), Error> {
        self.mark_clean().map_err(|kind| kind.of(self.name()))
    }

    /// Closes the pool, and then says that it has no log any more. A machine that stops in between leaves a pool that was
    /// closed.
    ///
    /// # Errors
    ///
    /// As for [`close`](Pool::close); the pool then has its log, unless it was closed.
    pub fn close_without_log(mut self) -> Result<(), Error> {
        self.leave_unclosed(false);
        self.mark_clean().map_err(|kind| kind.of(self.name()))?;
        if self.lives_on() {
            self.set_log_position(None)?;
        }
        Ok(())
    }

    /// Whether what is stored outlives this process, and is this process's to store.
    fn lives_on(&self) -> bool {
        self.writable_file().is_some_and(PoolFile::is_ours) || self.memory.is_some()
    }

    fn mark_clean(&mut self) -> Result<(), ErrorKind> {
        if !self.lives_on() || std::mem::replace(&mut self.closed, true) || *self.stays_unclosed.get_mut() {
            return Ok(());
        }
        let failed = |e| ErrorKind::io("writing to the medium", e);
        if self.file.is_some() {
            self.mapping.sync(self.len()).map_err(failed)?;
        }
        let state = State {
            clean: true,
            ..self.state
        };
        self.header().set_state(state, &self.media);
        if self.file.is_some() {
            self.mapping.sync(HEADER as u64).map_err(failed)?;
        }
        Ok(())
    }
}

impl<M: Media> Drop for Pool<M> {
    fn drop(&mut self) {
        // A panic may have left an operation half done, which is what a crash does.
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
