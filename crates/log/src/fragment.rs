//! Fragments: the parts of a record. A record is one fragment, unless it reaches the end of a segment and continues
//! in the next.
//!
//! A fragment, little-endian, at a multiple of eight:
//!
//! ```text
//!  0  check         u64  checksum of all that follows except the padding, and of the position
//!  8  word          u32  bits 0 to 27: bytes of the body; 28, 29: part; 30, 31: kind
//! 12  tag           u32  of the position
//! 16  behind        u32  distance from the durable end to the position, in units of eight bytes
//! 20  incarnation   u32  number of times that the log has been opened
//! 24  body; then padding up to a multiple of eight, of any bytes
//! ```
//!
//! F1 Checksum and tag depend on the position and on the log's id. So bytes of an earlier use of the file, of another
//!    log, or inside a value, never pass for a fragment.
//! F2 Fragments are stored one after the other, so that a killed process leaves at most one with a bad checksum, at the
//!    end. Where header and body are not stored together, the header is stored last.
//! F3 `behind` states up to where the log was durable before the fragment was stored: the *claim*. A record with a
//!    bad checksum below a claim is damaged; one above all claims may be left by a crash.

use crate::Lsn;
use crate::hash::hash;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Bytes before the body.
pub(crate) const HEADER: usize = 24;

/// Minimum space in which a fragment is started.
pub(crate) const MIN: u64 = HEADER as u64 + 8;

/// Maximum bytes of a body, by the width of its field.
pub(crate) const MAX_BODY: u64 = (1 << 28) - 1;

/// Bytes of a fragment with a body of `len` bytes.
pub(crate) fn footprint(len: u64) -> u64 {
    HEADER as u64 + len.next_multiple_of(8)
}

/// The position of a fragment within its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Whole = 0,
    First = 1,
    Middle = 2,
    Last = 3,
}

impl Part {
    /// Whether a record begins with this fragment.
    pub(crate) fn begins(self) -> bool {
        matches!(self, Part::Whole | Part::First)
    }

    /// Whether a record ends with this fragment.
    pub(crate) fn ends(self) -> bool {
        matches!(self, Part::Whole | Part::Last)
    }
}

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Changes.
    Changes = 0,
    /// The log was opened: the records that follow belong to the next incarnation. Durable before any of them is
    /// stored.
    Opened = 1,
}

/// The contents of a fragment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) len: u32,
    pub(crate) part: Part,
    pub(crate) kind: Kind,
    /// In units of eight bytes.
    pub(crate) behind: u32,
    pub(crate) incarnation: u32,
}

/// The key of the checksums and tags of a log's fragments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key(u64);

impl Key {
    pub(crate) fn new(id: u128) -> Key {
        Key(xxh3_64(&id.to_le_bytes()))
    }

    /// The tag of a position. It differs for the same offset in different segments, up to 32 GiB of log apart.
    fn tag(self, lsn: Lsn) -> u32 {
        ((lsn.0 >> 3) as u32).wrapping_mul(0x9e37_79b1) ^ (self.0 >> 32) as u32
    }

    fn check(self, lsn: Lsn, header: &[u8; 16], body_hash: u64) -> u64 {
        let mut bytes = [0; 24];
        bytes[..16].copy_from_slice(header);
        bytes[16..].copy_from_slice(&body_hash.to_le_bytes());
        xxh3_64_with_seed(&bytes, self.0 ^ lsn.0)
    }

