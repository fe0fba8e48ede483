//! A persistent word that carries its own checksum.
//!
//! The words of the header change one by one, each by one store, so a checksum over several of them could not be
//! right at every crash. Each carries its own instead:
//!
//! ```text
//!  63        48 47                                  0
//! +------------+-------------------------------------+
//! |   CRC-16   |                value                |
//! +------------+-------------------------------------+
//! ```
//!
//! The CRC (polynomial 0x1021, initial value 0xffff, most significant byte of the value first) detects every damage
//! of up to three bits, and every damage confined to 16 adjacent bits of the value. A word of zeros is not valid.

use crate::{Media, PWord, PersistBatch, Persistent};

/// Eight persistent bytes that hold a value below 2^48 and its checksum, and change by one store.
#[repr(transparent)]
#[derive(Debug)]
pub struct CheckedWord(PWord);

// SAFETY: one atomic word; any bits are valid.
unsafe impl Persistent for CheckedWord {
    const WORDS_ONLY: bool = true;
}

/// The bits of the value.
const VALUE: u64 = (1 << 48) - 1;

impl CheckedWord {
    /// The value, whose checksum was verified when the pool was opened (acquire).
    #[inline]
    #[track_caller]
    pub fn load<M: Media>(&self, media: &M) -> u64 {
        self.0.load(media) & VALUE
    }

    /// Stores the lower 48 bits of `value` (release); durable once the batch is fenced.
    #[inline]
    #[track_caller]
    pub(super) fn store<'m, M: Media>(&'m self, value: u64, batch: &PersistBatch<'_, 'm, M>) {
        self.0.store(seal(value), batch);
    }

    /// Makes the present value durable once the batch is fenced, whichever thread stored it.
    #[inline]
    #[track_caller]
    pub fn persist_seen<'m, M: Media>(&'m self, batch: &PersistBatch<'_, 'm, M>) {
        self.0.persist_seen(batch);
    }
}

/// The word that holds the lower 48 bits of `value`.
pub(super) fn seal(value: u64) -> u64 {
    let value = value & VALUE;
    u64::from(crc16(&value.to_be_bytes()[2..])) << 48 | value
}

/// The value of `word`, if its checksum is right.
pub(super) fn unseal(word: u64) -> Option<u64> {
    (seal(word) == word).then_some(word & VALUE)
}

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0xffff, |crc, &byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| {
            if crc & 0x8000 == 0 {
                crc << 1
            } else {
                crc << 1 ^ 0x1021
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The CRC is the documented one: its published check value is 0x29b1.
    #[test]
    fn crc_is_the_documented_one() {
        assert_eq!(crc16(b"123456789"), 0x29b1);
    }

    /// A sealed value is read back, and no damage of one, two or three bits passes.
    #[test]
    fn damage_does_not_pass() {
        for value in [0, 1, 0x1234_5678_9abc, VALUE] {
            let word = seal(value);
            assert_eq!(unseal(word), Some(value));
            for a in 0..64 {
                for b in a..64 {
                    for c in b..64 {
                        let damage = (1u64 << a) ^ (1 << b) ^ (1 << c);
                        assert!(
                            damage == 0 || unseal(word ^ damage).is_none(),
                            "{value:#x} ^ {damage:#x}"
                        );
                    }
                }
            }
        }
    }

    /// Fresh zeros are not mistaken for a value.
    #[test]
    fn zeros_are_no_value() {
        assert_eq!(unseal(0), None);
    }
}
