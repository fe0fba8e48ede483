//! Random words, the same for a seed on every machine.

/// Applies the splitmix64 step, a bijection of 64-bit words.
pub fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A stream of random words.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates the stream of this seed.
    pub fn new(seed: u64) -> Random {
        Random(mix(seed))
    }

    /// Returns the next word.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Returns a number below `bound`, which must be far below 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Returns a uniform number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns an approximately normal number of mean 0 and deviation 1, from the sum of twelve uniform numbers.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    /// Moves `count` items, chosen at random, to the front of `items` in random order.
    #[cfg(any(test, feature = "peers"))]
    pub fn shuffle<T>(&mut self, items: &mut [T], count: usize) {
        for i in 0..count.min(items.len()) {
            let other = i + self.below((items.len() - i) as u64) as usize;
            items.swap(i, other);
        }
    }
}

/// Maps `number` by a bijection of the numbers below `bound` (at least 1), chosen by `seed`. It repeats a bijection of
/// words with as many bits as these numbers need, at least two, until the result is below `bound`.
pub fn permute(number: u64, bound: u64, seed: u64) -> u64 {
    let bits = (u64::BITS - bound.saturating_sub(1).leading_zeros()).max(2);
    let mask = u64::MAX >> (u64::BITS - bits);
    let half = bits / 2;
    let mut word = number;
    loop {
        // Each step is invertible modulo the power of two.
        word = (word ^ mix(seed)) & mask;
        word = word.wrapping_mul(0xbf58_476d_1ce4_e5b9) & mask;
        word ^= word >> half;
        word = word.wrapping_mul(0x94d0_49bb_1331_11eb) & mask;
        word ^= word >> half.max(1);
        word = word.wrapping_add(0x9e37_79b9_7f4a_7c15) & mask;
        if word < bound {
            return word;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every number below the bound occurs once, for any bound.
    #[test]
    fn permutations_permute() {
        for bound in [1, 2, 3, 7, 64, 1000, 4097] {
            for seed in 0..3 {
                let mut met: Vec<u64> = (0..bound).map(|number| permute(number, bound, seed)).collect();
                met.sort_unstable();
                assert_eq!(met, (0..bound).collect::<Vec<_>>(), "below {bound}, seed {seed}");
            }
        }
    }

    /// Uniform numbers have the expected mean, normal numbers the expected mean and deviation.
    #[test]
    fn moments() {
        const COUNT: u32 = 100_000;
        let mut random = Random::new(1);
        let mean = (0..COUNT).map(|_| random.unit()).sum::<f64>() / f64::from(COUNT);
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        let normal: Vec<f64> = (0..COUNT).map(|_| random.normal()).collect();
        let mean = normal.iter().sum::<f64>() / f64::from(COUNT);
        let square = normal.iter().map(|x| x * x).sum::<f64>() / f64::from(COUNT);
        assert!(
            mean.abs() < 0.02 && (square - 1.0).abs() < 0.02,
            "{mean} {square}"
        );
    }
}
