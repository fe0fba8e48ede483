//! The file below a pool: creating, mapping and extending it, and what the system knows about it.
//!
//! Not here: how it is opened and locked (`lock`).

use super::ErrorKind;
use super::lock::{Access, open_locked};
use super::mapping::{Backing, Mapping};
use super::options::Level;
use crate::{PersistenceDomain, Process};
use rustix::fs::{AtFlags, CWD, FallocateFlags, FlockOperation, RenameFlags, SeekFrom, XattrFlags};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// The unit of `st_blocks`, whatever the file system's own is.
const BLOCK: u64 = 512;

/// Bytes read or written at a time.
const PIECE: usize = 64 << 10;

/// The attribute of files in which holes were punched. It names the file, so that a copy's is known as another's.
const PUNCHED: &str = "user.wollemi.holes";

/// The attribute of files that were given blocks for every byte, by their maker or by an opening that filled them. It
/// names the file likewise. Where a file system compresses, nothing else tells that the blocks are there.
const FILLED: &str = "user.wollemi.filled";

/// An open file, locked against other openers.
#[derive(Debug)]
pub(super) struct PoolFile {
    file: File,
    path: PathBuf,
    access: Access,
    /// The process that opened it. One that it forks shares the open file, and so the lock, and may give up neither.
    owner: Process,
}

impl PoolFile {
    /// Opens and locks the file at `path`, waiting up to `wait` for processes that have it locked.
    pub(super) fn open(path: &Path, access: Access, wait: Duration) -> Result<PoolFile, ErrorKind> {
        Ok(Self::new(open_locked(path, access, wait)?, path, access))
    }

