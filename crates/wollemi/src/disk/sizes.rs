//! Sizes by which checkpoints are divided and become due. Tests take smaller ones, so that a few writes come to all of it.

/// Sizes by which checkpoints are divided and become due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// A run is ended when it has this many bytes: what one thread of a rebuild loads at a time.
    pub run: u64,
    /// Bytes of entries that are visited under one guard.
    pub batch: usize,
    /// Bytes of a run between two calls of the system.
    pub buffer: usize,
    /// Bytes of a run between two syncs.
    pub synced: u64,
    /// Bytes of a run between two syncs while writes wait for the log's syncs, which take longer beside those of a run.
    pub step: u64,
    /// Levels above the full one, beyond which the next checkpoint is full.
    pub levels: u32,
    /// Below this many bytes of all runs, a checkpoint is full: a delta saves nothing that counts.
    pub small: u64,
    /// Maximum length of log that a rebuild sorts in memory, in bytes.
    pub merged: u64,
    /// Length of the rest behind a step of a checkpoint, in lengths of the step, while writes wait for the log's syncs.
    pub rest: f64,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes {
            run: 32 << 20,
            batch: 256 << 10,
            buffer: 256 << 10,
            synced: 4 << 20,
            step: 256 << 10,
            levels: 64,
            small: 16 << 20,
            merged: 256 << 20,
            rest: 15.0,
        }
    }
}
