//! A writer that the system stops during a change delays the others, but does no more: none of them mistakes the wait
//! for damage.

use crate::media::{Step, at, index};
use index::Index;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};

/// Number of loads of locks for which each of the other writers is kept waiting: three in each of the 20,000 tries
/// after which a writer would give up.
const MIN_LOADS: u64 = 60_000;

/// A key for which there is no room in its leaf array.
const FULL_ARRAY: &str = "pazz99";

#[derive(Default)]
struct Course {
    climbing: AtomicBool,
    condemned: AtomicBool,
    /// Whether the other writers have ended.
    ended: AtomicBool,
}

fn wait_for(flag: &AtomicBool) {
    while !flag.load(SeqCst) {
        std::thread::yield_now();
    }
}

/// A thread that replaces a node is stopped between condemning it and publishing its successor. Other writers wait for
/// the successor, and succeed. `others` put their key, or remove it if it is `pb`; the writer of [`FULL_ARRAY`] has
/// locked the array when it waits, and is about to lock the node.
fn writers_wait_for_the_successor(others: &[&'static str]) {
    let index = index();
    let put = |key: &[u8]| assert!(index.insert(key, b"old").expect("no error"));
    // A full node, over a full leaf array and three leaves.
    (0..62).for_each(|i| put(format!("pazz{i:02}").as_bytes()));
    ["pb", "pc", "pd"].iter().for_each(|key| put(key.as_bytes()));
    (62..64).for_each(|i| put(format!("pazz{i:02}").as_bytes()));

    let writers = others.len() as u64;
    let course = &Arc::<Course>::default();
    let write = &|key: &str| match key {
        "pb" => index.remove(key.as_bytes()).map(drop),
        _ => index.upsert(key.as_bytes(), b"newer"),
    };
    let errors: Vec<String> = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        if others.contains(&FULL_ARRAY) {
            threads.push(scope.spawn(move || {
                let course = Arc::clone(course);
                at(Step::Lock, 2, move || {
                    course.climbing.store(true, SeqCst);
                    wait_for(&course.condemned);
                });
                write(FULL_ARRAY)
            }));
            wait_for(&course.climbing);
        }
        let grower = scope.spawn(|| {
            let (course, stopped) = (Arc::clone(course), Arc::clone(&index));
            at(Step::Held, 1, move || {
                let looks = &stopped.heap().media().watch().looks;
                let until = looks.load(Relaxed) + MIN_LOADS * writers;
                course.condemned.store(true, SeqCst);
                while looks.load(Relaxed) < until && !course.ended.load(SeqCst) {
                    std::thread::yield_now();
                }
            });
            write("pe")
        });
        wait_for(&course.condemned);
        let others = others.iter().filter(|key| **key != FULL_ARRAY);
        threads.extend(others.map(|key| scope.spawn(move || write(key))));
        let mut ends: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect();
        course.ended.store(true, SeqCst);
        ends.push(grower.join().expect("no panic"));
        let errors = ends.into_iter().filter_map(Result::err);
        errors.map(|error| error.to_string()).collect()
    });
    assert_eq!(errors, [""; 0]);
    let guard = heap::pin();
    for key in others.iter().chain(&["pe"]) {
        let found = index.get(key.as_bytes(), &guard).expect("no error");
        assert_eq!(found.is_some(), *key != "pb", "{key}");
    }
    assert_eq!(index.check().expect("no error").found, [""; 0]);
}

/// In the node, and in an array below it.
#[test]
fn writers_at_a_condemned_node_wait_for_its_successor() {
    writers_wait_for_the_successor(&["pf", "pb", "pazz00"]);
}

/// The node is the parent of the locked object.
#[test]
fn a_writer_below_a_condemned_node_waits_for_its_successor() {
    writers_wait_for_the_successor(&[FULL_ARRAY]);
}
