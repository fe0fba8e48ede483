//! Sparse partial keys: the search of a linearised Patricia node (HOT, SIGMOD 2018).
//!
//! Such a node keeps, for each of up to 32 entries, the bits of the key on which the path to the entry branches, the
//! first branching bit being the most significant; a bit on which that path does not branch is zero. The *dense*
//! partial key of a searched key has all of these bits. The entry for the searched key is the last one whose partial
//! key has no bit that the dense one lacks.
//!
//! Masks extract the bits from words of key bytes (`PEXT`, BMI2), and all partial keys that fit into a vector are
//! compared at once (AVX2, or AVX-512 with byte and word instructions and 256-bit forms). The processor's features are
//! detected at run time; without them the portable search is used.
//!
//! I1 All searches return the same for any bytes.
//! I2 A search reads no byte behind the partial keys that it is given.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The width of a partial key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Up to 8 branching bits.
    One = 1,
    /// Up to 16.
    Two = 2,
    /// Up to 32.
    Four = 4,
}

impl Width {
    /// Bytes per partial key.
    #[inline(always)]
    pub const fn bytes(self) -> usize {
        self as usize
    }
}

/// Maximum number of partial keys of a search.
pub const MAX_PARTIALS: usize = 32;

/// Bytes of `count` partial keys: whole words, so that vector loads can be masked by words.
#[inline(always)]
pub const fn partials_size(count: usize, width: Width) -> usize {
    (count * width.bytes()).next_multiple_of(8)
}

/// The instructions that a search uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Level {
    Portable = 1,
    Avx2,
    Avx512,
}

impl Level {
    const ALL: [Level; 3] = [Level::Portable, Level::Avx2, Level::Avx512];

    /// Whether this processor supports the level.
    #[cfg(target_arch = "x86_64")]
    fn is_available(self) -> bool {
        match self {
            Level::Portable => true,
            Level::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2"),
            Level::Avx512 => {
                Level::Avx2.is_available()
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
            }
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn is_available(self) -> bool {
        self == Level::Portable
    }
}

/// The best level of this processor; 0 until it is detected.
static BEST: AtomicU8 = AtomicU8::new(0);

#[inline(always)]
fn best() -> u8 {
    match BEST.load(Relaxed) {
        0 => find_best(),
        best => best,
    }
}

#[cold]
fn find_best() -> u8 {
    let best = Level::ALL.into_iter().filter(|level| level.is_available()).max();
    let best = best.unwrap_or(Level::Portable) as u8;
    BEST.store(best, Relaxed);
    best
}

/// The index of the last of `count` partial keys whose bits are all among those that `masks` select from `words`;
/// `None` if there is none. Partial keys beyond [`MAX_PARTIALS`], or beyond `partials`, do not count.
#[inline(always)]
pub fn last_subset(
    words: &[u64],
    masks: &[u64],
    partials: &[u8],
    width: Width,
    count: usize,
) -> Option<usize> {
    let count = count.min(MAX_PARTIALS).min(partials.len() / width.bytes());
    let partials = &partials[..partials_size(count, width).min(partials.len())];
    let found = subsets(best(), words, masks, partials, width) & ((1_u64 << count) - 1);
    found.checked_ilog2().map(|last| last as usize)
}

/// A bit for each partial key, set if it has no bit that the dense one lacks.
#[inline(always)]
fn subsets(level: u8, words: &[u64], masks: &[u64], partials: &[u8], width: Width) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if level == Level::Avx512 as u8 {
        // SAFETY: the level was found to be available.
        return unsafe { x86::subsets_avx512(words, masks, partials, width) };
    } else if level == Level::Avx2 as u8 {
        // SAFETY: the level was found to be available.
        return unsafe { x86::subsets_avx2(words, masks, partials, width) };
    }
    let _ = level;
    portable::subsets(words, masks, partials, width)
}

/// The bits of `word` that `mask` selects, packed into the lowest places in order.
pub fn extract(word: u64, mask: u64) -> u64 {
    portable::extract(word, mask)
}

/// The lowest bits of `bits`, in order, put into the places that `mask` selects: the inverse of [`extract`].
pub fn deposit(bits: u64, mask: u64) -> u64 {
    let (mut left, mut placed, mut rest) = (mask, 0, bits);
    while left != 0 {
        let lowest = left & left.wrapping_neg();
        if rest & 1 != 0 {
            placed |= lowest;
        }
        rest >>= 1;
        left ^= lowest;
    }
    placed
}

#[cfg(test)]
mod tests;
