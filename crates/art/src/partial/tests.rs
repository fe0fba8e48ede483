use super::*;

/// Pseudo-random numbers.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

const WIDTHS: [Width; 3] = [Width::One, Width::Two, Width::Four];

fn available() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.is_available())
}

/// The reference: one bit and one partial key at a time.
fn plainly(dense: u64, partials: &[u8], width: Width, count: usize) -> Option<usize> {
    let bits = 8 * width.bytes();
    (0..count).rev().find(|&i| {
        (0..bits).all(|bit| {
            let byte = partials[i * width.bytes() + bit / 8];
            byte >> (bit % 8) & 1 == 0 || dense >> bit & 1 == 1
        })
    })
}

/// Each level returns the same as the bit-by-bit search: for any count, any width, partial keys with few bits and
/// with many.
#[test]
fn all_levels_find_the_same() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for turn in 0..20_000_u64 {
        let width = WIDTHS[(turn % 3) as usize];
        let count = (numbers.next() % 33) as usize;
        let mut partials = vec![0; partials_size(count, width)];
        let sparse = turn % 4;
        for byte in &mut partials {
            *byte = (0..sparse).fold(numbers.next(), |byte, _| byte & numbers.next()) as u8;
        }
        let words: Vec<u64> = (0..4).map(|_| numbers.next()).collect();
        let masks: Vec<u64> = (0..4)
            .map(|_| numbers.next() & numbers.next() & numbers.next())
            .collect();
        let some = 1 + (numbers.next() % 4) as usize;
        let (words, masks) = (&words[..some], &masks[..some]);
        let dense = portable::dense(words, masks, extract);
        let expected = plainly(dense, &partials, width, count);
        assert_eq!(last_subset(words, masks, &partials, width, count), expected);
        for level in available() {
            let found = subsets(level as u8, words, masks, &partials, width) & ((1 << count) - 1);
            let last = found.checked_ilog2().map(|last| last as usize);
            assert_eq!(last, expected, "{level:?}, {width:?}, {count} partial keys");
        }
    }
}

/// Every dense key of eight bits, against every partial key, at every place.
#[test]
fn every_byte_at_every_place() {
    for level in available() {
        for dense in 0..256_u64 {
            for first in 0..8_usize {
                let partials: Vec<u8> = (0..32).map(|i| (i * 8 + first) as u8).collect();
                let found = subsets(level as u8, &[dense], &[0xff], &partials, Width::One);
                for (i, partial) in partials.iter().enumerate() {
                    let subset = u64::from(*partial) & !dense == 0;
                    assert_eq!(found >> i & 1 == 1, subset, "{level:?}: {partial:x} of {dense:x}");
                }
            }
        }
    }
}

/// Bytes behind the partial keys do not matter.
#[test]
fn nothing_behind_the_partial_keys_counts() {
    for width in WIDTHS {
        for count in 1..=32 {
            let size = partials_size(count, width);
            let mut bytes = vec![0xff; size];
            bytes[..width.bytes()].fill(0);
            bytes.extend([0; 64]);
            assert_eq!(last_subset(&[0], &[0xff], &bytes, width, count), Some(0));
            let beyond = last_subset(&[0], &[0xff], &bytes[..size], width, 64);
            assert_eq!(beyond, Some(0));
        }
    }
    assert_eq!(last_subset(&[7], &[7], &[], Width::One, 32), None);
}

/// Bits are extracted and deposited in order.
#[test]
fn bits_are_taken_out_and_put_back() {
    assert_eq!(extract(0b1010_1100, 0b1111_0000), 0b1010);
    assert_eq!(extract(0b1010_1100, 0b1000_0101), 0b110);
    assert_eq!(extract(u64::MAX, u64::MAX), u64::MAX);
    assert_eq!(extract(u64::MAX, 0), 0);
    let mut numbers = Numbers(7);
    for _ in 0..10_000 {
        let (word, mask) = (numbers.next(), numbers.next() & numbers.next());
        assert_eq!(deposit(extract(word, mask), mask), word & mask);
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("bmi2") {
            // SAFETY: the processor has it.
            let pext = unsafe { std::arch::x86_64::_pext_u64(word, mask) };
            assert_eq!(extract(word, mask), pext);
        }
    }
}
