//! Transactions: their visibility, their conflicts, and their effects.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use wollemi::{Db, Error, Event, Expiring, IndexError, IndexKind, Map, Retry, Transaction};

type Outcome = Result<(), Error>;
type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// An operation in a transaction.
#[derive(Clone, Debug)]
enum Op {
    Get(Vec<u8>),
    Upsert(Vec<u8>, Vec<u8>),
    Insert(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
    /// Entries between bounds: the number taken from the front, and then from the back.
    Range(Bound<Vec<u8>>, Bound<Vec<u8>>, usize, usize),
    Prefix(Vec<u8>),
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0..4u8, 0..4)
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        key().prop_map(Bound::Included),
        key().prop_map(Bound::Excluded),
        Just(Bound::Unbounded),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let value = || prop::collection::vec(any::<u8>(), 0..20);
    prop_oneof![
        key().prop_map(Op::Get),
        (key(), value()).prop_map(|(key, value)| Op::Upsert(key, value)),
        (key(), value()).prop_map(|(key, value)| Op::Insert(key, value)),
        key().prop_map(Op::Remove),
        (bound(), bound(), 0..40usize, 0..40usize)
            .prop_map(|(lower, upper, front, back)| Op::Range(lower, upper, front, back)),
        key().prop_map(Op::Prefix),
    ]
}

/// Runs an operation in a transaction and on a model, and compares.
fn apply(tx: &mut Transaction<'_>, map: &Map, model: &mut Model, op: Op) -> Outcome {
    match op {
        Op::Get(key) => {
            assert_eq!(tx.get(map, &key)?.as_ref(), model.get(&key));
            assert_eq!(tx.contains(map, &key)?, model.contains_key(&key));
        }
        Op::Upsert(key, value) => {
            tx.upsert(map, &key, &value)?;
            model.insert(key, value);
        }
        Op::Insert(key, value) => {
            assert_eq!(tx.insert(map, &key, &value)?, !model.contains_key(&key));
            model.entry(key).or_insert(value);
        }
        Op::Remove(key) => assert_eq!(tx.remove(map, &key)?, model.remove(&key).is_some()),
        Op::Range(lower, upper, front, back) => {
            let within = |key: &[u8]| {
                use std::ops::RangeBounds;
                let bounds = (
                    lower.as_ref().map(Vec::as_slice),
                    upper.as_ref().map(Vec::as_slice),
                );
                RangeBounds::<[u8]>::contains(&bounds, key)
            };
            let entries = model.iter().filter(|(key, _)| within(key));
            let mut expected = entries.map(|(key, value)| (key.clone(), value.clone()));
            let mut found = tx.range(map, (lower.clone(), upper.clone()))?;
            for _ in 0..front {
                assert_eq!(found.next().transpose()?, expected.next());
            }
            for _ in 0..back {
                assert_eq!(found.next_back().transpose()?, expected.next_back());
            }
        }
        Op::Prefix(prefix) => {
            let found = tx.prefix(map, &prefix)?.collect::<Result<Vec<_>, _>>()?;
            let expected = model.iter().filter(|(key, _)| key.starts_with(&prefix));
            let expected: Vec<_> = expected
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            assert_eq!(found, expected);
        }
    }
    Ok(())
}

fn entries(map: &Map) -> Result<Model, Error> {
    map.iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// A transaction sees the database and its own changes; no other thread sees these before the commit, and all of
    /// them after it. A dropped transaction leaves nothing.
    #[test]
    fn a_transaction_is_its_operations(
        present in prop::collection::btree_map(key(), prop::collection::vec(any::<u8>(), 0..20), 0..60),
        transactions in prop::collection::vec((prop::collection::vec(op(), 0..30), any::<bool>()), 1..4),
        kind in prop::sample::select(vec![IndexKind::Roart, IndexKind::DpTree, IndexKind::Wort]),
    ) {
        let db = Db::anonymous()?;
        let map = db.map_with("m", kind)?;
        map.load(&present)?;
        let mut committed = present;
        for (ops, commits) in transactions {
            let (mut tx, mut model) = (db.begin(), committed.clone());
            for op in ops {
                apply(&mut tx, &map, &mut model, op)?;
            }
            prop_assert_eq!(&entries(&map)?, &committed);
            if commits {
                tx.commit()?;
                committed = model;
            }
            prop_assert_eq!(&entries(&map)?, &committed);
        }
    }
}

