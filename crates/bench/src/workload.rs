//! The timed loops.
//!
//! I1 Nothing is allocated and no key is made inside them.
//! I2 Every [`SAMPLE_EVERY`]th call is timed for the latency percentiles; the others run without a clock.
//! I3 What they read is summed and compared with what was loaded: a loop that finds wrong values is an error.

use crate::engine::{BATCH, Engine};
use crate::keys::{Keys, Part};
use crate::{Error, machine};
use clap::ValueEnum;
use serde::Serialize;
use std::sync::Barrier;
use std::time::Instant;

/// What is done with the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum Workload {
    /// Inserts every key into an empty index.
    Load,
    /// Reads single keys, in random order.
    Get,
    /// Reads keys in batches of 32; operations and Mops count keys, latencies are of a batch.
    MultiGet,
    /// Gives keys new values.
    Update,
    /// Removes keys.
    Remove,
    /// Reads the values of the 100 keys from a random key onward.
    Scan100,
}

impl Workload {
    /// How many operations to do on so many keys when nothing is said.
    pub fn default_ops(self, keys: usize) -> usize {
        match self {
            Workload::Scan100 => keys.div_ceil(50),
            _ => keys,
        }
    }

    /// Whether operations must each meet another key.
    pub fn consumes(self) -> bool {
        matches!(self, Workload::Load | Workload::Remove)
    }
}

const SAMPLE_EVERY: usize = 32;

/// Sampled latencies of calls, each with the cost of reading the clock (some 30 ns) in it.
#[derive(Debug, Default)]
pub struct Latencies(Vec<u32>);

impl Latencies {
    fn for_calls(calls: usize) -> Latencies {
        Latencies(Vec::with_capacity(calls / SAMPLE_EVERY + 1))
    }

    #[inline]
    fn push(&mut self, since: Instant) {
        self.0
            .push(since.elapsed().as_nanos().min(u32::MAX.into()) as u32);
    }

    /// The latency, in nanoseconds, that this share of the sampled calls does not exceed.
    pub fn quantile(&self, share: f64) -> u32 {
        let last = self.0.len().saturating_sub(1);
        let at = (share * last as f64).round() as usize;
        self.0.get(at).copied().unwrap_or_default()
    }
}

/// What one pass over a set of keys gave.
#[derive(Debug)]
pub struct Pass {
    /// Keys (for scans: scans).
    pub ops: usize,
    /// From the first thread's start to the last one's end.
    pub seconds: f64,
    /// Of all threads, sorted.
    pub latencies: Latencies,
    /// The sum of what was read, which engines that hold the same must agree on.
    #[cfg(feature = "peers")]
    pub sum: u64,
}

impl Pass {
    /// Millions of operations a second.
    pub fn mops(&self) -> f64 {
        self.ops as f64 / self.seconds / 1e6
    }
}

#[derive(Default)]
struct Tally {
    sum: u64,
    /// Operations that did not find what they should have.
    missed: usize,
}

impl Tally {
    #[inline]
    fn read(&mut self, value: Option<u64>) {
        match value {
            Some(value) => self.sum = self.sum.wrapping_add(value),
            None => self.missed += 1,
        }
    }
    #[inline]
    fn done(&mut self, done: bool) {
        self.missed += usize::from(!done);
    }
}

type Done = Result<(), index::Error>;

#[inline]
fn each(
    part: Part<'_>,
    latencies: &mut Latencies,
    mut call: impl FnMut(&mut Tally, &[u8], u64) -> Done,
) -> Result<Tally, index::Error> {
    let mut tally = Tally::default();
    let mut until_sample = 0;
    for (key, number) in part.iter() {
        if until_sample == 0 {
            until_sample = SAMPLE_EVERY;
            let start = Instant::now();
            call(&mut tally, key, number)?;
            latencies.push(start);
        } else {
            call(&mut tally, key, number)?;
        }
        until_sample -= 1;
    }
    Ok(tally)
}

