//! The report of a workload.

use super::RunArgs;
use super::measure::{Measured, Phase};
use crate::counters;
use crate::distribution::Distribution;
use crate::keys::KeyKind;
use crate::latency::Timeline;
use crate::limit::{Limit, Pace, Path};
use crate::machine::{self, HugePages, Machine};
use crate::media::MediaKind;
use crate::workload::Workload;
use pmem::{Counts, Persists};
use serde::Serialize;

/// One measurement. Fields may be added, but none changes its meaning.
#[derive(Debug, Serialize)]
pub struct Report {
    pub index: &'static str,
    pub workload: &'static Workload,
    pub key_kind: KeyKind,
    /// Keys loaded before the workload, or by it if it fills the index.
    pub keys: usize,
    pub ops: u64,
    pub threads: usize,
    pub media: MediaKind,
    /// The delay's preset or parameters.
    pub delay: Option<String>,
    pub caveat: Option<&'static str>,
    pub distribution: Distribution,
    pub theta: Option<f64>,
    pub pool: String,
    /// The kind of file system of the pool's file.
    pub file_system: Option<String>,
    pub level: String,
    pub seed: u64,
    pub seconds: f64,
    pub mops: f64,
    /// Open loop: operations due per second. Latencies count from the due time.
    pub rate: Option<f64>,
    pub mean_ns: f64,
    pub p50_ns: u64,
    pub p90_ns: u64,
    pub p99_ns: u64,
    pub p999_ns: u64,
    pub max_ns: u64,
    /// The cost of a clock reading, which each latency includes.
    pub clock_ns: f64,
    /// Write-backs of nodes, allocation and log together. A `multi_get` of 32 keys is 32 operations.
    pub write_backs_per_op: Option<f64>,
    pub fences_per_op: Option<f64>,
    /// Non-temporal stores, which need a fence but no write-back.
    pub non_temporal_per_op: Option<f64>,
    /// Distinct 64-byte lines, and 256-byte blocks, that fences waited for.
    pub lines_per_op: Option<f64>,
    pub blocks_per_op: Option<f64>,
    /// Bytes stored into persistent words and drafts.
    pub bytes_per_op: Option<f64>,
    /// The write-backs and fences for the heap's own metadata.
    pub alloc_write_backs_per_op: Option<f64>,
    pub alloc_fences_per_op: Option<f64>,
    /// The same counts by purpose.
    pub persists_per_op: Option<Split>,
    /// Reserved pool bytes per key, after loading.
    pub bytes_per_key: f64,
    /// Bytes of live objects per key.
    pub live_bytes_per_key: f64,
    /// Hardware counters, if the machine has them.
    pub hardware_per_op: Option<HardwarePerOp>,
    /// Cache-miss time before and after.
    pub pace: Option<Pace>,
    /// For lookups, with `--limit`: the comparison with the limits of this memory.
    pub limit: Option<Limit>,
    /// The progress over time: stalls show as low slots.
    pub timeline: Timeline,
    /// Whether huge pages were requested for the pool's anonymous memory, and the system provides them.
    pub huge_pages: bool,
    pub huge_page_memory: HugePages,
    pub machine: Machine,
}

/// Persists per operation, by purpose.
#[derive(Debug, Serialize)]
pub struct Split {
    pub node: PersistsPerOp,
    pub alloc: PersistsPerOp,
    pub log: PersistsPerOp,
}

#[derive(Debug, Default, PartialEq, Serialize)]
pub struct PersistsPerOp {
    pub write_backs: f64,
    pub fences: f64,
    pub lines: f64,
    pub blocks: f64,
    pub bytes: f64,
}

#[derive(Debug, Default, Serialize)]
pub struct HardwarePerOp {
    pub cycles: Option<f64>,
    pub instructions: Option<f64>,
    pub cache_misses: Option<f64>,
    pub branch_misses: Option<f64>,
    pub tlb_misses: Option<f64>,
}