fn is_conflict(done: Result<(), Error>, at: &[u8]) -> bool {
    match done {
        Ok(()) => false,
        Err(Error::Conflict { map, key }) => {
            assert_eq!((&*map, &*key), ("m", at));
            true
        }
        Err(error) => panic!("{error}"),
    }
}

/// The commit checks exactly the transaction's reads: keys, absent keys, and ranges as far as they were read.
#[test]
fn what_was_read_is_checked() -> Outcome {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    for i in 0..100u8 {
        map.upsert([i, 0], "old")?;
    }
    type Read = fn(&Transaction<'_>, &Map) -> Result<(), Error>;
    /// The reads, keys whose change conflicts with them, and keys whose change does not.
    type Case = (Read, &'static [[u8; 2]], &'static [[u8; 2]]);
    let get: Read = |tx, map| tx.get(map, [7, 0]).map(drop);
    let absent: Read = |tx, map| tx.get(map, [7, 1]).map(drop);
    let first_three: Read = |tx, map| {
        tx.range(map, [10, 0]..)?
            .take(3)
            .try_for_each(|entry| entry.map(drop))
    };
    let last_three: Read = |tx, map| {
        let range = tx.range(map, ..[20, 0])?.rev();
        range.take(3).try_for_each(|entry| entry.map(drop))
    };
    let both_ends: Read = |tx, map| {
        let mut range = tx.range(map, [10, 0]..[20, 0])?;
        range.next().transpose()?;
        range.next_back().transpose()?;
        Ok(())
    };
    let all: Read = |tx, map| tx.range(map, ..)?.try_for_each(|entry| entry.map(drop));
    let nothing: Read = |tx, map| {
        assert!(tx.range(map, [200, 0]..[201, 0])?.next().is_none());
        Ok(())
    };
    let cases: [Case; 7] = [
        (get, &[[7, 0]], &[[6, 0], [7, 1], [8, 0]]),
        (absent, &[[7, 1]], &[[7, 0], [7, 2]]),
        (
            first_three,
            &[[10, 0], [10, 1], [12, 0]],
            &[[9, 9], [12, 1], [13, 0]],
        ),
        (
            last_three,
            &[[19, 0], [18, 5], [17, 0]],
            &[[20, 0], [16, 9], [16, 0]],
        ),
        (both_ends, &[[10, 0], [19, 0]], &[[20, 0], [9, 9]]),
        (all, &[[0, 0], [99, 9], [50, 0]], &[]),
        (nothing, &[[200, 0], [200, 7]], &[[201, 0], [199, 255]]),
    ];
    for (number, (read, conflicting, others)) in cases.into_iter().enumerate() {
        let keys = conflicting.iter().map(|key| (key, true));
        for (key, conflicts) in keys.chain(others.iter().map(|key| (key, false))) {
            for changes in 0..3 {
                let was = map.get(key)?;
                let mut tx = db.begin();
                read(&tx, &map)?;
                map.upsert(key, "new")?;
                for i in 0..changes {
                    tx.upsert(&map, [250, i], "changed")?;
                }
                let done = is_conflict(tx.commit(), key);
                assert_eq!(done, conflicts, "case {number}, {key:?}, {changes} changes");
                assert_eq!(map.get([250, 0])?.is_some(), !conflicts && changes > 0);
                map.compare_and_swap(key, Some(b"new".to_vec()), was)?;
                for i in 0..3 {
                    map.remove([250, i])?;
                }
            }
        }
    }
    Ok(())
}

/// The removal of a key conflicts with reads of the key and of ranges around it, and so does a change by a batch or by
/// a transaction; a write that changes nothing conflicts with none.
#[test]
fn every_kind_of_write_is_noticed() -> Outcome {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    map.load([("a", "1"), ("b", "2"), ("c", "3")])?;
    type Write = fn(&Db, &Map) -> Result<(), Error>;
    let remove: Write = |_, map| map.remove("b").map(drop);
    let batch: Write = |db, map| {
        let mut batch = db.batch();
        batch.upsert(map, "b", "new").upsert(map, "x", "new");
        batch.commit().map(drop)
    };
    let transaction: Write = |db, map| db.transact(|tx| tx.upsert(map, "b", "newer"));
    let nothing: Write = |_, map| {
        assert!(!map.insert("b", "2")? && !map.remove("absent")?);
        assert!(!map.compare_and_swap("b", Some("wrong"), Some("7"))?);
        Ok(())
    };
    for (write, conflicts) in [
        (remove, true),
        (batch, true),
        (transaction, true),
        (nothing, false),
    ] {
        for range in [false, true] {
            map.upsert("b", "2")?;
            let mut tx = db.begin();
            match range {
                true => assert_eq!(tx.range(&map, "a"..="c")?.count(), 3),
                false => assert!(tx.contains(&map, "b")?),
            }
            tx.upsert(&map, "d", "4")?;
            write(&db, &map)?;
            assert_eq!(is_conflict(tx.commit(), b"b"), conflicts);
        }
    }
    Ok(())
}

/// A transaction that reads a key twice, with a change by another writer in between, conflicts at once.
#[test]
fn a_second_read_of_another_value_is_a_conflict() -> Outcome {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    let tx = db.begin();
    assert_eq!(tx.get(&map, "k")?, None);
    map.upsert("k", "1")?;
    assert!(is_conflict(tx.get(&map, "k").map(drop), b"k"));
    assert!(is_conflict(tx.commit(), b"k"));
    Ok(())
}

/// An error abandons a transaction, unless its reads are no longer valid: then it runs again.
#[test]
fn an_error_counts_if_what_was_read_is_so() -> Outcome {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    map.upsert("balance", "0")?;
    let mut runs = 0;
    let done = db.transact(|tx| {
        runs += 1;
        let balance = tx.get(&map, "balance")?;
        if runs == 1 {
            map.upsert("balance", "100")?;
        }
        match balance.as_deref() {
            Some(b"0") => Err(Error::Backup(std::io::Error::other("too little"))),
            _ => tx.upsert(&map, "bought", "a hat"),
        }
    });
    assert!(done.is_ok() && runs == 2 && map.contains("bought")?);
    let done = db.transact(|tx| {
        tx.remove(&map, "bought")?;
        Err::<(), _>(Error::Backup(std::io::Error::other("no")))
    });
    assert!(matches!(done, Err(Error::Backup(_))) && map.contains("bought")?);
    Ok(())
}

/// A transaction is attempted as often as requested.
#[test]
fn tries_are_counted() -> Outcome {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    for tries in [1, 2, 7] {
        let mut runs = 0u32;
        let done = db.transact_with(&Retry::new().tries(tries).longest_pause(Duration::ZERO), |tx| {
            runs += 1;
            tx.get(&map, "k")?;
            map.upsert("k", (100 * tries + runs).to_le_bytes())
        });
        assert!(is_conflict(done, b"k") && runs == tries);
    }
    Ok(())
}

/// Invalid operations are refused, and change nothing.
#[test]
fn refused_operations_change_nothing() -> Outcome {
    let (db, other) = (Db::anonymous()?, Db::anonymous()?);
    let (map, foreign) = (db.map("m")?, other.map("m")?);
    let mut tx = db.begin();
    assert!(matches!(tx.get(&foreign, "k"), Err(Error::OtherDatabase(_))));
    assert!(matches!(
        tx.upsert(&foreign, "k", "v"),
        Err(Error::OtherDatabase(_))
    ));
    assert!(matches!(tx.range(&foreign, ..), Err(Error::OtherDatabase(_))));
    let long = vec![0; 70_000];
    assert!(matches!(
        tx.get(&map, &long),
        Err(Error::Index(IndexError::KeyTooLong(70_000)))
    ));
    tx.upsert(&map, "k", "v")?;
    tx.upsert(&map, &long, "v")?;
    assert!(matches!(
        tx.commit(),
        Err(Error::Index(IndexError::KeyTooLong(70_000)))
    ));
    assert!(map.is_empty()?);
    let mut tx = db.begin();
    tx.upsert(&map, "k", "v")?;
    drop(map);
    assert!(matches!(db.drop_map("m"), Err(Error::MapInUse(_))));
    drop(tx);
    assert!(db.drop_map("m")?);
    Ok(())
}

/// A watch gets each change of a transaction once, and a snapshot shows all of them or none.
#[test]
fn watches_and_snapshots_see_it() -> Outcome {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    map.upsert("gone", "1")?;
    let (mut watch, before) = (map.watch("", 10)?, db.snapshot()?);
    db.transact(|tx| {
        tx.upsert(&map, "new", "1")?;
        tx.upsert(&map, "new", "2")?;
        tx.remove(&map, "gone").map(drop)
    })?;
    let key = |key: &str| key.as_bytes().to_vec();
    let events: Vec<_> = std::iter::from_fn(|| watch.try_next()).collect();
    let changed = |name, value: Option<&str>| Event::Changed {
        key: key(name),
        value: value.map(key),
    };
    assert_eq!(events, [changed("gone", None), changed("new", Some("2"))]);
    assert_eq!(before.view(&map)?.get("gone")?, Some(key("1")));
    assert_eq!(db.snapshot()?.view(&map)?.get("new")?, Some(key("2")));
    Ok(())
}

/// Expired entries are absent in transactions.
#[test]
fn entries_end_in_transactions() -> Outcome {
    let db = Db::anonymous()?;
    let map = Expiring::new(db.map("m")?);
    map.upsert("over", "1", Some(Duration::ZERO))?;
    map.upsert("alive", "2", Some(Duration::from_secs(1000)))?;
    db.transact(|tx| {
        assert_eq!(map.get_in(tx, "over")?, None);
        let (value, left) = map.get_in(tx, "alive")?.expect("alive");
        assert!(value == b"2" && left.is_some());
        assert!(!map.remove_in(tx, "over")? && map.remove_in(tx, "alive")?);
        map.upsert_in(tx, "new", "3", None)?;
        let keys: Vec<_> = map
            .range_in(tx, ..)?
            .map(|entry| entry.map(|(key, _)| key))
            .collect::<Result<_, _>>()?;
        assert_eq!(keys, [b"new"]);
        Ok::<_, Error>(())
    })?;
    assert_eq!(map.get("new")?, Some(b"3".to_vec()));
    assert_eq!(map.map().count()?, 1);
    Ok(())
}

/// Typed maps in transactions.
#[cfg(feature = "typed")]
#[test]
fn typed_maps_in_transactions() -> Outcome {
    let db = Db::anonymous()?;
    let map = wollemi::TypedMap::<u32, String>::new(db.map("m")?);
    map.upsert(&2, &"two".to_owned())?;
    db.transact(|tx| {
        assert!(map.insert_in(tx, &1, &"one".to_owned())? && !map.insert_in(tx, &2, &"too".to_owned())?);
        map.upsert_in(tx, &3, &"three".to_owned())?;
        assert_eq!(map.get_in(tx, &3)?, Some("three".to_owned()));
        assert!(map.remove_in(tx, &2)?);
        let entries = map.range_in(tx, 1..)?.rev().collect::<Result<Vec<_>, _>>()?;
        assert_eq!(entries, [(3, "three".to_owned()), (1, "one".to_owned())]);
        Ok::<_, Error>(())
    })?;
    assert_eq!(map.get(&1)?, Some("one".to_owned()));
    assert_eq!(map.get(&2)?, None);
    Ok(())
}

fn number(value: Option<Vec<u8>>) -> u64 {
    let bytes = value.and_then(|value| value.try_into().ok());
    bytes.map_or(0, u64::from_le_bytes)
}

/// Two doctors are on call; each may leave if the other is there. However they leave and return concurrently, one is
/// always there (write skew).
#[test]
fn no_write_skew() -> Outcome {
    const ROUNDS: u64 = 400;
    let db = Db::anonymous()?;
    let map = db.map("on call")?;
    map.load([("a", "yes"), ("b", "yes")])?;
    let (left, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for (me, other) in [("a", "b"), ("b", "a")] {
            let (db, map, left, refused) = (&db, &map, &left, &refused);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let gone = db.transact(|tx| {
                        let both = tx.contains(map, me)? && tx.contains(map, other)?;
                        if both {
                            tx.remove(map, me)?;
                        }
                        // A commit of several changes, every other time.
                        if round % 2 == 0 {
                            tx.upsert(map, format!("seen by {me}"), round.to_le_bytes())?;
                        }
                        Ok::<_, Error>(both)
                    });
                    let gone = gone.expect("tries enough");
                    let there = db
                        .transact(|tx| Ok::<_, Error>((tx.contains(map, "a")?, tx.contains(map, "b")?)))
                        .expect("tries enough");
                    assert!(there.0 || there.1, "both have left");
                    if gone { left } else { refused }.fetch_add(1, Relaxed);
                    map.upsert(me, "yes").expect("room");
                }
            });
        }
    });
    assert_eq!(left.into_inner() + refused.into_inner(), 2 * ROUNDS);
    Ok(())
}

