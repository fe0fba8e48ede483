//! Picks a random key from ordered keys, of which only the next one before or behind a place can be looked up.
//!
//! A *descent* begins with the first and the last key. It takes the first byte in which they differ, splits the range
//! between its two values in the middle, chooses a side with a probability in proportion to the side's share of the
//! range, and continues with the first and the last key of that side, until they are the same key. If the keys are
//! spread evenly over the bytes that they use, all are equally likely. Otherwise an isolated key is too likely. So a
//! descent also returns the reciprocal of its own probability, its *weight*, whose mean is the number of keys. A key is
//! accepted with a probability of its weight divided by [`EVEN`] times that number; otherwise there is another descent.
//! So all keys whose weight is below that bound are equally likely.
//!
//! Cost: [`EVEN`] descents, or a few times as many if keys are isolated, of 3 to 12 lookups each.

use std::ops::Bound;

/// Keys with a weight of up to this many times the mean are equally likely. If all keys are, a pick takes this many
/// descents on average.
const EVEN: f64 = 32.0;

/// Maximum number of descents. After them, one of the keys found is picked, with probabilities in proportion to
/// weights.
const MAX: usize = 256;

/// Maximum number of splits in a descent. More occur only if that many keys are prefixes of one key, or in a damaged
/// pool.
const SPLITS: usize = 1024;

