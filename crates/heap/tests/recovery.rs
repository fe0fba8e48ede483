//! Recovery: live objects stay, dead ones are reclaimed, whatever goes on meanwhile.

mod toy;

use pmem::{Hardware, Link, Pool, PoolOptions};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toy::{Random, Toy, seed, tracers};
use wollemi_heap::{Error, RecoveryStage, pin};

fn options() -> PoolOptions {
    PoolOptions {
        page_size: 64 << 10,
        max_size: 4 << 30,
        ..PoolOptions::default()
    }
}

fn open(path: &Path) -> Toy<Hardware> {
    let pool = Pool::open_or_create(path, &options(), Hardware::detect()).unwrap();
    Toy::open(pool).unwrap()
}

/// Copies an open pool's file: the state that a crash of its process leaves.
fn crash(toy: &Toy<Hardware>, to: &str) -> PathBuf {
    let from = toy.heap.pool().path().unwrap();
    let to = from.with_file_name(to);
    std::fs::copy(from, &to).unwrap();
    to
}

/// Opens the state after a crash, from a copy that replaces the file.
fn crashed(toy: Toy<Hardware>, to: &str) -> Toy<Hardware> {
    let before = toy.heap.pool().path().unwrap().to_path_buf();
    let path = crash(&toy, to);
    drop(toy);
    std::fs::remove_file(before).unwrap();
    open(&path)
}

const WRITERS: u64 = 3;
const KEYS: u64 = 2000;

type Models = Vec<BTreeMap<u64, usize>>;

/// Runs writer threads, each on keys of its own, for `turns` turns each, and on until recovery has ended, but at most
/// eight times as long: nothing is reused meanwhile, and the time that recovery takes depends on the machine.
fn write(toy: &Toy<Hardware>, models: &mut Models, random: &mut Random, turns: u64) {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..)
            .zip(models.iter_mut())
            .map(|(writer, model)| {
                let mut random = Random(random.next() | 1);
                scope.spawn(move || {
                    let keys = writer * KEYS..(writer + 1) * KEYS;
                    let mut turn = 0;
                    while turn < turns
                        || turn < 8 * turns && toy.heap.recovery().state == RecoveryStage::Running
                    {
                        toy.random_write(&mut random, keys.clone(), model).unwrap();
                        turn += 1;
                    }
                })
            })
            .collect();
        // Joined by hand: a scope does not wait for the destructors of thread-local values.
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

fn union(models: &Models) -> BTreeMap<u64, usize> {
    models.iter().flatten().map(|(&key, &len)| (key, len)).collect()
}

/// With 1 to 4 recovery threads and writers from the first moment, in one crashed pool after another: the map is what
/// the writers made it, the accounts add up, and exactly the reachable objects are in use.
#[test]
fn nothing_live_is_swept_and_nothing_dead_stays() {
    let seed = seed();
    let mut random = Random(seed);
    let folder = tempfile::tempdir().unwrap();
    let mut toy = open(&folder.path().join("0"));
    let mut models: Models = vec![BTreeMap::new(); WRITERS as usize];
    write(&toy, &mut models, &mut random, 6000);
    for round in 1..=8 {
        toy = crashed(toy, &round.to_string());
        let before = toy.heap.stats();
        assert_eq!(
            before.used + before.free + before.unswept,
            before.reserved,
            "{before:?}"
        );
        assert!(before.unswept > 0);
        toy.heap.recover(tracers(), round % 4 + 1).unwrap();
        write(&toy, &mut models, &mut random, 1500);
        assert_eq!(toy.heap.wait_recovered(), RecoveryStage::Done, "seed {seed}");
        let progress = toy.heap.recovery();
        assert_eq!(progress.pages_swept, progress.pages_to_sweep);
        assert!(progress.traced > 0);
        assert_eq!(toy.all(), union(&models), "seed {seed} round {round}");
        toy.assert_exact(&format!("seed {seed} round {round}"));
        // And after further use of the swept space.
        write(&toy, &mut models, &mut random, 1500);
        assert_eq!(toy.all(), union(&models), "seed {seed} round {round}");
        toy.assert_exact(&format!("seed {seed} round {round}, later"));
    }
    let size = toy.heap.pool().len();
    assert!(size < 400 << 20, "the pool has grown to {size} bytes");
}

