//! A writer that the system stops between the two steps of an SMO delays the others, but does no more: none of them
//! mistakes the wait for damage. And without a crash, no writer leaves a step to the others.

use index::conformance::IndexInFile;
use index::{Index, OnHeap};
use pmem::watched::{self, Observer, StepKind};
use pmem::{Purpose, Watched};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use wollemi_recipe::Part;

/// Number of loads of locks for which each of the other writers is kept waiting: three in each of the 20,000 tries
/// after which a writer would give up.
const MIN_LOADS: u64 = 60_000;

type Hook = Box<dyn FnOnce()>;

thread_local! {
    /// The number of the fence, counted from 1, and the hook to call after it, for this thread.
    static HOOK: RefCell<Option<(usize, Hook)>> = const { RefCell::new(None) };
}

/// Stops a thread after a fence, and counts loads of locks, and stores to words that other threads can see.
#[derive(Default)]
struct Stops {
    looks: AtomicU64,
    stores: AtomicU64,
}

impl Observer for Stops {
    fn after(&self, step: &watched::ObservedStep) {
        match step.what {
            StepKind::LoadVolatile => _ = self.looks.fetch_add(1, Relaxed),
            StepKind::Store | StepKind::StoreUnpersisted => _ = self.stores.fetch_add(1, Relaxed),
            StepKind::Fence(Purpose::Node) => {
                let hook = HOOK.with_borrow_mut(|hook| {
                    let (left, _) = hook.as_mut()?;
                    *left -= 1;
                    if *left == 0 { hook.take() } else { None }
                });
                if let Some((_, hook)) = hook {
                    hook();
                }
            }
            _ => {}
        }
    }
}

#[derive(Default)]
struct Course {
    stopped: AtomicBool,
    /// Whether the other writers have ended.
    ended: AtomicBool,
}

/// The node above a split is installed; the prefix of the node below is not stored yet.
#[test]
fn writers_wait_for_the_second_step_of_a_split() {
    let store = Arc::new(IndexInFile::<Part<Watched<Stops>>>::create_on(Watched::machine(
        Stops::default(),
    )));
    let index = store.index();
    for key in ["abcd0", "abcd1", "abcd2"] {
        assert!(index.insert(key.as_bytes(), b"old").expect("no error"));
    }
    let course = Arc::<Course>::default();
    let errors: Vec<String> = std::thread::scope(|scope| {
        let splitter = scope.spawn(|| {
            let (course, stopped) = (Arc::clone(&course), Arc::clone(&store));
            // Fences: the leaf, the node, the pointer to the node.
            let hook = move || {
                let looks = &stopped.index().heap().media().watch().looks;
                let until = looks.load(Relaxed) + 3 * MIN_LOADS;
                course.stopped.store(true, SeqCst);
                while looks.load(Relaxed) < until && !course.ended.load(SeqCst) {
                    std::thread::yield_now();
                }
            };
            HOOK.set(Some((3, Box::new(hook))));
            index.insert(b"abz", b"new").map(drop)
        });
        while !course.stopped.load(SeqCst) {
            std::thread::yield_now();
        }
        let others = [
            scope.spawn(|| index.insert(b"abcd9", b"new").map(drop)),
            scope.spawn(|| index.remove(b"abcd1").map(drop)),
            scope.spawn(|| index.upsert(b"abcd2", b"newer")),
        ];
        let mut ends = Vec::from(others.map(|thread| thread.join().expect("no panic")));
        course.ended.store(true, SeqCst);
        ends.push(splitter.join().expect("no panic"));
        let errors = ends.into_iter().filter_map(Result::err);
        errors.map(|error| error.to_string()).collect()
    });
    assert_eq!(errors, [""; 0]);
    let model = [
        ("abcd0", "old"),
        ("abcd2", "newer"),
        ("abcd9", "new"),
        ("abz", "new"),
    ];
    let model = model.map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec()));
    store.compare(&model.into());
}

/// A writer has made a copy of a node whose prefix another one is about to shorten, and has not locked the parent
/// yet. Whichever comes first: the node in use has the prefix that fits, so that no later writer finds anything to
/// complete.
#[test]
fn a_split_beside_a_copy_leaves_nothing_to_finish() {
    let store = Arc::new(IndexInFile::<Part<Watched<Stops>>>::create_on(Watched::machine(
        Stops::default(),
    )));
    let index = store.index();
    for key in ["abcd0", "abcd1", "abcd2", "abcd3"] {
        assert!(index.insert(key.as_bytes(), b"old").expect("no error"));
    }
    let course = Arc::<Course>::default();
    let inserted = std::thread::scope(|scope| {
        let copier = scope.spawn(|| {
            let (course, stopped) = (Arc::clone(&course), Arc::clone(&store));
            // Fences: the leaf, the copy, the pointer to the copy.
            let hook = move || {
                let looks = &stopped.index().heap().media().watch().looks;
                let until = looks.load(Relaxed) + MIN_LOADS;
                course.stopped.store(true, SeqCst);
                while looks.load(Relaxed) < until && !course.ended.load(SeqCst) {
                    std::thread::yield_now();
                }
            };
            HOOK.set(Some((2, Box::new(hook))));
            index.insert(b"abcd4", b"new").expect("no error")
        });
        while !course.stopped.load(SeqCst) {
            std::thread::yield_now();
        }
        let split = index.insert(b"abz", b"new").expect("no error");
        course.ended.store(true, SeqCst);
        split && copier.join().expect("no panic")
    });
    assert!(inserted);
    let stores = &index.heap().media().watch().stores;
    let before = stores.load(Relaxed);
    assert!(!index.remove(b"abcd9").expect("no error"));
    assert_eq!(stores.load(Relaxed), before, "there was something to finish");
    let old = ["abcd0", "abcd1", "abcd2", "abcd3"].map(|key| (key, "old"));
    let model = old.into_iter().chain([("abcd4", "new"), ("abz", "new")]);
    let model = model.map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec()));
    store.compare(&model.collect());
}
