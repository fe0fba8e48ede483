//! Tests that the limit holds for all writers, and which items are evicted.

use super::*;
use crate::items::databases::Databases;
use crate::items::item::PLACE;
use crate::items::store::tests;
use index::model::ModelIndex;
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::AtomicUsize;

const NOW: u64 = 1_800_000_000_000;
const DATA: usize = 100;
/// Bytes of an item in these tests: its place in the index, a key of ten bytes, a header, the data.
const EACH: u64 = PLACE + 10 + 24 + DATA as u64;

fn open(index: &ModelIndex, items: u64, evicts: bool) -> Databases {
    let db = wollemi::Db::anonymous().expect("memory");
    let _map = db.hold("items", Arc::new(index.clone()));
    let databases = Databases::open(
        &db,
        "items",
        None,
        MemoryLimit::new(items * EACH, evicts),
        Arc::new(AtomicUsize::new(1 << 20)),
    )
    .expect("empty, or a server's");
    while !databases.first().count_on(1000).expect("the model does not fail") {}
    databases
}

fn key(i: usize) -> String {
    // Keys of neighbouring numbers are far apart in key order.
    format!(
        "k{:09}",
        (i as u64).wrapping_mul(2_654_435_761) % 1_000_000_007 % 1_000_000_000
    )
}

fn get(databases: &Databases, key: &str) -> bool {
    let found = databases.first().read(key.as_bytes(), NOW, |_| ());
    found.expect("the model does not fail").is_some()
}

fn put(databases: &Databases, key: &str, expiry: u64) {
    let done = tests::put(databases.first(), &[(key.as_bytes(), expiry, &[b'x'; DATA])]);
    assert!(matches!(done[..], [Ok(())]), "{done:?}");
}

fn set(databases: &Databases, key: &str) -> Result<(), Failure> {
    let _room = databases.room(EACH, NOW)?;
    put(databases, key, 0);
    assert!(databases.memory().used() <= databases.memory().limit());
    Ok(())
}

/// Draws ranks, from 0 on, by Zipf's law.
fn zipf(keys: usize, requests: usize, seed: u64) -> impl Iterator<Item = usize> {
    let mut sums: Vec<f64> = Vec::new();
    for rank in 1..=keys {
        sums.push(sums.last().unwrap_or(&0.0) + 1.0 / (rank as f64).powf(0.99));
    }
    let mut random = seed;
    (0..requests).map(move |_| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let place = (random >> 11) as f64 / (1u64 << 53) as f64 * sums[sums.len() - 1];
        sums.partition_point(|&sum| sum < place)
    })
}

/// On Zipfian requests the hit rate is above that of evicting the oldest item, although every fourth request is for a
/// key that no other request asks for, and a restart amid the requests forgets the frequencies.
#[test]
fn what_is_asked_for_stays() {
    const KEYS: usize = 10_000;
    const ITEMS: usize = 1000;
    let index = ModelIndex::new();
    let mut databases = open(&index, ITEMS as u64, true);
    let (mut hits, mut fifo_hits, mut passing) = (0, 0, KEYS);
    let (mut order, mut there) = (VecDeque::new(), HashSet::new());
    let requests = 120_000;
    for (n, rank) in zipf(KEYS, requests, 0x2545_f491_4f6c_dd1d).enumerate() {
        if n == requests / 2 {
            drop(databases);
            databases = open(&index, ITEMS as u64, true);
        }
        // One key in four is never asked for again.
        let id = match n % 4 {
            0 => {
                passing += 1;
                passing
            }
            _ => rank,
        };
        hits += usize::from(get(&databases, &key(id)));
        set(&databases, &key(id)).expect("room is made");
        if !there.insert(id) {
            fifo_hits += 1;
            continue;
        }
        order.push_back(id);
        if order.len() > ITEMS {
            order.pop_front().map(|gone| there.remove(&gone));
        }
    }
    println!("of {requests} requests {hits} are answered, {fifo_hits} if the oldest go");
    assert!(hits * 100 > fifo_hits * 115, "{hits} against {fifo_hits}");
    assert!(databases.memory().evicted() > 0);
}