/// Crashes while recovery runs lose nothing, and the recovery after them leaves no leak.
#[test]
fn a_crash_during_recovery_is_just_another_crash() {
    let seed = seed();
    let mut random = Random(seed);
    let folder = tempfile::tempdir().unwrap();
    let mut toy = open(&folder.path().join("0"));
    let mut models: Models = vec![BTreeMap::new(); 1];
    write(&toy, &mut models, &mut random, 4000);
    for round in 1..=12 {
        toy = crashed(toy, &round.to_string());
        toy.heap.recover(tracers(), 2).unwrap();
        for _ in 0..random.below(400) {
            toy.random_write(&mut random, 0..KEYS, &mut models[0]).unwrap();
        }
    }
    assert_eq!(toy.heap.wait_recovered(), RecoveryStage::Done);
    assert_eq!(toy.all(), models[0], "seed {seed}");
    toy.assert_exact(&format!("seed {seed}"));
    let size = toy.heap.pool().len();
    assert!(size < 200 << 20, "the pool has grown to {size} bytes");
}

/// Recovery works after a clean close as after a crash, and the heap's handles may be dropped while it runs.
#[test]
fn closing_stops_recovery() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let mut random = Random(7);
    let mut models: Models = vec![BTreeMap::new(); 1];
    for round in 0..20 {
        let toy = open(&path);
        assert_eq!(toy.heap.recovery_threads(), 0);
        toy.heap.recover(tracers(), 3).unwrap();
        // A first opening has nothing to recover.
        assert_eq!(toy.heap.recovery_threads(), if round == 0 { 0 } else { 3 });
        if round % 3 == 0 {
            toy.heap.wait_recovered();
        }
        for _ in 0..500 {
            toy.random_write(&mut random, 0..KEYS, &mut models[0]).unwrap();
        }
        assert_eq!(toy.all(), models[0]);
        let heap = toy.heap.clone();
        drop(toy);
        heap.close().unwrap();
    }
}

/// An object that a reader holds at the end of the trace is not reused while it holds it.
#[test]
fn readers_keep_what_they_read() {
    let folder = tempfile::tempdir().unwrap();
    let toy = open(&folder.path().join("0"));
    for key in 0..3000 {
        toy.put(key, 40).unwrap();
    }
    let toy = open(&crash(&toy, "1"));
    let reader = pin();
    let held: Vec<(u64, &[u8])> = (0..3000).map(|key| (key, toy.bytes_of(key))).collect();
    for key in 0..3000 {
        assert!(toy.remove(key));
    }
    toy.heap.recover(tracers(), 2).unwrap();
    // Recovery cannot end under the reader's guard, and yet there is room.
    for key in 10_000..20_000 {
        toy.put(key, 40).unwrap();
    }
    for (key, bytes) in held {
        let expected: Vec<u8> = (0..40).map(|i| (key as usize + i) as u8).collect();
        assert_eq!(bytes, expected);
    }
    drop(reader);
    assert_eq!(toy.heap.wait_recovered(), RecoveryStage::Done);
    toy.assert_exact("after the reader is gone");
}

/// A writer stopped between unlinking and retiring, all through the trace: its object is neither reused meanwhile nor
/// freed twice.
#[test]
fn a_writer_may_sleep_between_unlinking_and_retiring() {
    let folder = tempfile::tempdir().unwrap();
    let toy = open(&folder.path().join("0"));
    for key in 0..3000 {
        toy.put(key, 40).unwrap();
    }
    let toy = open(&crash(&toy, "1"));
    let guard = pin();
    let unlinked: Vec<_> = (0..1000).map(|key| toy.unlink(key)).collect();
    toy.heap.recover(tracers(), 2).unwrap();
    while toy.heap.recovery().traced < 2000 {
        std::thread::yield_now();
    }
    // As many as could be handed out again had they been swept.
    for key in 10_000..14_000 {
        toy.put(key, 40).unwrap();
    }
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(toy.heap.recovery().state, RecoveryStage::Running);
    for link in unlinked {
        toy.retire_unlinked(link, &guard);
    }
    drop(guard);
    assert_eq!(toy.heap.wait_recovered(), RecoveryStage::Done);
    toy.assert_exact("after the writer woke up");
    assert_eq!(toy.all().len(), 6000);
}

