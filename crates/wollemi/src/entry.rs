//! Entries, and the limit on batches of them.

/// Bytes of entries after which a batch ends: large values end it early.
pub(crate) const BATCH_BYTES: usize = 1 << 20;

/// A key and its value.
pub type Entry = (Vec<u8>, Vec<u8>);