fn batches<E: Engine>(engine: &E, part: Part<'_>, latencies: &mut Latencies) -> Result<Tally, index::Error> {
    let mut tally = Tally::default();
    let mut keys = part.iter().map(|(key, _)| key);
    let mut batch: [&[u8]; BATCH] = [&[]; BATCH];
    for turn in 0usize.. {
        let mut filled = 0;
        for (place, key) in batch.iter_mut().zip(&mut keys) {
            *place = key;
            filled += 1;
        }
        if filled == 0 {
            break;
        }
        let start = turn.is_multiple_of(SAMPLE_EVERY).then(Instant::now);
        let (sum, found) = engine.multi_get(&batch[..filled])?;
        if let Some(start) = start {
            latencies.push(start);
        }
        tally.sum = tally.sum.wrapping_add(sum);
        tally.missed += filled - found;
    }
    Ok(tally)
}

fn pass_over<E: Engine>(
    engine: &E,
    workload: Workload,
    part: Part<'_>,
    latencies: &mut Latencies,
) -> Result<Tally, index::Error> {
    match workload {
        Workload::Load => each(part, latencies, |tally, key, number| {
            engine.insert(key, number).map(|done| tally.done(done))
        }),
        Workload::Get => each(part, latencies, |tally, key, _| {
            engine.get(key).map(|value| tally.read(value))
        }),
        Workload::MultiGet => batches(engine, part, latencies),
        Workload::Update => each(part, latencies, |tally, key, number| {
            engine.update(key, !number).map(|done| tally.done(done))
        }),
        Workload::Remove => each(part, latencies, |tally, key, _| {
            engine.remove(key).map(|done| tally.done(done))
        }),
        Workload::Scan100 => each(part, latencies, |tally, key, _| {
            engine.scan(key).map(|sum| tally.read(Some(sum)))
        }),
    }
}

/// Runs a workload once over the keys, shared out among pinned threads, and checks what it read.
pub fn pass<E: Engine>(engine: &E, workload: Workload, keys: &[Part<'_>]) -> Result<Pass, Error> {
    let barrier = Barrier::new(keys.len());
    let barrier = &barrier;
    let results: Vec<_> = std::thread::scope(|scope| {
        let run = |thread: usize, part: Part<'_>| {
            machine::pin_thread(thread);
            let mut latencies = Latencies::for_calls(part.len());
            barrier.wait();
            let start = Instant::now();
            let tally = pass_over(engine, workload, part, &mut latencies);
            (start, Instant::now(), tally, latencies)
        };
        let threads: Vec<_> = keys
            .iter()
            .enumerate()
            .map(|(i, &part)| scope.spawn(move || run(i, part)))
            .collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });

    let mut tally = Tally::default();
    let mut latencies = Vec::new();
    let mut span: Option<(Instant, Instant)> = None;
    for result in results {
        let (start, end, part, samples) = result.map_err(|_| Error::Wrong("a thread panicked".into()))?;
        let part = part?;
        tally.sum = tally.sum.wrapping_add(part.sum);
        tally.missed += part.missed;
        latencies.extend(samples.0);
        span = Some(span.map_or((start, end), |(first, last)| (first.min(start), last.max(end))));
    }
    latencies.sort_unstable();
    let ops = keys.iter().map(Part::len).sum();
    if tally.missed > 0 {
        let what = format!(
            "{workload:?}: {} of {ops} keys were not as they should be",
            tally.missed
        );
        return Err(Error::Wrong(what));
    }
    let expected = keys.iter().fold(0u64, |sum, part| sum.wrapping_add(part.sum()));
    if matches!(workload, Workload::Get | Workload::MultiGet) && tally.sum != expected {
        return Err(Error::Wrong(format!("{workload:?}: wrong values were read")));
    }
    Ok(Pass {
        ops,
        seconds: span.map_or(0.0, |(first, last)| (last - first).as_secs_f64()),
        latencies: Latencies(latencies),
        #[cfg(feature = "peers")]
        sum: tally.sum,
    })
}

/// The keys shared out among so many threads.
pub fn share(keys: &Keys, threads: usize) -> Vec<Part<'_>> {
    (0..threads).map(|i| keys.part(i, threads)).collect()
}
