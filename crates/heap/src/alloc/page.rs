//! The heap's state of each page, and the table of all pages. They live in DRAM and are rebuilt after a restart.
//!
//! ```text
//!           carve                       last chunk freed
//!  Free ------------> Chunks(class) -----------------------> Free
//!       ------------> Large, Rest, Rest, ... --------------> Free, Free, Free, ...
//!        take pages                     freed
//! ```
//!
//! I1 A page of an earlier generation is `!swept` until recovery's sweep: its `live` bits are recovery's marks so far,
//!    and none of its chunks is handed out.
//! I2 In any other page a bit of `live` is set from the moment a thread claims the chunk, or recovery marks it, until
//!    the chunk is free again. Bits past the last chunk are always set.
//! I3 Locks are taken in this order: a class's open and nearly full pages, one page, the free runs.

use crate::lock::lock;
use std::sync::{Mutex, MutexGuard, OnceLock};

/// Entries of the page table's first segment.
const FIRST: u64 = 64;

/// Number of the page table's segments.
const SEGMENTS: usize = 27;

/// The page table: an entry for each page of a growing pool, found without a lock and never moved.
///
/// Segment k holds 64 x 2^k entries and is made when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct Table {
    segments: [OnceLock<Box<[Page]>>; SEGMENTS],
}

impl Table {
    /// The entry of page `number`, which must exist in the pool.
    #[inline]
    pub(crate) fn page(&self, number: u32) -> &Page {
        let (segment, at) = place(number);
        let new = || (0..FIRST << segment).map(|_| Page::default()).collect();
        &self.segments[segment].get_or_init(new)[at]
    }

    /// The entry of page `number`, which may come from a damaged link; `None` if it does not exist yet. Creates none:
    /// segments of pages beyond any pool would take gigabytes.
    pub(crate) fn page_if_made(&self, number: u32) -> Option<&Page> {
        let (segment, at) = place(number);
        self.segments[segment].get().map(|pages| &pages[at])
    }
}

/// The segment of a page's entry, and the entry's place there.
#[inline]
fn place(number: u32) -> (usize, usize) {
    let index = u64::from(number) + FIRST;
    let segment = index.ilog2() - FIRST.ilog2();
    (segment as usize, (index - (FIRST << segment)) as usize)
}

/// One page's entry in the table.
#[derive(Debug, Default)]
pub(crate) struct Page(Mutex<State>);

impl Page {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

/// The state of a page.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Handed out in this generation, or swept.
    pub(crate) swept: bool,
    /// Carved for the one thread for which it was set apart, and not for others, whatever is freed in it.
    pub(crate) reserved: bool,
    pub(crate) kind: Kind,
}

/// The use of a page.
#[derive(Debug, Default)]
pub(crate) enum Kind {
    /// Unused, as far as is known.
    #[default]
    Free,
    /// Carved into chunks.
    Chunks(Chunks),
    /// The first of this many pages that hold one object.
    Large {
        pages: u32,
        /// Whether recovery's trace has met it.
        visited: bool,
    },
    /// A further page of such an object.
    Rest,
}

/// Chunks of one class.
#[derive(Debug)]
pub(crate) struct Chunks {
    class: u8,
    size: u32,
    slots: u32,
    used: u32,
    /// No word of `live` before this one has a free chunk.
    hint: u32,
    live: Box<[u64]>,
    /// In a page of this generation, a bit for each chunk that recovery's trace has met; empty until then.
    visited: Box<[u64]>,
}

/// Free chunks of one word of a bitmap, claimed together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    /// Offset of the chunk of bit 0: from the page's start here, from the pool's base in a claim that `Arena` returns.
    pub(crate) start: u64,
    /// A bit for each claimed chunk.
    pub(crate) bits: u64,
}

impl Chunks {
    pub(crate) fn new(page_size: u64, class: usize, size: u32) -> Chunks {
        let slots = (page_size / u64::from(size)) as u32;
        let mut live = vec![0; slots.div_ceil(64) as usize].into_boxed_slice();
        if let (Some(last), past @ 1..) = (live.last_mut(), slots % 64) {
            *last = !0 << past;
        }
        Chunks {
            class: class as u8,
            size,
            slots,
            used: 0,
            hint: 0,
            live,
            visited: Box::default(),
        }
    }

    pub(crate) fn class(&self) -> usize {
        usize::from(self.class)
    }

    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    pub(crate) fn slots(&self) -> u32 {
        self.slots
    }

    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    pub(crate) fn free(&self) -> u32 {
        self.slots - self.used
    }