/// Threads add and remove entries, each if the number of entries allows it, and keep that number in a key. The entries
/// of the range and the number agree in every transaction, so no entry appears or disappears unnoticed (phantoms).
#[test]
fn no_phantoms() -> Outcome {
    const ROUNDS: u64 = 300;
    const MAX: usize = 8;
    let db = Db::anonymous()?;
    let (entries, counts) = (db.map("m")?, db.map("counts")?);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3u64)
            .map(|thread| {
                let (db, entries, counts) = (&db, &entries, &counts);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let change = |tx: &mut Transaction<'_>| {
                            let there: Vec<_> = tx.prefix(entries, "e")?.collect::<Result<_, _>>()?;
                            assert!(there.len() <= MAX);
                            let key =
                                |i| [b"e".as_slice(), &[(thread * 31 + round * 7 + i) as u8 % 16]].concat();
                            if there.len() < MAX && round % 3 != 0 {
                                tx.upsert(entries, key(0), "one")?;
                            } else if let Some((first, _)) = there.first() {
                                tx.remove(entries, first)?;
                            }
                            let now = tx.prefix(entries, "e")?.count() as u64;
                            tx.upsert(counts, "count", now.to_le_bytes())
                        };
                        match db.transact(change) {
                            Ok(()) | Err(Error::Conflict { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                })
            })
            .collect();
        let readers: Vec<_> = (0..2)
            .map(|reader| {
                let (db, entries, counts, over) = (&db, &entries, &counts, &over);
                scope.spawn(move || {
                    while !over.load(Relaxed) {
                        let look = |tx: &mut Transaction<'_>| {
                            let found = tx.prefix(entries, "e")?.count() as u64;
                            let count = number(tx.get(counts, "count")?);
                            Ok::<_, Error>((found, count))
                        };
                        let seen = match reader {
                            0 => db.transact(look),
                            _ => db.snapshot().and_then(|then| {
                                let found = then.view(entries)?.prefix("e").count() as u64;
                                Ok((found, number(then.view(counts)?.get("count")?)))
                            }),
                        };
                        match seen {
                            Ok((found, count)) => assert_eq!(found, count),
                            Err(Error::Conflict { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                })
            })
            .collect();
        let ends: Vec<_> = writers.into_iter().map(|thread| thread.join()).collect();
        over.store(true, Relaxed);
        let readers = readers.into_iter().map(|thread| thread.join());
        assert!(
            ends.into_iter().chain(readers).all(|end| end.is_ok()),
            "a thread panics"
        );
    });
    assert_eq!(entries.count()?, number(counts.get("count")?));
    Ok(())
}