/// The random numbers: xorshift, which is even enough for this purpose.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a sequence that depends on the seed alone.
    pub fn new(seed: u64) -> Random {
        Random(seed | 1)
    }

    /// Returns the next number, at least 0 and below 1.
    fn share(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Ordered keys.
pub trait Keys {
    /// The error of a lookup.
    type Error;

    /// Returns the first key between the bounds, or the `last` one.
    fn end(
        &self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        last: bool,
    ) -> Result<Option<Vec<u8>>, Self::Error>;

    /// Returns whether a key may be picked.
    fn may_take(&self, key: &[u8]) -> Result<bool, Self::Error>;
}

/// The result of a pick.
#[derive(Debug, PartialEq, Eq)]
pub enum Picked {
    /// A key that may be picked.
    Key(Vec<u8>),
    /// None of the keys found may be picked; this is the last of them.
    NoneOf(Vec<u8>),
    /// There are no keys.
    Nothing,
}

/// Picks one of about `count` keys.
pub fn pick<K: Keys>(keys: &K, count: u64, random: &mut Random) -> Result<Picked, K::Error> {
    let (from, to) = (Bound::Unbounded, Bound::Unbounded);
    let (Some(first), Some(last)) = (keys.end(from, to, false)?, keys.end(from, to, true)?) else {
        return Ok(Picked::Nothing);
    };
    let (mut sum, mut picked) = (0.0, None);
    let mut met = first.clone();
    for _ in 0..MAX {
        let (key, weight) = descend(keys, first.clone(), last.clone(), random)?;
        if !keys.may_take(&key)? {
            met = key;
            continue;
        }
        sum += weight;
        if random.share() * sum < weight {
            picked = Some(key.clone());
        }
        if random.share() * EVEN * (count as f64) < weight {
            return Ok(Picked::Key(key));
        }
    }
    Ok(picked.map_or(Picked::NoneOf(met), Picked::Key))
}

/// Returns a key between these two keys, and the reciprocal of its probability.
fn descend<K: Keys>(
    keys: &K,
    mut first: Vec<u8>,
    mut last: Vec<u8>,
    random: &mut Random,
) -> Result<(Vec<u8>, f64), K::Error> {
    let mut weight = 1.0;
    for _ in 0..SPLITS {
        let common = first.iter().zip(&last).take_while(|(a, b)| a == b).count();
        // The end of a key comes before any byte.
        let symbol = |key: &[u8]| key.get(common).map_or(0, |&byte| u32::from(byte) + 1);
        let (low, high) = (symbol(&first), symbol(&last));
        if low >= high {
            break; // Both are the same key, or the pool is damaged.
        }
        // The split is above the lower symbol, so it is not the end of a key.
        let split = low + (high - low).div_ceil(2);
        let mut place = first[..common].to_vec();
        place.push((split - 1) as u8);
        let share = f64::from(split - low) / f64::from(high - low + 1);
        if random.share() < share {
            weight /= share;
            let found = keys.end(Bound::Included(&first), Bound::Excluded(&place), true)?;
            // Another client may have removed it meanwhile.
            last = found.unwrap_or_else(|| first.clone());
        } else {
            weight /= 1.0 - share;
            let found = keys.end(Bound::Included(&place), Bound::Included(&last), false)?;
            first = found.unwrap_or_else(|| last.clone());
        }
    }
    Ok((first, weight))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::collections::{BTreeMap, BTreeSet};
    use std::convert::Infallible;

    /// Keys of which some may not be picked, and the number of lookups.
    struct Set {
        keys: BTreeSet<Vec<u8>>,
        dead: fn(&[u8]) -> bool,
        looks: Cell<u64>,
    }

    impl Keys for Set {
        type Error = Infallible;
        fn end(
            &self,
            lower: Bound<&[u8]>,
            upper: Bound<&[u8]>,
            last: bool,
        ) -> Result<Option<Vec<u8>>, Infallible> {
            self.looks.set(self.looks.get() + 1);
            let mut between = self.keys.range::<[u8], _>((lower, upper));
            let key = if last { between.next_back() } else { between.next() };
            Ok(key.cloned())
        }
        fn may_take(&self, key: &[u8]) -> Result<bool, Infallible> {
            Ok(!(self.dead)(key))
        }
    }

    fn set(keys: impl IntoIterator<Item = String>) -> Set {
        Set {
            keys: keys.into_iter().map(String::into_bytes).collect(),
            dead: |_| false,
            looks: Cell::new(0),
        }
    }

    /// Returns how often each key occurs in `picks` picks.
    fn picks(set: &Set, picks: u64) -> BTreeMap<Vec<u8>, u64> {
        let mut random = Random::new(0x5eed);
        let mut counts = BTreeMap::new();
        for _ in 0..picks {
            let Ok(picked) = pick(set, set.keys.len() as u64, &mut random);
            let Picked::Key(key) = picked else {
                panic!("{picked:?}")
            };
            *counts.entry(key).or_default() += 1;
        }
        counts
    }

    /// Clustered keys with outliers are about equally likely: the standard deviation of their probabilities is at most
    /// a third of the mean, no key occurs three times as often as the mean, and no cluster has much more than its
    /// share.
    #[test]
    fn clustered_keys_are_about_equally_likely() {
        let sequence = || (0..500).map(|i| format!("key:{i}"));
        let outliers = || {
            [
                "a".to_owned(),
                "b".to_owned(),
                "zzz".to_owned(),
                "key:".to_owned(),
            ]
        };
        let spread = |i: u64| format!("session:{:016x}", i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let nested = || (0..100).map(|i| format!("user:{i}:name:{}", "x".repeat(i % 7)));
        for keys in [
            sequence().collect::<Vec<_>>(),
            sequence().chain(outliers()).collect(),
            (0..500).map(spread).collect(),
            (0..400).map(spread).chain(nested()).chain(outliers()).collect(),
        ] {
            const EACH: u64 = 40;
            let set = set(keys);
            let count = set.keys.len() as u64;
            let counts = picks(&set, count * EACH);
            let of = |key: &Vec<u8>| counts.get(key).copied().unwrap_or(0);
            let square = |key: &Vec<u8>| (of(key) as f64 - EACH as f64).powi(2);
            let variance = set.keys.iter().map(square).sum::<f64>() / count as f64;
            // Subtract the variance of the counting itself.
            let deviation = (variance - EACH as f64).max(0.0).sqrt() / EACH as f64;
            let max = counts.iter().max_by_key(|(_, count)| **count);
            let (key, max) = max.expect("some were picked");
            let (key, looks) = (String::from_utf8_lossy(key), set.looks.get() / (count * EACH));
            println!("{count} keys, {key} {max} of {EACH}, deviation {deviation:.2}, {looks} looks a pick");
            assert!(*max < 3 * EACH && deviation < 0.33);
            for (first, last) in [
                ("key:", "key;"),
                ("session:", "session;"),
                ("user:", "user;"),
                ("a", "c"),
            ] {
                let cluster = |key: &&Vec<u8>| (first.as_bytes()..last.as_bytes()).contains(&key.as_slice());
                let there = set.keys.iter().filter(cluster);
                let (keys, share) = (there.clone().count() as u64, there.map(of).sum::<u64>());
                assert!(
                    share <= keys * EACH * 3 / 2 + EACH / 2,
                    "{first}: {share} for {keys}"
                );
            }
        }
    }

    /// The pick never returns a key that may not be picked; if none may, it returns a key to continue from.
    #[test]
    fn the_dead_are_not_picked() {
        let mut some = set((0..1000).map(|i| format!("{i}")));
        some.dead = |key| key.len() == 3;
        assert!(picks(&some, 500).keys().all(|key| key.len() < 3));
        some.dead = |_| true;
        let picked = pick(&some, 1000, &mut Random::new(1));
        assert!(matches!(picked, Ok(Picked::NoneOf(key)) if some.keys.contains(&key)));
        assert_eq!(pick(&set([]), 0, &mut Random::new(1)), Ok(Picked::Nothing));
    }
}