    pub(crate) fn is_full(&self) -> bool {
        self.used == self.slots
    }

    /// The slot of the chunk that starts `within` bytes from the page's start.
    pub(crate) fn slot(&self, within: u32) -> Option<u32> {
        let slot = within / self.size;
        (slot * self.size == within && slot < self.slots).then_some(slot)
    }

    pub(crate) fn is_live(&self, slot: u32) -> bool {
        self.live[slot as usize / 64] >> (slot % 64) & 1 != 0
    }

    /// The words of the bitmap, without the bits past the last chunk.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> {
        let last = self.live.len() - 1;
        let past = match self.slots % 64 {
            0 => 0,
            bits => !0 << bits,
        };
        self.live
            .iter()
            .enumerate()
            .map(move |(i, &word)| if i == last { word & !past } else { word })
    }

    /// Sets the chunk's bit; returns `false` if it is set already.
    pub(crate) fn set(&mut self, slot: u32) -> bool {
        let bit = 1 << (slot % 64);
        let word = &mut self.live[slot as usize / 64];
        let new = *word & bit == 0;
        *word |= bit;
        self.used += u32::from(new);
        new
    }

    /// Records that recovery's trace has met the chunk; returns `false` if it had before.
    pub(crate) fn visit(&mut self, slot: u32) -> bool {
        if self.visited.is_empty() {
            self.visited = vec![0; self.live.len()].into_boxed_slice();
        }
        let bit = 1 << (slot % 64);
        let word = &mut self.visited[slot as usize / 64];
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Clears the chunk's bit; returns `false` if it is clear already.
    pub(crate) fn clear(&mut self, slot: u32) -> bool {
        let index = slot / 64;
        let bit = 1 << (slot % 64);
        let word = &mut self.live[index as usize];
        let was = *word & bit != 0;
        *word &= !bit;
        self.used -= u32::from(was);
        self.hint = self.hint.min(index);
        was
    }

    /// Claims up to `limit` free chunks of one word.
    pub(crate) fn claim(&mut self, limit: u32) -> Option<Claim> {
        if self.is_full() {
            return None;
        }
        while let Some(&word) = self.live.get(self.hint as usize) {
            let mut bits = !word;
            if bits != 0 {
                while bits.count_ones() > limit {
                    bits &= !(1 << bits.ilog2());
                }
                return Some(self.take(self.hint, bits));
            }
            self.hint += 1;
        }
        None
    }

    /// Claims one chunk; returns `None` if it is not free.
    pub(crate) fn claim_slot(&mut self, slot: u32) -> Option<Claim> {
        let (index, bit) = (slot / 64, 1 << (slot % 64));
        (!self.is_live(slot)).then(|| self.take(index, bit))
    }

    /// Claims the free pairs of neighbours (2i, 2i + 1) of one word.
    pub(crate) fn claim_pairs(&mut self) -> Option<Claim> {
        let (index, bits) = (self.hint..)
            .zip(self.live.get(self.hint as usize..)?)
            .map(|(index, &word)| (index, pairs(!word)))
            .find(|&(_, first)| first != 0)?;
        Some(self.take(index, bits | bits << 1))
    }

    fn take(&mut self, index: u32, bits: u64) -> Claim {
        self.live[index as usize] |= bits;
        self.used += bits.count_ones();
        Claim {
            start: u64::from(index) * 64 * u64::from(self.size),
            bits,
        }
    }

    /// Gives back the chunks of a claim.
    pub(crate) fn give_back(&mut self, claim: Claim) {
        let index = (claim.start / (64 * u64::from(self.size))) as u32;
        let word = &mut self.live[index as usize];
        debug_assert_eq!(*word & claim.bits, claim.bits);
        self.used -= (*word & claim.bits).count_ones();
        *word &= !claim.bits;
        self.hint = self.hint.min(index);
    }
}

/// The first bits of the free pairs in a word of free bits.
#[inline]
pub(crate) fn pairs(free: u64) -> u64 {
    free & (free >> 1) & 0x5555_5555_5555_5555
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every page has an entry of its own.
    #[test]
    fn entries_are_distinct() {
        let table = Table::default();
        let at = |number| std::ptr::from_ref(table.page(number)).addr();
        let mut all: Vec<usize> = (0..1000).map(at).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 1000);
        assert_eq!(at(63), at(63));
        assert_eq!(place(u32::MAX).0, SEGMENTS - 1);
    }
}