    /// Makes an empty file at `path`, where nothing is, and locks it.
    pub(super) fn create(path: &Path) -> Result<PoolFile, ErrorKind> {
        let created = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path);
        let file = created.map_err(|e| match Errno::from_io_error(&e) {
            Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => ErrorKind::Denied,
            _ => ErrorKind::io("creating the file", e),
        })?;
        // Nothing else knows its name.
        let locked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
        locked.map_err(|e| ErrorKind::io("locking the file", e))?;
        Ok(Self::new(file, path, Access::Write))
    }

    fn new(file: File, path: &Path, access: Access) -> PoolFile {
        PoolFile {
            file,
            path: path.into(),
            access,
            owner: Process::current(),
        }
    }

    /// Whether it may be written.
    pub(super) fn is_writable(&self) -> bool {
        self.access == Access::Write
    }

    /// Whether this process opened it, and not one that this process was forked from.
    pub(super) fn is_ours(&self) -> bool {
        self.owner.is_current()
    }

    /// Gives the file the name `path`, where nothing may be, durably. On an error nothing has that name.
    pub(super) fn rename(&mut self, path: &Path) -> Result<(), ErrorKind> {
        let failed = |e| ErrorKind::io("writing the directory", e);
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        // Opened first: where this fails, nothing has been done.
        let directory = File::open(parent.unwrap_or(Path::new("."))).map_err(failed)?;
        rename_new(&self.path, path).map_err(|e| match Errno::from_io_error(&e) {
            Some(Errno::EXIST) => ErrorKind::Exists,
            _ => ErrorKind::io("naming the file", e),
        })?;
        self.path = path.into();
        directory.sync_all().map_err(|e| {
            // It is locked, so nobody has used it. If it cannot be removed, there is no more to be done.
            let _ = std::fs::remove_file(path);
            failed(e)
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes in the file.
    pub(super) fn len(&self) -> Result<u64, ErrorKind> {
        let metadata = self.file.metadata();
        metadata
            .map(|m| m.len())
            .map_err(|e| ErrorKind::io("examining the file", e))
    }

    /// The first bytes of the file, at most as many as `bytes` has room for.
    pub(super) fn read_start<'b>(&self, bytes: &'b mut [u8]) -> Result<&'b [u8], ErrorKind> {
        let mut read = 0;
        while read < bytes.len() {
            match self.file.read_at(&mut bytes[read..], read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(ErrorKind::io("reading the header", e)),
            }
        }
        Ok(&bytes[..read])
    }

    /// Waits until the file and its length are on its medium.
    pub(super) fn sync(&self) -> Result<(), ErrorKind> {
        self.file
            .sync_all()
            .map_err(|e| ErrorKind::io("writing to the medium", e))
    }

    /// Maps the first `len` bytes, at the highest level that the file system gives.
    /// Where the file may only be read, stores into the mapping stay in this process's memory.
    pub(super) fn map(&self, mapping: &Mapping, len: u64, least: Level) -> Result<Level, ErrorKind> {
        let failed = |e| ErrorKind::io("mapping the file", e);
        // Found out apart: a refusal amid the reserved range would leave a hole there, for any thread's next mapping.
        let level = match Mapping::takes_sync(self.file.as_fd()) {
            Ok(()) => Level::Power,
            // What a file system without DAX says, and what a kernel without `MAP_SYNC` says.
            Err(Errno::OPNOTSUPP | Errno::INVAL) if least == Level::Power => return Err(ErrorKind::NotPower),
            Err(Errno::OPNOTSUPP | Errno::INVAL) => Level::Process,
            Err(e) => return Err(failed(e)),
        };
        let backing = match self.access {
            Access::Read => Backing::Private,
            Access::Write => Backing::Shared(level),
        };
        mapping
            .back_with_file(self.file.as_fd(), backing, 0, len)
            .map_err(failed)?;
        // The mapping's end would be a signal's cause if another program cut the file just now.
        match self.len()? {
            now if now < len => Err(ErrorKind::Truncated {
                len: now,
                needed: len,
            }),
            _ => Ok(level),
        }
    }

    /// The whole pages behind the first one that lack blocks among the first `len` bytes, where holes were punched in this
    /// very file: they are free pages. In any other they are a sparse copy's, which makes holes of zeros, needed or not:
    /// all of them are filled, once.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoSpace`] where a copy cannot be filled; nothing of it is then.
    pub(super) fn holes(&self, len: u64, page_size: u64) -> Result<Vec<Range<u64>>, ErrorKind> {
        let metadata = self
            .file
            .metadata()
            .map_err(|e| ErrorKind::io("examining the file", e))?;
        let missing = len.saturating_sub(metadata.blocks().saturating_mul(BLOCK));
        let punched = self.is_marked(PUNCHED);
        if !punched && (missing == 0 || self.is_marked(FILLED)) {
            return Ok(Vec::new());
        }
        // Of a file system that cannot allocate it is not to be relied on that it tells holes from data.
        let told = self.unbacked(len).filter(|_| self.can_allocate());
        let Some(all) = told else {
            self.fill(std::slice::from_ref(&(0..len)), missing)?;
            self.mark_filled();
            return Ok(Vec::new());
        };
        if !punched {
            // A file system that compresses has fewer blocks than bytes, and no holes.
            let bytes = all.iter().map(|hole| hole.end - hole.start).sum::<u64>();
            self.fill(&all, missing.min(bytes))?;
            self.mark_filled();
            return Ok(Vec::new());
        }
        let mut holes = Vec::new();
        for Range { start, end } in all {
            let first = start.next_multiple_of(page_size).max(page_size);
            let last = end - end % page_size;
            if first < last {
                self.allocate_if_any(start, first.min(end))?;
                self.allocate_if_any(last, end)?;
                holes.push(first..last);
            } else {
                self.allocate_if_any(start, end)?;
            }
        }
        Ok(holes)
    }

    /// What the file system holds to be holes among the first `len` bytes; `None` if it does not tell. Blocks that were
    /// allocated and not written since may count.
    fn unbacked(&self, len: u64) -> Option<Vec<Range<u64>>> {
        let mut holes = Vec::new();
        let mut at = 0;
        while at < len {
            let from = rustix::fs::seek(&self.file, SeekFrom::Hole(at)).ok()?.min(len);
            // Behind the last data there is none.
            let to = rustix::fs::seek(&self.file, SeekFrom::Data(from))
                .unwrap_or(len)
                .min(len);
            if from < to {
                holes.push(from..to);
            }
            at = to.max(at + 1);
        }
        Some(holes)
    }

    /// Whether the file system can allocate blocks that are not written: tried where there are some.
    fn can_allocate(&self) -> bool {
        let tried = rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, BLOCK);
        tried != Err(Errno::OPNOTSUPP)
    }

    fn allocate_if_any(&self, from: u64, to: u64) -> Result<(), ErrorKind> {
        if from < to {
            self.allocate(from, to)
        } else {
            Ok(())
        }
    }

    /// Allocates the blocks of these holes, `missing` bytes. It is not begun where it cannot succeed.
    fn fill(&self, holes: &[Range<u64>], missing: u64) -> Result<(), ErrorKind> {
        let Some(end) = holes.last().map(|hole| hole.end) else {
            return Ok(());
        };
        let space =
            rustix::fs::fstatvfs(&self.file).map_err(|e| ErrorKind::io("examining the file system", e))?;
        if space.f_bavail.saturating_mul(space.f_frsize) < missing {
            return Err(ErrorKind::NoSpace {
                needed: end,
                why: Errno::NOSPC.into(),
            });
        }
        holes
            .iter()
            .try_for_each(|hole| self.allocate(hole.start, hole.end))
    }

    /// Notes that every byte of this very file has blocks. Where attributes cannot be had, openings ask for them again.
    pub(super) fn mark_filled(&self) {
        if let Ok(mark) = self.own_mark() {
            let _ = rustix::fs::fsetxattr(&self.file, FILLED, mark.as_bytes(), XattrFlags::empty());
        }
    }

    /// Whether this very file has this attribute; one that came with a copy does not count.
    fn is_marked(&self, attribute: &str) -> bool {
        let mut mark = [0; 64];
        let len = rustix::fs::fgetxattr(&self.file, attribute, &mut mark);
        let own = self.own_mark();
        matches!((len, own), (Ok(len), Ok(own)) if mark[..len] == *own.as_bytes())
    }

    /// What no other file's mark is: the number that its file system knows it by, and when it was made, as another file
    /// system may have the same number.
    fn own_mark(&self) -> io::Result<String> {
        let metadata = self.file.metadata()?;
        let made = metadata.created().ok();
        let made = made.and_then(|made| made.duration_since(UNIX_EPOCH).ok());
        let nanoseconds = made.map_or(0, |made| made.as_nanos());
        Ok(format!("{} {nanoseconds}", metadata.ino()))
    }

    /// Gives the blocks of `from..to` back to the file system, which then reads as zeros; `false` where it cannot. The
    /// file is marked before, as one that has holes.
    pub(super) fn punch(&self, from: u64, to: u64) -> Result<bool, ErrorKind> {
        if !self.is_marked(PUNCHED) {
            let mark = self.own_mark();
            let mark = mark.map_err(|e| ErrorKind::io("examining the file", e))?;
            if rustix::fs::fsetxattr(&self.file, PUNCHED, mark.as_bytes(), XattrFlags::empty()).is_err() {
                return Ok(false);
            }
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        loop {
            match rustix::fs::fallocate(&self.file, flags, from, to - from) {
                Ok(()) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(false),
                Err(e) => return Err(ErrorKind::io("giving blocks back", e)),
            }
        }
    }

    /// Lengthens the file from `from` to `to` bytes, blocks and all, and maps them. On an error it is as long as it
    /// was.
    pub(super) fn extend(
        &self,
        mapping: &Mapping,
        level: Level,
        from: u64,
        to: u64,
    ) -> Result<(), ErrorKind> {
        let extended = self.allocate(from, to).and_then(|()| {
            if level == Level::Power {
                // The header may soon say that these bytes are there, and it needs no file system to be durable.
                self.sync()?;
            }
            mapping
                .back_with_file(self.file.as_fd(), Backing::Shared(level), from, to)
                .map_err(|e| ErrorKind::io("mapping the file", e))
        });
        if extended.is_err() {
            // Part of it may have been allocated. If it cannot be given back, it is merely unused.
            let _ = self.file.set_len(from);
        }
        extended
    }

    /// Allocates the blocks of `from..to`, lengthening the file if need be; what is there stays.
    pub(super) fn allocate(&self, from: u64, to: u64) -> Result<(), ErrorKind> {
        let no_space = |why: Errno| ErrorKind::NoSpace {
            needed: to,
            why: why.into(),
        };
        // Asking the system for more than the process may have would raise SIGXFSZ.
        let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
        if limit.is_some_and(|limit| to > limit) {
            return Err(no_space(Errno::FBIG));
        }
        loop {
            match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), from, to - from) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP) => return self.write_zeros(from, to),
                Err(e @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => return Err(no_space(e)),
                Err(e) => return Err(ErrorKind::io("allocating blocks", e)),
            }
        }
    }

    /// Gives `from..to` blocks by writing zeros, on file systems that cannot allocate: behind the file's end, and, as holes read as
    /// zeros, where there are such. (That these file systems tell holes from data is not to be relied on: where they do
    /// not, all is data.)
    ///
    /// What is there stays, since nobody else writes there now: who opens a pool has the file to himself, a pool
    /// grows where it is not mapped, and pages that were given back are their allocator's alone.
    fn write_zeros(&self, from: u64, to: u64) -> Result<(), ErrorKind> {
        let end = self.len()?;
        let mut at = from;
        let mut piece = vec![0; PIECE];
        while at < to.min(end) {
            let piece = &mut piece[..piece_of(at..to.min(end))];
            self.file
                .read_exact_at(piece, at)
                .map_err(|e| ErrorKind::io("reading the file", e))?;
            let len = if is_zero(piece) { PIECE } else { BLOCK as usize };
            for part in piece.chunks(len) {
                if is_zero(part) {
                    self.write_piece(part, at, to)?;
                }
                at += part.len() as u64;
            }
        }
        at = end;
        piece.fill(0);
        while at < to {
            let zeros = &piece[..piece_of(at..to)];
            self.write_piece(zeros, at, to)?;
            at += zeros.len() as u64;
        }
        Ok(())
    }

    fn write_piece(&self, zeros: &[u8], at: u64, needed: u64) -> Result<(), ErrorKind> {
        let written = self.file.write_all_at(zeros, at);
        written.map_err(|e| match Errno::from_io_error(&e) {
            Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => ErrorKind::NoSpace { needed, why: e },
            _ => ErrorKind::io("allocating blocks", e),
        })
    }

    /// How far stores must come to survive what a pool of this level survives.
    pub(super) fn domain(&self, level: Level) -> PersistenceDomain {
        match level {
            Level::Process => PersistenceDomain::Process,
            Level::Power if self.caches_persist() => PersistenceDomain::Caches,
            Level::Power => PersistenceDomain::Memory,
        }
    }

    /// Whether the processor's caches survive a power loss on the file's device.
    fn caches_persist(&self) -> bool {
        let device = self.file.metadata().map(|metadata| metadata.dev());
        device.is_ok_and(|device| caches_persist(Path::new("/sys"), device))
    }
}