/// A writer that finds the pool full can wait for the sweep, and then has room.
#[test]
fn a_full_pool_waits_for_recovery() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let options = PoolOptions {
        max_size: 8 << 20,
        ..options()
    };
    let mut waits = 0;
    for round in 0..30_u64 {
        let pool = Pool::open_or_create(&path, &options, Hardware::detect()).unwrap();
        let toy = Toy::open(pool).unwrap();
        toy.heap.recover(tracers(), 2).unwrap();
        // Less than half of the pool in each generation, all of it dead at the end.
        for key in 0..3000 {
            let key = round * 10_000 + key;
            match toy.put(key, 1000) {
                Err(Error::Full { recovering, .. }) if recovering => {
                    let guard = pin();
                    assert!(!toy.heap.wait_for_room(), "with a guard");
                    drop(guard);
                    toy.heap.wait_for_room();
                    waits += 1;
                    toy.put(key, 1000).unwrap();
                }
                done => done.unwrap(),
            }
        }
        for key in 0..3000 {
            assert!(toy.remove(round * 10_000 + key));
        }
        // Pages that are not swept yet stay so: the pool is simply closed.
    }
    eprintln!("waited {waits} times");
}

/// Makes the slot that holds this link in a pool's file lead beyond everything that was ever handed out, where the
/// file has zeros.
fn lead_astray(path: &Path, link: Link) {
    let mut file = std::fs::read(path).unwrap();
    // Files grow ahead of need.
    let beyond = file.len() as u64;
    file.resize(file.len() + (1 << 20), 0);
    let (words, _) = file.as_chunks_mut::<8>();
    let word = words.iter_mut().find(|word| **word == link.bits().to_le_bytes());
    let astray = link.bits() - link.offset().unwrap().get() + beyond;
    *word.expect("the slot") = astray.to_le_bytes();
    std::fs::write(path, file).unwrap();
}

/// Damage, or a root of unknown kind, ends recovery with a reason, and nothing is swept; service goes on.
#[test]
fn what_is_not_understood_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let toy = open(&folder.path().join("0"));
    for key in 0..2000 {
        toy.put(key, 30).unwrap();
    }
    let unknown = open(&crash(&toy, "unknown"));
    unknown.heap.recover(vec![], 2).unwrap();
    let damaged = open(&crash(&toy, "damaged"));
    damaged.damage(77);
    damaged.heap.recover(tracers(), 2).unwrap();
    let astray = crash(&toy, "astray");
    lead_astray(&astray, toy.link_of(77));
    let astray = open(&astray);
    astray.heap.recover(tracers(), 2).unwrap();
    for (toy, reason) in [
        (unknown, "root 'toy' is of unknown kind 77"),
        (damaged, "damaged pool"),
        (astray, "never handed out"),
    ] {
        let RecoveryStage::Failed(why) = toy.heap.wait_recovered() else {
            panic!("recovery ended: {:?}", toy.heap.recovery());
        };
        assert!(why.contains(reason), "{why}");
        let unswept = toy.heap.stats().unswept;
        assert!(unswept > 0);
        for round in 0..30 {
            for key in 5000..7000 {
                toy.put(key, 30 + round).unwrap();
            }
        }
        let stats = toy.heap.stats();
        assert_eq!(stats.unswept, unswept);
        assert_eq!(
            stats.used + stats.free + stats.unswept,
            stats.reserved,
            "{stats:?}"
        );
        assert!(stats.reserved < 32 << 20, "{stats:?}");
        assert!(matches!(
            toy.heap.audit(&tracers(), 1),
            Err(Error::NotRecovered(_))
        ));
    }
}

