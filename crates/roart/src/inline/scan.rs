//! Inline leaf arrays in order.
//!
//! Homes ascend with the keys, and a key is in the first line from its home on that had room. So behind a line with a
//! never-used entry there is no key whose home is in that line or before it: all keys read so far come before all later
//! ones. A forward scan sorts and visits the keys between two such lines. A reverse scan reads the whole array first.

use super::shape::{PER_LINE, WINDOW};
use super::word::{KeyWord, LONGEST, MARK, is_present};
use super::{InlineEntry, InlineRef};
use heap::Guard;
use index::{Direction, Value, Visit};
use pmem::Media;
use std::array::from_fn;
use std::ops::ControlFlow::{self, Continue};

/// Lines to prefetch ahead.
pub(crate) const LINES_AHEAD: usize = 12;

/// Bytes of the first allocation for keys, and of the largest one: each is twice as large as the one before.
/// (Allocators have pieces of up to a kilobyte at hand.)
const KEPT: usize = 128 * LONGEST;
const MAX_KEPT: usize = 512 * LONGEST;

/// Minimum number of pairs to visit before the last line; fewer wait for more.
const MIN_VISITED: usize = 8;

/// Number of pairs to make room for at first.
const INITIAL_PAIRS: usize = 64;

/// The keys between two words, both included.
#[derive(Clone, Copy)]
pub(crate) struct Words {
    pub(crate) least: u64,
    pub(crate) max: u64,
}

impl Words {
    pub(crate) const ALL: Words = Words {
        least: 0,
        max: u64::MAX,
    };

    #[inline(always)]
    fn are_none(self) -> bool {
        self.least > self.max
    }

    #[inline(always)]
    fn contain(self, key: KeyWord) -> bool {
        (key.bits() >= self.least) & (key.bits() <= self.max)
    }
}

/// Buffers that a scan keeps from one array to the next.
pub(crate) struct Scratch<'g> {
    guard: &'g Guard,
    /// Room for the keys passed to visitors: an array has them in words, which change.
    kept: &'g mut [u8],
    /// Size of the next allocation.
    step: usize,
    /// Pairs that are not visited yet come first, ascending.
    pairs: Vec<(KeyWord, u64)>,
}

impl<'g> Scratch<'g> {
    pub(crate) fn new(guard: &'g Guard) -> Self {
        Scratch {
            guard,
            kept: &mut [],
            step: KEPT,
            pairs: Vec::new(),
        }
    }

    /// Makes room for another line's pairs.
    #[inline(always)]
    fn reserve(&mut self, count: usize) -> &mut [(KeyWord, u64)] {
        if self.pairs.len() < count + PER_LINE {
            let len = (count + PER_LINE).next_multiple_of(INITIAL_PAIRS);
            self.pairs.resize(len, (KeyWord::from_bits(0), 0));
        }
        &mut self.pairs
    }

    /// Visits the first `count` pairs, forward or in reverse.
    #[expect(
        clippy::slow_vector_initialization,
        reason = "small pieces are cheaper to allocate than zeroed memory"
    )]
    #[inline(always)]
    fn visit(
        &mut self,
        count: usize,
        reverse: bool,
        first: u8,
        visit: &mut Visit<'_, 'g>,
    ) -> ControlFlow<()> {
        if self.kept.len() < count * LONGEST {
            let len = (count * LONGEST).max(self.step);
            self.step = (self.step * 2).min(MAX_KEPT);
            let mut room = Vec::with_capacity(len);
            room.resize(len, 0);
            self.kept = heap::keep(self.guard, room.into());
        }
        let (places, rest) = std::mem::take(&mut self.kept).split_at_mut(count * LONGEST);
        self.kept = rest;
        let (places, _) = places.as_chunks_mut::<LONGEST>();
        let pairs = &mut self.pairs[..count];
        if reverse {
            pairs.reverse();
        }
        for (place, (key, value)) in places.iter_mut().zip(pairs) {
            let (bytes, len) = key.key(first);
            *place = bytes;
            visit(&place[..len], Value::Word(value.to_le_bytes()))?;
        }
        Continue(())
    }
}

