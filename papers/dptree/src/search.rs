//! Searches among sorted keys: first by their prefixes, without an unpredictable branch; then, among keys with the same
//! prefix, by whole keys.

use std::cmp::Ordering;
use std::hint::select_unpredictable;

/// How many of the numbers below `len`, which is at most `MAX`, `is_before` holds for: the first of them. `is_before` is
/// asked about any number below `MAX`, a power of two. Takes as many steps whatever `len`, so that the processor can
/// predict them.
#[inline(always)]
pub(crate) fn partition<const MAX: usize>(len: usize, is_before: impl Fn(usize) -> bool) -> usize {
    const { assert!(MAX.is_power_of_two()) };
    let mut begin = 0;
    let mut step = MAX / 2;
    while step > 0 {
        let last = begin + step - 1;
        begin = select_unpredictable((last < len) & is_before(last), begin + step, begin);
        step /= 2;
    }
    begin + usize::from((begin < len) & is_before(begin))
}

/// The position of a key with this prefix among `len` sorted ones, or its insertion point. `compare` compares the key
/// with one that has the same prefix. `prefix_of` is asked about any number below `MAX`.
#[inline(always)]
pub(crate) fn position<const MAX: usize, E>(
    len: usize,
    prefix: u64,
    prefix_of: impl Fn(usize) -> u64,
    compare: impl Fn(usize) -> Result<Ordering, E>,
) -> Result<Result<usize, usize>, E> {
    let low = partition::<MAX>(len, |i| prefix_of(i) < prefix);
    if low >= len || prefix_of(low) != prefix {
        return Ok(Err(low));
    }
    match compare(low)? {
        Ordering::Equal => Ok(Ok(low)),
        Ordering::Less => Ok(Err(low)),
        Ordering::Greater => {
            let high = partition::<MAX>(len, |i| prefix_of(i) <= prefix);
            among_equal(low + 1, high, compare)
        }
    }
}

/// The position of a key among those from `low` to `high`, or its insertion point.
#[cold]
fn among_equal<E>(
    mut low: usize,
    mut high: usize,
    compare: impl Fn(usize) -> Result<Ordering, E>,
) -> Result<Result<usize, usize>, E> {
    while low < high {
        let middle = (low + high) / 2;
        match compare(middle)? {
            Ordering::Equal => return Ok(Ok(middle)),
            Ordering::Less => high = middle,
            Ordering::Greater => low = middle + 1,
        }
    }
    Ok(Err(low))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// Any key's position is the one that a search of the standard library finds.
    #[test]
    fn positions_are_right() {
        positions_among::<8>();
        positions_among::<32>();
        positions_among::<64>();
    }

    fn positions_among<const MAX: usize>() {
        for len in 0..=MAX as u64 {
            // Keys of a prefix and a rest, of which up to five share a prefix.
            let keys: Vec<(u64, u64)> = (0..len).map(|i| (i * i % 7 + i / 5 * 7, i)).collect();
            let mut keys: Vec<_> = keys
                .into_iter()
                .map(|(prefix, rest)| (prefix / 3, rest * 2))
                .collect();
            keys.sort_unstable();
            for prefix in 0..40 {
                for rest in 0..2 * len + 2 {
                    let found: Result<_, Infallible> = position::<MAX, _>(
                        keys.len(),
                        prefix,
                        |i| keys.get(i).map_or(0, |key| key.0),
                        |i| Ok(rest.cmp(&keys[i].1)),
                    );
                    let Ok(found) = found;
                    assert_eq!(
                        found,
                        keys.binary_search(&(prefix, rest)),
                        "{len} {prefix} {rest}"
                    );
                }
            }
        }
    }
}
