//! Batches: all of their changes or none, over several maps, beside other writers.

use proptest::prelude::*;
use std::collections::BTreeMap;
use wollemi::{Db, Error, Event, IndexError, Map, Options};

type Outcome = Result<(), Box<dyn std::error::Error>>;
type Model = BTreeMap<(usize, Vec<u8>), Vec<u8>>;

/// A map's number in the array and a key, with the value to put; `None` removes the key.
type PlacedValue = ((usize, Vec<u8>), Option<Vec<u8>>);

fn key() -> impl Strategy<Value = (usize, Vec<u8>)> {
    (0..2usize, prop::collection::vec(0..3u8, 0..3))
}

fn value() -> impl Strategy<Value = Option<Vec<u8>>> {
    prop::option::weighted(
        0.7,
        prop_oneof![
            4 => prop::collection::vec(any::<u8>(), 8),
            2 => prop::collection::vec(any::<u8>(), 0..40),
            1 => (0..400_000usize).prop_map(|len| vec![7; len]),
        ],
    )
}

fn entries(maps: &[Map; 2]) -> Result<Model, Error> {
    let mut model = Model::new();
    for (i, map) in maps.iter().enumerate() {
        for entry in map {
            let (key, value) = entry?;
            model.insert((i, key), value);
        }
    }
    Ok(model)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// A batch is equivalent to its changes one by one, in order, if all expectations hold; otherwise it does nothing.
    #[test]
    fn a_batch_equals_its_changes_in_order(
        batches in prop::collection::vec(
            (
                prop::collection::vec((key(), value()), 0..8),
                prop::collection::vec((key(), any::<bool>()), 0..3),
            ),
            1..12,
        ),
    ) {
        let db = Db::anonymous()?;
        let maps = [db.map("one")?, db.map_with("two", wollemi::IndexKind::Part)?];
        let mut model = Model::new();
        for (changes, expected) in batches {
            let mut batch = db.batch();
            let mut holds = true;
            for ((map, key), right) in expected {
                let found = model.get(&(map, key.clone()));
                let wrong = found.is_none().then(|| b"something".to_vec());
                batch.expect(&maps[map], &key, if right { found } else { wrong.as_ref() });
                holds &= right;
            }
            for ((map, key), value) in &changes {
                match value {
                    Some(value) => batch.upsert(&maps[*map], key, value),
                    None => batch.remove(&maps[*map], key),
                };
            }
            prop_assert_eq!(batch.commit()?, holds);
            let made: Vec<PlacedValue> = if holds { changes } else { Vec::new() };
            for (key, value) in made {
                match value {
                    Some(value) => model.insert(key, value),
                    None => model.remove(&key),
                };
            }
            prop_assert_eq!(&entries(&maps)?, &model);
        }
        let check = db.check()?;
        prop_assert!(check.is_clean(), "{check:?}");
        prop_assert_eq!(check.maps.len(), 2);
    }
}

/// Only the last of several changes to one key is applied: a watch gets one event per key, with the value after the
/// batch, and never an intermediate value.
#[test]
fn a_key_changes_once_in_a_batch() -> Outcome {
    let db = Db::anonymous()?;
    let maps = [db.map("one")?, db.map("two")?];
    maps[0].upsert("gone", "before")?;
    let mut watches = [maps[0].watch("", 100)?, maps[1].watch("", 100)?];
    let mut batch = db.batch();
    batch
        .upsert(&maps[0], "k", "first")
        .upsert(&maps[1], "k", "other");
    batch.upsert(&maps[0], "gone", "between").remove(&maps[0], "k");
    batch.upsert(&maps[0], "k", "last").remove(&maps[0], "gone");
    assert!(batch.commit()?);
    let events = |watch: &mut wollemi::Watch| std::iter::from_fn(|| watch.try_next()).collect::<Vec<_>>();
    let changed = |key: &str, value: Option<&str>| Event::Changed {
        key: key.into(),
        value: value.map(Into::into),
    };
    assert_eq!(
        events(&mut watches[0]),
        [changed("k", Some("last")), changed("gone", None)]
    );
    assert_eq!(events(&mut watches[1]), [changed("k", Some("other"))]);
    Ok(())
}

/// Committed batches are present after reopening, and the database's own root is not listed as a map.
#[test]
fn batches_are_there_after_reopening() -> Outcome {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("a.pool");
    for round in 0..4u64 {
        let db = Db::open(&path)?;
        let (one, two) = (db.map("one")?, db.map("two")?);
        assert_eq!((one.count()?, two.count()?), (round * 1000, round * 1000));
        let mut batch = db.batch();
        for i in round * 1000..(round + 1) * 1000 {
            batch.upsert(&one, i.to_be_bytes(), i.to_le_bytes());
            batch.upsert(&two, i.to_be_bytes(), vec![round as u8; 100]);
        }
        assert_eq!(batch.len(), 2000);
        assert!(batch.commit()?);
        let names: Vec<_> = db.maps()?.into_iter().map(|map| map.name).collect();
        assert_eq!(names, ["one", "two"]);
        let check = db.check()?;
        assert!(check.is_clean(), "{check:?}");
    }
    Ok(())
}

