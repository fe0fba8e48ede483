//! The report.

use super::Plan;
use crate::machine::Machine;
use crate::summary::Summary;
use serde::Serialize;

/// A line of the result.
#[derive(Serialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// Commits that are synced.
    Writes {
        engine: &'static str,
        threads: usize,
        pairs_a_commit: usize,
        /// Thousands of pairs a second.
        krps: Summary,
        /// Of a commit.
        p50_us: Summary,
        p99_us: Summary,
        /// Pairs that a sync of the disk makes durable, where syncs are counted.
        pairs_a_sync: Option<Summary>,
        /// How ours stands to it; `null` for ours.
        ratio: Option<Summary>,
    },
    /// Operations that wait for no disk, one thread.
    Level {
        operation: &'static str,
        level: &'static str,
        kops: Summary,
        to_process: Option<Summary>,
    },
    /// Immediate writes without full checkpoints, and beside them, one after the other.
    Checkpoint {
        threads: usize,
        /// Checkpoints that were taken in all rounds.
        checkpoints: u64,
        krps_without: Summary,
        krps_beside: Summary,
        ratio: Summary,
        p50_us_beside: Summary,
        p99_us_without: Summary,
        p99_us_beside: Summary,
        p99_ratio: Summary,
    },
    /// Bytes written for each byte of a key and a value, over a load of eventual writes with checkpoints when due.
    Amplification {
        pairs: usize,
        krps: f64,
        checkpoints: u64,
        log: f64,
        checkpoint: f64,
        both: f64,
        /// What the disk has written meanwhile, for whomever: log, checkpoints, and of the pool what the kernel wrote
        /// back.
        device: Option<f64>,
    },
    /// What a server did with `SET`.
    Server {
        server: &'static str,
        version: String,
        sync: &'static str,
        pipeline: usize,
        kops: Summary,
        /// Of a pipeline's turn.
        p50_us: Summary,
        p99_us: Summary,
        /// How ours stands to it, at the same setting.
        ratio: Option<Summary>,
        /// How it stands to ours at level process.
        to_process: Option<Summary>,
    },
    /// From the start of a process to its first answer.
    Restart {
        engine: &'static str,
        after: &'static str,
        pairs: usize,
        key: usize,
        value: usize,
        first_get_ms: Summary,
    },
    /// What an engine is set to.
    About {
        engine: &'static str,
        setting: &'static str,
    },
    /// What was not measured.
    LeftOut { what: &'static str, why: &'static str },
    /// What the run was made on.
    Conditions {
        keys: usize,
        seconds: f64,
        rounds: usize,
        file_system: String,
        /// Processes that wanted to run, the mean of a minute, when the run ended.
        load: f64,
        machine: Box<Machine>,
    },
}

impl Record {
    pub fn conditions(plan: &Plan, file_system: String) -> Record {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Record::Conditions {
            keys: plan.keys,
            seconds: plan.time.as_secs_f64(),
            rounds: plan.rounds,
            file_system,
            load: load
                .split(' ')
                .next()
                .and_then(|text| text.parse().ok())
                .unwrap_or(0.0),
            machine: Box::new(Machine::detect()),
        }
    }
}
