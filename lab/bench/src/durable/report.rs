//! The report.

use super::Plan;
use crate::machine::Machine;
use crate::summary::Summary;
use serde::Serialize;

/// A line of the result.
#[derive(Serialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// Synced commits.
    Writes {
        engine: &'static str,
        threads: usize,
        pairs_a_commit: usize,
        /// Thousands of pairs per second.
        krps: Summary,
        /// Latency of a commit.
        p50_us: Summary,
        p99_us: Summary,
        /// Pairs made durable per sync of the disk, if syncs are counted.
        pairs_a_sync: Option<Summary>,
        /// The ratio of ours to this engine; `null` for ours.
        ratio: Option<Summary>,
    },
    /// Operations of one thread that do not wait for the disk.
    Level {
        operation: &'static str,
        level: &'static str,
        kops: Summary,
        to_process: Option<Summary>,
    },
    /// Gets of one thread beside another one that writes at its full pace.
    BesideWriter {
        level: &'static str,
        /// The keys that the gets draw from, and whether the writes do.
        keys: &'static str,
        /// Thousands of gets per second.
        kops: Summary,
        /// Thousands of writes per second.
        writer_kops: Summary,
        /// The ratio to the gets of the same keys at level process.
        to_process: Option<Summary>,
        /// The share of the gets that waited for a sync.
        waited_percent: Option<Summary>,
        /// The mean duration of a sync.
        sync_us: Option<Summary>,
        /// The time that the gets lost to those of keys that are not written, for each get that waited. If that is
        /// about as long as a sync or shorter, waiting explains all of the loss.
        lost_us_a_wait: Option<Summary>,
    },
    /// Immediate writes, without and beside consecutive full checkpoints.
    Checkpoint {
        threads: usize,
        /// Checkpoints taken in all rounds.
        checkpoints: u64,
        krps_without: Summary,
        krps_beside: Summary,
        ratio: Summary,
        p50_us_beside: Summary,
        p99_us_without: Summary,
        p99_us_beside: Summary,
        p99_ratio: Summary,
    },
    /// Bytes written per byte of keys and values, over a load of eventual writes with checkpoints when due.
    Amplification {
        pairs: usize,
        krps: f64,
        checkpoints: u64,
        log: f64,
        checkpoint: f64,
        both: f64,
        /// The same for all writes of the disk meanwhile, by any process: log, checkpoints, and the pool's pages that
        /// the kernel wrote back.
        device: Option<f64>,
    },
    /// The results of `SET` on a server.
    Server {
        server: &'static str,
        version: String,
        sync: &'static str,
        pipeline: usize,
        kops: Summary,
        /// Latency of a pipeline's turn.
        p50_us: Summary,
        p99_us: Summary,
        /// The ratio of ours, at the same setting, to this server.
        ratio: Option<Summary>,
        /// The ratio of this server to ours at level process.
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
    /// The setting of an engine.
    About {
        engine: &'static str,
        setting: &'static str,
    },
    /// A measurement left out.
    LeftOut { what: &'static str, why: &'static str },
    /// The conditions of the run.
    Conditions {
        keys: usize,
        seconds: f64,
        rounds: usize,
        file_system: String,
        /// The load average of the last minute when the run ended.
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
