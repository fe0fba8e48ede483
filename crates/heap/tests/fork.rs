//! A forked child that drops a heap: it has none of its parent's threads, and must not wait for one.

mod toy;

use pmem::{Hardware, Pool, PoolOptions};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::collections::BTreeMap;
use toy::{PATIENCE, Random, Toy, seed, tracers};
use wollemi_heap::RecoveryStage;

// SAFETY: the C library, which the standard library links, has all three with these types; none takes a pointer. A
// child of `fork` has the calling thread alone: the test's child makes no call that could wait for another.
unsafe extern "C" {
    safe fn fork() -> i32;
    safe fn alarm(seconds: u32) -> u32;
    safe fn _exit(code: i32) -> !;
}

fn open(path: &std::path::Path) -> Toy<Hardware> {
    let options = PoolOptions {
        page_size: 64 << 10,
        ..PoolOptions::default()
    };
    let pool = Pool::open_or_create(path, &options, Hardware::detect());
    Toy::open(pool.expect("the pool")).expect("a heap")
}

/// A child forked while recovery runs, and one forked after it, drop the heap and end; the parent's recovery ends
/// too, and the pool is intact.
#[test]
fn a_forked_child_drops_the_heap_without_its_threads() {
    let seed = seed();
    let mut random = Random(seed);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pool");
    let mut model = BTreeMap::new();
    let toy = open(&path);
    for _ in 0..500 {
        toy.random_write(&mut random, 0..100, &mut model).expect("room");
    }
    drop(toy);
    let mut toy = Some(open(&path));
    let heap = toy.as_ref().map(|toy| toy.heap.clone()).expect("just opened");

    // Recovery's thread waits for the pause's end. It may hold a lock at the fork, which the end of a pause would take,
    // so the child drops no pause.
    let pause = heap.pause_trace();
    heap.recover(tracers(), 2).expect("a thread");
    let mut handles = Some((toy.take(), heap));
    drop_in_child(&mut handles);
    let (toy, heap) = handles.take().expect("the child has its own");
    drop(pause);
    assert_eq!(heap.wait_recovered(), RecoveryStage::Done, "seed {seed}");
    let mut handles = Some((toy, heap));
    drop_in_child(&mut handles);

    drop(handles);
    let toy = open(&path);
    toy.heap.recover(tracers(), 1).expect("a thread");
    assert_eq!(toy.heap.wait_recovered(), RecoveryStage::Done, "seed {seed}");
    assert_eq!(toy.all(), model, "seed {seed}");
    toy.assert_exact(&format!("seed {seed}"));
}

/// Forks a child that drops its copy of these, and waits for its end.
fn drop_in_child<T>(handles: &mut Option<T>) {
    let child = fork();
    if child == 0 {
        alarm(PATIENCE.as_secs() as u32);
        drop(handles.take());
        _exit(0);
    }
    let child = Pid::from_raw(child).expect("a child");
    let (_, status) = waitpid(Some(child), WaitOptions::empty())
        .expect("our child")
        .expect("the child has ended");
    assert_eq!(status.exit_status(), Some(0), "{status:?}");
}
