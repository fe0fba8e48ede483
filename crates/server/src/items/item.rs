//! Items: what the value of a key holds.
//!
//! ```text
//! offset  size  field
//!      0     8  unique: what `gets` shows and `cas` compares; new with each change but by `touch`, `gat` and `mg`
//!      8     8  expiry: the millisecond since 1970 at which the item is gone; 0: never
//!     16     4  flags: the client's own
//!     20     4  marks: bit 0: stale, bit 1: a client was told to replace the item, bit 2: the
//!                  key came in base64
//!     24     …  data
//! ```
//!
//! Little endian. The [record](crate::items::record) has the version of this layout.

/// The bytes before the data.
pub const HEADER: usize = 24;

/// Bytes that the memory limit counts for an item's place in the index, besides its key and its value.
pub const PLACE: u64 = 64;

/// An item's header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// What `gets` shows and `cas` compares.
    pub unique: u64,
    /// The millisecond since 1970 at which the item is gone; 0: never.
    pub expiry: u64,
    /// The client's own.
    pub flags: u32,
    /// Bit 0: stale, bit 1: a client was told to replace the item, bit 2: the key came in base64.
    pub marks: u32,
}

/// The item is stale, and shown until a client replaces it.
pub const STALE: u32 = 1;
/// A client has been chosen to replace the item.
pub const AWAITED: u32 = 2;
/// The item was stored under a key in base64, and its key is shown in base64.
pub const BINARY_KEY: u32 = 4;

/// An item, borrowed from the bytes it is stored in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'v> {
    /// The header.
    pub header: Header,
    /// The data that the client has stored.
    pub data: &'v [u8],
}

impl<'v> Item<'v> {
    /// Reads the item in a value; `None` if the value is too short.
    #[inline]
    pub fn read(value: &'v [u8]) -> Option<Item<'v>> {
        let (unique, rest) = value.split_first_chunk::<8>()?;
        let (expiry, rest) = rest.split_first_chunk::<8>()?;
        let (flags, rest) = rest.split_first_chunk::<4>()?;
        let (marks, data) = rest.split_first_chunk::<4>()?;
        let header = Header {
            unique: u64::from_le_bytes(*unique),
            expiry: u64::from_le_bytes(*expiry),
            flags: u32::from_le_bytes(*flags),
            marks: u32::from_le_bytes(*marks),
        };
        Some(Item { header, data })
    }
}

impl Header {
    /// Returns the seconds until the item expires, rounded up; `None` if it does not.
    pub fn seconds_left(&self, now: u64) -> Option<u64> {
        (self.expiry != 0).then(|| self.expiry.saturating_sub(now).div_ceil(1000))
    }

    /// Clears `into` and writes the header there; the caller appends the data.
    #[inline]
    pub fn begin(&self, into: &mut Vec<u8>) {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&self.unique.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.expiry.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.flags.to_le_bytes());
        bytes[20..].copy_from_slice(&self.marks.to_le_bytes());
        into.clear();
        into.extend_from_slice(&bytes);
    }
}

/// Thirty days, in seconds: memcached takes a longer lifetime for a point in time.
const LONGEST_LIFETIME: i64 = 60 * 60 * 24 * 30;

/// Returns the `expiry` of an item that a memcached client stores at the millisecond `now`. An item with a lifetime of
/// 0 never expires, and one with a lifetime below 0 has expired. A lifetime of up to thirty days is a number of seconds
/// from now on, a longer one a second since 1970.
pub fn expiry(lifetime: i64, now: u64) -> u64 {
    match lifetime {
        0 => 0,
        ..0 => 1,
        1..=LONGEST_LIFETIME => now.saturating_add(lifetime.unsigned_abs() * 1000),
        _ => lifetime.unsigned_abs().saturating_mul(1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// An item reads back as written; other bytes are an item if they are at least as long as a header, and never
        /// cause a panic.
        #[test]
        fn items_are_read_as_written(unique: u64, expiry: u64, flags: u32, marks: u32, data: Vec<u8>) {
            let header = Header { unique, expiry, flags, marks };
            let mut value = b"left over".to_vec();
            header.begin(&mut value);
            prop_assert_eq!(value.len(), HEADER);
            value.extend_from_slice(&data);
            prop_assert_eq!(Item::read(&value), Some(Item { header, data: &data }));
            prop_assert_eq!(Item::read(&data).is_some(), data.len() >= HEADER);
        }
    }

    /// The four meanings of a lifetime, at their borders.
    #[test]
    fn lifetimes_have_four_meanings() {
        let now = 1_800_000_000_123;
        assert_eq!(expiry(0, now), 0);
        assert_eq!(expiry(-1, now), 1);
        assert_eq!(expiry(i64::MIN, now), 1);
        assert_eq!(expiry(1, now), 1_800_000_001_123);
        assert_eq!(expiry(2_592_000, now), 1_802_592_000_123);
        assert_eq!(expiry(2_592_001, now), 2_592_001_000);
        assert_eq!(expiry(i64::MAX, now), u64::MAX);
        assert_eq!(expiry(5, u64::MAX), u64::MAX);
    }

    /// A part of a second counts as one.
    #[test]
    fn seconds_left_are_rounded_up() {
        let left = |expiry, now| {
            let header = Header {
                expiry,
                ..Header::default()
            };
            header.seconds_left(now)
        };
        assert_eq!(left(0, 5), None);
        assert_eq!(left(5000, 4000), Some(1));
        assert_eq!(left(5000, 3999), Some(2));
        assert_eq!(left(5000, 6000), Some(0));
    }
}