impl Drop for PoolFile {
    fn drop(&mut self) {
        // Closing alone would leave the lock to a child process that another thread is just about to start. In such a
        // child, unlocking would take the lock from its parent.
        if self.is_ours() {
            let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
        }
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}

/// How much of these bytes is a piece.
fn piece_of(bytes: Range<u64>) -> usize {
    usize::try_from(bytes.end - bytes.start).map_or(PIECE, |len| len.min(PIECE))
}

/// Looks up the region of persistent memory that block device `device` lies in, in the `sysfs` at `sys`.
fn caches_persist(sys: &Path, device: u64) -> bool {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let Ok(device) = sys.join(format!("dev/block/{major}:{minor}")).canonicalize() else {
        return false;
    };
    // …/ndbus0/region0/namespace0.0/block/pmem0: the region above the device says. A device that is put together
    // from others (LVM, RAID) has no region above it.
    device
        .ancestors()
        .find_map(|directory| std::fs::read_to_string(directory.join("persistence_domain")).ok())
        .is_some_and(|domain| domain.trim() == "cpu_cache")
}

/// Renames a file to a name that nothing may have.
///
/// # Errors
///
/// [`AlreadyExists`](io::ErrorKind::AlreadyExists) where something has the name, and what the file system fails with. On
/// an error the file has its old name.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system can; but then it can link.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            rustix::fs::linkat(CWD, from, CWD, to, AtFlags::empty())?;
            rustix::fs::unlink(from).inspect_err(|_| {
                let _ = rustix::fs::unlink(to);
            })?;
            Ok(())
        }
        renamed => Ok(renamed?),
    }
}

