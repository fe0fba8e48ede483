//! A history: what a subject is tested with.

/// Operations, one after the other.
#[derive(Clone, Debug)]
pub struct History<O> {
    /// What made it.
    pub seed: u64,
    /// The operations.
    pub ops: Vec<O>,
    /// So many of them are the preparation: what it leaves is durable, and crash points come after it.
    pub prepared: u32,
    /// The others are dealt out to so many threads, one after the other.
    pub threads: u32,
}
