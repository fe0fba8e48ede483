//! Finding the slot that leads to the table of a hash.

use super::directory::{DEEPEST, DirectoryRef, FANOUT};
use super::{Clht, damaged, tag};
use pmem::{Fault, Link, Media};

/// A slot, and the way to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'g> {
    pub(super) directory: DirectoryRef<'g>,
    /// The slot's number.
    pub(super) at: usize,
    /// Its link.
    pub(super) link: Link,
    /// The remaining bits of the hash, most significant first.
    pub(super) rest: u64,
    /// Number of directories above, not counting the root.
    pub(super) depth: usize,
    /// The slot that leads to the directory; `None` for the root.
    pub(super) above: Option<(DirectoryRef<'g>, usize)>,
}

/// Number of bits of a hash that a directory consumes.
pub(super) const BITS: u32 = FANOUT.trailing_zeros();

/// The slot of a directory for the remaining bits of a hash, and the bits that remain below.
#[inline]
pub(super) fn below(rest: u64) -> (usize, u64) {
    ((rest >> (u64::BITS - BITS)) as usize, rest << BITS)
}

impl Place<'_> {
    /// The bits that remain here of a hash that leads here.
    pub(super) fn rest_of(&self, hash: u64) -> u64 {
        (0..self.depth).fold(hash, |rest, _| below(rest).1)
    }

    /// The first and the last hash that lead here.
    pub(super) fn hashes(&self, hash: u64) -> (u64, u64) {
        let free = match BITS * self.depth as u32 {
            0 => u64::MAX,
            used => u64::MAX >> used,
        };
        (hash & !free, hash | free)
    }
}

impl<M: Media> Clht<M> {
    /// The slot for a hash: that of its table, or a null one.
    #[inline]
    pub(super) fn locate(&self, hash: u64) -> Result<Place<'_>, Fault> {
        let media = self.heap.media();
        let mut place = Place {
            directory: DirectoryRef::at(&self.heap, self.root)?,
            at: 0,
            link: Link::NULL,
            rest: hash,
            depth: 0,
            above: None,
        };
        loop {
            place.link = place.directory.slots[place.at].load(media);
            if place.link.tag() != tag::DIRECTORY {
                return Ok(place);
            }
            if place.depth == DEEPEST {
                return Err(damaged("a directory below the last", place.link));
            }
            place.above = Some((place.directory, place.at));
            place.directory = DirectoryRef::at(&self.heap, place.link)?;
            (place.at, place.rest) = below(place.rest);
            place.depth += 1;
        }
    }
}
