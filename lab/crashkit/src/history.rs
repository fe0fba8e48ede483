//! A history: the operations with which a subject is tested.

/// Operations, and how to run them. Tests that need nothing special end it by `..History::default()`.
#[derive(Clone, Debug)]
pub struct History<O> {
    /// The seed that the operations were drawn from.
    pub seed: u64,
    /// The operations.
    pub ops: Vec<O>,
    /// Number of operations at the beginning that prepare: their result is durable, and crash points come after them.
    pub prepared: u32,
    /// Number of threads to which the other operations are dealt out in turn.
    pub threads: u32,
    /// Whether the structure is closed and opened again after the preparation. One more thread then runs its recovery
    /// beside those of the operations.
    pub reopened: bool,
    /// Maximum size of the pool in bytes; `u64::MAX`: the whole memory. If it is limited, a share of the allocations
    /// after the preparation fails as if the pool were full, whatever room there is.
    pub room: u64,
    /// `None`: schedulers interleave the threads, then runs with aimed preemptions follow. `Some`: the threads run
    /// their operations in turn, except for aimed preemptions of at most this many legs; shrinking sets this.
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
    /// Returns whether its pool is meant to be full now and then.
    pub(crate) fn has_little_room(&self) -> bool {
        self.room != u64::MAX
    }

    /// Returns whether it needs a scheduler.
    pub(crate) fn has_threads(&self) -> bool {
        self.threads > 1 || self.reopened
    }
}
