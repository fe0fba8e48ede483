//! Snapshots: one moment, however long they are read and whatever is written meanwhile.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use wollemi::{Db, Entry, Error, IndexKind};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0..5u8, 0..4)
}

fn changes(max: usize) -> impl Strategy<Value = Vec<(Vec<u8>, Option<Vec<u8>>)>> {
    let value = prop_oneof![
        prop::collection::vec(any::<u8>(), 8),
        prop::collection::vec(any::<u8>(), 0..20)
    ];
    prop::collection::vec((key(), prop::option::weighted(0.6, value)), 0..max)
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        Just(Bound::Unbounded),
        key().prop_map(Bound::Included),
        key().prop_map(Bound::Excluded)
    ]
}

fn crossed(lower: &Bound<Vec<u8>>, upper: &Bound<Vec<u8>>) -> bool {
    use Bound::{Excluded, Included, Unbounded};
    match (lower, upper) {
        (Unbounded, _) | (_, Unbounded) => false,
        (Included(lower), Included(upper)) => lower > upper,
        (Included(lower) | Excluded(lower), Included(upper) | Excluded(upper)) => lower >= upper,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// However much is changed after each of them, singly or by batches, each snapshot shows the content at the moment
    /// it was taken: by key, by range, from both ends.
    #[test]
    fn a_snapshot_stays_what_it_was(
        rounds in prop::collection::vec(changes(200), 1..5),
        kind in prop::sample::select(vec![IndexKind::Roart, IndexKind::Part, IndexKind::Wort]),
        (lower, upper) in (bound(), bound()),
        ends in prop::collection::vec(any::<bool>(), 0..100),
        in_batches: bool,
    ) {
        let db = Db::anonymous()?;
        let map = db.map_with("m", kind)?;
        let mut model = BTreeMap::new();
        let mut snapshots = Vec::new();
        for changes in rounds {
            snapshots.push((db.snapshot()?, model.clone()));
            let mut batch = db.batch();
            for (key, value) in changes {
                match (&value, in_batches) {
                    (Some(value), true) => _ = batch.upsert(&map, &key, value),
                    (Some(value), false) => map.upsert(&key, value)?,
                    (None, true) => _ = batch.remove(&map, &key),
                    (None, false) => _ = map.remove(&key)?,
                }
                match value {
                    Some(value) => drop(model.insert(key, value)),
                    None => drop(model.remove(&key)),
                }
            }
            prop_assert!(batch.commit()?);
        }
        for (snapshot, model) in &snapshots {
            let view = snapshot.view(&map)?;
            let all = view.iter().collect::<Result<Vec<Entry>, Error>>()?;
            prop_assert_eq!(&all, &model.iter().map(|(k, v)| (k.clone(), v.clone())).collect::<Vec<_>>());
            for key in [vec![], vec![0], vec![1, 2], vec![3, 4, 4]] {
                prop_assert_eq!(view.get(&key)?, model.get(&key).cloned());
                prop_assert_eq!(view.contains(&key)?, model.contains_key(&key));
            }
            let expected: Vec<Entry> = if crossed(&lower, &upper) {
                Vec::new()
            } else {
                let range = model.range((lower.clone(), upper.clone()));
                range.map(|(k, v)| (k.clone(), v.clone())).collect()
            };
            let mut range = view.range((lower.clone(), upper.clone()));
            let (mut front, mut back) = (Vec::new(), Vec::new());
            for &end in &ends {
                let next = if end { range.next_back() } else { range.next() };
                let Some(entry) = next.transpose()? else { break };
                if end { &mut back } else { &mut front }.push(entry);
            }
            front.extend(range.collect::<Result<Vec<_>, _>>()?);
            front.extend(back.into_iter().rev());
            prop_assert_eq!(front, expected);
        }
    }
}

/// Each thread keeps incrementing two keys, one after the other. Every snapshot shows them at one moment, the first
/// ahead by one or none, and shows the same when it is read again.
#[test]
fn snapshots_are_one_moment() -> Outcome {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3u8)
            .map(|thread| {
                let (map, stop) = (&map, &stop);
                scope.spawn(move || -> Result<(), Error> {
                    for count in 1u64.. {
                        // Two threads store their values (of eight bytes) in place, the third does not.
                        let value = format!("{count:0len$}", len = 8 + usize::from(thread % 2));
                        map.upsert([thread, 0], &value)?;
                        map.upsert([thread, 1], &value)?;
                        if stop.load(SeqCst) {
                            break;
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        while map.count()? < 6 {
            std::thread::yield_now();
        }
        let mut moved = 0u64;
        for _ in 0..200 {
            let snapshot = db.snapshot()?;
            let view = snapshot.view(&map)?;
            let read = |key: [u8; 2]| -> Result<u64, Box<dyn std::error::Error>> {
                let value = view.get(key)?.unwrap_or_default();
                Ok(String::from_utf8(value)?.parse().unwrap_or(0))
            };
            let first: Vec<_> = view.iter().collect::<Result<_, _>>()?;
            for thread in 0..3 {
                let (second, first) = (read([thread, 1])?, read([thread, 0])?);
                assert!(first == second || first == second + 1, "{first} and {second}");
                moved += first;
            }
            assert_eq!(view.iter().collect::<Result<Vec<_>, _>>()?, first);
        }
        stop.store(true, SeqCst);
        for writer in writers {
            writer.join().expect("no panic")?;
        }
        assert!(moved > 0);
        Ok(())
    })
}

/// A snapshot uses memory for changes made while it exists, and nothing is recorded for a dropped one.
#[test]
fn memory_is_taken_for_changes_alone() -> Outcome {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    map.load((0..1000u32).map(|i| (i.to_be_bytes(), vec![1; 1000])))?;
    let old = db.snapshot()?;
    assert_eq!(old.memory(), 0);
    map.upsert(5u32.to_be_bytes(), "new")?;
    let first = old.memory();
    assert!((1000..2000).contains(&first), "{first}");
    map.upsert(5u32.to_be_bytes(), "newer")?;
    assert!(!map.insert(6u32.to_be_bytes(), "there already")?);
    assert_eq!(old.memory(), first);

    let new = db.snapshot()?;
    map.remove(5u32.to_be_bytes())?;
    assert_eq!(old.memory(), first);
    assert!(new.memory() > 0);
    assert_eq!(old.view(&map)?.get(5u32.to_be_bytes())?, Some(vec![1; 1000]));
    assert_eq!(new.view(&map)?.get(5u32.to_be_bytes())?, Some(b"newer".to_vec()));
    drop(old);
    assert_eq!(new.view(&map)?.get(5u32.to_be_bytes())?, Some(b"newer".to_vec()));
    Ok(())
}

/// Even if more entries were removed than are read at a time, a snapshot shows all of them, from either end and from
/// both; also large values.
#[test]
fn what_is_removed_meanwhile_is_shown() -> Outcome {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    let key = |i: u32| i.to_be_bytes();
    let all: Vec<Entry> = (0..3000u32)
        .map(|i| {
            (
                key(i).to_vec(),
                vec![i as u8; if i % 100 == 0 { 100_000 } else { 3 }],
            )
        })
        .collect();
    map.load(all.iter().map(|(key, value)| (key, value)))?;
    let snapshot = db.snapshot()?;
    for i in (0..3000).filter(|i| i % 700 != 0) {
        map.remove(key(i))?;
    }
    map.load((3000..4000u32).map(|i| (key(i), "new")))?;

    let view = snapshot.view(&map)?;
    assert!(view.iter().collect::<Result<Vec<_>, _>>()? == all);
    let mut reversed = view.iter().rev().collect::<Result<Vec<_>, _>>()?;
    reversed.reverse();
    assert!(reversed == all);
    let (mut both, mut front, mut back) = (view.iter(), Vec::new(), Vec::new());
    while let Some(entry) = both.next().transpose()? {
        front.push(entry);
        for _ in 0..3 {
            back.extend(both.next_back().transpose()?);
        }
    }
    front.extend(back.into_iter().rev());
    assert!(front == all);
    Ok(())
}

/// A later value, as large as the limit of one read, is skipped from either end.
#[test]
fn large_values_that_came_since_are_passed() -> Outcome {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    map.load([("a", "1"), ("z", "2")])?;
    let snapshot = db.snapshot()?;
    map.upsert("m", vec![1; 1 << 20])?;
    let view = snapshot.view(&map)?;
    let keys = |view: &mut dyn Iterator<Item = Result<Entry, Error>>| -> Result<Vec<Vec<u8>>, Error> {
        view.map(|entry| Ok(entry?.0)).collect()
    };
    assert_eq!(keys(&mut view.range("b"..))?, [b"z"]);
    assert_eq!(keys(&mut view.range(.."y").rev())?, [b"a"]);
    Ok(())
}

/// A bounded snapshot does not exceed its bound. When it would, writers continue and its readers get an error;
/// snapshots with other bounds are unaffected.
#[test]
fn a_bounded_snapshot_takes_no_more() -> Outcome {
    const MAX: u64 = 10_000;
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    map.load((0..100u32).map(|i| (i.to_be_bytes(), vec![1; 1000])))?;
    let bounded = db.snapshot_within(MAX)?;
    let whole = db.snapshot()?;
    map.upsert(0u32.to_be_bytes(), "new")?;
    let (view, mut begun) = (bounded.view(&map)?, bounded.view(&map)?.iter());
    assert_eq!(view.get(0u32.to_be_bytes())?, Some(vec![1; 1000]));
    assert_eq!(
        begun.next().transpose()?.map(|(_, value)| value),
        Some(vec![1; 1000])
    );

    for i in 0..100u32 {
        map.upsert(i.to_be_bytes(), "newer")?;
    }
    assert!((1000..=MAX).contains(&bounded.memory()), "{}", bounded.memory());
    assert!(whole.memory() > MAX);
    let is_outgrown = |error: &Error| matches!(error, Error::SnapshotOutgrown(MAX));
    assert!(
        view.get(99u32.to_be_bytes())
            .is_err_and(|error| is_outgrown(&error))
    );
    for mut iter in [view.iter(), begun] {
        assert!(
            iter.next()
                .is_some_and(|next| next.is_err_and(|error| is_outgrown(&error)))
        );
        assert!(iter.next().is_none() && iter.next_back().is_none());
    }
    let backup = bounded.backup(&mut Vec::new(), |_| {});
    assert!(backup.is_err_and(|error| is_outgrown(&error)));
    assert_eq!(whole.view(&map)?.get(99u32.to_be_bytes())?, Some(vec![1; 1000]));
    assert_eq!(map.get(99u32.to_be_bytes())?, Some(b"newer".to_vec()));
    Ok(())
}

/// A snapshot lists the maps that existed; one created later is empty in it; no map is dropped while it exists.
#[test]
fn maps_stay_while_a_snapshot_lives() -> Outcome {
    let db = Db::anonymous()?;
    db.map("old")?.upsert("k", "v")?;
    let snapshot = db.snapshot()?;
    let new = db.map("new")?;
    new.upsert("k", "v")?;
    assert_eq!(snapshot.maps().len(), 1);
    assert_eq!(snapshot.maps()[0].name, "old");
    assert!(snapshot.view(&new)?.iter().next().is_none());
    assert!(snapshot.find_view("none")?.is_none());
    assert!(matches!(db.drop_map("old"), Err(Error::MapInUse(_))));
    let old = snapshot.find_view("old")?.map(|view| view.get("k"));
    assert_eq!(old.transpose()?, Some(Some(b"v".to_vec())));
    let foreign = Db::anonymous()?.map("old")?;
    assert!(matches!(snapshot.view(&foreign), Err(Error::OtherDatabase(_))));
    drop(snapshot);
    assert!(db.drop_map("old")?);
    Ok(())
}

/// A view and its iterator still show the old content after their snapshot is dropped, in another thread too; no map
/// can be dropped until they are.
#[test]
fn a_view_outlives_its_snapshot() -> Outcome {
    let db = Db::anonymous()?;
    let map = db.map("map")?;
    db.map("another")?;
    map.load([("a", "1"), ("b", "2"), ("c", "3")])?;
    let view = db.snapshot()?.view(&map)?;
    let rest = view.range("b"..);
    map.remove("b")?;
    map.upsert("c", "changed")?;
    assert_eq!(view.get("b")?, Some(b"2".to_vec()));
    drop(view);
    map.upsert("a", "changed")?;
    assert!(matches!(db.drop_map("another"), Err(Error::MapInUse(_))));
    let shown = std::thread::spawn(move || rest.collect::<Result<Vec<Entry>, _>>());
    let shown = shown.join().expect("no panic")?;
    let expected = [("b", "2"), ("c", "3")].map(|(key, value)| (key.into(), value.into()));
    assert_eq!(shown, expected);
    assert!(db.drop_map("another")?);
    Ok(())
}
