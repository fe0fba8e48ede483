//! Maps held by a hash table: operations that need no key order work, and those that need one are refused.

use std::collections::BTreeMap;
use std::ops::Bound;
use wollemi::{Db, Error, Expiring, IndexKind, Map};

type Outcome = Result<(), Box<dyn std::error::Error>>;
type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

fn unordered(db: &Db) -> Result<(Map, Entries), Error> {
    assert!(!IndexKind::Clht.is_ordered() && IndexKind::default().is_ordered());
    let map = db.map_with("hashed", IndexKind::Clht)?;
    let mut model = Entries::new();
    for i in 0..5000_u32 {
        // Values stored in place, and others.
        let key = i
            .wrapping_mul(0x9e37_79b9)
            .to_be_bytes()
            .repeat(1 + i as usize % 3);
        let value = vec![i as u8; 7 + i as usize % 3];
        map.upsert(&key, &value)?;
        model.insert(key, value);
    }
    map.upsert("", "the empty key")?;
    model.insert(Vec::new(), b"the empty key".to_vec());
    Ok((map, model))
}

/// Returns whether an operation was refused because it needs an order of keys.
pub(crate) fn is_unordered<T>(done: Result<T, Error>) -> bool {
    matches!(done, Err(Error::Index(index::Error::Unordered)))
}

/// Ranges, prefixes and ends are refused with an error that gives the reason; iterating over all entries is allowed.
#[test]
fn what_needs_an_order_is_refused() -> Outcome {
    let db = Db::anonymous()?;
    let (map, model) = unordered(&db)?;
    let first = |mut entries: wollemi::Iter| entries.next().expect("an error");
    assert!(is_unordered(first(map.range("a"..))));
    assert!(is_unordered(first(map.range(..="b"))));
    assert!(is_unordered(first(map.prefix("a"))));
    assert_eq!(map.prefix("a").count(), 1);
    assert!(is_unordered(map.first()) && is_unordered(map.last()));
    assert!(is_unordered(map.pop_first()) && is_unordered(map.pop_last()));
    assert!(is_unordered(db.transact(|tx| tx.range(&map, ..).map(drop))));
    assert!(is_unordered(db.transact(|tx| tx.prefix(&map, "a").map(drop))));
    let reader = map.reader();
    assert!(is_unordered(reader.range("a"..).next().expect("an error")));
    let visited = reader.visit("a".., |_, _| std::ops::ControlFlow::Continue(()));
    assert!(is_unordered(visited));
    let view = db.snapshot()?.view(&map)?;
    assert!(is_unordered(view.range("a"..).next().expect("an error")));
    let why = map.first().expect_err("refused").to_string();
    assert!(why.contains("no order of keys"), "{why}");
    // Nothing was removed.
    assert_eq!(map.count()?, model.len() as u64);
    Ok(())
}

/// Everything can be walked, counted and read, from both ends and a step at a time.
#[test]
fn everything_is_walked() -> Outcome {
    let db = Db::anonymous()?;
    let (map, model) = unordered(&db)?;
    let all = map.iter().collect::<Result<Vec<_>, _>>()?;
    let back = map.iter().rev().collect::<Result<Vec<_>, _>>()?;
    assert!(all.iter().eq(back.iter().rev()));
    assert_eq!(all.into_iter().collect::<Entries>(), model);
    assert_eq!((map.count()?, map.is_empty()?), (model.len() as u64, false));

    let (mut walked, mut last) = (Entries::new(), None::<Vec<u8>>);
    loop {
        let behind = last.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let step = map.walk(behind, 7, |key, value| {
            assert!(walked.insert(key.to_vec(), value.to_vec()).is_none());
        })?;
        match step.last {
            Some(key) => last = Some(key),
            None => break,
        }
    }
    assert_eq!(walked, model);

    let mut cursor = None;
    let (mut seen, mut removed) = (0, 0);
    loop {
        let swept = map.sweep(
            &mut cursor,
            100,
            |_, value| value.len() == 8,
            |key| map.remove(key),
        )?;
        (seen, removed) = (seen + swept.seen, removed + swept.removed);
        if cursor.is_none() {
            break;
        }
    }
    let over = model.values().filter(|value| value.len() == 8).count();
    assert_eq!((seen, removed), (model.len(), over));
    assert!(db.check()?.is_clean());
    Ok(())
}

/// A snapshot shows its entries, whatever is written meanwhile, before its walk has reached them and after.
#[test]
fn snapshots_stand_still() -> Outcome {
    let db = Db::anonymous()?;
    let (map, model) = unordered(&db)?;
    let snapshot = db.snapshot()?;
    let view = snapshot.view(&map)?;
    let mut entries = view.iter();
    let mut found = Entries::new();
    let mut keys = model.keys().cycle();
    for turn in 0..u32::MAX {
        for key in keys.by_ref().take(3) {
            match turn % 3 {
                0 => map.upsert(key, "changed")?,
                1 => drop(map.remove(key)?),
                _ => map.upsert([&key[..], b"new"].concat(), "new")?,
            }
        }
        let Some(entry) = entries.next() else { break };
        let (key, value) = entry?;
        assert!(found.insert(key, value).is_none(), "an entry is shown twice");
    }
    assert!(found == model);
    let back = view.iter().rev().collect::<Result<Entries, _>>()?;
    assert!(back == model);
    for (key, value) in model.iter().step_by(10) {
        assert_eq!(view.get(key)?.as_ref(), Some(value));
    }
    Ok(())
}

/// Backups, copies, batches and transactions on single keys work with such maps, and a restore keeps their index.
#[test]
fn backups_and_batches() -> Outcome {
    let db = Db::anonymous()?;
    let (map, mut model) = unordered(&db)?;
    db.transact(|tx| {
        assert!(tx.get(&map, "")?.is_some());
        tx.remove(&map, "")?;
        tx.upsert(&map, "by a transaction", "1")
    })?;
    model.remove(&b""[..]);
    model.insert(b"by a transaction".to_vec(), b"1".to_vec());
    let mut bytes = Vec::new();
    db.snapshot()?.backup(&mut bytes, |_| {})?;
    let restored = Db::anonymous()?;
    restored.restore(&mut &bytes[..], |_| {})?;
    let copied = Db::anonymous()?;
    copied.copy_from(&db.snapshot()?, |_| {})?;
    for other in [restored, copied] {
        let map = other.find_map("hashed")?.expect("it was taken along");
        assert_eq!(map.index_kind(), IndexKind::Clht);
        assert!(map.iter().collect::<Result<Entries, _>>()? == model);
        assert!(other.check()?.is_clean());
    }
    Ok(())
}

/// Maps without an order have no ends in views, expiring maps and transactions, and their entries can be read all the
/// same.
#[test]
fn maps_without_order_have_no_ends() -> Outcome {
    let db = Db::anonymous()?;
    let map = db.map_with("m", IndexKind::Clht)?;
    let expiring = Expiring::new(map.clone());
    expiring.upsert("a", "1", None)?;
    let view = db.snapshot()?.view(&map)?;
    assert!(is_unordered(view.first()) && is_unordered(view.last()));
    assert_eq!((view.len()?, view.is_empty()?), (1, false));
    assert!(is_unordered(expiring.first()) && is_unordered(expiring.last()));
    assert_eq!((expiring.len()?, expiring.is_empty()?), (1, false));
    let mut tx = db.begin();
    assert!(is_unordered(tx.first(&map)) && is_unordered(tx.pop_last(&map)));
    assert!(tx.multi_get(&map, &["a", "b"])?[0].is_some());
    Ok(())
}
