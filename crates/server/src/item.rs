//! Items: what the value of a key holds.
//!
//! ```text
//! offset  size  field
//!      0     8  unique: what `gets` shows and `cas` compares; never given twice
//!      8     4  flags: the client's own
//!     12     4  expiry: the second since 1970 at which the item is gone; 0: never
//!     16     …  data
//! ```
//!
//! Little endian. The version of this layout stands in the [record](crate::record).

/// The bytes before the data.
pub const HEADER: usize = 16;

/// What stands in an item's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub unique: u64,
    pub flags: u32,
    pub expiry: u32,
}

/// An item, borrowed from the bytes it is stored in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'v> {
    pub header: Header,
    pub data: &'v [u8],
}

impl<'v> Item<'v> {
    /// The item in a value; `None` if the value is too short to be one.
    #[inline]
    pub fn read(value: &'v [u8]) -> Option<Item<'v>> {
        let (unique, rest) = value.split_first_chunk::<8>()?;
        let (flags, rest) = rest.split_first_chunk::<4>()?;
        let (expiry, data) = rest.split_first_chunk::<4>()?;
        let header = Header {
            unique: u64::from_le_bytes(*unique),
            flags: u32::from_le_bytes(*flags),
            expiry: u32::from_le_bytes(*expiry),
        };
        Some(Item { header, data })
    }
}

impl Header {
    /// Begins a value in `into`, which is emptied; the data goes behind it.
    #[inline]
    pub fn begin(&self, into: &mut Vec<u8>) {
        into.clear();
        into.extend_from_slice(&self.unique.to_le_bytes());
        into.extend_from_slice(&self.flags.to_le_bytes());
        into.extend_from_slice(&self.expiry.to_le_bytes());
    }
}

/// A lifetime as clients give it longer than this is a point in time instead: thirty days, in seconds.
const LONGEST_LIFETIME: i64 = 60 * 60 * 24 * 30;

/// The `expiry` of an item which a client stores at the second `now`: for ever (0), for some seconds (to thirty days),
/// to a second since 1970 (above), or not at all (negative).
pub fn expiry(lifetime: i64, now: u64) -> u32 {
    match lifetime {
        0 => 0,
        ..0 => 1,
        1..=LONGEST_LIFETIME => {
            u32::try_from(now.saturating_add(lifetime.unsigned_abs())).unwrap_or(u32::MAX)
        }
        _ => u32::try_from(lifetime).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What is written is read, and any other bytes are an item or none, never a panic.
        #[test]
        fn items_are_read_as_written(unique: u64, flags: u32, expiry: u32, data: Vec<u8>) {
            let header = Header { unique, flags, expiry };
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
        let now = 1_800_000_000;
        assert_eq!(expiry(0, now), 0);
        assert_eq!(expiry(-1, now), 1);
        assert_eq!(expiry(i64::MIN, now), 1);
        assert_eq!(expiry(1, now), 1_800_000_001);
        assert_eq!(expiry(2_592_000, now), 1_802_592_000);
        assert_eq!(expiry(2_592_001, now), 2_592_001);
        assert_eq!(expiry(i64::MAX, now), u32::MAX);
        assert_eq!(expiry(5, u64::MAX), u32::MAX);
    }
}