/// A batch that cannot be applied changes nothing: a key or value too long, a map of another database, a full pool.
#[test]
fn a_refused_batch_changes_nothing() -> Outcome {
    let db = Options::new().max_size(16 << 20).anonymous()?;
    let other = Db::anonymous()?;
    let (map, foreign) = (db.map("m")?, other.map("m")?);
    map.upsert("k", "v")?;

    let refused = |fill: &dyn Fn(&mut wollemi::Batch)| {
        let mut batch = db.batch();
        batch.upsert(&map, "k", "other").upsert(&map, "new", "value");
        fill(&mut batch);
        batch.commit().expect_err("refused")
    };
    let error = refused(&|batch| _ = batch.upsert(&map, vec![0; 65_536], "v"));
    assert!(
        matches!(error, Error::Index(IndexError::KeyTooLong(65_536))),
        "{error}"
    );
    let error = refused(&|batch| _ = batch.upsert(&map, "k", vec![0; (64 << 20) + 1]));
    assert!(
        matches!(error, Error::Index(IndexError::ValueTooLong(_))),
        "{error}"
    );
    let error = refused(&|batch| _ = batch.upsert(&foreign, "k", "v"));
    assert_eq!(error.to_string(), "map 'm' belongs to another database");
    let error = refused(&|batch| _ = batch.upsert(&foreign, "k", "v").upsert(&map, "k", "v"));
    assert!(matches!(error, Error::OtherDatabase(_)), "{error}");
    let error = refused(&|batch| _ = batch.expect(&foreign, "k", Some("v")));
    assert!(matches!(error, Error::OtherDatabase(_)), "{error}");
    let error = refused(&|batch| _ = batch.upsert(&map, "large", vec![1; 7 << 20]));
    assert!(error.to_string().contains("no room"), "{error}");

    assert_eq!(map.get("k")?, Some(b"v".to_vec()));
    assert_eq!(map.count()?, 1);
    let mut batch = db.batch();
    batch.upsert(&map, "k", "after").upsert(&map, "more", "room");
    assert!(batch.commit()?);
    assert_eq!(map.get("k")?, Some(b"after".to_vec()));
    Ok(())
}

fn number(value: Option<Vec<u8>>) -> u64 {
    value
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, u64::from_le_bytes)
}

/// Threads move amounts between accounts of two maps by batches that expect the values read, beside writers of single
/// keys. The total is constant, at the end and in every snapshot.
#[test]
fn nothing_is_lost_between_accounts() -> Outcome {
    const ACCOUNTS: u64 = 6;
    const EACH: u64 = 1000;
    let db = Db::anonymous()?;
    let maps = [db.map("one")?, db.map("two")?];
    for account in 0..ACCOUNTS {
        maps[account as usize % 2].upsert(account.to_be_bytes(), EACH.to_le_bytes())?;
    }
    let transfer = |round: u64| -> Result<bool, Error> {
        let (from, to) = (round % ACCOUNTS, (round / ACCOUNTS + round + 1) % ACCOUNTS);
        let [from_map, to_map] = [from, to].map(|account| &maps[account as usize % 2]);
        let [from, to] = [from, to].map(u64::to_be_bytes);
        let (had, has) = (number(from_map.get(from)?), number(to_map.get(to)?));
        let amount = round % 7;
        if had < amount || from == to {
            return Ok(false);
        }
        let mut batch = db.batch();
        batch.expect(from_map, from, Some(had.to_le_bytes()));
        batch.expect(to_map, to, Some(has.to_le_bytes()));
        batch.upsert(from_map, from, (had - amount).to_le_bytes());
        batch.upsert(to_map, to, (has + amount).to_le_bytes());
        batch.commit()
    };
    let total = |get: &dyn Fn(usize, [u8; 8]) -> Result<Option<Vec<u8>>, Error>| {
        (0..ACCOUNTS)
            .map(|account| Ok(number(get(account as usize % 2, account.to_be_bytes())?)))
            .sum::<Result<u64, Error>>()
    };
    let moved = std::thread::scope(|scope| {
        let movers: Vec<_> = (0..3u64)
            .map(|thread| {
                let transfer = &transfer;
                scope.spawn(move || {
                    (0..1500)
                        .map(|round| Ok(u64::from(transfer(round * 31 + thread)?)))
                        .sum::<Result<u64, Error>>()
                })
            })
            .collect();
        let single = scope.spawn(|| -> Result<(), Error> {
            for i in 0..3000u64 {
                maps[0].upsert((1000 + i % 50).to_be_bytes(), i.to_le_bytes())?;
            }
            Ok(())
        });
        let looker = scope.spawn(|| -> Result<(), Error> {
            for _ in 0..100 {
                let snapshot = db.snapshot()?;
                let seen = total(&|map, account| snapshot.view(&maps[map])?.get(account))?;
                assert_eq!(seen, ACCOUNTS * EACH);
            }
            Ok(())
        });
        let moved = movers
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .sum::<Result<u64, Error>>()?;
        single.join().expect("no panic")?;
        looker.join().expect("no panic")?;
        Ok::<_, Error>(moved)
    })?;
    assert!(moved > 0);
    assert_eq!(total(&|map, account| maps[map].get(account))?, ACCOUNTS * EACH);
    assert!(db.check()?.is_clean());
    Ok(())
}
