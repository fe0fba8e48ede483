use super::*;
use crate::Hardware;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

fn media() -> Hardware {
    Hardware::detect()
}

/// Two threads never hold the lock at once.
#[test]
fn one_holder_at_a_time() {
    const TURNS: u64 = 20_000;
    let (media, lock, count) = (&media(), &GenerationLock::new(3), &VWord::new(0));
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                for _ in 0..TURNS {
                    let locked = lock.lock(media, 3).expect("never obsolete");
                    assert!(!locked.is_stale());
                    // Two steps instead of one, so that a second holder would lose counts.
                    count.store(count.load(media) + 1, media);
                }
            });
        }
    });
    assert_eq!(count.load(media), 2 * TURNS);
}

/// Once an object is condemned, no other thread gets its lock, and it becomes obsolete however the lock is released.
#[test]
fn a_condemned_object_is_obsolete() {
    let media = &media();
    for retire in [false, true] {
        let lock = GenerationLock::new(1);
        let mut locked = lock.lock(media, 1).expect("free");
        assert!(!lock.is_obsolete(media, 1));
        locked.condemn();
        assert!(lock.is_obsolete(media, 1) && lock.lock(media, 1).is_err());
        if retire {
            locked.retire();
        } else {
            drop(locked);
        }
        assert!(lock.is_obsolete(media, 1) && lock.lock(media, 1).is_err());
        assert!(
            lock.lock(media, 2)
                .expect("not obsolete in this generation")
                .is_stale()
        );
    }
}

/// An object of another generation is checked, a current one is not; if another thread has repaired it meanwhile, the
/// check's error does not count.
#[test]
fn a_stale_object_is_checked() {
    let media = &media();
    let lock = GenerationLock::new(1);
    let refuse = || Err::<(), _>("no lock");
    assert_eq!(lock.check_stale(media, 2, refuse), Err("no lock"));
    assert!(lock.is_current(media, 1) && !lock.is_locked(media, 1));
    let overtaken = || {
        lock.lock(media, 2).expect("free").repaired();
        refuse()
    };
    assert_eq!(lock.check_stale(media, 2, overtaken), Ok(()));
    assert_eq!(lock.check_stale(media, 2, refuse), Ok(()));
}

/// A lock held, in repair or obsolete at a crash is free in the next generation, and only its first holder learns that
/// the volatile metadata is stale.
#[test]
fn a_crash_frees_every_lock() {
    let media = &media();
    let (free, held, repairing, obsolete) = (
        GenerationLock::new(1),
        GenerationLock::new(1),
        GenerationLock::new(0),
        GenerationLock::new(1),
    );
    std::mem::forget(held.lock(media, 1));
    std::mem::forget(repairing.lock(media, 1));
    obsolete.lock(media, 1).expect("free").retire();
    for lock in [free, held, repairing, obsolete] {
        assert!(!lock.is_current(media, 2) && !lock.is_obsolete(media, 2));
        let mut locked = lock.lock(media, 2).expect("not obsolete in this generation");
        assert!(locked.is_stale() && !lock.is_current(media, 2));
        assert_eq!(lock.try_lock(media, 2).map(|taken| taken.is_some()), Ok(false));
        locked.repaired();
        assert!(!locked.is_stale() && lock.is_current(media, 2));
        assert_eq!(
            lock.try_lock(media, 2).map(|taken| taken.is_some()),
            Ok(false),
            "it is still held"
        );
        drop(locked);
        assert!(!lock.lock(media, 2).expect("free").is_stale());
        assert!(lock.is_current(media, 2));
    }
}

/// The first thread to take a lock learns whether an earlier process held it when it was killed; no later one does.
#[test]
fn a_lock_that_was_left_says_so() {
    let media = &media();
    let (held, free) = (GenerationLock::new(1), GenerationLock::new(1));
    std::mem::forget(held.lock(media, 1));
    assert!(!free.lock(media, 2).expect("free").was_left());
    let locked = held.lock(media, 2).expect("free");
    assert!(locked.was_left());
    // Killed in its turn, before it has repaired anything.
    std::mem::forget(locked);
    let mut locked = held.lock(media, 3).expect("free");
    assert!(locked.was_left());
    locked.repaired();
    drop(locked);
    for generation in [3, 4] {
        assert!(!held.lock(media, generation).expect("free").was_left());
    }
}

/// Whatever bits a crash leaves of an earlier generation, the lock can be taken.
#[test]
fn any_old_word_is_free() {
    let media = &media();
    for flags in 0..8 {
        for generation in [0u64, 1, 8] {
            let lock = GenerationLock(VWord::new(generation << 32 | flags));
            assert!(
                lock.try_lock(media, 9)
                    .is_ok_and(|taken| taken.is_some_and(|locked| locked.is_stale()))
            );
        }
    }
}

/// An object that was replaced is never locked again in its generation, and the threads that wait for it learn so.
#[test]
fn an_obsolete_object_is_not_locked() {
    let (media, lock, waiting) = (&media(), &GenerationLock::new(1), &AtomicBool::new(false));
    let locked = lock.lock(media, 1).expect("free");
    std::thread::scope(|threads| {
        let waiter = threads.spawn(|| {
            waiting.store(true, Ordering::Release);
            lock.lock(media, 1).map(drop)
        });
        while !waiting.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        assert!(!lock.is_obsolete(media, 1));
        locked.retire();
        assert_eq!(waiter.join().expect("no panic"), Err(Obsolete));
    });
    assert!(lock.is_obsolete(media, 1));
    assert_eq!(lock.try_lock(media, 1).map(drop), Err(Obsolete));
}

/// A holder that gives up during a repair, by a panic or by an error, leaves the object stale for the next.
#[test]
fn an_unfinished_repair_is_taken_up_again() {
    let (media, lock) = (&media(), &GenerationLock::new(1));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let locked = lock.lock(media, 2).expect("free");
        assert!(locked.is_stale());
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    assert!(!lock.is_current(media, 2));
    drop(lock.lock(media, 2).expect("free"));
    assert!(!lock.is_current(media, 2));
    let mut locked = lock.lock(media, 2).expect("free");
    assert!(locked.is_stale());
    locked.repaired();
    drop(locked);
    assert!(lock.is_current(media, 2));
}

/// A panic of a holder that repairs nothing frees the lock and leaves the object current.
#[test]
fn a_panic_frees_the_lock() {
    let (media, lock) = (&media(), &GenerationLock::new(1));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _locked = lock.lock(media, 1).expect("free");
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    assert!(
        lock.try_lock(media, 1)
            .is_ok_and(|taken| taken.is_some_and(|locked| !locked.is_stale()))
    );
}

/// Of many threads that find a stale object at once, one repairs it, and none takes it for current before that.
#[test]
fn one_thread_repairs() {
    let media = &media();
    for _ in 0..200 {
        let (lock, metadata, repairs) = (&GenerationLock::new(1), &VWord::new(0), &VWord::new(0));
        std::thread::scope(|threads| {
            for _ in 0..3 {
                threads.spawn(|| {
                    if lock.is_current(media, 2) {
                        assert_eq!(metadata.load(media), 42);
                    }
                    let mut locked = lock.lock(media, 2).expect("never obsolete");
                    if locked.is_stale() {
                        metadata.store(42, media);
                        repairs.store(repairs.load(media) + 1, media);
                        locked.repaired();
                    }
                    assert_eq!(metadata.load(media), 42);
                });
            }
        });
        assert_eq!(repairs.load(media), 1);
    }
}
