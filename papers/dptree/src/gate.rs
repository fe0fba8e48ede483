//! The gate between writers and changes of the trees: while a writer is inside, front, middle and base are not
//! replaced (DPTree §3.2: registered writers, `SpinUntilNoRef`).
//!
//! I1 From the return of [`Gate::close`] until its result is dropped, no writer is inside, and none enters.
//!
//! Readers do not use the gate: they load the trees as one value, under a guard.

use crossbeam_utils::CachePadded;
use pmem::Media;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

/// Number of shards of the writer count: up to as many threads share no line.
const SHARDS: usize = 16;

/// The gate.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    closed: CachePadded<AtomicBool>,
    inside: [CachePadded<AtomicUsize>; SHARDS],
}

/// A writer inside.
#[derive(Debug)]
pub(crate) struct Inside<'g>(&'g AtomicUsize);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// A closed gate: dropping it opens the gate.
#[derive(Debug)]
pub(crate) struct Closed<'g>(&'g Gate);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.closed.store(false, SeqCst);
    }
}

impl Gate {
    /// Enters once the gate is open.
    pub(crate) fn enter<M: Media>(&self, media: &M) -> Inside<'_> {
        let shard = &self.inside[shard()];
        let mut turn = 0;
        loop {
            shard.fetch_add(1, SeqCst);
            let inside = Inside(shard);
            if !self.closed.load(SeqCst) {
                return inside;
            }
            drop(inside);
            while self.closed.load(SeqCst) {
                media.wait(turn);
                turn = turn.saturating_add(1);
            }
        }
    }

    /// Closes the gate and waits until all writers are out. One caller at a time, and not from inside.
    pub(crate) fn close<M: Media>(&self, media: &M) -> Closed<'_> {
        self.closed.store(true, SeqCst);
        let closed = Closed(self);
        let mut turn = 0;
        while self.inside.iter().any(|shard| shard.load(SeqCst) > 0) {
            media.wait(turn);
            turn = turn.saturating_add(1);
        }
        closed
    }
}

fn shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: Cell<usize> = Cell::new(NEXT.fetch_add(1, Relaxed));
    }
    MINE.try_with(Cell::get).unwrap_or(0) % SHARDS
}
