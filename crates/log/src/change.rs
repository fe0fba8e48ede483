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

/// Maximum bytes of a record to gather before it is copied.
pub(crate) const SMALL: usize = 512;

const PUT: u8 = 1;
const REMOVE: u8 = 2;
const MAP_MADE: u8 = 3;
const MAP_DROPPED: u8 = 4;

impl<'a> Change<'a> {
    fn parts(&self) -> (u8, &'a str, &'a [u8], &'a [u8]) {
        match *self {
            Change::Put { map, key, value } => (PUT, map, key, value),
            Change::Remove { map, key } => (REMOVE, map, key, &[]),
            Change::MapMade { map, index, settings } => (MAP_MADE, map, index.as_bytes(), settings),
            Change::MapDropped { map } => (MAP_DROPPED, map, &[], &[]),
        }
    }

    /// Encodes the change, in pieces that follow each other.
    fn encode(&self) -> Result<Encoded<'a>, Error> {
        let (kind, map, key, value) = self.parts();
        let map_len = u8::try_from(map.len()).map_err(|_| too_long("a map's name", map.len(), 0xff))?;
        let key_len = u16::try_from(key.len()).map_err(|_| too_long("a key", key.len(), 0xffff))?;
        let value_len =
            u32::try_from(value.len()).map_err(|_| too_long("a value", value.len(), u32::MAX as usize))?;
        let mut header = [kind, map_len, 0, 0, 0, 0, 0, 0];
        header[2..4].copy_from_slice(&key_len.to_le_bytes());
        header[4..8].copy_from_slice(&value_len.to_le_bytes());
        Ok(Encoded {
            header,
            map: map.as_bytes(),
            key,
            value,
        })
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

fn too_long(what: &'static str, bytes: usize, max: usize) -> Error {
    Error::TooLong { what, bytes, max }
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
    pub(crate) fn new(changes: &'a [Change<'a>]) -> Result<Body<'a>, Error> {
        let mut len = 0;
        for change in changes {
            let encoded = change.encode()?;
            len += (CHANGE_HEADER + encoded.map.len() + encoded.key.len() + encoded.value.len()) as u64;
        }
        Ok(Body { changes, len })
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Passes the body's bytes to `put`, in pieces that follow each other.
    pub(crate) fn each_piece(&self, mut put: impl FnMut(&[u8])) {
        // `new` has checked that each can be encoded.
        for encoded in self.changes.iter().filter_map(|change| change.encode().ok()) {
            for piece in [&encoded.header, encoded.map, encoded.key, encoded.value] {
                put(piece);
            }
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
