//! Key slices: the eight bytes of a key that one layer looks at.

/// What stands for the length of a slice whose key goes on behind it.
pub(super) const GOES_ON: u8 = 9;

/// Eight bytes of a key, as one layer looks at them. They order as keys do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slice {
    /// The bytes, zeros after the key's end, the first uppermost.
    pub(super) bytes: u64,
    /// How many of them are the key's, or [`GOES_ON`].
    pub(super) len: u8,
}

impl Slice {
    /// Before every other slice.
    pub(super) const FIRST: Slice = Slice { bytes: 0, len: 0 };

    /// The slice of `key` in the layer below `depth` others.
    #[inline(always)]
    pub(super) fn of(key: &[u8], depth: usize) -> Slice {
        let rest = key.get(8 * depth..).unwrap_or_default();
        if let Some(bytes) = rest.first_chunk::<8>() {
            let len = if rest.len() > 8 { GOES_ON } else { 8 };
            return Slice {
                bytes: u64::from_be_bytes(*bytes),
                len,
            };
        }
        let mut bytes = [0; 8];
        bytes[..rest.len()].copy_from_slice(rest);
        Slice {
            bytes: u64::from_be_bytes(bytes),
            len: rest.len() as u8,
        }
    }

    /// Behind every slice with the same bytes.
    pub(super) fn last_of(bytes: u64) -> Slice {
        Slice { bytes, len: GOES_ON }
    }

    /// Whether the key goes on behind the slice.
    #[inline(always)]
    pub(super) fn continues(self) -> bool {
        self.len == GOES_ON
    }

    /// The bytes that are the key's.
    pub(super) fn key_bytes(self) -> ([u8; 8], usize) {
        (self.bytes.to_be_bytes(), usize::from(self.len.min(8)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slices, layer by layer, order as their keys do and tell them apart: with zeros, ends and prefixes in any place.
    #[test]
    fn slices_are_their_keys() {
        let mut keys = vec![vec![]];
        for len in [1, 2, 7, 8, 9, 15, 16, 17, 24, 25] {
            for byte in [0, 1, 127, 128, 255] {
                for last in [0, 255] {
                    let mut key = vec![byte; len];
                    key[len - 1] = last;
                    keys.push(key);
                }
            }
        }
        let path = |key: &[u8]| -> Vec<Slice> {
            (0..=key.len().saturating_sub(1) / 8)
                .map(|depth| Slice::of(key, depth))
                .collect()
        };
        for a in &keys {
            let bytes: Vec<u8> = path(a)
                .iter()
                .flat_map(|slice| {
                    let (bytes, len) = slice.key_bytes();
                    bytes[..len].to_vec()
                })
                .collect();
            assert_eq!(&bytes, a);
            for b in &keys {
                assert_eq!(path(a).cmp(&path(b)), a.cmp(b), "{a:?} {b:?}");
            }
        }
    }
}
