//! The state of a store that must survive a crash: one record in each map, under the empty key, which no client can
//! name.
//!
//! ```text
//! offset  size  field
//!      0     8  magic "wollemmc"
//!      8     8  version of this record and of the items' layout: 2
//!     16     8  reserved: every unique ever given is below this
//!     24     8  flushed: items whose unique is below this are gone
//!     32     8  flush_at: the millisecond since 1970 at which all items are to be dropped; 0: none
//! ```
//!
//! Little endian. A *unique* is the number that memcached's protocol calls `cas unique`.
//!
//! I1 No unique is given before the record that reserves it is durable, and each start begins at the last
//!    reservation's end: no unique is given twice, whatever the clock says.
//! I2 Uniques only grow, so that `flushed` separates the items older than a `flush_all` from the newer ones.

use crate::Error;

/// The record's key.
pub const KEY: &[u8] = b"";

const MAGIC: [u8; 8] = *b"wollemmc";
const VERSION: u64 = 2;
const LEN: usize = 40;

/// The record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreRecord {
    /// Every unique ever given is below this.
    pub reserved: u64,
    /// Items whose unique is below this are gone.
    pub flushed: u64,
    /// The millisecond since 1970 at which all items are to be dropped; 0: none.
    pub flush_at: u64,
}

/// More uniques than any server gives.
const MAX: u64 = 1 << 62;

impl StoreRecord {
    /// The record of a new store. Unique 0 is never given.
    pub const FIRST: StoreRecord = StoreRecord {
        reserved: 1,
        flushed: 0,
        flush_at: 0,
    };

    /// Reads the record from the value of its key.
    pub fn read(value: &[u8]) -> Result<StoreRecord, Error> {
        if value.len() < 16 || value[..8] != MAGIC {
            return Err(Error::NotOurs);
        }
        let word = |at: usize| {
            let bytes = value.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u64::from_le_bytes).ok_or(Error::DamagedRecord)
        };
        let version = word(8)?;
        if version != VERSION {
            return Err(Error::OtherVersion {
                version,
                ours: VERSION,
            });
        }
        let record = StoreRecord {
            reserved: word(16)?,
            flushed: word(24)?,
            flush_at: word(32)?,
        };
        let given = 1..=MAX;
        if value.len() != LEN || !given.contains(&record.reserved) || record.flushed > record.reserved {
            return Err(Error::DamagedRecord);
        }
        Ok(record)
    }

    /// Returns the record's bytes.
    pub fn bytes(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[..8].copy_from_slice(&MAGIC);
        let words = [VERSION, self.reserved, self.flushed, self.flush_at];
        for (slot, word) in bytes[8..].chunks_exact_mut(8).zip(words) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A record reads back as written. A truncated or lengthened one is refused, and so is one with a changed magic
        /// or version.
        #[test]
        fn records_are_read_as_written(
            reserved in 1..=MAX,
            share: u64,
            flush_at: u64,
            cut in 0..LEN,
            at in 0..16_usize,
            change in 1..=u8::MAX,
        ) {
            let record = StoreRecord { reserved, flushed: share % reserved, flush_at };
            let bytes = record.bytes();
            prop_assert_eq!(StoreRecord::read(&bytes).ok(), Some(record));
            prop_assert!(StoreRecord::read(&bytes[..cut]).is_err());
            prop_assert!(StoreRecord::read(&[&bytes[..], b"x"].concat()).is_err());
            let mut changed = bytes;
            changed[at] ^= change;
            prop_assert!(StoreRecord::read(&changed).is_err());
        }
    }

    /// Each reason for a refusal has its own error.
    #[test]
    fn refusals_say_why() {
        let mut bytes = StoreRecord::FIRST.bytes();
        bytes[8] = 9;
        assert!(matches!(
            StoreRecord::read(&bytes),
            Err(Error::OtherVersion { version: 9, ours: 2 })
        ));
        bytes[0] = 0;
        assert!(matches!(StoreRecord::read(&bytes), Err(Error::NotOurs)));
        for reserved in [0, MAX + 1, u64::MAX] {
            let wrong = StoreRecord {
                reserved,
                ..StoreRecord::FIRST
            };
            assert!(matches!(
                StoreRecord::read(&wrong.bytes()),
                Err(Error::DamagedRecord)
            ));
        }
    }
}
