//! A history: the operations with which a subject is tested.

/// Operations, one after the other. Tests that need nothing special end it by `..History::default()`.
#[derive(Clone, Debug)]
pub struct History<O> {
    /// What made it.
    pub seed: u64,
    /// The operations.
    pub ops: Vec<O>,
    /// The number of operations that are the preparation: its result is durable, and crash points come after it.
    pub prepared: u32,
    /// The others are dealt out to this many threads, one after the other.
    pub threads: u32,
    /// Whether the structure is closed and opened again after the preparation. Its recovery is then one more thread
    /// beside those of the operations.
    pub reopened: bool,
    /// Maximum number of bytes that the pool may have; `u64::MAX`: as many as the memory has. In a pool that may have
    /// fewer, a share of all allocations after the preparation finds it full, whatever room there is.
    pub room: u64,
    /// `None`: its threads are interleaved as schedulers have them, and then with aimed preemptions. Else they carry
    /// their operations out in turn, but for aimed preemptions of at most this many legs: what shrinking makes of a
    /// failure.
    pub legs: Option<u32>,
}

impl<O> Default for History<O> {
    /// No operations, by one thread.
    fn default() -> History<O> {
        History {
            seed: 1,
            ops: Vec::new(),
            prepared: 0,
            threads: 1,
            reopened: false,
            room: u64::MAX,
            legs: None,
        }
    }
}

impl<O> History<O> {
    /// Whether its pool is meant to be full now and then.
    pub(crate) fn has_little_room(&self) -> bool {
        self.room != u64::MAX
    }

    /// Whether it takes a scheduler.
    pub(crate) fn has_threads(&self) -> bool {
        self.threads > 1 || self.reopened
    }
}