/// A slot of an old object that leads into a page handed out since the opening must lead to the start of an object in
/// use there.
#[test]
fn a_place_within_a_new_page_is_no_object() {
    let folder = tempfile::tempdir().unwrap();
    let toy = open(&folder.path().join("0"));
    (0..100).for_each(|key| toy.put(key, 30).unwrap());
    // Leaves of 46 bytes have chunks of 48. Beyond the thread's claimed chunks the page is all zeros, which would
    // pass for an empty leaf.
    for (i, (beyond, reason)) in [
        (48 * 200, "its chunk is free"),
        (48 * 200 + 16, "not the start of a chunk"),
    ]
    .into_iter()
    .enumerate()
    {
        let toy = open(&crash(&toy, &format!("astray{i}")));
        toy.put(1000, 30).unwrap();
        let new = toy.link_of(1000).offset().unwrap().get();
        toy.mislead_to_leaf(77, new + beyond);
        toy.heap.recover(tracers(), 2).unwrap();
        let RecoveryStage::Failed(why) = toy.heap.wait_recovered() else {
            panic!("recovery ended: {:?}", toy.heap.recovery());
        };
        assert!(why.contains(reason), "{why}");
    }
}

/// In a damaged pool, links of new objects that were copied from old ones may form a cycle.
#[test]
fn a_circle_of_new_objects_ends() {
    let folder = tempfile::tempdir().unwrap();
    let toy = open(&folder.path().join("0"));
    (0..100).for_each(|key| toy.put(key, 30).unwrap());
    let toy = crashed(toy, "1");
    toy.copy_node(77).unwrap();
    toy.mislead_to_itself(77);
    toy.heap.recover(tracers(), 2).unwrap();
    while toy.heap.recovery().state == RecoveryStage::Running {
        let traced = toy.heap.recovery().traced;
        assert!(traced < 10_000, "{traced} objects of some 150 were met");
        std::thread::yield_now();
    }
    assert_eq!(toy.heap.wait_recovered(), RecoveryStage::Done);
}

/// Threads' caches and deferred frees may outlive their heap.
#[test]
fn frees_may_come_after_the_heap_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let toy = Arc::new(open(&folder.path().join("0")));
    let other = Arc::clone(&toy);
    let guard = pin();
    std::thread::spawn(move || {
        for key in 0..1000 {
            other.put(key, 20).unwrap();
            other.put(key, 21).unwrap();
        }
    })
    .join()
    .unwrap();
    toy.put(1, 1).unwrap();
    drop(toy);
    drop(guard);
    for _ in 0..1000 {
        pin().flush();
    }
    let toy = open(&folder.path().join("0"));
    toy.put(2, 2).unwrap();
    toy.heap.recover(tracers(), 1).unwrap();
    toy.heap.wait_recovered();
    toy.assert_exact("reopened");
}

/// Recovery in the calling thread does the same as in the background: everything is accounted for when it returns,
/// and it is not done twice.
#[test]
fn recovery_in_the_calling_thread() {
    let seed = seed();
    let mut random = Random(seed);
    let memory = pmem::Memory::new(64 << 20).unwrap();
    let pool = Pool::create_in(&memory, &options(), Hardware::detect()).unwrap();
    let mut toy = Toy::open(pool).unwrap();
    let mut model = BTreeMap::new();
    for round in 0..5 {
        for _ in 0..500 {
            toy.random_write(&mut random, 0..KEYS, &mut model).unwrap();
        }
        drop(toy);
        toy = Toy::open(Pool::open_in(&memory, Hardware::detect()).unwrap()).unwrap();
        for _ in 0..2 {
            assert_eq!(
                toy.heap.recover_now(&tracers()),
                RecoveryStage::Done,
                "seed {seed}, round {round}"
            );
        }
        let stats = toy.heap.stats();
        assert_eq!(
            stats.used + stats.free,
            stats.reserved,
            "seed {seed}, round {round}"
        );
        assert_eq!(stats.unswept, 0, "seed {seed}, round {round}");
        assert_eq!(
            toy.heap.recovery().traced,
            stats.objects,
            "seed {seed}, round {round}"
        );
        let audit = toy.heap.audit(&tracers(), 1).unwrap();
        assert!(audit.is_clean(), "seed {seed}, round {round}: {audit:?}");
    }
}
