//! A pool's space: it grows at its end, and the blocks of free pages come and go.

use super::{Error, ErrorKind, HUGE_PAGE, Pool};
use crate::Media;
use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// Maximum number of bytes that a pool grows by beyond need, so that it grows rarely: a growth adds an eighth of the
/// pool's length, up to this, or as much as is requested if that is more.
const GROW_AHEAD: u64 = 64 << 20;

impl<M: Media> Pool<M> {
    /// Makes the pool at least `at_least` bytes long, with blocks really allocated, so that no store into it can fail
    /// for lack of space. It may grow further, so that it need not grow again soon.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Full`] and [`ErrorKind::NoSpace`] if there is no room, [`ErrorKind::Io`] otherwise. The pool is
    /// then unchanged, and may be used and grown again.
    pub fn grow(&self, at_least: u64) -> Result<(), Error> {
        if at_least <= self.len() {
            return Ok(());
        }
        let _growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let len = self.len();
        if at_least <= len {
            return Ok(());
        }
        self.grow_from(len, at_least).map_err(|kind| kind.of(self.name()))
    }

    fn grow_from(&self, len: u64, at_least: u64) -> Result<(), ErrorKind> {
        let limit = self.max_size - self.max_size % self.page_size;
        if at_least > limit {
            return Err(ErrorKind::Full {
                needed: at_least,
                limit,
            });
        }
        let unit = if self.huge_pages {
            HUGE_PAGE.max(self.page_size)
        } else {
            self.page_size
        };
        let ahead = (len / 8).min(GROW_AHEAD);
        let generous = at_least.max(len + ahead).next_multiple_of(unit).min(limit);
        let exact = at_least.next_multiple_of(self.page_size);
        match self.back(len, generous) {
            Err(ErrorKind::NoSpace { .. }) if exact < generous => self.back(len, exact),
            other => other,
        }
    }

    /// Backs `from..to`.
    fn back(&self, from: u64, to: u64) -> Result<(), ErrorKind> {
        match self.writable_file() {
            // Beyond the end of a read-only file there is memory.
            None => self
                .mapping
                .back_with_memory(from, to)
                .map_err(|e| ErrorKind::io("mapping memory", e))?,
            Some(file) => file.extend(&self.mapping, self.state.level, from, to)?,
        }
        // Release: see `len`.
        self.len.store(to, Ordering::Release);
        Ok(())
    }

    /// Gives the blocks of these bytes back to the file system and returns how many bytes that were. They must be
    /// whole pages whose content is no longer needed, and must be [backed again](Pool::back_again) before the next
    /// write to them. Does nothing if there is no file, or its file system does not support it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`]. The bytes then count as given back.
    ///
    /// # Safety
    ///
    /// No reference into these bytes lives, and none is made before they are backed again: they become zeros.
    pub unsafe fn give_back(&self, bytes: Range<u64>) -> Result<u64, Error> {
        match self.writable_file() {
            Some(file) => {
                let Range { start, end } = bytes;
                let punched = self.holes.punch(bytes, || file.punch(start, end));
                punched.map_err(|kind| kind.of(self.name()))
            }
            None => Ok(0),
        }
    }

    /// Whether blocks can be given back, as far as is known: there is a file, and its file system has never failed
    /// to.
    #[inline]
    pub fn can_give_back(&self) -> bool {
        self.writable_file().is_some() && !self.holes.failed()
    }

    /// Allocates blocks for these bytes again, if they were given back.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoSpace`] and [`ErrorKind::Io`]: some may be backed, and the others are still given back.
    #[inline]
    pub fn back_again(&self, bytes: Range<u64>) -> Result<(), Error> {
        match self.writable_file() {
            Some(file) => {
                let Range { start, end } = bytes;
                let filled = self.holes.fill(bytes, || file.allocate(start, end));
                filled.map_err(|kind| kind.of(self.name()))
            }
            None => Ok(()),
        }
    }

    /// Whether all of these bytes are backed.
    #[inline]
    pub fn is_backed(&self, bytes: &Range<u64>) -> bool {
        self.holes.none_in(bytes)
    }

    /// Whether none of these bytes is backed.
    pub fn is_given_back(&self, bytes: &Range<u64>) -> bool {
        self.holes.all_of(bytes)
    }

    /// Bytes that are given back. After an opening, space that has blocks but was never written may count too.
    pub fn given_back(&self) -> u64 {
        self.holes.bytes()
    }
}