/// Without eviction, writes are refused while there is no room, and admitted again after a removal.
#[test]
fn writes_are_refused_where_nothing_may_go() {
    let index = ModelIndex::new();
    let databases = open(&index, 10, false);
    (0..10).for_each(|i| set(&databases, &key(i)).expect("room"));
    assert!(matches!(set(&databases, &key(10)), Err(Failure::NoRoom)));
    assert!((0..10).all(|i| get(&databases, &key(i))));
    databases.first().delete(key(3).as_bytes(), NOW).expect("removed");
    set(&databases, &key(10)).expect("room");
    assert_eq!(
        (databases.memory().refused(), databases.memory().evicted()),
        (1, 0)
    );
    databases.memory().set_evicts(true);
    set(&databases, &key(11)).expect("room is made");
    assert!(databases.memory().evicted() > 0);
    // A write that needs more than the whole limit is refused.
    assert!(matches!(databases.room(11 * EACH, NOW), Err(Failure::NoRoom)));
    databases.memory().set_limit(0);
    assert!(databases.room(1 << 40, NOW).is_ok(), "no limit");
}

/// Where live items may not be evicted, dead ones, expired or flushed, are removed: for this write if the hand passes
/// them during it, otherwise for a later write.
#[test]
fn the_dead_go_where_nothing_else_may() {
    let index = ModelIndex::new();
    let databases = open(&index, 10, false);
    (0..10).for_each(|i| put(&databases, &key(i), if i < 4 { NOW - 1 } else { 0 }));
    (10..14).for_each(|i| set(&databases, &key(i)).expect("room of the dead"));
    assert!(matches!(set(&databases, &key(14)), Err(Failure::NoRoom)));
    assert!((4..14).all(|i| get(&databases, &key(i))));
    databases.first().flush(None).expect("the model does not fail");
    (0..10).for_each(|i| set(&databases, &key(i)).expect("room of the flushed"));
    assert!(matches!(set(&databases, &key(10)), Err(Failure::NoRoom)));
    assert_eq!(databases.memory().evicted(), 0);

    let index = ModelIndex::new();
    let databases = open(&index, 3 * LOOK as u64, false);
    let store = |i: usize, expiry| put(&databases, &format!("k{i:09}"), expiry);
    let last = 3 * LOOK - 1;
    (0..last).for_each(|i| store(i, 0));
    store(last, NOW - 1);
    let tries = (0..4).map(|_| set(&databases, "k999999999").is_ok());
    assert_eq!(tries.collect::<Vec<_>>(), [false, false, true, false]);
}

/// Large writes get room one after the other, so that no more items are evicted than one such write needs.
#[test]
fn large_writes_do_not_empty_the_memory() {
    let index = ModelIndex::new();
    let databases = open(&index, 100, true);
    (0..100).for_each(|i| set(&databases, &key(i)).expect("room"));
    let barrier = std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                barrier.wait();
                for _ in 0..20 {
                    let room = databases.room(60 * EACH, NOW).expect("room");
                    let reserved = databases.memory().reserved.load(Ordering::SeqCst);
                    assert_eq!(reserved, 60 * EACH, "no other thread has a reservation");
                    drop(room);
                }
            });
        }
    });
    let left = databases.memory().used() / EACH;
    // A step removes up to a quarter of what it looks at.
    assert!((40 - STEP as u64 / 4..=40).contains(&left), "{left}");
    assert_eq!(databases.memory().refused(), 0);
}

/// Dead items go first.
#[test]
fn the_dead_go_first() {
    let index = ModelIndex::new();
    let databases = open(&index, 100, true);
    for i in 0..100 {
        let expiry = if i % 2 == 0 { NOW - 1 } else { 0 };
        put(&databases, &key(i), expiry);
    }
    (100..130).for_each(|i| set(&databases, &key(i)).expect("room is made"));
    assert_eq!(databases.memory().evicted(), 0);
    assert!((0..100).filter(|i| i % 2 == 1).all(|i| get(&databases, &key(i))));
}
