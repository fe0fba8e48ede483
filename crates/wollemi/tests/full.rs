//! Batches and transactions in a pool that becomes full: each is refused before its commit point or completed, however
//! much room other writers take meanwhile. A program of its own, because guards of other tests would keep removed space
//! back.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use wollemi::{Db, Error, IndexError, IndexKind, Map, Options};

const PAGE: u64 = 64 << 10;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Returns whether the pool had no room for the call. Panics on every other error, including an unfinished batch.
fn is_full<T>(done: Result<T, Error>) -> bool {
    match done {
        Ok(_) => false,
        Err(Error::Heap(error) | Error::Index(IndexError::Heap(error))) => {
            assert!(error.to_string().contains("no room"), "{error}");
            true
        }
        Err(error) => panic!("{error}"),
    }
}

/// Commits these entries, in a batch or in a transaction that reads their keys. Returns whether there was no room for
/// them; then nothing is changed.
fn commit_or_nothing(
    db: &Db,
    map: &Map,
    entries: &[(String, Vec<u8>)],
    in_batch: bool,
) -> Result<bool, Error> {
    let full = if in_batch {
        let mut batch = db.batch();
        for (key, value) in entries {
            batch.upsert(map, key, value);
        }
        is_full(batch.commit())
    } else {
        is_full(db.transact(|tx| {
            let mut entries = entries.iter();
            entries.try_for_each(|(key, value)| tx.insert(map, key, value).map(drop))
        }))
    };
    for (key, value) in entries {
        let found = map.get(key)?;
        assert_eq!(found.as_ref(), (!full).then_some(value), "{key}");
    }
    Ok(full)
}

/// Values of many lengths need a page each if no page of their size class has room. However few pages are left, a batch
/// or a transaction that puts them is completed or refused.
#[test]
fn values_of_many_sizes_are_put_together_or_not() -> Outcome {
    let lengths = std::iter::successors(Some(2300), |len| Some(len + len / 7));
    let entries: Vec<_> = lengths
        .take(20)
        .map(|len| (format!("key {len}"), vec![1; len]))
        .collect();
    let (mut refused, mut made) = (0, 0);
    for (left, in_batch) in (4..72).map(|left| (left, left % 2 == 0)) {
        let db = Options::new().page_size(PAGE).max_size(96 * PAGE).anonymous()?;
        let map = db.map("m")?;
        map.upsert("some", "value")?;
        let page = vec![7; PAGE as usize - 200];
        let mut others = 0_u64..;
        while db.stats()?.space.reserved < (96 - left) * PAGE {
            // A new key each time: a new value of a present one may take the page of the last but one for ever.
            let key = others.next().expect("few pages").to_be_bytes();
            map.upsert(key, &page)?;
        }
        match commit_or_nothing(&db, &map, &entries, in_batch)? {
            true => refused += 1,
            false => made += 1,
        }
        let check = db.check()?;
        assert!(check.is_clean(), "{left} pages left: {check:?}");
    }
    assert!(refused > 0 && made > 0, "{refused} refused, {made} made");
    Ok(())
}

/// Batches in two maps, one of which merges in the background, beside writes of single keys and new maps, until the
/// pool is full and for a while after that.
#[test]
fn no_batch_is_left_unfinished() -> Outcome {
    const FULL: u64 = 40;
    let db = Options::new().page_size(PAGE).max_size(12 << 20).anonymous()?;
    let maps = [
        db.map_with("roart", IndexKind::Roart)?,
        db.map_with("dptree", IndexKind::DpTree)?,
    ];
    let (over, made) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let committers: Vec<_> = (0..3u64)
            .map(|thread| {
                let (db, maps, made) = (&db, &maps, &made);
                scope.spawn(move || {
                    let (mut full, mut number) = (0, thread);
                    while full < FULL {
                        let (mut batch, mut tx) = (db.batch(), db.begin());
                        let in_batch = number % 2 == 0;
                        for i in 0..12 {
                            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                            let len = [8, 8, 60, 300, 1500, 5000, 20_000][(number >> 60) as usize % 7];
                            let (map, key, value) = (&maps[i % 2], number.to_be_bytes(), vec![i as u8; len]);
                            match in_batch {
                                true => _ = batch.upsert(map, key, value),
                                false => tx.upsert(map, key, value).expect("its own map"),
                            }
                        }
                        let done = match in_batch {
                            true => batch.commit().map(drop),
                            false => tx.commit(),
                        };
                        match is_full(done) {
                            true => full += 1,
                            false => _ = made.fetch_add(1, Relaxed),
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            for i in 0u64.. {
                if over.load(Relaxed) {
                    break;
                }
                is_full(maps[1].upsert(i.reverse_bits().to_be_bytes(), i.to_be_bytes()));
            }
        });
        scope.spawn(|| {
            let kinds = [IndexKind::Roart, IndexKind::Part, IndexKind::DpTree];
            for i in 0..40 {
                if over.load(Relaxed) {
                    break;
                }
                is_full(db.map_with(&format!("new {i}"), kinds[i % 3]));
            }
        });
        let ends: Vec<_> = committers.into_iter().map(|thread| thread.join()).collect();
        over.store(true, Relaxed);
        assert!(ends.iter().all(Result::is_ok), "a committer panics");
    });
    assert!(made.into_inner() > 0);
    // The gate is open, and the whole pool is consistent.
    drop(db.snapshot()?);
    let check = db.check()?;
    assert!(check.is_clean(), "{check:?}");
    Ok(())
}

/// Long keys that share all but their ends need a node of P-Masstree for every eight bytes. However few pages are left,
/// a batch of them is completed or refused.
#[test]
fn long_keys_are_put_together_or_not() -> Outcome {
    let long = |first: u8, last: u8| {
        let mut key = vec![first; wollemi::MAX_KEY];
        key[wollemi::MAX_KEY - 1] = last;
        key
    };
    let (mut refused, mut made) = (0, 0);
    for left in (44..100).step_by(4) {
        let db = Options::new().page_size(PAGE).max_size(128 * PAGE).anonymous()?;
        let map = db.map_with("m", IndexKind::Masstree)?;
        for first in [1, 2] {
            map.upsert(long(first, 1), "8 bytes!")?;
        }
        let filler = db.map("filler")?;
        let page = vec![7; PAGE as usize - 200];
        while db.stats()?.space.reserved < (128 - left) * PAGE {
            filler.upsert(db.stats()?.space.reserved.to_be_bytes(), &page)?;
        }
        let mut batch = db.batch();
        for first in [1, 2] {
            batch.upsert(&map, long(first, 2), "8 bytes!");
        }
        let full = is_full(batch.commit());
        for first in [1, 2] {
            assert_eq!(map.contains(long(first, 2))?, !full, "{left} pages left");
        }
        match full {
            true => refused += 1,
            false => made += 1,
        }
    }
    assert!(refused > 0 && made > 0, "{refused} refused, {made} made");
    Ok(())
}