/// A transaction over more keys than one read-ahead, in several maps, also after reopening.
#[test]
fn a_large_transaction_is_there_after_reopening() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("a.pool");
    {
        let db = Db::open(&path)?;
        let (one, two) = (db.map("one")?, db.map_with("two", IndexKind::Part)?);
        one.load((0..3000u32).map(|i| (i.to_be_bytes(), i.to_le_bytes())))?;
        let moved = db.transact(|tx| {
            let all = tx.range(&one, ..)?.collect::<Result<Vec<_>, _>>()?;
            for (key, value) in &all {
                tx.remove(&one, key)?;
                tx.upsert(&two, key, value)?;
            }
            Ok::<_, Error>(all.len())
        })?;
        assert_eq!(moved, 3000);
    }
    let db = Db::open(&path)?;
    assert_eq!((db.map("one")?.count()?, db.map("two")?.count()?), (0, 3000));
    assert!(db.check()?.is_clean());
    Ok(())
}

/// A conflict that a read has met remains one, even if the key has its old value again: the transaction is retried, and
/// cannot commit.
#[test]
fn a_conflict_that_was_met_stays() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    map.upsert("key", "1")?;
    let mut runs = 0;
    let found = db.transact(|tx| {
        runs += 1;
        let first = tx.get(&map, "key")?;
        if runs == 1 {
            map.upsert("key", "2")?;
            let met = tx.get(&map, "key");
            map.upsert("key", "1")?;
            met?;
        }
        Ok::<_, Error>(first)
    })?;
    assert_eq!((found, runs), (Some(b"1".to_vec()), 2));
    let mut tx = db.begin();
    assert!(tx.contains(&map, "key")?);
    map.upsert("key", "2")?;
    assert!(matches!(tx.get(&map, "key"), Err(Error::Conflict { .. })));
    map.upsert("key", "1")?;
    tx.upsert(&map, "other", "value")?;
    assert!(matches!(tx.commit(), Err(Error::Conflict { .. })));
    assert_eq!(map.get("other")?, None);
    Ok(())
}
