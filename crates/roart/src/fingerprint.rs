//! Fingerprints (ROART §3.2): 16 bits of a key's checksum, in the link to its leaf in a leaf array.
//!
//! ```text
//!  63       48 47            4 3    1
//! fingerprint |  … offset …   | kind |
//! ```

use art::{Kind, checksum};
use pmem::{Link, Tag};

/// The fingerprint of a key.
#[inline]
pub(crate) fn fingerprint(key: &[u8]) -> u16 {
    fingerprint_in(checksum(key))
}

/// The fingerprint of a key with this checksum.
#[inline]
pub(crate) fn fingerprint_in(checksum: u64) -> u16 {
    (checksum >> 48) as u16
}

/// The tag of a leaf in a leaf array.
#[inline]
pub(crate) const fn leaf_tag(fingerprint: u16) -> Tag {
    Tag::new((fingerprint as u64) << 48 | (Kind::Leaf as u64) << 1)
}

/// The fingerprint in the link to a leaf in a leaf array.
#[inline]
pub(crate) fn fingerprint_of(link: Link) -> u16 {
    (link.bits() >> 48) as u16
}