impl InlineRef<'_> {
    /// Visits the keys between the words in order. The array hangs below `depth` bytes, the first of which is `first`.
    /// The caller has prefetched the first [`LINES_AHEAD`] lines.
    pub(crate) fn scan<'g, M: Media>(
        &self,
        mut words: Words,
        (depth, first): (usize, u8),
        direction: Direction,
        scratch: &mut Scratch<'g>,
        visit: &mut Visit<'_, 'g>,
        media: &M,
    ) -> ControlFlow<()> {
        let reverse = direction == Direction::Reverse;
        let Some(lines) = self.lines_of(&mut words, depth, media) else {
            return Continue(());
        };
        let mut count = 0;
        for line in lines {
            self.prefetch_line(line + LINES_AHEAD);
            let ends = self.gather(line, words, scratch.reserve(count), &mut count, media);
            if ends && !reverse && count >= MIN_VISITED {
                scratch.visit(count, false, first, visit)?;
                // A key in a later line that does not come behind these was inserted meanwhile, and is left out.
                words.least = scratch.pairs[count - 1].0.bits() + 1;
                if words.are_none() {
                    return Continue(());
                }
                count = 0;
            }
        }
        scratch.visit(count, reverse, first, visit)
    }

    /// The lines that may have keys between the words.
    fn lines_of<M: Media>(
        &self,
        words: &mut Words,
        depth: usize,
        media: &M,
    ) -> Option<std::ops::Range<usize>> {
        let from = usize::from(self.shape.from);
        let mut lines = 0..self.shape.lines();
        let any = || {
            let words = self.entries().iter().map(|entry| entry.key.peek(media));
            words.filter_map(KeyWord::stored).next()
        };
        // A word without the bytes that all keys of the array share comes before all or behind all.
        let apart = |word: KeyWord| {
            let any = if from > depth { any()? } else { return None };
            (word.shared(any) < from).then_some(word < any)
        };
        if words.least > 0 {
            match apart(KeyWord::from_bits(words.least)) {
                Some(true) => words.least = 0,
                Some(false) => return None,
                None => lines.start = self.shape.first_line(words.least),
            }
        }
        if words.max < u64::MAX {
            let max = KeyWord::from_bits(words.max);
            match apart(max) {
                Some(true) => return None,
                Some(false) => words.max = u64::MAX,
                None => lines.end = lines.end.min(self.shape.home(max) + WINDOW),
            }
        }
        Some(lines)
    }

    /// Adds a line's pairs to those gathered, in order; returns whether the line has a never-used entry.
    #[inline(always)]
    fn gather<M: Media>(
        &self,
        line: usize,
        words: Words,
        gathered: &mut [(KeyWord, u64)],
        count: &mut usize,
        media: &M,
    ) -> bool {
        let Some(sorted) = self.sorted(line, words, media) else {
            return self.gather_slowly(line, words, gathered, count, media);
        };
        let Sorted { pairs, present, ends } = sorted;
        if *count > 0 && present > 0 && gathered[*count - 1].0 > pairs[0].0 {
            put_all(gathered, count, pairs, present);
        } else {
            // Word by word, straight from registers: nothing reads them before they are visited.
            for (place, pair) in gathered[*count..*count + PER_LINE].iter_mut().zip(pairs) {
                *place = pair;
            }
            *count += present;
        }
        ends
    }

    /// A line's pairs between the words; `None` if an entry is marked or was changing. It does not branch on the
    /// entries' contents, which are unpredictable: all are read, and sorted by exchanges.
    #[inline(always)]
    fn sorted<M: Media>(&self, line: usize, words: Words, media: &M) -> Option<Sorted> {
        let entries: &[InlineEntry; PER_LINE] = self.slots[line * PER_LINE..].first_chunk()?;
        // The head's place counts as used, but by no key.
        let head = |i: usize| line == 0 && i == 0;
        let keys = || from_fn(|i| if head(i) { HEAD } else { entries[i].key.peek(media) });
        let before: [u64; PER_LINE] = keys();
        let values: [u64; PER_LINE] = from_fn(|i| entries[i].value.peek(media));
        // The words are read again: a writer that has stored another value meanwhile marked it before.
        let after = keys();
        let changes = |i: usize| before[i] ^ after[i] | before[i] & MARK;
        if changes(0) | changes(1) | changes(2) | changes(3) != 0 {
            return None;
        }
        let counts = |i: usize| is_present(before[i]) & words.contain(KeyWord::in_use(before[i]));
        let mut pairs = from_fn(|i| {
            let key = KeyWord::in_use(before[i]);
            (if counts(i) { key } else { KeyWord::BEHIND }, values[i])
        });
        for (low, high) in [(0, 1), (2, 3), (0, 2), (1, 3), (1, 2)] {
            let (a, b) = (pairs[low], pairs[high]);
            let ascend = a.0 < b.0;
            pairs[low] = if ascend { a } else { b };
            pairs[high] = if ascend { b } else { a };
        }
        Some(Sorted {
            pairs,
            present: (0..PER_LINE).map(|i| usize::from(counts(i))).sum(),
            ends: before.contains(&0),
        })
    }

    /// Like [`gather`](InlineRef::gather), one entry at a time.
    #[cold]
    fn gather_slowly<M: Media>(
        &self,
        line: usize,
        words: Words,
        gathered: &mut [(KeyWord, u64)],
        count: &mut usize,
        media: &M,
    ) -> bool {
        let mut ends = false;
        for entry in self.line(line) {
            let Some(key) = KeyWord::stored(entry.key.peek(media)) else {
                ends = true;
                continue;
            };
            if words.contain(key)
                && let Some(value) = entry.read(media)
            {
                put(gathered, count, (key, value));
            }
        }
        ends
    }
}

/// The word of the head's place: used, not present.
const HEAD: u64 = MARK << 1;

/// A line's pairs between two words.
struct Sorted {
    /// The present ones first, ascending.
    pairs: [(KeyWord, u64); PER_LINE],
    present: usize,
    /// Whether an entry was never used.
    ends: bool,
}

/// Inserts the first `present` pairs into the ascending ones.
#[inline(never)]
fn put_all(
    gathered: &mut [(KeyWord, u64)],
    count: &mut usize,
    pairs: [(KeyWord, u64); PER_LINE],
    present: usize,
) {
    for pair in pairs.into_iter().take(present) {
        put(gathered, count, pair);
    }
}

/// Inserts a pair into the ascending ones.
fn put(gathered: &mut [(KeyWord, u64)], count: &mut usize, pair: (KeyWord, u64)) {
    let mut at = *count;
    while at > 0 && gathered[at - 1].0 > pair.0 {
        gathered[at] = gathered[at - 1];
        at -= 1;
    }
    gathered[at] = pair;
    *count += 1;
}
