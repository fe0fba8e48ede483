//! Slots of a leaf: their groups, their bitmaps, and the choice of a slot for a key.

/// Slots per group.
pub(crate) const GROUP: usize = 64;

/// Groups of the largest leaf.
pub(crate) const GROUPS: usize = 4;

/// The first slot of each line of a group: a line has four pairs.
const LINES: u64 = 0x1111_1111_1111_1111;

/// A bit for each slot.
pub(crate) type Bits = [u64; GROUPS];

pub(crate) fn has(bits: &Bits, slot: usize) -> bool {
    bits[slot / GROUP] >> (slot % GROUP) & 1 == 1
}

pub(crate) fn set(bits: &mut Bits, slot: usize) {
    bits[slot / GROUP] |= 1 << (slot % GROUP);
}

pub(crate) fn clear(bits: &mut Bits, slot: usize) {
    bits[slot / GROUP] &= !(1 << (slot % GROUP));
}

/// The number of slots in a bitmap.
pub(crate) fn count(bits: &Bits) -> usize {
    bits.iter().map(|word| word.count_ones() as usize).sum()
}

/// The slots in a bitmap, in their order.
pub(crate) fn slots_of(bits: Bits) -> impl Iterator<Item = usize> {
    bits.into_iter().enumerate().flat_map(|(group, mut word)| {
        std::iter::from_fn(move || {
            let bit = word.trailing_zeros() as usize;
            word &= word.checked_sub(1)?;
            Some(group * GROUP + bit)
        })
    })
}

/// The group to which keys of this hash belong.
#[inline]
pub(crate) fn home(hash: u64, groups: usize) -> usize {
    let hash = (hash >> 8) as usize;
    // The usual case, the largest leaf, needs no division.
    match groups {
        GROUPS => hash % GROUPS,
        _ => hash % groups,
    }
}

#[inline]
pub(crate) fn print(hash: u64) -> u8 {
    hash as u8
}

/// A bit for each byte of a line that is `byte`.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn equal_bytes(line: [u64; GROUP / 8], byte: u8) -> u64 {
    // SAFETY: every x86-64 processor has SSE2.
    unsafe { equal_bytes_by_sse2(line, byte) }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse2")]
fn equal_bytes_by_sse2(line: [u64; GROUP / 8], byte: u8) -> u64 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
    let wanted = _mm_set1_epi8(byte.cast_signed());
    line.as_chunks().0.iter().rev().fold(0, |mask, &[low, high]| {
        let two = _mm_set_epi64x(high.cast_signed(), low.cast_signed());
        let equal = _mm_movemask_epi8(_mm_cmpeq_epi8(two, wanted));
        mask << 16 | u64::from(equal.cast_unsigned())
    })
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) use equal_bytes_by_words as equal_bytes;

/// Does the same on any processor.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline]
pub(crate) fn equal_bytes_by_words(line: [u64; GROUP / 8], byte: u8) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let wanted = u64::from(byte) * 0x0101_0101_0101_0101;
    line.iter().rev().fold(0, |mask, word| {
        let differs = word ^ wanted;
        // 0x80 in each byte that is zero, exactly.
        let zero = !(((differs & LOW) + LOW) | differs | LOW);
        mask << 8 | (zero >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
    })
}

/// The groups that a pair with this `home`, placed in `group`, has passed.
pub(crate) fn passed_by(home: usize, group: usize, groups: usize) -> u64 {
    let mut passed = 0;
    let mut at = home;
    while at != group {
        passed |= 1 << at;
        at = (at + 1) % groups;
    }
    passed
}

/// Chooses slots for pairs that are put into a leaf, among those that are not taken.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// Slots that must not be written to.
    taken: Bits,
    /// Lines of pairs from which slots were given out already: their first slots.
    open: Bits,
    groups: usize,
    pub(crate) passed: u64,
}

impl Places {
    pub(crate) fn new(taken: Bits, passed: u64, groups: usize) -> Places {
        Places {
            taken,
            open: [0; GROUPS],
            groups,
            passed,
        }
    }

