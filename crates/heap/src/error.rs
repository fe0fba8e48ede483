//! What the heap can fail with.

/// Why the heap could not serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An offset or a length that cannot be: the pool is damaged.
    #[error("damaged pool: {what} at offset {offset:#x}")]
    Damaged {
        /// What does not make sense.
        what: &'static str,
        /// Where.
        offset: u64,
    },
}
