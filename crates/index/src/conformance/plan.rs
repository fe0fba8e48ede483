//! The amount of work, and the source of randomness.

use std::hash::{BuildHasher, RandomState};

/// The seed and the size of a run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The seed of all random numbers.
    pub seed: u64,
    /// The amount of work, as a multiple of the default.
    pub scale: f64,
}

impl Plan {
    /// A plan with the default amount of work.
    pub fn new(seed: u64) -> Plan {
        Plan { seed, scale: 1.0 }
    }

    /// A plan with the seed in `CONFORMANCE_SEED`, or a new one, and the scale in `CONFORMANCE_SCALE`, or 1.
    pub fn from_env() -> Plan {
        Plan {
            seed: variable("CONFORMANCE_SEED").unwrap_or_else(|| RandomState::new().hash_one(0)),
            scale: variable("CONFORMANCE_SCALE").unwrap_or(1.0),
        }
    }

    /// The plan with its work multiplied by `scale`.
    pub fn scaled(self, scale: f64) -> Plan {
        Plan {
            scale: self.scale * scale,
            ..self
        }
    }

    /// The given amount, scaled; at least one.
    pub fn sized(&self, ordinary: usize) -> usize {
        ((ordinary as f64 * self.scale) as usize).max(1)
    }

    /// The random numbers of one property; prints how to reproduce them.
    pub fn random(&self, property: &str) -> Random {
        eprintln!(
            "{property}: CONFORMANCE_SEED={} (scale {})",
            self.seed, self.scale
        );
        Random::new(self.seed)
    }
}

/// Panics on an invalid variable: a misspelt seed would replay something else.
fn variable<T: std::str::FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    match text.parse() {
        Ok(value) => Some(value),
        Err(_) => panic!("{name}={text}: not a number"),
    }
}

/// SplitMix64: small, and the same everywhere.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `end`, which is not zero.
    pub fn below(&mut self, end: usize) -> usize {
        (self.number() % end as u64) as usize
    }

    /// True once in `times`.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of these at random.
    pub fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.below(from.len())]
    }

    /// `len` random bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let words = (0..len.div_ceil(8)).flat_map(|_| self.number().to_le_bytes());
        words.take(len).collect()
    }

    /// Puts these in random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end + 1));
        }
    }

    /// An independent sequence, for another thread.
    pub fn split(&mut self) -> Random {
        Random(self.number())
    }
}

/// Mixes the bits of a number.
pub(super) fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
