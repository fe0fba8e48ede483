//! Pools beside mappings of other threads.

use super::files::Place;
use super::*;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// As long as a pool's first page, so that it would fit into a hole inside the pool's range.
const LEN: usize = 64 << 10;

/// Mappings that a thread makes before it unmaps them all. The system uses the highest hole that fits: these soon
/// fill all above a pool, so that one inside the pool's range would be next.
const HELD: usize = 1 << 12;

/// A mapping of a thread's own, with a number in it.
struct Mapped(*mut AtomicU64, u64);

impl Mapped {
    fn new(number: u64) -> Mapped {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the system's choice touches no other memory.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), LEN, prot, MapFlags::PRIVATE) };
        let mapped = Mapped(start.expect("memory").cast(), number);
        mapped.word().store(number, Ordering::Relaxed);
        mapped
    }

    fn word(&self) -> &AtomicU64 {
        // SAFETY: the mapping is this value's alone, and longer than a word.
        unsafe { &*self.0 }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        assert_eq!(self.word().load(Ordering::Relaxed), self.1, "another's memory");
        // SAFETY: the mapping is this value's alone, and nothing refers to it any more.
        unsafe { munmap(self.0.cast(), LEN) }.expect("unmapped");
    }
}

/// Stops the other threads, also on the way out of a panic.
struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// An opened pool never releases addresses that it has reserved: mappings that other threads make meanwhile stay
/// theirs, and the pool's stay the pool's.
#[test]
fn mappings_of_other_threads_are_left_alone() {
    let stop = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut held = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    held.push(Mapped::new(held.len() as u64 + 1));
                    if held.len() == HELD {
                        held.clear();
                    }
                }
            });
        }
        let _stop = Stop(stop);
        let openers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let (place, _) = Place::with_pool();
                    // A small reservation, so that little is free between two openings.
                    let options = PoolOptions {
                        max_size: 2 << 20,
                        ..small()
                    };
                    for opened in 2..200 {
                        let pool = Pool::open(&place.path, &options, Hardware::detect()).expect("the pool");
                        assert_eq!(pool.generation(), opened);
                    }
                })
            })
            .collect();
        for opener in openers {
            opener.join().expect("no panic");
        }
    });
}
