//! `bench build`: building an index of sorted pairs, beside inserts of the same pairs one by one.
//!
//! Inserts come in key order, which suits them best, and in random order. Times are medians of interleaved rounds, each in
//! a new pool; persists are counted in a run of their own. After each round the check must find every key.

use crate::keys::{KeyKind, Keys};
use crate::media::MediaKind;
use crate::progress::Progress;
use crate::store::{self, Place, Space};
use crate::summary::Summary;
use crate::{Error, machine::Machine, table};
use heap::Heap;
use index::{Index, Parts, Sorted};
use pmem::{Counting, Hardware, Observed};
use serde::Serialize;
use std::time::Instant;
use wollemi::indexes::{Compiled, IndexKind};

/// Builds indexes, and fills others by inserts.
#[derive(Debug, clap::Args)]
pub struct BulkArgs {
    /// The indexes; all if none is named
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = crate::index())]
    index: Vec<IndexKind>,
    /// Pairs
    #[arg(long, default_value = "1M", value_parser = crate::count)]
    keys: usize,
    /// What the keys are
    #[arg(long, value_enum, default_value_t = KeyKind::U64)]
    key_kind: KeyKind,
    /// Bytes of a value
    #[arg(long, default_value = "8", value_parser = crate::count)]
    value: usize,
    /// Threads that build, each from its part of the pairs
    #[arg(long, default_value_t = 1, value_parser = crate::threads)]
    threads: usize,
    /// What stores pass through: native or process
    #[arg(long, value_enum, default_value_t = MediaKind::Process)]
    media: MediaKind,
    /// Rounds; the figures are medians
    #[arg(long, default_value_t = 3, value_parser = crate::count)]
    rounds: usize,
    /// The seed of the keys
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print lines of JSON
    #[arg(long)]
    json: bool,
}

/// How an index comes by its pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum How {
    /// Built of them.
    Built,
    /// By inserts in key order.
    InOrder,
    /// By inserts in random order.
    Random,
}

const ALL: [How; 3] = [How::Built, How::InOrder, How::Random];

/// What one way gave.
#[derive(Debug, Serialize)]
struct Report {
    index: &'static str,
    how: How,
    keys: usize,
    key_kind: String,
    value: usize,
    /// Threads, of a build.
    threads: usize,
    media: MediaKind,
    /// Millions of pairs a second.
    mops: Summary,
    write_backs_per_key: f64,
    fences_per_key: f64,
    space: Space,
    machine: Machine,
}

/// Measures, and prints a line for each index and way.
pub fn run(args: &BulkArgs) -> Result<(), Error> {
    let progress = Progress::new();
    let random = Keys::generate(args.key_kind, args.keys, args.seed);
    let mut entries: Vec<&[u8]> = random.all().iter().map(|(key, _)| key).collect();
    let unordered = entries.clone();
    entries.sort_unstable();
    let indexes: Vec<IndexKind> = match args.index.is_empty() {
        true => IndexKind::ALL
            .iter()
            .copied()
            .filter(|kind| !kind.is_ablation())
            .collect(),
        false => args.index.clone(),
    };
    let mut reports = Vec::new();
    for index in indexes {
        let mut rounds = ALL.map(|_| Vec::new());
        for round in 1..=args.rounds {
            for (how, times) in ALL.into_iter().zip(&mut rounds) {
                progress.say(format_args!("{index}, {how:?}, round {round} of {}", args.rounds));
                let media = match args.media {
                    MediaKind::Native => Hardware::as_persistent(),
                    _ => Hardware::detect(),
                };
                let keys = if how == How::Random { &unordered } else { &entries };
                times.push(fill(args, index, how, keys, media)?.0);
            }
        }
        for (how, times) in ALL.into_iter().zip(rounds) {
            progress.say(format_args!("{index}, {how:?}, counting"));
            let media = Observed::Counting(Counting::new(Hardware::as_persistent()));
            let keys = if how == How::Random { &unordered } else { &entries };
            let (_, heap) = fill(args, index, how, keys, media)?;
            let counts = match heap.media() {
                Observed::Counting(counting) => counting.counts().total(),
                _ => return Err(Error::Wrong("counting without counts".into())),
            };
            let per_key = |count: u64| count as f64 / args.keys as f64;
            let mops = times.iter().map(|seconds| args.keys as f64 / seconds / 1e6);
            let report = Report {
                index: index.name(),
                how,
                keys: args.keys,
                key_kind: crate::name(args.key_kind),
                value: args.value,
                threads: if how == How::Built { args.threads } else { 1 },
                media: args.media,
                mops: Summary::of(mops).ok_or_else(|| Error::Wrong("no rounds".into()))?,
                write_backs_per_key: per_key(counts.write_backs),
                fences_per_key: per_key(counts.fences),
                space: Space::of(&heap),
                machine: Machine::detect(),
            };
            if args.json {
                crate::print(&serde_json::to_string(&report)?)?;
            }
            reports.push(report);
        }
    }
    drop(progress);
    if args.json {
        Ok(())
    } else {
        crate::print(&render(&reports))
    }
}

