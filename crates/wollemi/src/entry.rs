//! Entries, as they are read several at a time.

/// Bytes of entries that end a batch: large values end it early.
pub(crate) const BATCH_BYTES: usize = 1 << 20;

/// A key and its value.
pub type Entry = (Vec<u8>, Vec<u8>);
