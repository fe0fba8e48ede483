//! The content of a record: its changes.

use crate::Error;

/// The new state of a key or a map. A record consists of one or more changes, which take effect together or not at
/// all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change<'a> {
    /// The key holds the value.
    Put {
        /// The map's name, up to 255 bytes.
        map: &'a str,
        /// The key, up to 65,535 bytes.
        key: &'a [u8],
        /// The value, up to 2^32 - 1 bytes.
        value: &'a [u8],
    },
    /// The key is absent.
    Remove {
        /// The map's name.
        map: &'a str,
        /// The key.
        key: &'a [u8],
    },
    /// The map exists, empty.
    MapMade {
        /// The map's name.
        map: &'a str,
        /// The name of the index that holds it, up to 65,535 bytes.
        index: &'a str,
        /// Further settings of its creator, up to 2^32 - 1 bytes.
        settings: &'a [u8],
    },
    /// The map is gone, with all its keys.
    MapDropped {
        /// The map's name.
        map: &'a str,
    },
}

/// Bytes of a change before its map's name.
const CHANGE_HEADER: usize = 8;

/// Maximum lengths of a map's name, a key and a value, by the widths of their fields.
const MAX_MAP: usize = u8::MAX as usize;
const MAX_KEY: usize = u16::MAX as usize;
const MAX_VALUE: usize = u32::MAX as usize;

/// Maximum bytes of a record's body to gather in a buffer before it is copied into the log.
pub(crate) const SMALL: usize = 512;

const PUT: u8 = 1;
const REMOVE: u8 = 2;
const MAP_MADE: u8 = 3;
const MAP_DROPPED: u8 = 4;

impl<'a> Change<'a> {
    #[inline]
    fn parts(&self) -> (u8, &'a str, &'a [u8], &'a [u8]) {
        match *self {
            Change::Put { map, key, value } => (PUT, map, key, value),
            Change::Remove { map, key } => (REMOVE, map, key, &[]),
            Change::MapMade { map, index, settings } => (MAP_MADE, map, index.as_bytes(), settings),
            Change::MapDropped { map } => (MAP_DROPPED, map, &[], &[]),
        }
    }

    /// Returns the length of the encoded change; `None` if one of its parts is too long.
    #[inline]
    fn encoded_len(&self) -> Option<u64> {
        let (_, map, key, value) = self.parts();
        let fits = map.len() <= MAX_MAP && key.len() <= MAX_KEY && value.len() <= MAX_VALUE;
        fits.then_some((CHANGE_HEADER + map.len() + key.len() + value.len()) as u64)
    }

    /// Returns the error for the change, of which a part is too long.
    #[cold]
    fn too_long(&self) -> Error {
        let (_, map, key, value) = self.parts();
        let (what, bytes, max) = match () {
            () if map.len() > MAX_MAP => ("a map's name", map.len(), MAX_MAP),
            () if key.len() > MAX_KEY => ("a key", key.len(), MAX_KEY),
            () => ("a value", value.len(), MAX_VALUE),
        };
        Error::TooLong { what, bytes, max }
    }

    /// Encodes the change, in pieces that follow each other. [`encoded_len`](Change::encoded_len) has checked it.
    #[inline]
    fn encode(&self) -> Encoded<'a> {
        let (kind, map, key, value) = self.parts();
        let lengths = (map.len() as u64) << 8 | (key.len() as u64) << 16 | (value.len() as u64) << 32;
        Encoded {
            header: (u64::from(kind) | lengths).to_le_bytes(),
            map: map.as_bytes(),
            key,
            value,
        }
    }

    /// Decodes the change at the beginning of a record's bytes, and returns the bytes behind it; `None` if they are
    /// no valid change.
    fn decode(bytes: &'a [u8]) -> Option<(Change<'a>, &'a [u8])> {
        let (header, rest) = bytes.split_first_chunk::<CHANGE_HEADER>()?;
        let [kind, map_len, k0, k1, v0, v1, v2, v3] = *header;
        let (map, rest) = rest.split_at_checked(map_len.into())?;
        let (key, rest) = rest.split_at_checked(u16::from_le_bytes([k0, k1]).into())?;
        let (value, rest) = rest.split_at_checked(u32::from_le_bytes([v0, v1, v2, v3]) as usize)?;
        let map = std::str::from_utf8(map).ok()?;
        let change = match kind {
            PUT => Change::Put { map, key, value },
            REMOVE if value.is_empty() => Change::Remove { map, key },
            MAP_MADE => Change::MapMade {
                map,
                index: std::str::from_utf8(key).ok()?,
                settings: value,
            },
            MAP_DROPPED if key.is_empty() && value.is_empty() => Change::MapDropped { map },
            _ => return None,
        };
        Some((change, rest))
    }
}

/// An encoded change.
struct Encoded<'a> {
    header: [u8; CHANGE_HEADER],
    map: &'a [u8],
    key: &'a [u8],
    value: &'a [u8],
}

/// A record's body: changes that can be encoded.
pub(crate) struct Body<'a> {
    changes: &'a [Change<'a>],
    len: u64,
}

impl<'a> Body<'a> {
    #[inline]
    pub(crate) fn new(changes: &'a [Change<'a>]) -> Result<Body<'a>, Error> {
        let mut len = 0;
        for change in changes {
            len += change.encoded_len().ok_or_else(|| change.too_long())?;
        }
        Ok(Body { changes, len })
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Stores the body's bytes in a buffer of its length.
    #[inline]
    pub(crate) fn gather(&self, bytes: &mut [u8]) {
        let mut at = 0;
        self.each_piece(|piece| {
            let end = at + piece.len();
            bytes[at..end].copy_from_slice(piece);
            at = end;
        });
    }

    /// Passes the body's bytes to `put`, in pieces that follow each other.
    #[inline]
    pub(crate) fn each_piece(&self, mut put: impl FnMut(&[u8])) {
        for change in self.changes {
            // `new` has checked the lengths.
            let Encoded {
                header,
                map,
                key,
                value,
            } = change.encode();
            put(&header);
            put(map);
            put(key);
            put(value);
        }
    }
}

/// The changes of a record, in order.
#[derive(Clone, Copy, Debug)]
pub struct Changes<'a> {
    rest: &'a [u8],
}

impl<'a> Changes<'a> {
    /// Parses the changes in a record's bytes; `None` if they are anything else.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Changes<'a>> {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = Change::decode(rest)?.1;
        }
        Some(Changes { rest: bytes })
    }
}

impl<'a> Iterator for Changes<'a> {
    type Item = Change<'a>;

    fn next(&mut self) -> Option<Change<'a>> {
        let (change, rest) = Change::decode(self.rest)?;
        self.rest = rest;
        Some(change)
    }
}