/// Fills an index in a new pool: the seconds that it takes, and the heap.
fn fill<M: Compiled>(
    args: &BulkArgs,
    kind: IndexKind,
    how: How,
    keys: &[&[u8]],
    media: M,
) -> Result<(f64, Heap<M>), Error> {
    let heap = Place::Anonymous.create(media)?;
    let value = vec![7; args.value];
    let start = Instant::now();
    let index = if how == How::Built {
        build(kind, &heap, keys, &value, args.threads)?
    } else {
        let index = store::create(kind, &heap)?;
        for key in keys {
            index.insert(key, &value)?;
        }
        index.settle()?;
        index
    };
    let seconds = start.elapsed().as_secs_f64();
    check(&*index, keys.len())?;
    drop(index);
    Ok((seconds, heap))
}

fn build<M: Compiled>(
    kind: IndexKind,
    heap: &Heap<M>,
    keys: &[&[u8]],
    value: &[u8],
    threads: usize,
) -> Result<Box<dyn Index>, Error> {
    let threads = threads.min(keys.len());
    let bound = |i: usize| keys.len() * i / threads;
    let part = |i: usize| Sorted::new(keys[bound(i)..bound(i + 1)].iter().map(|key| (key, value)));
    let mut first = part(0);
    let mut others: Vec<_> = (1..threads).map(part).collect();
    let parts = others
        .iter_mut()
        .enumerate()
        .fold(Parts::new(&mut first), |parts, (i, pairs)| {
            parts.and(keys[bound(i + 1)], pairs)
        });
    store::build(kind, heap, parts)
}

fn check(index: &dyn Index, keys: usize) -> Result<(), Error> {
    let faults = index.check()?;
    match faults.found.first() {
        Some(fault) => Err(Error::Wrong(fault.clone())),
        None if faults.keys != keys as u64 => Err(Error::Wrong(format!("{} keys of {keys}", faults.keys))),
        None => Ok(()),
    }
}

fn render(reports: &[Report]) -> String {
    let header = [
        "index",
        "how",
        "threads",
        "Mpairs/s",
        "least",
        "most",
        "times",
        "write-backs",
        "fences",
        "B/key",
    ];
    let of_inserts = |report: &Report| {
        let in_order = |other: &&Report| other.index == report.index && other.how == How::InOrder;
        reports
            .iter()
            .find(in_order)
            .map_or(1.0, |other| other.mops.median)
    };
    let rows: Vec<Vec<String>> = reports
        .iter()
        .map(|report| {
            vec![
                report.index.to_owned(),
                format!("{:?}", report.how).to_lowercase(),
                report.threads.to_string(),
                format!("{:.2}", report.mops.median),
                format!("{:.2}", report.mops.least),
                format!("{:.2}", report.mops.most),
                format!("{:.1}", report.mops.median / of_inserts(report)),
                format!("{:.3}", report.write_backs_per_key),
                format!("{:.4}", report.fences_per_key),
                format!("{:.1}", report.space.live as f64 / report.keys as f64),
            ]
        })
        .collect();
    format!("{}{}", table::render(&header, &rows), Machine::detect())
}
