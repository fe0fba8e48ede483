//! Shapes: the size of an inline leaf array, and the line at which the search for a key begins.
//!
//! The shape is in the link's aux (and in the array's head), so that a reader computes a key's home line from link
//! and key alone.
//!
//! ```text
//!  7   6      5      3 2     0
//! +---+------+--------+-------+
//! | 0 | text |  from  | class |
//! +---+------+--------+-------+
//! ```
//!
//! An array of class c has 2^c lines. *From* is the position, 1 to 7, of the first byte that not all of its keys
//! share. That byte and the next form a number that is spread over the lines; in a *text* array they count as two
//! base-96 digits, those of printable characters.

use super::word::KeyWord;
use art::{Tagged, damaged};
use pmem::{Fault, LINE, Link};

/// Entries per line; the head counts as one in the first line.
pub(crate) const PER_LINE: usize = 4;

/// Number of lines in which a key may be, from its home on.
pub(crate) const WINDOW: usize = 8;

/// The largest class.
pub(crate) const LARGEST: u8 = 7;

/// Maximum number of entries of an array.
pub(crate) const LARGEST_CAPACITY: usize = (1 << LARGEST) * PER_LINE - 1;

/// The number of text characters, and the smallest of them.
const CHARACTERS: u64 = 96;
const LEAST_CHARACTER: u64 = 32;

/// The shape of an inline leaf array, as its link states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) class: u8,
    pub(crate) from: u8,
    pub(crate) text: bool,
}

impl Shape {
    /// The shape of the array that `link` leads to.
    #[inline(always)]
    pub(crate) fn of(link: Link) -> Result<Shape, Fault> {
        let aux = link.aux();
        let shape = Shape {
            class: aux & 7,
            from: aux >> 3 & 7,
            text: aux & 1 << 6 != 0,
        };
        if shape.from == 0 || aux >> 7 != 0 {
            return Err(damaged("inline leaf array's shape", link));
        }
        Ok(shape)
    }

    /// The shape as stored in a link.
    pub(crate) fn aux(self) -> u8 {
        self.class | self.from << 3 | u8::from(self.text) << 6
    }

    #[inline(always)]
    pub(crate) fn lines(self) -> usize {
        1 << self.class
    }

    /// Entries of the array.
    pub(crate) fn capacity(self) -> usize {
        self.lines() * PER_LINE - 1
    }

    /// Bytes of the array.
    pub(crate) fn size(self) -> usize {
        self.lines() * LINE
    }

    /// The line where the search for a key begins. Keys in order have homes in order.
    #[inline(always)]
    pub(crate) fn home(self, key: KeyWord) -> usize {
        let bytes = key.bytes_from(usize::from(self.from));
        let spread = HOMES[usize::from(self.class & LARGEST)];
        let place = if self.text {
            let (first, second) = (bytes >> 56, bytes >> 48 & 0xff);
            let place = match first.checked_sub(LEAST_CHARACTER) {
                // Keys that do not begin with a printable character come before all that do, or behind them.
                None => 0,
                Some(CHARACTERS..) => CHARACTERS * CHARACTERS - 1,
                Some(first) => {
                    first * CHARACTERS + second.saturating_sub(LEAST_CHARACTER).min(CHARACTERS - 1)
                }
            };
            // From below 96 * 96 to below 2^16.
            (place * 455) >> 6
        } else {
            bytes >> 48
        };
        ((place * spread) >> 16) as usize
    }

    /// The first line that may have words of `least` and above, if `least` shares the bytes that all keys share.
    #[inline(always)]
    pub(crate) fn first_line(self, least: u64) -> usize {
        match least {
            0 => 0,
            _ => self.home(KeyWord::from_bits(least)),
        }
    }

    /// The lines in which a key may be.
    #[inline(always)]
    pub(crate) fn window(self, key: KeyWord) -> std::ops::Range<usize> {
        let home = self.home(key);
        home..(home + WINDOW).min(self.lines())
    }
}

/// Number of home lines, by class; the last lines take the overflow of the ones before.
const HOMES: [u64; LARGEST as usize + 1] = [1, 1, 3, 6, 14, 30, 62, 126];

/// Whether a key's byte at a position is a printable character.
pub(crate) fn is_text(key: KeyWord, from: usize) -> bool {
    key.key_len() > from && (32..128).contains(&(key.bytes_from(from) >> 56))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Homes lie in the array, ascend with the keys, and use all lines but the last ones.
    #[test]
    fn homes_ascend() {
        for class in 0..=LARGEST {
            for text in [false, true] {
                let bytes = 0..=255u8;
                let shape = Shape { class, from: 2, text };
                let homes: Vec<usize> = bytes
                    .clone()
                    .flat_map(|a| bytes.clone().map(move |b| [1, 1, a, b]))
                    .map(|key| shape.home(KeyWord::of(&key).unwrap()))
                    .collect();
                assert!(homes.is_sorted());
                let last = HOMES[usize::from(class)] as usize - 1;
                assert_eq!((homes[0], homes[homes.len() - 1]), (0, last));
                assert!(last < shape.lines());
            }
        }
    }
}
