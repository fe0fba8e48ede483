//! The items' properties, over the reference index; a store opened again on the same index is a restart after a crash,
//! since a store leaves nothing for later.

mod damaged;
mod plain;
mod renewed;
mod stalled;
mod together;
mod unordered;

use super::recorded::{BLOCK, LOW};
use super::*;
use crate::items::item;
use crate::items::store::classic::Verb;
use index::model::ModelIndex;
use std::collections::HashSet;
use wollemi::Swept;

pub const NOW: u64 = 1_800_000_000_000;
const LARGEST: usize = 1000;

/// Creates a map whose pairs are in this index.
fn held(index: impl Index + 'static) -> Map {
    let db = wollemi::Db::anonymous().expect("memory");
    db.hold("items", Arc::new(index))
}

pub fn open(index: &ModelIndex, now: u64) -> ItemStore {
    ItemStore::open(
        held(index.clone()),
        Arc::default(),
        Arc::new(AtomicUsize::new(LARGEST)),
        Arc::default(),
        now,
    )
    .expect("the index is empty or a store's")
}

/// An item to store: its key, its expiry, its data.
pub type New<'n> = (&'n [u8], u64, &'n [u8]);

/// Stores items together. Returns the outcome of each.
pub fn put(store: &ItemStore, new: &[New<'_>]) -> Vec<Result<(), Failure>> {
    let keys: Vec<&[u8]> = new.iter().map(|&(key, ..)| key).collect();
    let mut all = Vec::new();
    let fill = |i: usize, unique, put: &mut Vec<u8>| {
        let (_, expiry, data) = new[i];
        let header = Header {
            unique,
            expiry,
            ..Header::default()
        };
        header.begin(put);
        put.extend_from_slice(data);
    };
    let done = |i, done| {
        assert_eq!(i, all.len(), "in order");
        all.push(done);
    };
    let begun = store.put_many(&keys, &mut Vec::new(), fill, done);
    begun.expect("the model does not fail");
    all
}

pub fn set(store: &ItemStore, key: &str, data: &str, expiry: u64) {
    let done = put(store, &[(key.as_bytes(), expiry, data.as_bytes())]);
    assert!(matches!(done[..], [Ok(())]), "{done:?}");
}

fn get(store: &ItemStore, key: &str, now: u64) -> Option<(String, u64)> {
    store.tick(now).expect("the model does not fail");
    let guard = heap::pin();
    let mut found = [None];
    store
        .get(&[key.as_bytes()], now, &guard, &mut Vec::new(), &mut found)
        .expect("the model does not fail");
    let item = found[0].as_ref().and_then(|value| Item::read(value))?;
    Some((
        String::from_utf8_lossy(item.data).into_owned(),
        item.header.unique,
    ))
}

/// No two items are given the same unique, however often the server crashes, and later ones are larger.
#[test]
fn uniques_never_repeat() {
    let index = ModelIndex::new();
    let mut seen = HashSet::new();
    let mut last = 0;
    for _ in 0..5 {
        let store = open(&index, NOW);
        for i in 0..100 {
            set(&store, "key", &i.to_string(), 0);
            let (_, unique) = get(&store, "key", NOW).expect("just set");
            assert!(seen.insert(unique) && unique > last, "{unique} after {last}");
            last = unique;
        }
    }
}

/// Before a block of uniques is used up, the next one is reserved in the record.
#[test]
fn uniques_are_reserved_before_they_are_given() {
    let index = ModelIndex::new();
    let store = open(&index, NOW);
    let near_end = store.reserved.load(Ordering::SeqCst) - LOW - 2;
    store.next.store(near_end, Ordering::SeqCst);
    for i in 0..5 {
        set(&store, "key", &i.to_string(), 0);
        let (_, unique) = get(&store, "key", NOW).expect("just set");
        let guard = heap::pin();
        let record = index
            .get(record::KEY, &guard)
            .expect("no failure")
            .expect("the record");
        assert_eq!(unique, near_end + i);
        assert!(unique < StoreRecord::read(&record).expect("a record").reserved);
    }
    assert!(open(&index, NOW).next.load(Ordering::SeqCst) > near_end + BLOCK);
}

/// A transaction that uses up a block reserves the next one in the index at once, without the flush that it has
/// buffered. Whether or not the transaction is committed, no unique is given twice.
#[test]
fn transactions_reserve_uniques_at_once() {
    for committed in [false, true] {
        let index = ModelIndex::new();
        let store = open(&index, NOW);
        let at_rest = || {
            let value = index
                .get(record::KEY, &heap::pin())
                .expect("no failure")
                .map(|value| value.to_vec());
            StoreRecord::read(&value.expect("the record")).expect("a record")
        };
        let near_end = store.reserved.load(Ordering::SeqCst) - LOW - 2;
        store.next.store(near_end, Ordering::SeqCst);
        let before = store.begin();
        store.flush(None).expect("no failure");
        let change = || {
            let unique = store.change(b"key", NOW, &mut Vec::new(), |_, unique, put| {
                Header {
                    unique,
                    ..Header::default()
                }
                .begin(put);
                Decision::Put(unique)
            });
            unique.expect("no failure")
        };
        for i in 0..5 {
            assert_eq!(change(), near_end + i);
            assert!(near_end + i + LOW / 2 < at_rest().reserved);
            assert_eq!(at_rest().flushed, 0);
        }
        store.end(before, committed);
        assert_eq!(
            store.flushed.load(Ordering::SeqCst),
            if committed { near_end } else { 0 }
        );
        let last = change();
        assert!(last < at_rest().reserved);
        assert!(open(&index, NOW).next.load(Ordering::SeqCst) > last);
    }
}

/// A removal in a transaction that fails is no change since the last backup.
#[test]
fn removals_of_failed_transactions_are_no_changes() {
    for committed in [false, true] {
        let store = open(&ModelIndex::new(), NOW);
        set(&store, "key", "x", 0);
        let changes = store.edits();
        let before = store.begin();
        assert_eq!(store.delete(b"key", NOW).expect("no failure"), Outcome::Done);
        store.end(before, committed);
        assert_eq!(store.edits() - changes, u64::from(committed));
    }
}

/// A flush drops what was there before it and nothing that comes later, and a crash does not bring anything back.
#[test]
fn flushed_items_stay_flushed() {
    let index = ModelIndex::new();
    let store = open(&index, NOW);
    set(&store, "old", "x", 0);
    store.flush(None).expect("no failure");
    set(&store, "new", "y", 0);
    for store in [store, open(&index, NOW), open(&index, NOW)] {
        assert_eq!(get(&store, "old", NOW), None);
        assert!(get(&store, "new", NOW).is_some());
        assert_eq!(store.delete(b"old", NOW).expect("no failure"), Outcome::NotFound);
        let added = store.store(Verb::Add, b"new", (0, 0), b"z", NOW, &mut Vec::new());
        assert_eq!(added.expect("no failure"), Outcome::NotStored);
    }
}

/// A flush with a delay comes when it is due, once, and also if the server is down then. A later flush takes its place.
#[test]
fn delayed_flushes_come_when_due() {
    let index = ModelIndex::new();
    let store = open(&index, NOW);
    set(&store, "a", "x", 0);
    store.flush(Some(NOW + 10)).expect("no failure");
    set(&store, "b", "x", 0);
    assert!(get(&store, "a", NOW + 9).is_some());
    assert!(get(&store, "b", NOW + 9).is_some());
    let crashed = open(&index, NOW + 9);
    assert!(get(&crashed, "a", NOW + 9).is_some());
    assert_eq!(get(&crashed, "b", NOW + 10), None);
    set(&crashed, "b", "x", 0);
    assert_eq!(get(&crashed, "a", NOW + 11), None);
    assert!(get(&crashed, "b", NOW + 11).is_some());

    crashed.flush(Some(NOW + 20)).expect("no failure");
    let late = open(&index, NOW + 30);
    assert_eq!(get(&late, "b", NOW + 30), None);
    set(&late, "b", "x", 0);
    late.flush(Some(NOW + 40)).expect("no failure");
    late.flush(Some(NOW + 50)).expect("no failure");
    assert!(get(&late, "b", NOW + 45).is_some());
    late.flush(None).expect("no failure");
    set(&late, "b", "y", 0);
    assert!(get(&late, "b", NOW + 60).is_some());
}

/// Expired items are absent for every command, and every edit that meets one removes or replaces it.
#[test]
fn expired_items_are_absent() {
    let index = ModelIndex::new();
    let store = open(&index, NOW);
    let soon = NOW + 5;
    let later = NOW + 5;
    let scratch = &mut Vec::new();
    for verb in [Verb::Replace, Verb::Append, Verb::Prepend, Verb::Cas(1)] {
        set(&store, "key", "1", soon);
        assert!(get(&store, "key", later - 1).is_some());
        assert_eq!(get(&store, "key", later), None);
        let outcome = store
            .store(verb, b"key", (0, 0), b"2", later, scratch)
            .expect("no failure");
        assert_ne!(outcome, Outcome::Done, "{verb:?}");
        let guard = heap::pin();
        assert!(
            index.get(b"key", &guard).expect("no failure").is_none(),
            "{verb:?} has left it"
        );
    }
    set(&store, "key", "1", soon);
    assert_eq!(
        store
            .count(b"key", 1, true, later, scratch)
            .expect("no failure")
            .0,
        Outcome::NotFound
    );
    set(&store, "key", "1", soon);
    assert_eq!(
        store.touch(b"key", 0, later, scratch).expect("no failure"),
        Outcome::NotFound
    );
    set(&store, "key", "1", soon);
    assert_eq!(
        store.delete(b"key", later).expect("no failure"),
        Outcome::NotFound
    );
    set(&store, "key", "1", soon);
    assert!(!store.bury(b"key", later - 1).expect("no failure"));
    assert!(store.bury(b"key", later).expect("no failure"));
    set(&store, "key", "1", soon);
    let added = store
        .store(Verb::Add, b"key", (0, 0), b"2", later, scratch)
        .expect("no failure");
    assert_eq!(added, Outcome::Done);
}

/// A round of the sweep removes all dead items and no others, whatever its steps' size.
#[test]
fn the_sweep_removes_the_dead() {
    for limit in [1, 2, 7, 100] {
        let index = ModelIndex::new();
        let store = open(&index, NOW);
        let soon = NOW + 5;
        for i in 0..50 {
            set(&store, &format!("key{i}"), "x", if i % 3 == 0 { soon } else { 0 });
        }
        let mut cursor = None;
        let mut total = Swept::default();
        loop {
            let swept = store.sweep(&mut cursor, limit, NOW + 5).expect("no failure");
            total.seen += swept.seen;
            total.removed += swept.removed;
            if swept.seen < limit {
                break;
            }
        }
        assert_eq!(
            total,
            Swept {
                seen: 50,
                removed: 17
            }
        );
        assert_eq!(cursor, None);
        assert_eq!(index.check().expect("no failure").keys, 1 + 33);
    }
}

/// A map that has keys but no record, or another value in the record's place, is refused and left as it is.
#[test]
fn other_maps_are_refused() {
    let index = ModelIndex::new();
    index.insert(b"key", b"value").expect("no failure");
    assert!(matches!(
        ItemStore::open(
            held(index.clone()),
            Arc::default(),
            Arc::new(AtomicUsize::new(LARGEST)),
            Arc::default(),
            NOW
        ),
        Err(Error::NotOurs)
    ));
    assert_eq!(index.check().expect("no failure").keys, 1);
    index.insert(b"", b"other").expect("no failure");
    assert!(matches!(
        ItemStore::open(
            held(index),
            Arc::default(),
            Arc::new(AtomicUsize::new(LARGEST)),
            Arc::default(),
            NOW
        ),
        Err(Error::NotOurs)
    ));
}

/// A value that is not an item is a failure for its key, and is not changed.
#[test]
fn other_values_are_failures() {
    let index = ModelIndex::new();
    let store = open(&index, NOW);
    index.insert(b"key", b"short").expect("no failure");
    let scratch = &mut Vec::new();
    assert!(matches!(
        store.store(Verb::Add, b"key", (0, 0), b"x", NOW, scratch),
        Err(Failure::Foreign)
    ));
    assert!(matches!(
        store.count(b"key", 1, true, NOW, scratch),
        Err(Failure::Foreign)
    ));
    let guard = heap::pin();
    let read = store.get(&[b"key"], NOW, &guard, &mut Vec::new(), &mut [None]);
    assert!(matches!(read, Err(Failure::Foreign)));
    assert_eq!(
        *index
            .get(b"key", &guard)
            .expect("no failure")
            .expect("still there"),
        *b"short"
    );
}

/// Items are counted beside writers, and exactly.
#[test]
fn items_are_counted_beside_writers() {
    let index = ModelIndex::new();
    let store = &open(&index, NOW);
    let key = |thread: u32, i: u32| format!("{}/{thread}", i * 7919 % 1000);
    (0..1000).for_each(|i| set(store, &key(0, i), "old", 0));
    let store = &open(&index, NOW);
    assert_eq!(store.items(), (0, false));
    std::thread::scope(|scope| {
        for thread in 0..2 {
            scope.spawn(move || {
                for i in 0..1000 {
                    set(store, &key(thread, i), "new", 0);
                    if i % 3 == 0 {
                        store.delete(key(thread, i).as_bytes(), NOW).expect("no failure");
                    }
                }
            });
        }
        scope.spawn(|| while !store.count_on(10).expect("no failure") {});
    });
    assert_eq!(store.items(), (2 * (1000 - 334), true));
    set(store, "one", "more", 0);
    assert_eq!(store.items(), (2 * (1000 - 334) + 1, true));
}

/// All clients are given uniques of a new block. So its reservation is durable before any of them is given, even if
/// edits are eventual and the edit that reserves the block is not answered yet.
#[test]
fn a_block_is_durable_before_its_uniques_are_given() {
    let directory = tempfile::tempdir().expect("a directory");
    let db = wollemi::Options::default()
        .level(wollemi::Level::Disk)
        .durability(wollemi::Durability::Eventual)
        .sync_within(std::time::Duration::from_secs(1 << 20))
        .open(directory.path().join("pool"))
        .expect("a database");
    let largest = Arc::new(AtomicUsize::new(LARGEST));
    let map = db.map("items").expect("a map");
    let store = ItemStore::open(map, Arc::default(), largest, Arc::default(), NOW).expect("it is empty");
    let turn = db.turn();
    set(&store, "before", "x", 0);
    let reserved = store.reserved.load(Ordering::SeqCst);
    store.next.store(reserved - LOW + 1, Ordering::SeqCst);
    set(&store, "reserves", "x", 0);
    assert!(store.reserved.load(Ordering::SeqCst) > reserved);
    assert!(db.is_turn_durable());
    turn.end().expect("durable");
}