    /// Encodes the header of a fragment at `lsn`.
    #[inline]
    pub(crate) fn encode(self, lsn: Lsn, header: Header, body_hash: u64) -> [u8; HEADER] {
        debug_assert!(u64::from(header.len) <= MAX_BODY, "the body is too long");
        let word = header.len | (header.part as u32) << 28 | (header.kind as u32) << 30;
        let mut checked = [0; 16];
        checked[0..4].copy_from_slice(&word.to_le_bytes());
        checked[4..8].copy_from_slice(&self.tag(lsn).to_le_bytes());
        checked[8..12].copy_from_slice(&header.behind.to_le_bytes());
        checked[12..16].copy_from_slice(&header.incarnation.to_le_bytes());
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&self.check(lsn, &checked, body_hash).to_le_bytes());
        bytes[8..].copy_from_slice(&checked);
        bytes
    }

    /// Decodes the fragment at the beginning of `bytes`, which extend from `lsn` to the end of its segment; `None` if
    /// there is none.
    pub(crate) fn decode(self, lsn: Lsn, bytes: &[u8]) -> Option<Fragment<'_>> {
        self.decode_unchecked(lsn, bytes)
            .filter(|fragment| fragment.check == self.check(lsn, &fragment.checked, hash(fragment.body)))
    }

    /// Decodes the fragment at the beginning of `bytes`, without comparing its checksum: for fragments that are
    /// skipped.
    pub(crate) fn decode_unchecked(self, lsn: Lsn, bytes: &[u8]) -> Option<Fragment<'_>> {
        let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
        let (check, checked) = header.split_first_chunk::<8>()?;
        let checked: &[u8; 16] = checked.first_chunk()?;
        if word(checked, 4) != self.tag(lsn) {
            return None;
        }
        let flags = word(checked, 0);
        let len = flags & MAX_BODY as u32;
        let body = rest.get(..len as usize)?;
        let part = [Part::Whole, Part::First, Part::Middle, Part::Last][(flags >> 28 & 3) as usize];
        let kind = match flags >> 30 {
            0 => Kind::Changes,
            1 => Kind::Opened,
            _ => return None,
        };
        let header = Header {
            len,
            part,
            kind,
            behind: word(checked, 8),
            incarnation: word(checked, 12),
        };
        Some(Fragment {
            lsn,
            header,
            body,
            check: u64::from_le_bytes(*check),
            checked: *checked,
        })
    }
}

fn word(bytes: &[u8; 16], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// A fragment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment<'b> {
    pub(crate) lsn: Lsn,
    pub(crate) header: Header,
    pub(crate) body: &'b [u8],
    check: u64,
    checked: [u8; 16],
}

impl Fragment<'_> {
    pub(crate) fn end(&self) -> Lsn {
        Lsn(self.lsn.0 + footprint(self.header.len.into()))
    }

    /// Position below which everything was durable before the fragment was stored (F3).
    pub(crate) fn claim(&self) -> Lsn {
        Lsn(self.lsn.0.saturating_sub(u64::from(self.header.behind) * 8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Header = Header {
        len: 5,
        part: Part::First,
        kind: Kind::Opened,
        behind: 3,
        incarnation: 9,
    };

    fn sample(key: Key, lsn: Lsn) -> Vec<u8> {
        let mut bytes = key.encode(lsn, HEAD, xxh3_64(b"hello")).to_vec();
        bytes.extend_from_slice(b"hello...");
        bytes
    }

    /// A fragment decodes to what was encoded, only at its own position and in its own log.
    #[test]
    fn fragments_know_their_place() {
        let (key, lsn) = (Key::new(7), Lsn(4096));
        let bytes = sample(key, lsn);
        let found = key.decode(lsn, &bytes).expect("a fragment");
        assert_eq!((found.header, found.body), (HEAD, &b"hello"[..]));
        assert_eq!((found.end(), found.claim()), (Lsn(4096 + 32), Lsn(4096 - 24)));
        assert!(key.decode(Lsn(4104), &bytes).is_none());
        assert!(
            key.decode(Lsn(4096 + (1 << 35)), &bytes).is_none(),
            "tags repeat, checks do not"
        );
        assert!(Key::new(8).decode(lsn, &bytes).is_none());
    }

    /// A flipped bit anywhere but in the padding, or a missing byte, makes it invalid.
    #[test]
    fn each_bit_counts() {
        let (key, lsn) = (Key::new(7), Lsn(4096));
        let bytes = sample(key, lsn);
        for bit in 0..(HEADER + 5) * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(key.decode(lsn, &flipped).is_none(), "bit {bit}");
        }
        for len in 0..HEADER + 5 {
            assert!(key.decode(lsn, &bytes[..len]).is_none(), "{len} bytes");
        }
    }

    /// The bytes are part of the format and may never change.
    #[test]
    fn bytes_are_stable() {
        let bytes = sample(Key::new(7), Lsn(4096));
        let check = u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes"));
        assert_eq!(check, 0x3e86_ce5f_4bf7_cf8a, "the check of format version 1");
    }
}
