//! `bench build`: builds an index from sorted pairs, and inserts the same pairs one by one for comparison.
//!
//! Inserts come in key order, which is their fastest case, and in random order. Times are medians of interleaved
//! rounds, each in a new pool; persists are counted in a separate run. After each round the index's check must find
//! every key.

use crate::keys::{KeyKind, Keys};
use crate::progress::Progress;
use crate::store::{self, Place, Space};
use crate::summary::Summary;
use crate::{Error, machine::Machine, records};
use heap::Heap;
use index::{Index, Parts, Sorted};
use pmem::{Counting, Hardware, Observed};
use serde::Serialize;
use std::time::Instant;
use wollemi::indexes::{Compiled, IndexKind};

/// Builds indexes in bulk and by inserts.
#[derive(Debug, clap::Args)]
pub struct BulkArgs {
    /// Indexes to measure [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = crate::index())]
    index: Vec<IndexKind>,
    /// Number of pairs
    #[arg(long, default_value = "1M", value_parser = crate::count)]
    keys: usize,
    /// The kind of keys
    #[arg(long, value_enum, default_value_t = KeyKind::U64)]
    key_kind: KeyKind,
    /// Bytes per value
    #[arg(long, default_value = "8", value_parser = crate::count)]
    value: usize,
    /// Threads that build, each from its part of the pairs
    #[arg(long, default_value_t = 1, value_parser = crate::threads)]
    threads: usize,
    /// Issue every write-back and fence, as on persistent memory
    #[arg(long)]
    native: bool,
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

/// How an index is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Method {
    /// Built from sorted pairs.
    Built,
    /// By inserts in key order.
    InOrder,
    /// By inserts in random order.
    Random,
}

const ALL: [Method; 3] = [Method::Built, Method::InOrder, Method::Random];

/// The results of one index and method.
#[derive(Debug, Serialize)]
struct Report {
    index: &'static str,
    how: Method,
    keys: usize,
    key_kind: String,
    value: usize,
    /// Threads of a build; inserts use one.
    threads: usize,
    native: bool,
    /// Millions of pairs per second.
    mops: Summary,
    /// Ratio of the median to the median of inserts in key order.
    to_inserts: f64,
    write_backs_per_key: f64,
    fences_per_key: f64,
    /// Bytes of live objects per key.
    bytes_per_key: f64,
    machine: Machine,
}

/// Measures, and prints a line for each index and method.
pub fn run(args: &BulkArgs) -> Result<(), Error> {
    let progress = Progress::new();
    let random = Keys::generate(args.key_kind, args.keys, args.seed);
    let unordered: Vec<&[u8]> = random.all().iter().map(|(key, _)| key).collect();
    let mut sorted = unordered.clone();
    sorted.sort_unstable();
    // In memory, too, each method finds its keys in the order in which it uses them.
    let bytes = sorted.concat();
    let mut rest = &bytes[..];
    let entries: Vec<&[u8]> = sorted
        .iter()
        .filter_map(|key| rest.split_off(..key.len()))
        .collect();
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
                let media = match args.native {
                    true => Hardware::as_persistent(),
                    false => Hardware::detect(),
                };
                let keys = if how == Method::Random {
                    &unordered
                } else {
                    &entries
                };
                times.push(fill(args, index, how, keys, media)?.0);
            }
        }
        let rate = |times: &Vec<f64>| {
            let mops = times.iter().map(|seconds| args.keys as f64 / seconds / 1e6);
            Summary::of(mops).ok_or_else(|| Error::Wrong("no rounds".into()))
        };
        let of_inserts = rate(&rounds[1])?.median;
        for (how, times) in ALL.into_iter().zip(&rounds) {
            progress.say(format_args!("{index}, {how:?}, counting"));
            let media = Observed::Counting(Counting::new(Hardware::as_persistent()));
            let keys = if how == Method::Random {
                &unordered
            } else {
                &entries
            };
            let (_, heap) = fill(args, index, how, keys, media)?;
            let counts = match heap.media() {
                Observed::Counting(counting) => counting.counts().total(),
                _ => return Err(Error::Wrong("the counting run has no counts".into())),
            };
            let per_key = |count: u64| count as f64 / args.keys as f64;
            let mops = rate(times)?;
            reports.push(Report {
                index: index.name(),
                how,
                keys: args.keys,
                key_kind: crate::name(args.key_kind),
                value: args.value,
                threads: if how == Method::Built { args.threads } else { 1 },
                native: args.native,
                mops,
                to_inserts: mops.median / of_inserts,
                write_backs_per_key: per_key(counts.write_backs),
                fences_per_key: per_key(counts.fences),
                bytes_per_key: Space::of(&heap).live as f64 / args.keys as f64,
                machine: Machine::detect(),
            });
        }
    }
    drop(progress);
    records::print(args.json, &reports)
}

/// Fills an index in a new pool; returns the duration in seconds and the heap.
fn fill<M: Compiled>(
    args: &BulkArgs,
    kind: IndexKind,
    how: Method,
    keys: &[&[u8]],
    media: M,
) -> Result<(f64, Heap<M>), Error> {
    let heap = Place::Anonymous.create(media)?;
    let value = vec![7; args.value];
    let start = Instant::now();
    let index = if how == Method::Built {
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
        None if faults.keys != keys as u64 => Err(Error::Wrong(format!(
            "the check found {} of {keys} keys",
            faults.keys
        ))),
        None => Ok(()),
    }
}
