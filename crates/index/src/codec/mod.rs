//! The codec by which indexes for keys and values of eight bytes hold keys and values of any length.
//!
//! A key of eight bytes with a value of eight bytes is stored in place, as two words (the papers' entries). Any other
//! pair is a [record](RecordRef) of its own, to which the index has a link.
//!
//! I1 A pair's prefix is the key's first eight bytes, padded with zeros, as a big-endian number: prefixes order keys,
//!    except for those that share one.

mod checksum;
mod record;

pub use checksum::checksum;
pub use record::{RecordHeader, RecordRef, draft, retire};

use crate::Value;
use heap::Access;
use pmem::{Fault, Link, Media, Offset};
use std::cmp::Ordering;

/// A key to search for.
#[derive(Clone, Copy, Debug)]
pub struct SearchKey<'k> {
    /// The whole key.
    pub bytes: &'k [u8],
    /// Its first eight bytes.
    pub prefix: u64,
}

impl<'k> SearchKey<'k> {
    /// The key of these bytes.
    #[inline]
    pub fn new(bytes: &'k [u8]) -> SearchKey<'k> {
        SearchKey {
            bytes,
            prefix: prefix(bytes),
        }
    }

    /// The hash by which partitions, filters and fingerprints are chosen.
    #[inline]
    pub fn hash(&self) -> u64 {
        checksum(self.bytes)
    }

    /// Compares with the key of a pair with this `prefix` and `link`.
    ///
    /// # Errors
    ///
    /// If the link leads to no record.
    #[inline]
    pub fn compare<M: Media>(&self, heap: &Access<M>, prefix: u64, link: Link) -> Result<Ordering, Fault> {
        match self.prefix.cmp(&prefix) {
            Ordering::Equal if link.is_null() => Ok(self.bytes.cmp(&prefix.to_be_bytes())),
            Ordering::Equal => Ok(self.bytes.cmp(RecordRef::at(heap, link)?.key)),
            unequal => Ok(unequal),
        }
    }
}

/// The first eight bytes.
#[inline]
pub fn prefix(key: &[u8]) -> u64 {
    if let Some(bytes) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*bytes);
    }
    let mut bytes = [0; 8];
    bytes[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(bytes)
}

/// A key with its value, as the two words that represent them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairWords {
    /// The key's first eight bytes.
    pub prefix: u64,
    /// The record; null for a pair in place.
    pub link: Link,
    /// The value of a pair in place.
    pub word: u64,
}

impl PairWords {
    /// The key's bytes.
    ///
    /// # Errors
    ///
    /// If the link leads to no record, or to one with another prefix.
    pub fn key<'b, 'g: 'b, M: Media>(
        &self,
        heap: &'g Access<M>,
        buffer: &'b mut [u8; 8],
    ) -> Result<SearchKey<'b>, Fault> {
        let bytes = if self.link.is_null() {
            *buffer = self.prefix.to_be_bytes();
            &buffer[..]
        } else {
            let key = RecordRef::at(heap, self.link)?.key;
            // So algorithms that rely on the order of keys terminate even in a damaged pool.
            if prefix(key) != self.prefix {
                return Err(Fault {
                    what: "a prefix does not match its record",
                    offset: self.link.offset().map_or(0, Offset::get),
                });
            }
            key
        };
        Ok(SearchKey {
            bytes,
            prefix: self.prefix,
        })
    }

    /// The second word.
    pub fn value_bits(&self) -> u64 {
        if self.link.is_null() {
            self.word
        } else {
            self.link.bits()
        }
    }

    /// The value.
    ///
    /// # Errors
    ///
    /// If the link leads to no record.
    pub fn value<'g, M: Media>(&self, heap: &'g Access<M>) -> Result<Value<'g>, Fault> {
        if self.link.is_null() {
            return Ok(Value::Word(self.word.to_le_bytes()));
        }
        Ok(value_of(RecordRef::at(heap, self.link)?.value))
    }

    /// A copy of the key's bytes.
    ///
    /// # Errors
    ///
    /// As for [`key`](PairWords::key).
    pub fn key_bytes<M: Media>(&self, heap: &Access<M>) -> Result<Vec<u8>, Fault> {
        Ok(self.key(heap, &mut [0; 8])?.bytes.to_vec())
    }

    /// The order of two pairs' keys.
    ///
    /// # Errors
    ///
    /// As for [`key`](PairWords::key).
    pub fn compare<M: Media>(&self, heap: &Access<M>, other: &PairWords) -> Result<Ordering, Fault> {
        if self.prefix != other.prefix {
            return Ok(self.prefix.cmp(&other.prefix));
        }
        self.key(heap, &mut [0; 8])?
            .compare(heap, other.prefix, other.link)
    }
}

/// The value in a record, as reads return it.
#[inline]
pub fn value_of(bytes: &[u8]) -> Value<'_> {
    bytes.try_into().map_or(Value::Bytes(bytes), Value::Word)
}

/// A value of eight bytes as a word, if the pair is stored in place.
#[inline]
pub fn in_place(key: &[u8], value: &[u8]) -> Option<u64> {
    if key.len() != 8 {
        return None;
    }
    value.try_into().ok().map(u64::from_le_bytes)
}
