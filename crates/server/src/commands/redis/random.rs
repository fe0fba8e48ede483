//! A key at random, from keys in order that can only be asked for the next one before or behind a place.
//!
//! A *descent* goes from the first and the last key downward: the byte in which they differ first is split in the
//! middle of what it may be, each side has the chance of its share of these bytes, and the side's own first and last
//! key come next, until they are one. Among keys that are spread evenly over the bytes they use, each is as likely as
//! any. Where they are not, a key that stands alone is too likely: so a descent also tells the reciprocal of its own
//! chance, its *weight*, whose mean is the number of keys. A key is taken with the chance of its weight as a share of
//! [`EVEN`] times that number; else there is another descent. So all keys whose weight is below that are equally
//! likely.
//!
//! Costs: [`EVEN`] descents, or a few times as many where keys stand alone, of some 3 to 12 looks for a key each.

use std::ops::Bound;

/// Keys are equally likely up to this many times the mean weight, which is how many descents a key takes.
const EVEN: f64 = 32.0;

/// Descents at most. After them, one of the keys that were come to is taken, each with the chance of its weight.
const MAX: usize = 256;

/// Splits of a descent at most: more happen where a key has as many others as its beginnings, or in a damaged pool.
const SPLITS: usize = 1024;

/// The source of chance: xorshift, which is even enough for what clients see of it.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Numbers that depend on the seed alone.
    pub fn new(seed: u64) -> Random {
        Random(seed | 1)
    }

    /// A number from 0 up to 1, which is left out.
    fn share(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Keys in order.
pub trait Keys {
    /// What a look may fail with.
    type Error;

    /// The first key between the bounds; or the last, if so.
    fn end(
        &self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        last: bool,
    ) -> Result<Option<Vec<u8>>, Self::Error>;

    /// Whether a key may be taken.
    fn may_take(&self, key: &[u8]) -> Result<bool, Self::Error>;
}

/// What was picked.
#[derive(Debug, PartialEq, Eq)]
pub enum Picked {
    /// A key that may be taken.
    Key(Vec<u8>),
    /// None of the keys that were come to may be taken; the last of them.
    NoneOf(Vec<u8>),
    /// There are no keys.
    Nothing,
}

/// Picks a key of about `count`.
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

/// A key between these two, which are keys, and the reciprocal of its chance.
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
            break; // They are one; or the pool is damaged.
        }
        // Above the lower symbol, so it is no key's end.
        let split = low + (high - low).div_ceil(2);
        let mut place = first[..common].to_vec();
        place.push((split - 1) as u8);
        let share = f64::from(split - low) / f64::from(high - low + 1);
        if random.share() < share {
            weight /= share;
            let found = keys.end(Bound::Included(&first), Bound::Excluded(&place), true)?;
            // It may have been removed meanwhile.
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

    /// Keys of which some may not be taken; how often one was looked for.
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

    /// How often each key comes in `picks` picks.
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

    /// Keys that come in clusters, with outliers, are about equally likely: the standard deviation of their chances is
    /// a third of the mean at most, none comes three times as often as the mean, and no cluster has much more than its
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
            // What counting itself scatters is not the keys'.
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

    /// Keys that may not be taken are never picked; if none may, the pick returns a key to continue from.
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