    /// A slot for a key of this hash: in its group if there is room; preferably in a line that is written anyway,
    /// otherwise in the line with the most room.
    pub(crate) fn take(&mut self, hash: u64) -> Option<usize> {
        let home = home(hash, self.groups);
        let mut group = home;
        while self.taken[group] == u64::MAX {
            group = (group + 1) % self.groups;
            if group == home {
                return None;
            }
        }
        let free = !self.taken[group];
        let line = best_line(free, self.open[group]);
        let slot = line + (free >> line).trailing_zeros() as usize;
        self.open[group] |= 1 << line;
        self.taken[group] |= 1 << slot;
        self.passed |= passed_by(home, group, self.groups);
        Some(group * GROUP + slot)
    }
}

/// The first slot of the line in which a pair should be put, if there is room in the group: of the open lines with
/// room, or else of all lines, the first of those with the most room.
#[inline]
fn best_line(free: u64, open: u64) -> usize {
    // The number of free slots of each line, in the bits of that line.
    let twos = free - (free >> 1 & (LINES * 5));
    let room = (twos & (LINES * 3)) + (twos >> 2 & (LINES * 3));
    let [ones, twos, fours] = [0, 1, 2].map(|bit| room >> bit & LINES);
    let some = ones | twos | fours;
    let among = match some & open {
        0 => some,
        open => open,
    };
    let most = [fours, twos & ones, twos]
        .into_iter()
        .find(|lines| lines & among != 0);
    (most.unwrap_or(some) & among).trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use index::conformance::Random;
    use std::cmp::Reverse;

    fn random_bits(random: &mut Random) -> u64 {
        let bits = random.number();
        // Sometimes few bits, sometimes many.
        match random.below(4) {
            0 => bits & random.number() & random.number(),
            1 => bits | random.number() | random.number(),
            _ => bits,
        }
    }

    /// Open lines with room come first, then lines with more room, then lower lines.
    #[test]
    fn the_best_line_is_found() {
        for seed in 0..2000 {
            let mut random = Random::new(seed);
            let (free, open) = (random_bits(&mut random), random_bits(&mut random) & LINES);
            let room = |line: usize| (free >> line & 0xf).count_ones();
            let lines = (0..GROUP).step_by(4).filter(|&line| room(line) > 0);
            let best = lines.max_by_key(|&line| (open >> line & 1, room(line), Reverse(line)));
            if let Some(best) = best {
                assert_eq!(best_line(free, open), best, "seed {seed}");
            }
        }
    }

    /// Either way of comparing bytes finds those that are equal.
    #[test]
    fn equal_bytes_are_found() {
        for seed in 0..2000 {
            let mut random = Random::new(seed);
            let bytes: [u8; GROUP] = std::array::from_fn(|_| [0, 1, 0x7f, 0x80, 0xff][random.below(5)]);
            let words = bytes.as_chunks().0;
            let line = std::array::from_fn(|i| u64::from_le_bytes(words[i]));
            for byte in [0, 1, 2, 0x7f, 0x80, 0xff] {
                let equal = (0..GROUP).fold(0, |mask, i| mask | u64::from(bytes[i] == byte) << i);
                assert_eq!(equal_bytes(line, byte), equal, "seed {seed}, byte {byte}");
                assert_eq!(
                    equal_bytes_by_words(line, byte),
                    equal,
                    "seed {seed}, byte {byte}"
                );
            }
        }
    }

    /// The slots of a bitmap ascend, and are those whose bits are set.
    #[test]
    fn slots_of_a_bitmap() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let bits: Bits = std::array::from_fn(|_| random_bits(&mut random));
            let all: Vec<usize> = (0..GROUP * GROUPS).filter(|&slot| has(&bits, slot)).collect();
            assert_eq!(slots_of(bits).collect::<Vec<_>>(), all, "seed {seed}");
        }
    }
}
