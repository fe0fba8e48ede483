//! `bench alloc`: the allocator alone (ROART §4.4, Fig. 22): chunks of 64 bytes, allocated, written and persisted.
//!
//! Measures DCMM beside libpmemobj, if the system has it, and beside the C library's `malloc`, whose chunks are written
//! back and fenced in the same way but would be lost in a crash. Nothing is freed during the measurement. None of them
//! requests huge pages, since libpmemobj and `malloc` do not by default.

mod pmemobj;

use crate::limit::{Calibrator, Pace};
use crate::machine::Machine;
use crate::progress::Progress;
use crate::store::Place;
use crate::summary::Summary;
use crate::turns::order;
use crate::{Error, machine, records};
use heap::Heap;
use pmem::{Hardware, Media, PWord, Purpose, persist_scope};
use pmemobj::Pmemobj;
use serde::Serialize;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

/// Allocates, writes and persists.
#[derive(Debug, clap::Args)]
pub struct AllocArgs {
    /// Chunks per round, all threads together
    #[arg(long, default_value = "1M", value_parser = crate::count)]
    chunks: usize,
    /// Threads
    #[arg(long, default_value_t = 1, value_parser = crate::threads)]
    threads: usize,
    /// Rounds; the allocators take turns, and in six rounds each goes first equally often
    #[arg(long, default_value_t = 6, value_parser = crate::count)]
    rounds: usize,
    /// `anon` for memory, or the path of a new file (removed afterwards)
    #[arg(long, default_value = "anon", value_name = "anon|PATH")]
    pool: Place,
    /// Print lines of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    allocator: &'static str,
    chunks: usize,
    threads: usize,
    rounds: usize,
    /// Millions of chunks per second, over all threads.
    mops: Summary,
    /// Nanoseconds per chunk in one thread.
    ns_per_chunk: Summary,
    /// Cache-miss time before and after all rounds.
    pace: Pace,
    machine: Machine,
}

const CHUNK: usize = 64;

/// The names of the allocators that this machine can run, in the order in which [`run`] reports them.
pub fn installed() -> Vec<&'static str> {
    let mut names = vec!["dcmm", "malloc"];
    if Pmemobj::is_installed() {
        names.insert(1, "libpmemobj");
    }
    names
}

/// A chunk from `malloc`, with the alignment of DCMM's chunks.
#[repr(align(64))]
struct Chunk([AtomicU64; CHUNK / 8]);

/// Measures the allocators in turn and prints a line for each.
pub fn run(args: &AllocArgs) -> Result<(), Error> {
    let library = Pmemobj::find();
    let progress = Progress::new();
    let mut calibrator = Calibrator::for_keys(args.chunks, &args.pool, false)?;
    let misses = calibrator.misses()?;
    let mut times: Vec<(Allocator<'_>, Vec<f64>)> = [Allocator::Dcmm]
        .into_iter()
        .chain(library.as_ref().map(Allocator::Pmemobj))
        .chain([Allocator::Malloc])
        .map(|allocator| (allocator, Vec::with_capacity(args.rounds)))
        .collect();
    for round in 0..args.rounds {
        progress.say(format_args!("round {} of {}", round + 1, args.rounds));
        for i in order(round, times.len()) {
            let (allocator, times) = &mut times[i];
            times.push(allocator.seconds(args)?);
        }
    }
    let pace = calibrator.since(misses)?;
    drop(progress);
    let mut reports = Vec::new();
    for (allocator, seconds) in times {
        let allocator = allocator.name();
        let summary = |of: &dyn Fn(f64) -> f64| Summary::of(seconds.iter().map(|&seconds| of(seconds)));
        let mops = summary(&|seconds| args.chunks as f64 / seconds / 1e6);
        let ns = summary(&|seconds| seconds * 1e9 * args.threads as f64 / args.chunks as f64);
        let (Some(mops), Some(ns_per_chunk)) = (mops, ns) else {
            continue;
        };
        let (chunks, threads, machine) = (args.chunks, args.threads, Machine::detect());
        let report = Report {
            allocator,
            chunks,
            threads,
            rounds: args.rounds,
            mops,
            ns_per_chunk,
            pace,
            machine,
        };
        reports.push(report);
    }
    records::print(args.json, &reports)
}

/// An allocator under test.
enum Allocator<'l> {
    Dcmm,
    Pmemobj(&'l Pmemobj),
    Malloc,
}

impl Allocator<'_> {
    fn name(&self) -> &'static str {
        match self {
            Allocator::Dcmm => "dcmm",
            Allocator::Pmemobj(_) => "libpmemobj",
            Allocator::Malloc => "malloc",
        }
    }

    /// Runs a round in fresh memory and returns its duration in seconds.
    fn seconds(&self, args: &AllocArgs) -> Result<f64, Error> {
        let (threads, chunks) = (args.threads, args.chunks);
        match self {
            Allocator::Dcmm => {
                let heap = Heap::new(args.pool.pool(Hardware::as_persistent(), false)?)?;
                let _remove = args.pool.remove_at_end();
                seconds(threads, chunks, |chunks| from_heap(&heap, chunks))
            }
            Allocator::Pmemobj(library) => {
                let pool = &library.pool(args.pool.file(), chunks)?;
                seconds(threads, chunks, |chunks| pool.allocate(chunks))
            }
            Allocator::Malloc => seconds(threads, chunks, from_malloc),
        }
    }
}

