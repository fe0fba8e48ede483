//! `bench run`: one index, one workload, one line.
//!
//! The timed run issues every write-back and fence of the media asked for. The persist counts come from a second
//! run of the same operations on the counting media, so that counting does not slow what is timed.

use crate::engine::Ours;
use crate::keys::{KeyKind, Keys};
use crate::machine::{HugePages, Machine};
use crate::progress::Progress;
use crate::store::{self, Place, Space};
use crate::workload::{self, Pass, Workload};
use crate::{Error, table};
use clap::ValueEnum;
use heap::Heap;
use index::Index;
use indexes::{IndexKind, WithIndex};
use pmem::{Counting, Counts, Delaying, Hardware, Latency, Media};
use serde::Serialize;

/// What the timed run's stores pass through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MediaKind {
    /// The machine itself.
    Native,
    /// The machine, counting.
    Counting,
    /// The machine, each fence taking as long as it would on Optane.
    Delay,
}

/// Runs one workload on one index.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// The index
    #[arg(long, default_value_t, value_name = "NAME", value_parser = crate::index())]
    index: IndexKind,
    /// What to do
    #[arg(long, value_enum)]
    workload: Workload,
    /// Keys in the index
    #[arg(long, default_value_t = 1_000_000, value_parser = crate::count)]
    keys: usize,
    /// What the keys look like
    #[arg(long, value_enum, default_value_t = KeyKind::U64)]
    key_kind: KeyKind,
    /// Operations; scans default to a fiftieth of the keys, all others to their number
    #[arg(long, value_parser = crate::count)]
    ops: Option<usize>,
    /// Threads that run the workload
    #[arg(long, default_value_t = 1, value_parser = crate::threads)]
    threads: usize,
    /// `anon` for memory, or the path of a file to make (and remove afterwards)
    #[arg(long, default_value = "anon", value_name = "anon|PATH")]
    pool: Place,
    /// The seed of the keys and their order
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The media of the timed run
    #[arg(long, value_enum, default_value_t = MediaKind::Native)]
    media: MediaKind,
    /// Do not run a second time to count write-backs and fences
    #[arg(long)]
    no_counts: bool,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// One measurement.
#[derive(Debug, Serialize)]
struct Report {
    index: &'static str,
    workload: Workload,
    key_kind: KeyKind,
    keys: usize,
    ops: usize,
    threads: usize,
    media: MediaKind,
    pool: String,
    level: String,
    seed: u64,
    seconds: f64,
    mops: f64,
    p50_ns: u32,
    p99_ns: u32,
    /// All of them: nodes and allocation. A `multi_get` of 32 keys is 32 operations.
    write_backs_per_op: Option<f64>,
    fences_per_op: Option<f64>,
    /// Stores past the cache, which need a fence but no write-back.
    non_temporal_per_op: Option<f64>,
    /// Distinct 64-byte lines, and 256-byte blocks, that fences waited for.
    lines_per_op: Option<f64>,
    blocks_per_op: Option<f64>,
    /// Of these, for the heap's own metadata.
    alloc_write_backs_per_op: Option<f64>,
    alloc_fences_per_op: Option<f64>,
    /// Reserved pool bytes a key, once all keys are in.
    bytes_per_key: f64,
    /// Bytes in live objects a key.
    live_bytes_per_key: f64,
    /// Whether the pool was given huge pages.
    huge_pages: bool,
    huge_page_memory: HugePages,
    machine: Machine,
}

/// The keys of a run: what is loaded, and what is done then.
struct Input {
    load: Keys,
    work: Option<Keys>,
}

impl Input {
    fn new(args: &RunArgs) -> Input {
        let load = Keys::generate(args.key_kind, args.keys, args.seed);
        let ops = args.ops.unwrap_or(args.workload.default_ops(args.keys));
        let work = match args.workload {
            Workload::Load => None,
            workload if workload.consumes() => Some(load.shuffled(ops.min(args.keys), args.seed)),
            _ => Some(load.shuffled(ops, args.seed)),
        };
        Input { load, work }
    }
}

/// What the media has counted so far.
type Count<M> = fn(&M) -> Counts;

fn uncounted<M>(_media: &M) -> Counts {
    Counts::default()
}

/// Loads the keys and runs the workload.
struct Measure<'r, M: Media> {
    args: &'r RunArgs,
    input: &'r Input,
    heap: &'r Heap<M>,
    progress: &'r Progress,
    counts: Count<M>,
}

struct Measured {
    pass: Pass,
    space: Space,
    counts: Counts,
    level: String,
    huge_pages: bool,
    huge_page_memory: HugePages,
}

