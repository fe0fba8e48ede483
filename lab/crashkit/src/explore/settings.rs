//! Settings of an exploration.

use crate::Mutant;
use crate::model::Model;
use std::time::Duration;

/// How to explore.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The memory model.
    pub model: Model,
    /// What everything left to chance depends on.
    pub seed: u64,
    /// Bytes of memory.
    pub memory: u64,
    /// Accesses of one run, at most; more are a hang.
    pub steps: u64,
    /// Images of one crash point that are judged exhaustively; if there are more, the strategies' images and a sample
    /// are judged.
    pub exhaustive: usize,
    /// Images sampled at a crash point that has too many.
    pub samples: usize,
    /// Of this many images one is judged deeply (0: none).
    pub deep_share: u64,
    /// Of this many images one is the start of a history of its own, up to the next crash (0: none).
    pub again_share: u64,
    /// At one of this many crash points the process is also killed, and what comes after it is a history of its own, up
    /// to the next crash (0: none). What the killed process had not made durable may still be lost then.
    pub kill_share: u64,
    /// How often a history of several threads is carried out again with aimed preemptions (0: never).
    pub aimed: u32,
    /// The longest that a failure is shrunk for, by the clock on the wall.
    pub shrink_for: Duration,
    /// Whether a hunt goes on looking for what misses a persist that it may forgive.
    pub hunt_forgiven: bool,
    /// Which mutants a hunt puts to its histories, and tells of.
    pub hunted: fn(&Mutant) -> bool,
    /// How many crashes may follow on each other.
    pub crashes: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            model: Model::default(),
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