/// Allocates `chunks` chunks, split among pinned threads, and returns the duration in seconds. The threads' results are
/// freed after the clock has stopped.
fn seconds<T: Send>(
    threads: usize,
    chunks: usize,
    allocate: impl Fn(usize) -> Result<T, Error> + Sync,
) -> Result<f64, Error> {
    let (barrier, allocate) = (&Barrier::new(threads), &allocate);
    let results: Vec<_> = std::thread::scope(|scope| {
        let run = |thread: usize| {
            machine::pin_thread(thread);
            let own = chunks * (thread + 1) / threads - chunks * thread / threads;
            barrier.wait();
            let start = Instant::now();
            let done = allocate(own);
            (start, Instant::now(), done)
        };
        let threads: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || run(thread)))
            .collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    let mut span: Option<(Instant, Instant)> = None;
    for result in results {
        let (start, end, done) = result.map_err(|_| Error::Wrong("a thread panicked".into()))?;
        done?;
        span = Some(span.map_or((start, end), |(first, last)| (first.min(start), last.max(end))));
    }
    Ok(span.map_or(0.0, |(first, last)| (last - first).as_secs_f64()))
}

fn from_heap(heap: &Heap<Hardware>, chunks: usize) -> Result<(), Error> {
    for i in 0..chunks {
        persist_scope(heap.media(), Purpose::Node, |batch| {
            let mut draft = heap.draft(PWord::new(i as u64), CHUNK - size_of::<PWord>(), &batch)?;
            draft.tail_mut().fill(i as u8);
            let flushed = draft.flush(&batch);
            let fenced = batch.fence();
            // The chunk stays allocated until the heap is dropped.
            std::mem::forget(flushed.persisted(&fenced));
            Ok::<(), heap::Error>(())
        })?;
    }
    Ok(())
}

/// Returns the chunks so that the caller stops the clock before freeing them.
fn from_malloc(chunks: usize) -> Result<Vec<Box<dyn Send>>, Error> {
    let media = Hardware::as_persistent();
    let mut kept: Vec<Box<dyn Send>> = Vec::with_capacity(chunks);
    for i in 0..chunks {
        let word = u64::from_ne_bytes([i as u8; 8]);
        let words = std::array::from_fn(|_| AtomicU64::new(word));
        let chunk = black_box(Box::new(Chunk(words)));
        media.write_back(&chunk.0[0], Purpose::Node);
        media.fence(Purpose::Node);
        kept.push(chunk);
    }
    Ok(kept)
}
