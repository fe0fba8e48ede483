//! Sizes that divide checkpoints and rebuilds, and determine which checkpoints are full. Tests use smaller ones, so
//! that a few writes exercise every step.

/// Sizes that divide checkpoints and rebuilds, and determine which checkpoints are full.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Bytes after which a run ends: the unit that one thread of a rebuild loads.
    pub run: u64,
    /// Bytes of entries that are visited under one guard.
    pub batch: usize,
    /// Minimum bytes of a run per system call, except for the last.
    pub buffer: usize,
    /// Bytes of a run between two syncs.
    pub synced: u64,
    /// Bytes of a run between two syncs while writes wait for the log's syncs, which take longer beside those of a run.
    pub step: u64,
    /// Levels above the full one after which the next checkpoint is full.
    pub levels: u32,
    /// A checkpoint is full if the last full one has fewer bytes: a delta would save little.
    pub small: u64,
    /// Maximum length of log that a rebuild sorts in memory, in bytes.
    pub merged: u64,
    /// Length of the rest after a step of a checkpoint, as a multiple of the step, while writes wait for the log's
    /// syncs.
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
