//! Popping entries from the ends of a map, beside other writers, transactions and snapshots.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use wollemi::{Db, Entry, Error, IndexError, IndexKind, Map, Options};

/// Returns a map of every ordered kind of index.
fn maps(db: &Db) -> Result<Vec<Map>, Error> {
    IndexKind::ALL
        .iter()
        .filter(|kind| kind.is_ordered())
        .map(|&kind| db.map_with(kind.name(), kind))
        .collect()
}

fn numbered(i: usize) -> Vec<u8> {
    i.to_be_bytes().to_vec()
}

/// Pops entries from an end until all threads together have popped `all`.
fn take(map: &Map, from_front: bool, taken: &AtomicUsize, all: usize) -> Vec<Entry> {
    let mut entries = Vec::new();
    while taken.load(Ordering::SeqCst) < all {
        let entry = if from_front {
            map.pop_first()
        } else {
            map.pop_last()
        };
        match entry.expect("a try without a conflict") {
            Some(entry) => {
                taken.fetch_add(1, Ordering::SeqCst);
                entries.push(entry);
            }
            None => std::thread::yield_now(),
        }
    }
    entries
}

/// Threads that pop from both ends, while others put, pop each entry once and leave none.
#[test]
fn each_entry_is_taken_once() -> Result<(), Error> {
    const PUTTERS: usize = 2;
    const TAKERS: usize = 4;
    const EACH: usize = 500;
    let db = Db::anonymous()?;
    for map in maps(&db)? {
        let taken = AtomicUsize::new(0);
        let taken_by_thread: Vec<Vec<Entry>> = std::thread::scope(|scope| {
            for putter in 0..PUTTERS {
                let map = &map;
                scope.spawn(move || {
                    for i in 0..EACH {
                        let i = numbered(i * PUTTERS + putter);
                        assert!(map.insert(&i, &i).expect("there is room"));
                    }
                });
            }
            let takers: Vec<_> = (0..TAKERS)
                .map(|taker| {
                    let (map, taken) = (&map, &taken);
                    scope.spawn(move || take(map, taker.is_multiple_of(2), taken, PUTTERS * EACH))
                })
                .collect();
            let entries = takers.into_iter().map(|taker| taker.join().expect("no panic"));
            entries.collect()
        });
        let taken: Vec<_> = taken_by_thread.concat();
        assert!(taken.iter().all(|(key, value)| key == value));
        let keys: BTreeSet<_> = taken.iter().map(|(key, _)| key.clone()).collect();
        assert_eq!((keys.len(), taken.len()), (PUTTERS * EACH, PUTTERS * EACH));
        assert_eq!((map.pop_first()?, map.len()?), (None, 0));
    }
    Ok(())
}

/// A transaction that has read the first entry conflicts with a thread that pops it; a snapshot still shows it.
#[test]
fn transactions_and_snapshots_notice() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    map.load([("a", "1"), ("b", "2")])?;
    let then = db.snapshot()?;
    let mut by_key = db.begin();
    assert!(by_key.contains(&map, "a")?);
    by_key.upsert(&map, "c", "3")?;
    let mut by_range = db.begin();
    assert_eq!(by_range.range(&map, ..)?.count(), 2);
    by_range.upsert(&map, "d", "4")?;

    assert_eq!(map.pop_first()?, Some((b"a".to_vec(), b"1".to_vec())));
    assert!(matches!(by_key.commit(), Err(Error::Conflict { .. })));
    assert!(matches!(by_range.commit(), Err(Error::Conflict { .. })));
    assert_eq!(then.view(&map)?.get("a")?, Some(b"1".to_vec()));
    assert_eq!(map.iter().collect::<Result<Vec<_>, _>>()?.len(), 1);
    Ok(())
}

/// Popped entries stay removed after the database is reopened; opened read-only, it pops nothing.
#[test]
fn taken_entries_stay_away() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("a.pool");
    {
        let map = Db::open(&path)?.map("m")?;
        map.load([("a", "1"), ("b", "2"), ("c", "3")])?;
        assert!(map.pop_first()?.is_some() && map.pop_last()?.is_some());
    }
    let map = Options::new().read_only(true).open(&path)?.map("m")?;
    assert_eq!(map.first()?, Some((b"b".to_vec(), b"2".to_vec())));
    assert_eq!(map.first()?, map.last()?);
    let refused = map.pop_first();
    assert!(
        matches!(refused, Err(Error::Index(IndexError::ReadOnly))),
        "{refused:?}"
    );
    Ok(())
}
