//! Settings of an exploration.

use crate::Mutant;
use crate::model::MemoryModel;
use std::time::Duration;

/// How to explore.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The memory model.
    pub model: MemoryModel,
    /// The seed of all random choices.
    pub seed: u64,
    /// Bytes of memory.
    pub memory: u64,
    /// Maximum number of accesses of one run; a run with more counts as hanging.
    pub steps: u64,
    /// Maximum number of images of a crash point that are judged one by one. If there are more, the strategies' images
    /// and a sample are judged as well.
    pub exhaustive: usize,
    /// Images sampled at a crash point that has too many.
    pub samples: usize,
    /// One in this many images is judged deeply (0: none).
    pub deep_share: u64,
    /// One in this many images is the start of another history, up to the next crash (0: none).
    pub again_share: u64,
    /// At one in this many crash points the process is also killed, and another history continues up to the next crash
    /// (0: none). That crash may still lose what the killed process had not made durable.
    pub kill_share: u64,
    /// How often a history of several threads runs again with aimed preemptions (0: never).
    pub aimed: u32,
    /// Upper bound on the time for shrinking a failure.
    pub shrink_for: Duration,
    /// Whether a hunt tries to detect the absence even of persists that it may forgive.
    pub hunt_forgiven: bool,
    /// Selects the mutants that a hunt tries and reports.
    pub hunted: fn(&Mutant) -> bool,
    /// Maximum number of crashes in a row.
    pub crashes: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            model: MemoryModel::default(),
            seed: 1,
            memory: 16 << 20,
            steps: 2_000_000,
            exhaustive: 64,
            samples: 16,
            deep_share: 200,
            again_share: 200,
            kill_share: 100,
            aimed: 2,
            shrink_for: Duration::from_secs(60),
            hunt_forgiven: true,
            hunted: |_| true,
            crashes: 3,
        }
    }
}
