//! Keys and entries, as all components hold them.
//!
//! A key of eight bytes with a value of eight bytes stands in place, as two words (the paper's entries). Any other pair
//! is a record of its own, and its entry holds the key's first eight bytes and a link to the record.
//!
//! I1 An entry's prefix is the key's first eight bytes, zeros after its end, as a big-endian number: prefixes order
//!    keys, but for those that share one.

use crate::record::RecordRef;
use art::checksum;
use heap::Access;
use index::Value;
use pmem::{Fault, Link, Media, Offset};
use std::cmp::Ordering;

/// A key that is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key<'k> {
    pub(crate) bytes: &'k [u8],
    pub(crate) prefix: u64,
}

impl<'k> Key<'k> {
    #[inline]
    pub(crate) fn new(bytes: &'k [u8]) -> Key<'k> {
        Key {
            bytes,
            prefix: prefix(bytes),
        }
    }

    /// What partitions of the log, filters and fingerprints are chosen by.
    #[inline]
    pub(crate) fn hash(&self) -> u64 {
        checksum(self.bytes)
    }

    /// Compares with the key of which `prefix` and `link` stand in an entry.
    #[inline]
    pub(crate) fn compare<M: Media>(
        &self,
        heap: &Access<M>,
        prefix: u64,
        link: Link,
    ) -> Result<Ordering, Fault> {
        match self.prefix.cmp(&prefix) {
            Ordering::Equal if link.is_null() => Ok(self.bytes.cmp(&prefix.to_be_bytes())),
            Ordering::Equal => Ok(self.bytes.cmp(RecordRef::at(heap, link)?.key)),
            unequal => Ok(unequal),
        }
    }
}

/// The first eight bytes.
#[inline]
pub(crate) fn prefix(key: &[u8]) -> u64 {
    if let Some(bytes) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*bytes);
    }
    let mut bytes = [0; 8];
    bytes[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(bytes)
}

/// A key with its value, or with the mark that it was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) prefix: u64,
    /// The record; null for a pair in place.
    pub(crate) link: Link,
    /// The value of a pair in place.
    pub(crate) word: u64,
    /// There is no such key any more.
    pub(crate) removed: bool,
}

impl Entry {
    /// The key's bytes.
    pub(crate) fn key<'b, 'g: 'b, M: Media>(
        &self,
        heap: &'g Access<M>,
        buffer: &'b mut [u8; 8],
    ) -> Result<Key<'b>, Fault> {
        let bytes = if self.link.is_null() {
            *buffer = self.prefix.to_be_bytes();
            &buffer[..]
        } else {
            let key = RecordRef::at(heap, self.link)?.key;
            // What rests on the order of keys ends, whatever a damaged pool holds.
            if prefix(key) != self.prefix {
                return Err(Fault {
                    what: "the prefix beside a link is not its record's",
                    offset: self.link.offset().map_or(0, Offset::get),
                });
            }
            key
        };
        Ok(Key {
            bytes,
            prefix: self.prefix,
        })
    }

    /// The second word of the entry's slot.
    pub(crate) fn value_bits(&self) -> u64 {
        if self.link.is_null() {
            self.word
        } else {
            self.link.bits()
        }
    }

    /// The value.
    pub(crate) fn value<'g, M: Media>(&self, heap: &'g Access<M>) -> Result<Value<'g>, Fault> {
        if self.link.is_null() {
            return Ok(Value::Word(self.word.to_le_bytes()));
        }
        let value = RecordRef::at(heap, self.link)?.value;
        Ok(value.try_into().map_or(Value::Bytes(value), Value::Word))
    }

    /// The key's bytes, to keep.
    pub(crate) fn key_bytes<M: Media>(&self, heap: &Access<M>) -> Result<Vec<u8>, Fault> {
        Ok(self.key(heap, &mut [0; 8])?.bytes.to_vec())
    }

    /// The order of two entries' keys.
    pub(crate) fn compare<M: Media>(&self, heap: &Access<M>, other: &Entry) -> Result<Ordering, Fault> {
        if self.prefix != other.prefix {
            return Ok(self.prefix.cmp(&other.prefix));
        }
        self.key(heap, &mut [0; 8])?
            .compare(heap, other.prefix, other.link)
    }
}

/// A value of eight bytes as a word, if the pair stands in place.
#[inline]
pub(crate) fn in_place(key: &[u8], value: &[u8]) -> Option<u64> {
    if key.len() != 8 {
        return None;
    }
    value.try_into().ok().map(u64::from_le_bytes)
}
