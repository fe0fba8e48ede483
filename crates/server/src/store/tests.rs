//! The items' properties, over the reference index; a store opened again on the same index is a restart after a crash,
//! since a store leaves nothing for later.

mod together;

use super::*;
use crate::memcached::Verb;
use crate::{item, number};
use index::model::Model;
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

pub const NOW: u64 = 1_800_000_000_000;
const LARGEST: usize = 1000;

pub fn open(index: &Model, now: u64) -> Store {
    Store::open(
        Arc::new(index.clone()),
        Arc::new(AtomicUsize::new(LARGEST)),
        Arc::default(),
        now,
    )
    .expect("the index is empty or a store's")
}

/// An item to store: its key, its expiry, its data.
pub type New<'n> = (&'n [u8], u64, &'n [u8]);

/// Stores items together; what came of each.
pub fn put(store: &Store, new: &[New<'_>]) -> Vec<Result<(), Failure>> {
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

pub fn set(store: &Store, key: &str, data: &str, expiry: u64) {
    let done = put(store, &[(key.as_bytes(), expiry, data.as_bytes())]);
    assert!(matches!(done[..], [Ok(())]), "{done:?}");
}

fn get(store: &Store, key: &str, now: u64) -> Option<(String, u64)> {
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
    let index = Model::new();
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

/// A block of uniques that is used up is followed by another, reserved before.
#[test]
fn uniques_are_reserved_before_they_are_given() {
    let index = Model::new();
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
        assert!(unique < Record::read(&record).expect("a record").reserved);
    }
    assert!(open(&index, NOW).next.load(Ordering::SeqCst) > near_end + BLOCK);
}

/// A flush drops what was there before it and nothing that comes later, and a crash does not bring anything back.
#[test]
fn flushed_items_stay_flushed() {
    let index = Model::new();
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
    let index = Model::new();
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

/// Expired items are absent for every command, and every command that meets one leaves the key without it.
#[test]
fn expired_items_are_absent() {
    let index = Model::new();
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
        let index = Model::new();
        let store = open(&index, NOW);
        let soon = NOW + 5;
        for i in 0..50 {
            set(&store, &format!("key{i}"), "x", if i % 3 == 0 { soon } else { 0 });
        }
        let mut cursor = Vec::new();
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
        assert!(cursor.is_empty());
        assert_eq!(index.check().expect("no failure").keys, 1 + 33);
    }
}

/// A map with keys but without a record is not ours, and is left alone.
#[test]
fn other_maps_are_refused() {
    let index = Model::new();
    index.insert(b"key", b"value").expect("no failure");
    assert!(matches!(
        Store::open(
            Arc::new(index.clone()),
            Arc::new(AtomicUsize::new(LARGEST)),
            Arc::default(),
            NOW
        ),
        Err(Error::NotOurs)
    ));
    assert_eq!(index.check().expect("no failure").keys, 1);
    index.insert(b"", b"other").expect("no failure");
    assert!(matches!(
        Store::open(
            Arc::new(index),
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
    let index = Model::new();
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

#[derive(Clone, Debug)]
enum Step {
    /// Several items together: key, lifetime, data.
    Put(Vec<(u8, u8, Vec<u8>)>),
    Store(Verb, u8, u8, Vec<u8>),
    Cas(u8, bool),
    Count(u8, u64, bool),
    Touch(u8, u8),
    Delete(u8),
    Flush,
    Pass(u8),
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let verb = prop_oneof![
        Just(Verb::Add),
        Just(Verb::Replace),
        Just(Verb::Append),
        Just(Verb::Prepend)
    ];
    let data = || {
        prop_oneof![
            "[0-9]{0,4}".prop_map(String::into_bytes),
            prop::collection::vec(any::<u8>(), 0..600)
        ]
    };
    prop_oneof![
        4 => prop::collection::vec((0..4u8, 0..4u8, data()), 1..6).prop_map(Step::Put),
        4 => (verb, 0..4u8, 0..4u8, data()).prop_map(|(verb, key, lifetime, data)| Step::Store(verb, key, lifetime, data)),
        2 => (0..4u8, any::<bool>()).prop_map(|(key, right)| Step::Cas(key, right)),
        2 => (0..4u8, any::<u64>(), any::<bool>()).prop_map(|(key, delta, up)| Step::Count(key, delta, up)),
        1 => (0..4u8, 0..4u8).prop_map(|(key, lifetime)| Step::Touch(key, lifetime)),
        1 => (0..4u8).prop_map(Step::Delete),
        1 => Just(Step::Flush),
        2 => (0..3u8).prop_map(Step::Pass),
        1 => Just(Step::Reopen),
    ]
}

/// Items are counted beside writers, and exactly.
#[test]
fn items_are_counted_beside_writers() {
    let index = Model::new();
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

/// What the model holds of an item: its data and its expiry.
type Plain = HashMap<u8, (Vec<u8>, u64)>;

proptest! {
    /// Any sequence of commands, with time passing and restarts, does what a plain map says.
    #[test]
    fn commands_do_what_a_plain_map_says(steps in prop::collection::vec(step(), 1..80)) {
        let index = Model::new();
        let mut store = open(&index, NOW);
        let mut now = NOW;
        let mut plain = Plain::new();
        let mut scratch = Vec::new();
        for (turn, step) in (0..).zip(steps) {
            if turn % 5 == 0 {
                prop_assert!(store.count_on(1).is_ok());
            }
            plain.retain(|_, (_, expiry)| *expiry == 0 || *expiry > now);
            match step {
                Step::Put(new) => {
                    let expiry = |lifetime: u8| item::expiry(lifetime.into(), now);
                    let each: Vec<_> = new
                        .iter()
                        .map(|(key, lifetime, data)| (std::slice::from_ref(key), expiry(*lifetime), data.as_slice()))
                        .collect();
                    prop_assert!(put(&store, &each).iter().all(Result::is_ok));
                    let each = new.into_iter().map(|(key, lifetime, data)| (key, (data, expiry(lifetime))));
                    plain.extend(each);
                }
                Step::Store(verb, key, lifetime, data) => {
                    let expiry = item::expiry(lifetime.into(), now);
                    let old = plain.get(&key).cloned();
                    let new = match (verb, old) {
                        (Verb::Add, None) | (Verb::Replace, Some(_)) => Some((data.clone(), expiry)),
                        (Verb::Append, Some((old, expiry))) => Some(([&old[..], &data].concat(), expiry)),
                        (Verb::Prepend, Some((old, expiry))) => Some(([&data[..], &old].concat(), expiry)),
                        _ => None,
                    };
                    let new = new.filter(|(data, _)| data.len() <= LARGEST);
                    let want = if new.is_some() { Outcome::Done } else { Outcome::NotStored };
                    plain.extend(new.map(|new| (key, new)));
                    prop_assert_eq!(store.store(verb, &[key], (7, expiry), &data, now, &mut scratch).ok(), Some(want));
                }
                Step::Cas(key, right) => {
                    let guard = heap::pin();
                    let value = index.get(&[key], &guard).ok().flatten();
                    let unique = value.as_ref().and_then(|value| Item::read(value)).map_or(1, |item| item.header.unique);
                    let want = match plain.get_mut(&key) {
                        None => Outcome::NotFound,
                        Some(_) if !right => Outcome::Exists,
                        Some(item) => {
                            *item = (b"cas".to_vec(), 0);
                            Outcome::Done
                        }
                    };
                    let verb = Verb::Cas(if right { unique } else { unique + 1 });
                    prop_assert_eq!(store.store(verb, &[key], (7, 0), b"cas", now, &mut scratch).ok(), Some(want));
                }
                Step::Count(key, delta, up) => {
                    let want = match plain.get_mut(&key) {
                        None => Outcome::NotFound,
                        Some((data, _)) => match number::leading(data) {
                            None => Outcome::NotNumber,
                            Some(old) => {
                                let new = if up { old.wrapping_add(delta) } else { old.saturating_sub(delta) };
                                *data = format!("{new:<width$}", width = data.len()).into_bytes();
                                Outcome::Number(new)
                            }
                        },
                    };
                    let counted = store.count(&[key], delta, up, now, &mut scratch);
                    prop_assert_eq!(counted.map(|(outcome, _)| outcome).ok(), Some(want));
                }
                Step::Touch(key, lifetime) => {
                    let expiry = item::expiry(lifetime.into(), now);
                    let want = match plain.get_mut(&key) {
                        None => Outcome::NotFound,
                        Some(item) => {
                            item.1 = expiry;
                            Outcome::Done
                        }
                    };
                    prop_assert_eq!(store.touch(&[key], expiry, now, &mut scratch).ok(), Some(want));
                }
                Step::Delete(key) => {
                    let want = if plain.remove(&key).is_some() { Outcome::Done } else { Outcome::NotFound };
                    prop_assert_eq!(store.delete(&[key], now).ok(), Some(want));
                }
                Step::Flush => {
                    plain.clear();
                    prop_assert!(store.flush(None).is_ok());
                }
                Step::Pass(seconds) => now += u64::from(seconds) * 1000,
                Step::Reopen => store = open(&index, now),
            }
        }
        while !store.count_on(2).expect("the model does not fail") {}
        // All keys but the record's, and those that a flush has dropped.
        let mut kept = 0;
        let unbounded = (Bound::Excluded(record::KEY), Bound::Unbounded);
        let guard = heap::pin();
        let counted = index.scan(unbounded.0, unbounded.1, Direction::Forward, &guard, &mut |_, value| {
            kept += u64::from(!store.holds_flushed(&value));
            ControlFlow::Continue(())
        });
        prop_assert!(counted.is_ok());
        prop_assert_eq!(store.items(), (kept, true));
        prop_assert_eq!(store.keys(), index.check().expect("the model does not fail").keys);
        plain.retain(|_, (_, expiry)| *expiry == 0 || *expiry > now);
        let keys: Vec<[u8; 1]> = (0..4).map(|key| [key]).collect();
        let keys: Vec<&[u8]> = keys.iter().map(<[u8; 1]>::as_slice).collect();
        let guard = heap::pin();
        let mut found = [None; 4];
        prop_assert!(store.get(&keys, now, &guard, &mut Vec::new(), &mut found).is_ok());
        for (key, value) in (0..4).zip(found) {
            let read = value.as_ref().and_then(|value| Item::read(value));
            let read = read.map(|item| (item.data.to_vec(), item.header.expiry));
            prop_assert_eq!(read, plain.get(&key).cloned());
        }
    }
}
