//! Threads of a test, and the values they write.

use super::{Random, plan::mix};
use crate::{Action, Edit, Value};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Counts the threads still at work; a panic counts as an end.
#[derive(Debug)]
pub(super) struct Working(AtomicUsize);

impl Working {
    pub(super) fn new(threads: usize) -> Working {
        Working(AtomicUsize::new(threads))
    }

    /// Whether any is still at work.
    pub(super) fn on(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }

    /// Counts this thread as ended when the returned value is dropped.
    pub(super) fn until_dropped(&self) -> impl Drop + '_ {
        struct Done<'w>(&'w AtomicUsize);
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Release);
            }
        }
        Done(&self.0)
    }
}

/// Runs `work` on this many threads, which start together; returns what each returned.
pub(super) fn crew<T: Send>(
    threads: usize,
    random: &mut Random,
    work: impl Fn(usize, Random) -> T + Sync,
) -> Vec<T> {
    let start = Barrier::new(threads);
    let (start, work) = (&start, &work);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|i| (i, random.split()))
            .map(|(i, random)| {
                scope.spawn(move || {
                    start.wait();
                    work(i, random)
                })
            })
            .collect();
        let results: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        let each =
            |result: thread::Result<T>| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        results.into_iter().map(each).collect()
    })
}

/// An edit that sometimes lets other threads run while its key is locked.
pub(super) struct Dawdling<'r, E>(pub(super) E, pub(super) &'r mut Random);

impl<E: Edit> Edit for Dawdling<'_, E> {
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        if self.1.one_in(32) {
            thread::yield_now();
        }
        self.0.decide(current)
    }
    fn value(&self) -> &[u8] {
        self.0.value()
    }
}

/// A value unique to `id`: begins with it, and the rest, length included, follows from it.
pub(super) fn encode(id: u64) -> Vec<u8> {
    let mixed = mix(id);
    let len = [8, 8, 8, 8, 9, 12, 40, 300][(mixed % 8) as usize];
    let mut value = vec![mixed as u8; len];
    value[..8].copy_from_slice(&id.to_le_bytes());
    value
}

/// The number in a value; panics if the value is torn.
#[track_caller]
pub(super) fn decode(value: &[u8]) -> u64 {
    let id = value.first_chunk().map(|id| u64::from_le_bytes(*id));
    match id {
        Some(id) if encode(id) == value => id,
        _ => panic!("a value that was never written: {:?}", super::Brief(value)),
    }
}

#[track_caller]
pub(super) fn decode_read(value: Option<Value<'_>>) -> Option<u64> {
    value.map(|value| decode(&value))
}
