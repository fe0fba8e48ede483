//! The bytes of an entry of the root directory (256 bytes):
//!
//! ```text
//!    0  link: the root object; null = the entry is free
//!    8  about    63        32 31           8 7        0
//!               +------------+--------------+----------+
//!               |    kind    |  check of    |  name's  |
//!               |            | kind and name|  length  |
//!               +------------+--------------+----------+
//!   16  name, zeros after it
//! ```

use crate::MAX_NAME;
use pmem::{Link, PSlot, PWord, persistent};

const WORDS: usize = MAX_NAME / 8;

/// The contents of a root's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// The kind of the object, which selects its tracer.
    pub kind: u32,
    /// The object.
    pub link: Link,
}

persistent! {
    pub(crate) struct RootEntry [size: 256] {
        pub(crate) link: PSlot,
        pub(crate) about: PWord,
        pub(crate) name: [PWord; WORDS],
    }
}

/// Eight bytes of the name from `at` on, with zeros after its end.
pub(crate) fn word_of(name: &[u8], at: usize) -> u64 {
    let rest = name.get(at..).unwrap_or_default();
    let mut word = [0; 8];
    let len = rest.len().min(8);
    word[..len].copy_from_slice(&rest[..len]);
    u64::from_le_bytes(word)
}

/// The entry's second word: the checksum is the middle of a 64-bit FNV-1a over kind, length and name.
pub(crate) fn about(kind: u32, name: &[u8]) -> u64 {
    let len = name.len() as u8;
    let bytes = kind
        .to_le_bytes()
        .into_iter()
        .chain([len])
        .chain(name.iter().copied());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    u64::from(kind) << 32 | (hash >> 20 & 0x00ff_ffff) << 8 | u64::from(len)
}
