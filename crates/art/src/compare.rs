//! Comparing keys.

/// Whether two keys are equal: without a call for the most common length.
#[inline(always)]
pub fn same(a: &[u8], b: &[u8]) -> bool {
    match (<&[u8; 8]>::try_from(a), <&[u8; 8]>::try_from(b)) {
        (Ok(a), Ok(b)) => u64::from_le_bytes(*a) == u64::from_le_bytes(*b),
        _ => a == b,
    }
}

/// Length of the common prefix of two strings.
#[inline]
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let len = a.len().min(b.len());
    let (a, b) = (&a[..len], &b[..len]);
    let (words_a, rest_a) = a.as_chunks::<8>();
    let (words_b, rest_b) = b.as_chunks::<8>();
    for (i, (x, y)) in words_a.iter().zip(words_b).enumerate() {
        let differ = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if differ != 0 {
            return i * 8 + differ.trailing_zeros() as usize / 8;
        }
    }
    let whole = words_a.len() * 8;
    whole + rest_a.iter().zip(rest_b).take_while(|(x, y)| x == y).count()
}

/// The common prefix of a key and a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommonPrefix {
    /// The key contains the whole string.
    All,
    /// The key differs, or ends, at this position, where the string has this byte.
    Until(usize, u8),
}

impl CommonPrefix {
    /// Compares `key`, from its byte `from` on, with `string`.
    pub fn of(string: &[u8], key: &[u8], from: usize) -> CommonPrefix {
        let same = common_prefix(string, key.get(from..).unwrap_or_default());
        match string.get(same) {
            None => CommonPrefix::All,
            Some(&byte) => CommonPrefix::Until(from + same, byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_prefix_counts_equal_bytes() {
        for len in 0..40 {
            let a = vec![9; len];
            assert_eq!(common_prefix(&a, &a), len);
            for at in 0..len {
                let mut b = a.clone();
                b[at] = 200;
                assert_eq!(common_prefix(&a, &b), at);
                assert_eq!(common_prefix(&a, &b[..=at]), at);
                assert_eq!(common_prefix(&a, &a[..at]), at);
            }
        }
    }
}