/// The id of the machine's present boot; 0 where it cannot be known.
pub(super) fn boot_id() -> u128 {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    u128::from_str_radix(&id.trim().replace('-', ""), 16).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Write-backs may be left out only where the region above the device says that caches survive.
    #[test]
    fn persistence_domain_is_found() {
        let sys = tempfile::tempdir().expect("a directory");
        let region = sys.path().join("devices/ndbus0/region0");
        let block = region.join("namespace0.0/block/pmem0/pmem0p1");
        std::fs::create_dir_all(&block).expect("a tree");
        std::fs::create_dir_all(sys.path().join("dev/block")).expect("a tree");
        std::os::unix::fs::symlink(&block, sys.path().join("dev/block/259:1")).expect("a link");
        let device = rustix::fs::makedev(259, 1);
        assert!(!caches_persist(sys.path(), device));
        for (domain, persist) in [("memory_controller\n", false), ("cpu_cache\n", true), ("", false)] {
            std::fs::write(region.join("persistence_domain"), domain).expect("a file");
            assert_eq!(caches_persist(sys.path(), device), persist, "{domain:?}");
        }
        assert!(!caches_persist(sys.path(), rustix::fs::makedev(8, 1)));
    }

    /// A file that was filled once is not filled again at each opening, though it has fewer blocks than bytes: a file
    /// system that compresses always says so. A copy is filled, whatever attributes came with it.
    #[test]
    fn a_file_is_filled_once() {
        const LEN: u64 = 1 << 20;
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("sparse");
        let file = PoolFile::create(&path).expect("a file");
        file.file.set_len(LEN).expect("longer");
        let blocks = |file: &PoolFile| file.file.metadata().expect("a file").blocks() * BLOCK;
        file.mark_filled();
        if !file.is_marked(FILLED) {
            eprintln!("attributes cannot be had here: not tried");
            return;
        }
        assert_eq!(file.holes(LEN, LEN).expect("none"), []);
        assert!(blocks(&file) < LEN / 2, "not filled");
        let copy = PoolFile::create(&folder.path().join("copy")).expect("a file");
        copy.file.set_len(LEN).expect("longer");
        let mark = file.own_mark().expect("a mark");
        rustix::fs::fsetxattr(&copy.file, FILLED, mark.as_bytes(), XattrFlags::empty())
            .expect("an attribute");
        assert_eq!(copy.holes(LEN, LEN).expect("room"), []);
        assert!(blocks(&copy) >= LEN, "filled");
        assert!(copy.is_marked(FILLED));
    }

    /// Where the file system cannot allocate, writing fills what was asked for: holes before, between and behind data, and beyond
    /// the end; and leaves data alone.
    #[test]
    fn writing_fills_holes() {
        const LEN: usize = 1 << 20;
        let folder = tempfile::tempdir().expect("a directory");
        let file = PoolFile::create(&folder.path().join("sparse")).expect("a file");
        let mut bytes = vec![0; LEN];
        // Amid a piece, across two, at a piece's first and last byte, and the last byte of all, which ends no block.
        let len = LEN - 100;
        for data in [
            5000..5100,
            2 * PIECE - 9..2 * PIECE + 9,
            4 * PIECE..4 * PIECE + 1,
            7 * PIECE - 1..7 * PIECE,
            len - 1..len,
        ] {
            bytes[data.clone()].fill(0x5a);
            file.file
                .write_all_at(&bytes[data.clone()], data.start as u64)
                .expect("written");
        }
        let backed = || {
            file.sync().expect("synced");
            file.file.metadata().expect("a file").blocks() * BLOCK
        };
        assert!(backed() < LEN as u64 / 2, "a sparse file");

        // A part first: nothing else is filled.
        let before = backed();
        file.write_zeros(8 * PIECE as u64, 9 * PIECE as u64)
            .expect("room");
        assert!(backed() >= before + PIECE as u64);
        assert!(backed() < LEN as u64 / 2);
        assert_eq!(file.len().expect("a length"), len as u64);

        file.write_zeros(0, LEN as u64).expect("room");
        assert!(backed() >= LEN as u64);
        assert_eq!(std::fs::read(&file.path).expect("read"), bytes);
    }
}