impl Split {
    fn new(counts: &Counts, ops: f64) -> Split {
        let per_op = |persists: Persists| PersistsPerOp {
            write_backs: persists.write_backs as f64 / ops,
            fences: persists.fences as f64 / ops,
            lines: persists.lines as f64 / ops,
            blocks: persists.blocks as f64 / ops,
            bytes: persists.bytes as f64 / ops,
        };
        Split {
            node: per_op(counts.node),
            alloc: per_op(counts.alloc),
            log: per_op(counts.log),
        }
    }
}

impl HardwarePerOp {
    fn new(counted: counters::Hardware, ops: f64) -> Option<HardwarePerOp> {
        let per_op = |count: Option<u64>| Some(count? as f64 / ops);
        (!counted.is_empty()).then(|| HardwarePerOp {
            cycles: per_op(counted.cycles),
            instructions: per_op(counted.instructions),
            cache_misses: per_op(counted.cache_misses),
            branch_misses: per_op(counted.branch_misses),
            tlb_misses: per_op(counted.tlb_misses),
        })
    }
}

impl Report {
    /// Creates the report of one workload. `counted` holds persist counts and the number of operations that they cover.
    pub fn new(
        args: &RunArgs,
        timed: &Measured,
        phase: Phase,
        counted: Option<(Counts, u64)>,
        path: Option<Path>,
    ) -> Report {
        let limit = phase.pace.zip(path).map(|(pace, path)| {
            let ns = phase.pass.seconds * 1e9 * args.threads as f64 / phase.pass.ops as f64;
            Limit::new(pace, path, ns, machine::cache(3))
        });
        let Phase {
            workload,
            pass,
            hardware,
            pace,
            ..
        } = phase;
        let per_op = |count: fn(&Counts) -> u64| {
            counted
                .as_ref()
                .map(|(counts, ops)| count(counts) as f64 / *ops as f64)
        };
        let distribution = args.distribution.unwrap_or(workload.distribution);
        let skewed = matches!(distribution, Distribution::Zipfian | Distribution::Latest);
        let quantile = |share| pass.latencies.quantile(share);
        Report {
            index: args.index.name(),
            workload,
            key_kind: args.key_kind,
            keys: args.keys,
            ops: pass.ops,
            threads: args.threads,
            media: args.media,
            delay: args.delay().map(|delay| delay.to_string()),
            caveat: args.media.caveat(),
            distribution,
            theta: skewed.then_some(args.theta),
            pool: args.pool.to_string(),
            file_system: args.pool.file().and_then(machine::file_system),
            level: timed.level.clone(),
            seed: args.seed,
            seconds: pass.seconds,
            mops: pass.mops(),
            rate: args.rate.filter(|_| !workload.fills()),
            mean_ns: pass.latencies.mean(),
            p50_ns: quantile(0.5),
            p90_ns: quantile(0.9),
            p99_ns: quantile(0.99),
            p999_ns: quantile(0.999),
            max_ns: pass.latencies.max(),
            clock_ns: timed.clock_ns,
            write_backs_per_op: per_op(|all| all.total().write_backs),
            fences_per_op: per_op(|all| all.total().fences),
            non_temporal_per_op: per_op(|all| all.non_temporal),
            lines_per_op: per_op(|all| all.total().lines),
            blocks_per_op: per_op(|all| all.total().blocks),
            bytes_per_op: per_op(|all| all.bytes),
            alloc_write_backs_per_op: per_op(|all| all.alloc.write_backs),
            alloc_fences_per_op: per_op(|all| all.alloc.fences),
            persists_per_op: counted.map(|(counts, ops)| Split::new(&counts, ops as f64)),
            bytes_per_key: timed.space.reserved as f64 / args.keys as f64,
            live_bytes_per_key: timed.space.live as f64 / args.keys as f64,
            hardware_per_op: HardwarePerOp::new(hardware, pass.ops as f64),
            pace,
            limit,
            timeline: pass.timeline.coarser(100),
            huge_pages: timed.huge_pages,
            huge_page_memory: timed.huge_page_memory,
            machine: Machine::detect(),
        }
    }
}