impl<M: Media> WithIndex for Measure<'_, M> {
    type Out = Result<Measured, Error>;

    fn with<I: Index + 'static>(self, index: I) -> Self::Out {
        let Measure {
            args,
            input,
            heap,
            progress,
            counts,
        } = self;
        let engine = Ours(&index);
        let counted = || counts(heap.media());
        let mut before = counted();
        progress.say(format_args!("loading {} keys", input.load.len()));
        let mut pass = workload::pass(
            &engine,
            Workload::Load,
            &workload::share(&input.load, args.threads),
        )?;
        let space = Space::of(heap);
        if let Some(work) = &input.work {
            progress.say(format_args!("{:?}: {} operations", args.workload, work.len()));
            before = counted();
            pass = workload::pass(&engine, args.workload, &workload::share(work, args.threads))?;
        }
        Ok(Measured {
            pass,
            space,
            counts: counted() - before,
            level: heap.pool().level().to_string(),
            huge_pages: heap.pool().huge_pages(),
            huge_page_memory: HugePages::now(),
        })
    }
}

impl RunArgs {
    fn measure<M: Media>(
        &self,
        media: M,
        place: &Place,
        input: &Input,
        counts: Count<M>,
    ) -> Result<Measured, Error> {
        let progress = &Progress::new();
        let heap = &place.create(media)?;
        let _remove = place.remove_at_end();
        store::create(
            self.index,
            heap,
            Measure {
                args: self,
                input,
                heap,
                progress,
                counts,
            },
        )
    }

    fn counted(&self, place: &Place, input: &Input) -> Result<Measured, Error> {
        self.measure(Counting::new(Hardware::detect()), place, input, Counting::counts)
    }
}

/// Runs it and prints one line.
pub fn run(args: &RunArgs) -> Result<(), Error> {
    print(args, &report(args)?)
}

fn report(args: &RunArgs) -> Result<Report, Error> {
    Progress::new().say(format_args!("making {} keys", args.keys));
    let input = &Input::new(args);
    let timed = match args.media {
        MediaKind::Native => args.measure(Hardware::detect(), &args.pool, input, uncounted)?,
        MediaKind::Counting => args.counted(&args.pool, input)?,
        MediaKind::Delay => {
            let media = Delaying::new(Hardware::detect(), Latency::OPTANE);
            args.measure(media, &args.pool, input, uncounted)?
        }
    };
    let counts = match args.media {
        MediaKind::Counting => Some(timed.counts),
        _ if args.no_counts => None,
        _ => Some(args.counted(&Place::Anonymous, input)?.counts),
    };
    Ok(Report::new(args, &timed, counts))
}

impl Report {
    fn new(args: &RunArgs, timed: &Measured, counts: Option<Counts>) -> Report {
        let Measured { pass, space, .. } = timed;
        let per_op = |count: fn(Counts) -> u64| counts.map(|all| count(all) as f64 / pass.ops as f64);
        Report {
            index: args.index.name(),
            workload: args.workload,
            key_kind: args.key_kind,
            keys: args.keys,
            ops: pass.ops,
            threads: args.threads,
            media: args.media,
            pool: args.pool.to_string(),
            level: timed.level.clone(),
            seed: args.seed,
            seconds: pass.seconds,
            mops: pass.mops(),
            p50_ns: pass.latencies.quantile(0.5),
            p99_ns: pass.latencies.quantile(0.99),
            write_backs_per_op: per_op(|all| all.total().write_backs),
            fences_per_op: per_op(|all| all.total().fences),
            non_temporal_per_op: per_op(|all| all.non_temporal),
            lines_per_op: per_op(|all| all.total().lines),
            blocks_per_op: per_op(|all| all.total().blocks),
            alloc_write_backs_per_op: per_op(|all| all.alloc.write_backs),
            alloc_fences_per_op: per_op(|all| all.alloc.fences),
            bytes_per_key: space.reserved as f64 / args.keys as f64,
            live_bytes_per_key: space.live as f64 / args.keys as f64,
            huge_pages: timed.huge_pages,
            huge_page_memory: timed.huge_page_memory,
            machine: Machine::detect(),
        }
    }
}

fn print(args: &RunArgs, report: &Report) -> Result<(), Error> {
    if args.json {
        return crate::print(&serde_json::to_string(report)?);
    }
    let per_op = |count: Option<f64>| count.map_or("-".into(), |count| format!("{count:.2}"));
    let header = [
        "index",
        "workload",
        "keys",
        "of kind",
        "ops",
        "threads",
        "Mops/s",
        "p50 ns",
        "p99 ns",
        "wb/op",
        "fence/op",
        "B/key",
        "live B/key",
    ];
    let row = vec![
        report.index.to_owned(),
        crate::name(report.workload),
        report.keys.to_string(),
        crate::name(report.key_kind),
        report.ops.to_string(),
        report.threads.to_string(),
        format!("{:.3}", report.mops),
        report.p50_ns.to_string(),
        report.p99_ns.to_string(),
        per_op(report.write_backs_per_op),
        per_op(report.fences_per_op),
        format!("{:.1}", report.bytes_per_key),
        format!("{:.1}", report.live_bytes_per_key),
    ];
    let HugePages {
        resident_mib,
        huge_mib,
    } = report.huge_page_memory;
    crate::print(&format!(
        "{}pool {}, level {}, media {}, {huge_mib} of {resident_mib} MiB on huge pages\n{}",
        table::render(&header, &[row]),
        report.pool,
        report.level,
        crate::name(report.media),
        report.machine,
    ))
}

#[cfg(test)]
mod tests;
