//! Inline leaf arrays in order.
//!
//! Homes ascend with the keys, and a key has not gone beyond a line that has an entry never used. So behind each such
//! line all keys read so far are in front of all to come: upward, what lies between two of them is sorted and visited.
//! Downward the whole array is read first.

use super::InlineRef;
use super::shape::WINDOW;
use super::word::{KeyWord, LONGEST};
use heap::Guard;
use index::{Direction, Value, Visit};
use pmem::Media;
use std::ops::ControlFlow::{self, Break, Continue};

/// Lines asked for ahead.
const LINES_AHEAD: usize = 8;

/// Bytes kept at first.
const FIRST_KEPT: usize = 128 * LONGEST;

/// The keys between two words, both included.
#[derive(Clone, Copy)]
pub(crate) struct Words {
    pub(crate) least: u64,
    pub(crate) most: u64,
}

impl Words {
    pub(crate) const ALL: Words = Words {
        least: 0,
        most: u64::MAX,
    };
}

/// Keys for a visitor: an array has them in words, which change.
pub(crate) struct Kept<'g> {
    guard: &'g Guard,
    rest: &'g mut [u8],
}

impl<'g> Kept<'g> {
    pub(crate) fn new(guard: &'g Guard) -> Self {
        Kept { guard, rest: &mut [] }
    }

    #[inline(always)]
    fn key(&mut self, word: KeyWord, first: u8) -> &'g [u8] {
        if self.rest.len() < LONGEST {
            self.rest = heap::keep(self.guard, vec![0; FIRST_KEPT].into());
        }
        let (place, rest) = std::mem::take(&mut self.rest).split_at_mut(LONGEST);
        self.rest = rest;
        let (bytes, len) = word.key(first);
        place.copy_from_slice(&bytes);
        &place[..len]
    }
}

/// What goes through an array for a visitor.
pub(crate) struct Through<'s, 'f, 'g> {
    pub(crate) first: u8,
    pub(crate) words: Words,
    pub(crate) kept: &'s mut Kept<'g>,
    pub(crate) gathered: &'s mut Vec<(KeyWord, u64)>,
    pub(crate) visit: &'s mut Visit<'f, 'g>,
}

impl Through<'_, '_, '_> {
    #[inline(always)]
    fn visit(&mut self, (key, value): (KeyWord, u64)) -> ControlFlow<()> {
        let key = self.kept.key(key, self.first);
        (self.visit)(key, Value::Word(value.to_le_bytes()))
    }

    /// Visits what was gathered, which ascends; no more is visited of what does not lie behind it.
    #[inline(always)]
    fn flush(&mut self) -> ControlFlow<()> {
        for i in 0..self.gathered.len() {
            let pair = self.gathered[i];
            self.visit(pair)?;
        }
        if let Some((last, _)) = self.gathered.last() {
            self.words.least = last.bits() + 1;
        }
        self.gathered.clear();
        Continue(())
    }
}

impl InlineRef<'_> {
    /// Visits the keys between the words in order. The array hangs where `depth` bytes lead.
    pub(crate) fn scan<M: Media>(
        &self,
        mut through: Through<'_, '_, '_>,
        direction: Direction,
        depth: usize,
        media: &M,
    ) -> ControlFlow<()> {
        through.gathered.clear();
        let Some(lines) = self.lines_of(&mut through.words, depth, media) else {
            return Continue(());
        };
        for line in lines {
            self.prefetch_line(line + LINES_AHEAD);
            let ends = self.gather(line, &mut through, media);
            if ends && direction == Direction::Forward && through.flush().is_break() {
                return Break(());
            }
        }
        if direction == Direction::Forward {
            return through.flush();
        }
        while let Some(pair) = through.gathered.pop() {
            through.visit(pair)?;
        }
        Continue(())
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
        // A word that does not share the bytes that all keys of the array share lies in front of all or behind all.
        let apart = |word: KeyWord| {
            let any = if from > depth { any()? } else { return None };
            (word.shared(any) < from).then_some(word < any)
        };
        if words.least > 0 {
            let least = KeyWord::from_bits(words.least);
            match apart(least) {
                Some(true) => words.least = 0,
                Some(false) => return None,
                None => lines.start = self.shape.home(least),
            }
        }
        if words.most < u64::MAX {
            let most = KeyWord::from_bits(words.most);
            match apart(most) {
                Some(true) => return None,
                Some(false) => words.most = u64::MAX,
                None => lines.end = lines.end.min(self.shape.home(most) + WINDOW),
            }
        }
        Some(lines)
    }

    /// Adds a line's pairs to those gathered, in order; says whether the line has an entry that was never used.
    #[inline(always)]
    fn gather<M: Media>(&self, line: usize, through: &mut Through<'_, '_, '_>, media: &M) -> bool {
        let mut ends = false;
        let Words { least, most } = through.words;
        for entry in self.line(line) {
            let Some(key) = KeyWord::stored(entry.key.peek(media)) else {
                ends = true;
                continue;
            };
            if key.bits() < least || key.bits() > most {
                continue;
            }
            let Some(value) = entry.read(media) else { continue };
            let gathered = &mut *through.gathered;
            let mut at = gathered.len();
            gathered.push((key, value));
            while at > 0 && gathered[at - 1].0 > key {
                gathered[at] = gathered[at - 1];
                at -= 1;
            }
            gathered[at] = (key, value);
        }
        ends
    }
}
