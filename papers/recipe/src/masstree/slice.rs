//! Key slices: the eight bytes of a key that one layer uses.

/// The length of a slice whose key continues after it.
pub(super) const CONTINUES: u8 = 9;

/// Eight bytes of a key, as used by one layer. Slices are ordered like their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slice {
    /// The bytes, padded with zeros, most significant first.
    pub(super) bytes: u64,
    /// How many of them belong to the key, or [`CONTINUES`].
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
            let len = if rest.len() > 8 { CONTINUES } else { 8 };
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
        Slice {
            bytes,
            len: CONTINUES,
        }
    }

    /// Whether the key continues after the slice.
    #[inline(always)]
    pub(super) fn continues(self) -> bool {
        self.len == CONTINUES
    }

    /// The bytes that belong to the key.
    pub(super) fn key_bytes(self) -> ([u8; 8], usize) {
        (self.bytes.to_be_bytes(), usize::from(self.len.min(8)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slices, layer by layer, are ordered like their keys and distinguish them: with zeros, ends and prefixes in any
    /// place.
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
