//! Pools in memory that outlives them.

use super::*;
use crate::Memory;

fn memory() -> Memory {
    Memory::new(4 << 20).expect("memory")
}

fn open(memory: &Memory) -> Result<Pool, Error> {
    Pool::open_in(memory, Hardware::detect())
}

/// The content of a pool survives a reopening; each opening is a new generation, and reports how the last one ended.
#[test]
fn pools_live_on_in_memory() {
    let memory = memory();
    let pool = Pool::create_in(&memory, &small(), Hardware::detect()).expect("a pool");
    assert_eq!((pool.len(), pool.generation()), (4 << 20, 1));
    assert_eq!(pool.last_shutdown(), LastShutdown::New);
    persist_scope(pool.media(), Purpose::Node, |batch| {
        word(&pool, 1 << 20).store(7, &batch);
    });
    drop(pool);
    for generation in 2..5 {
        let pool = open(&memory).expect("a pool");
        assert_eq!(
            (pool.generation(), pool.last_shutdown()),
            (generation, LastShutdown::Clean)
        );
        assert_eq!(word(&pool, 1 << 20).load(pool.media()), 7);
        pool.close().expect("memory has no medium that fails");
    }
}

/// A pool that was not closed counts as left by a crash.
#[test]
fn pools_in_memory_may_crash() {
    let memory = memory();
    let pool = Pool::create_in(&memory, &small(), Hardware::detect()).expect("a pool");
    std::thread::scope(|scope| {
        let died = scope.spawn(move || {
            let _pool = pool;
            std::panic::resume_unwind(Box::new("the process is gone"));
        });
        assert!(died.join().is_err());
    });
    let pool = open(&memory).expect("a pool");
    assert_eq!(
        (pool.last_shutdown(), pool.dirty_count()),
        (LastShutdown::ProcessCrash, 1)
    );
}

/// One pool at a time is open in a memory; none is created over another; an opening fails where there is no pool or a
/// damaged one; none grows past its memory.
#[test]
fn what_is_refused_in_memory() {
    let memory = memory();
    assert!(matches!(
        open(&memory).expect_err("zeros").kind,
        ErrorKind::Foreign { .. }
    ));
    let pool = Pool::create_in(&memory, &small(), Hardware::detect()).expect("a pool");
    assert!(matches!(
        open(&memory).expect_err("in use").kind,
        ErrorKind::Busy { .. }
    ));
    assert!(matches!(
        pool.grow(pool.len() + 1).expect_err("full").kind,
        ErrorKind::Full { .. }
    ));
    drop(pool);
    let again = Pool::create_in(&memory, &small(), Hardware::detect());
    assert!(matches!(
        again.expect_err("a pool is there").kind,
        ErrorKind::Exists
    ));
    // SAFETY: no pool is open.
    let words = unsafe { memory.words() };
    words[8].fetch_xor(1, Ordering::Relaxed);
    assert!(matches!(
        open(&memory).expect_err("damaged").kind,
        ErrorKind::Damaged { .. }
    ));
    words[8].fetch_xor(1, Ordering::Relaxed);
    drop(open(&memory).expect("a refused opening leaves no trace"));
}
