//! Inline leaf arrays in order.
//!
//! Homes ascend with the keys, and a key has not gone beyond a line that has an entry never used. So behind
//! each such line all keys read so far are in front of all to come: upward, what lies between two of them is
//! sorted and visited. Downward the whole array is read first.

use super::shape::{PER_LINE, WINDOW};
use super::word::{KeyWord, LONGEST, MARK, is_present};
use super::{InlineEntry, InlineRef};
use heap::Guard;
use index::{Direction, Value, Visit};
use pmem::Media;
use std::array::from_fn;
use std::ops::ControlFlow::{self, Continue};

/// Lines asked for ahead.
pub(crate) const LINES_AHEAD: usize = 12;

/// Bytes kept at first, and the most that is asked for at a time: each time twice as much as before.
/// (Allocators have pieces of up to a kilobyte at hand.)
const KEPT: usize = 128 * LONGEST;
const MAX_KEPT: usize = 512 * LONGEST;

/// Fewer pairs wait for more.
const FEW: usize = 8;

/// Pairs for which there is room at first.
const AT_ONCE: usize = 64;

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

/// What a scan keeps from one array to the next.
pub(crate) struct Scratch<'g> {
    guard: &'g Guard,
    /// Room for keys that visitors get: an array has them in words, which change.
    kept: &'g mut [u8],
    /// What is asked for next.
    step: usize,
    /// Pairs that are not visited yet, ascending, come first.
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

    /// Room for another line's pairs.
    #[inline(always)]
    fn reserve(&mut self, count: usize) -> &mut [(KeyWord, u64)] {
        if self.pairs.len() < count + PER_LINE {
            let len = (count + PER_LINE).next_multiple_of(AT_ONCE);
            self.pairs.resize(len, (KeyWord::from_bits(0), 0));
        }
        &mut self.pairs
    }

    /// Visits the first `count` pairs, upward or downward.
    #[expect(
        clippy::slow_vector_initialization,
        reason = "allocators have zeroed memory at hand less often than small pieces"
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
    /// Visits the keys between the words in order. The array hangs where `depth` bytes lead, of which one is
    /// `first`. The caller has asked for the first [`LINES_AHEAD`] lines.
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
            if ends && !reverse && count >= FEW {
                scratch.visit(count, false, first, visit)?;
                // A later entry whose key does not lie behind was inserted meanwhile.
                words.least = scratch.pairs[count - 1].0.bits() + 1;
                if words.are_none() {
                    return Continue(());
                }
                count = 0;
            }
        }
        scratch.visit(count, reverse, first, visit)
    }

    /// The lines in which there may be keys between the words.
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
        // A word that does not share the bytes that all keys of the array share lies in front of all or
        // behind all.
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

    /// Adds a line's pairs to those gathered, in order; says whether the line has an entry that was never
    /// used.
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
            // Word by word, as they come out of registers: nothing reads them before they are visited.
            for (place, pair) in gathered[*count..*count + PER_LINE].iter_mut().zip(pairs) {
                *place = pair;
            }
            *count += present;
        }
        ends
    }

    /// A line's pairs between the words; `None` if an entry is marked or was changing. Nothing of it depends
    /// on what the entries hold, since that cannot be foreseen: all are read, and sorted by exchanges.
    #[inline(always)]
    fn sorted<M: Media>(&self, line: usize, words: Words, media: &M) -> Option<Sorted> {
        let entries: &[InlineEntry; PER_LINE] = self.slots[line * PER_LINE..].first_chunk()?;
        // The head's place counts as used, by no key.
        let head = |i: usize| line == 0 && i == 0;
        let keys = || from_fn(|i| if head(i) { HEAD } else { entries[i].key.peek(media) });
        let before: [u64; PER_LINE] = keys();
        let values: [u64; PER_LINE] = from_fn(|i| entries[i].value.peek(media));
        // The words again: a writer that has stored another value meanwhile marked it before.
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

    /// As [`gather`](InlineRef::gather), an entry at a time.
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

/// A word of the head's place: used, not present.
const HEAD: u64 = MARK << 1;

/// What a line has between two words.
struct Sorted {
    /// Those present first, ascending.
    pairs: [(KeyWord, u64); PER_LINE],
    present: usize,
    /// Whether an entry was never used.
    ends: bool,
}

/// Puts the first `present` pairs where they belong among those that ascend.
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

/// Puts a pair where it belongs among those that ascend.
fn put(gathered: &mut [(KeyWord, u64)], count: &mut usize, pair: (KeyWord, u64)) {
    let mut at = *count;
    while at > 0 && gathered[at - 1].0 > pair.0 {
        gathered[at] = gathered[at - 1];
        at -= 1;
    }
    gathered[at] = pair;
    *count += 1;
}
