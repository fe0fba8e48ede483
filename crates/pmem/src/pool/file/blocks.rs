//! The blocks of a pool's file: allocated where it grows, given back, and looked up when it is opened.
//!
//! I1 A file that lacks blocks either had holes punched, which its mark records, or is a copy, whose holes are
//!    filled.

use super::PoolFile;
use crate::platform;
use crate::pool::ErrorKind;
use crate::pool::mapping::{Backing, Mapping};
use crate::pool::options::PoolLevel;
use rustix::fs::{SeekFrom, XattrFlags};
use rustix::io::Errno;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::UNIX_EPOCH;

/// The unit of `st_blocks`, whatever the file system's own is.
const BLOCK: u64 = 512;

/// Bytes read or written at a time.
const PIECE: usize = 64 << 10;

/// The attribute of files in which holes were punched. Its value identifies the file, so that a copy's attribute is
/// recognised as another file's.
const PUNCHED: &str = "user.wollemi.holes";

/// The attribute of files that have blocks for every byte, allocated by their creation or by an opening that filled
/// them. Its value identifies the file likewise. On a compressing file system nothing else shows that the blocks are
/// there.
const FILLED: &str = "user.wollemi.filled";

impl PoolFile {
    /// Returns the whole pages behind page 0 that lack blocks among the first `len` bytes, if holes were punched in
    /// this very file: these are free pages. In any other file, holes come from a sparse copy, which makes them of all
    /// zeros, needed or not: all of them are filled, once. So are the holes of a file system that does not report them
    /// reliably.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoSpace`] if there is no room for the missing blocks. None of a copy is filled then, unless a quota
    /// or another file takes the space that the file system has reported.
    pub(in crate::pool) fn holes(&self, len: u64, page_size: u64) -> Result<Vec<Range<u64>>, ErrorKind> {
        let metadata = self
            .file
            .metadata()
            .map_err(|e| ErrorKind::io("examining the file", e))?;
        let missing = len.saturating_sub(metadata.blocks().saturating_mul(BLOCK));
        let punched = self.is_marked(PUNCHED);
        if !punched && (missing == 0 || self.is_marked(FILLED)) {
            return Ok(Vec::new());
        }
        // A file system that cannot allocate may not report holes reliably.
        let reported = self.unbacked(len).filter(|_| self.can_allocate());
        let Some(all) = reported else {
            self.fill(std::slice::from_ref(&(0..len)), missing)?;
            self.mark_filled();
            return Ok(Vec::new());
        };
        if !punched {
            // A compressing file system has fewer blocks than bytes, and no holes.
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

    /// The holes that the file system reports among the first `len` bytes; `None` if it does not support the query.
    /// Blocks allocated but not written since may count as holes.
    fn unbacked(&self, len: u64) -> Option<Vec<Range<u64>>> {
        let mut holes = Vec::new();
        let mut at = 0;
        while at < len {
            let from = rustix::fs::seek(&self.file, SeekFrom::Hole(at)).ok()?.min(len);
            // No data follows.
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

    /// Whether the file system can allocate blocks without writing them: tried on blocks that exist.
    fn can_allocate(&self) -> bool {
        let tried = platform::allocate(&self.file, 0, BLOCK);
        tried != Err(Errno::OPNOTSUPP)
    }

    fn allocate_if_any(&self, from: u64, to: u64) -> Result<(), ErrorKind> {
        if from < to {
            self.allocate(from, to)
        } else {
            Ok(())
        }
    }

    /// Allocates the blocks of these holes, `missing` bytes. Does nothing if there is too little space.
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

    /// Records that every byte of this very file has blocks. Where the file system has no attributes, each opening
    /// allocates them again.
    pub(in crate::pool) fn mark_filled(&self) {
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

    /// A value that identifies this file: its inode number, and its creation time, since a file on another file
    /// system may have the same number.
    fn own_mark(&self) -> io::Result<String> {
        let metadata = self.file.metadata()?;
        let made = metadata.created().ok();
        let made = made.and_then(|made| made.duration_since(UNIX_EPOCH).ok());
        let nanoseconds = made.map_or(0, |made| made.as_nanos());
        Ok(format!("{} {nanoseconds}", metadata.ino()))
    }

    /// Gives the blocks of `from..to` back to the file system; the range then reads as zeros. Marks the file first as
    /// one that has holes. Returns `false` if the file system keeps no attributes or cannot punch holes.
    pub(in crate::pool) fn punch(&self, from: u64, to: u64) -> Result<bool, ErrorKind> {
        if !self.is_marked(PUNCHED) {
            let mark = self.own_mark();
            let mark = mark.map_err(|e| ErrorKind::io("examining the file", e))?;
            if rustix::fs::fsetxattr(&self.file, PUNCHED, mark.as_bytes(), XattrFlags::empty()).is_err() {
                return Ok(false);
            }
        }
        loop {
            match platform::punch(&self.file, from, to) {
                Ok(()) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(false),
                Err(e) => return Err(ErrorKind::io("giving blocks back", e)),
            }
        }
    }

    /// Lengthens the file from `from` to `to` bytes, with blocks, and maps them. On an error it keeps its length.
    pub(in crate::pool) fn extend(
        &self,
        mapping: &Mapping,
        level: PoolLevel,
        from: u64,
        to: u64,
    ) -> Result<(), ErrorKind> {
        let extended = self.allocate(from, to).and_then(|()| {
            if level == PoolLevel::Power {
                // The header may soon say that these bytes exist, and it becomes durable without the file system.
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

    /// Allocates the blocks of `from..to`, lengthening the file if need be; existing data stays.
    pub(in crate::pool) fn allocate(&self, from: u64, to: u64) -> Result<(), ErrorKind> {
        let no_space = |why: Errno| ErrorKind::NoSpace {
            needed: to,
            why: why.into(),
        };
        // Requesting more than the process's limit would raise SIGXFSZ.
        let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
        if limit.is_some_and(|limit| to > limit) {
            return Err(no_space(Errno::FBIG));
        }
        loop {
            match platform::allocate(&self.file, from, to) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP) => return self.write_zeros(from, to),
                Err(e @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => return Err(no_space(e)),
                Err(e) => return Err(ErrorKind::io("allocating blocks", e)),
            }
        }
    }

    /// Allocates the blocks of `from..to` by writing zeros, on file systems that cannot allocate: behind the file's
    /// end, and over everything that reads as zeros, since it may be a hole. (These file systems may not report holes
    /// reliably: one that does not reports everything as data.)
    ///
    /// Existing bytes stay, since no other process or thread writes there now: the opener of a pool has the file to
    /// itself, a pool grows where it is not mapped, and pages that were given back belong to their allocator alone.
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
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}

/// The part of these bytes that fits a piece.
fn piece_of(bytes: Range<u64>) -> usize {
    usize::try_from(bytes.end - bytes.start).map_or(PIECE, |len| len.min(PIECE))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that was filled once is not filled again at each opening, though it has fewer blocks than bytes, as on
    /// every compressing file system. A copy is filled, whatever attributes came with it.
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

    /// Where the file system cannot allocate, writing fills the requested range: holes before, between and behind
    /// data, and beyond the end; and leaves data alone.
    #[test]
    fn writing_fills_holes() {
        const LEN: usize = 1 << 20;
        let folder = tempfile::tempdir().expect("a directory");
        let file = PoolFile::create(&folder.path().join("sparse")).expect("a file");
        let mut bytes = vec![0; LEN];
        // Inside a piece, across two, at a piece's first and last byte, and the last byte of all, which ends no block.
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
