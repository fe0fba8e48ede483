//! Operations of maps in their other forms: in transactions, in views of snapshots, on expiring maps.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;
use wollemi::{Db, Durability, Entry, Error, Expiring, IndexKind, Map, View};

const HOUR: Option<Duration> = Some(Duration::from_secs(3600));
const OVER: Option<Duration> = Some(Duration::ZERO);

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn owned(entry: (&Vec<u8>, &Vec<u8>)) -> Entry {
    (entry.0.clone(), entry.1.clone())
}

#[derive(Clone, Debug)]
enum Op {
    Update(u8, u8),
    Edit(u8, Option<u8>),
    PopFirst,
    PopLast,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (0..16u8, any::<u8>()).prop_map(|(key, value)| Op::Update(key, value)),
        (0..16u8, any::<Option<u8>>()).prop_map(|(key, value)| Op::Edit(key, value)),
        Just(Op::PopFirst),
        Just(Op::PopLast),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// A transaction sees a map with its own changes, which its commit makes.
    #[test]
    fn transactions_are_maps(before in prop::collection::btree_map(0..16u8, any::<u8>(), 0..12),
                             ops in prop::collection::vec(op(), 0..30)) {
        let db = Db::anonymous()?;
        let map = db.map("m")?;
        let mut model: Model = before.iter().map(|(key, value)| (vec![*key], vec![*value])).collect();
        map.load(&model)?;
        let mut tx = db.begin();
        for op in ops {
            match op {
                Op::Update(key, value) => {
                    let present = model.contains_key(&vec![key]);
                    if present {
                        model.insert(vec![key], vec![value]);
                    }
                    prop_assert_eq!(tx.update(&map, [key], [value])?, present);
                }
                Op::Edit(key, value) => {
                    let old = model.get(&vec![key]).cloned();
                    let new = value.map(|value| vec![value]);
                    let found = tx.edit_with(&map, [key], |current| {
                        assert_eq!(current, old.as_deref());
                        new.clone()
                    })?;
                    prop_assert_eq!(&found, &new);
                    match new {
                        Some(new) => model.insert(vec![key], new),
                        None => model.remove(&vec![key]),
                    };
                }
                Op::PopFirst => prop_assert_eq!(tx.pop_first(&map)?, model.pop_first()),
                Op::PopLast => prop_assert_eq!(tx.pop_last(&map)?, model.pop_last()),
            }
            prop_assert_eq!(tx.first(&map)?, model.first_key_value().map(owned));
            prop_assert_eq!(tx.last(&map)?, model.last_key_value().map(owned));
            let keys: Vec<_> = (0..17u8).map(|key| [key]).collect();
            let expected: Vec<_> = keys.iter().map(|key| model.get(&key[..]).cloned()).collect();
            prop_assert_eq!(tx.multi_get(&map, &keys)?, expected);
        }
        tx.commit()?;
        let found: Vec<Entry> = map.iter().collect::<Result<_, _>>()?;
        prop_assert_eq!(found, model.iter().map(owned).collect::<Vec<_>>());
    }
}

/// What these operations read counts as read: a write of it between the read and the commit is a conflict, and one
/// elsewhere is none.
#[test]
fn reads_of_all_forms_are_checked() -> Result<(), Error> {
    type Form = fn(&mut wollemi::Transaction<'_>, &Map) -> Result<(), Error>;
    let forms: [(&str, Form, &str, &str); 5] = [
        (
            "multi_get",
            |tx, map| tx.multi_get(map, &["b", "c"]).map(drop),
            "c",
            "d",
        ),
        ("update", |tx, map| tx.update(map, "x", "1").map(drop), "x", "y"),
        (
            "edit_with",
            |tx, map| tx.edit_with(map, "b", |_| None).map(drop),
            "b",
            "c",
        ),
        ("pop_first", |tx, map| tx.pop_first(map).map(drop), "a", "c"),
        ("last", |tx, map| tx.last(map).map(drop), "e", "c"),
    ];
    for (name, form, read, other) in forms {
        for (key, conflicts) in [(read, true), (other, false)] {
            let db = Db::anonymous()?;
            let (map, log) = (db.map("m")?, db.map("log")?);
            map.load([("b", "1"), ("c", "2"), ("d", "3")])?;
            let mut tx = db.begin();
            form(&mut tx, &map)?;
            tx.upsert(&log, "done", name)?;
            map.upsert(key, "other")?;
            let conflict = matches!(tx.commit(), Err(Error::Conflict { .. }));
            assert_eq!(conflict, conflicts, "{name}, and a write of {key}");
        }
    }
    Ok(())
}

/// Maps of another database are refused by each form.
#[test]
fn other_databases_are_refused() -> Result<(), Error> {
    let (db, theirs) = (Db::anonymous()?, Db::anonymous()?.map("m")?);
    let mut tx = db.begin();
    let refused = [
        tx.multi_get(&theirs, &["a"]).map(drop),
        tx.update(&theirs, "a", "1").map(drop),
        tx.edit_with(&theirs, "a", |_| None).map(drop),
        tx.first(&theirs).map(drop),
        tx.pop_last(&theirs).map(drop),
    ];
    for result in refused {
        assert!(matches!(result, Err(Error::OtherDatabase(_))), "{result:?}");
    }
    Ok(())
}

fn look(view: &View) -> Result<(Option<Entry>, Option<Entry>, u64, bool), Error> {
    Ok((view.first()?, view.last()?, view.len()?, view.is_empty()?))
}

/// A view answers as the map did at its moment, whatever was changed, added and removed since.
#[test]
fn views_answer_as_the_map_did() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    let empty = db.snapshot()?.view(&map)?;
    map.load([("b", "1"), ("c", "2"), ("d", "3")])?;
    let full = db.snapshot()?.view(&map)?;
    map.load([("a", "0"), ("c", "x"), ("e", "4")])?;
    map.remove("b")?;
    map.remove("d")?;
    let later = db.map("later")?;
    later.upsert("a", "1")?;
    assert_eq!(look(&empty)?, (None, None, 0, true));
    let entry = |key: &str, value: &str| Some((key.into(), value.into()));
    assert_eq!(look(&full)?, (entry("b", "1"), entry("d", "3"), 3, false));
    let found = full.multi_get(&["e", "d", "c", "b", "a"])?;
    let expected = [None, Some("3"), Some("2"), Some("1"), None];
    assert_eq!(
        found,
        expected.map(|value| value.map(|value| value.as_bytes().to_vec()))
    );
    assert_eq!(empty.multi_get(&["b"])?, [None]);
    let made_since = db.snapshot()?;
    let newer = db.map("newer")?;
    newer.upsert("a", "1")?;
    assert_eq!(made_since.view(&newer)?.multi_get(&["a"])?, [None]);
    Ok(())
}

/// A view that is outgrown says so to each form.
#[test]
fn outgrown_views_say_so() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    map.upsert("a", "1")?;
    let view = db.snapshot_within(1)?.view(&map)?;
    map.upsert("a", "2")?;
    let results = [
        view.multi_get(&["a"]).map(drop),
        view.first().map(drop),
        view.len().map(drop),
        view.is_empty().map(drop),
    ];
    for result in results {
        assert!(matches!(result, Err(Error::SnapshotOutgrown(_))), "{result:?}");
    }
    Ok(())
}

/// All readers of an expiring map pass over expired entries, from both ends.
#[test]
fn expired_entries_are_passed_over() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = Expiring::new(db.map("m")?).with_durability(Durability::Eventual);
    for (key, life) in [
        ("a1", OVER),
        ("a2", None),
        ("b1", OVER),
        ("b2", HOUR),
        ("c", OVER),
    ] {
        map.upsert(key, key, life)?;
    }
    let entry = |key: &str| (key.as_bytes().to_vec(), key.as_bytes().to_vec());
    assert_eq!(map.first()?, Some(entry("a2")));
    assert_eq!(map.last()?, Some(entry("b2")));
    assert_eq!((map.len()?, map.is_empty()?), (2, false));
    assert!(map.contains("a2")? && !map.contains("a1")? && !map.contains("x")?);
    let found = map.multi_get(&["b2", "b1", "x"])?;
    assert_eq!(found, [Some(b"b2".to_vec()), None, None]);
    let all: Vec<Entry> = map.into_iter().collect::<Result<_, _>>()?;
    assert_eq!(all, [entry("a2"), entry("b2")]);
    let back: Vec<Entry> = map.iter().rev().collect::<Result<_, _>>()?;
    assert_eq!(back, [entry("b2"), entry("a2")]);
    assert_eq!((map.prefix("a").count(), map.range("b".."c").count()), (1, 1));
    // The iterator owns its bounds and its map.
    let rest = {
        let (map, lower) = (map.clone(), String::from("b"));
        map.range(&lower..)
    };
    assert_eq!(rest.count(), 1);
    map.remove("a2")?;
    map.touch("b2", OVER)?;
    assert_eq!((map.first()?, map.len()?, map.is_empty()?), (None, 0, true));
    Ok(())
}

/// Edits see an expired entry as absent, and keep or replace the life of a live one as they say.
#[test]
fn edits_of_expiring_entries() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = Expiring::new(db.map("m")?);
    map.upsert("over", "1", OVER)?;
    assert!(!map.update("over", "2", HOUR)? && !map.update("none", "2", HOUR)?);
    assert!(!map.compare_and_swap("over", Some("1"), Some("2"), HOUR)?);
    assert!(map.compare_and_swap("over", None, Some("2"), HOUR)?);
    assert!(map.update("over", "3", None)?);
    assert_eq!(map.get_with_life("over")?, Some((b"3".to_vec(), None)));
    assert!(!map.compare_and_swap("over", Some("2"), None, None)?);
    assert!(map.compare_and_swap("over", Some("3"), None, None)?);
    assert!(map.compare_and_swap::<&str>("over", None, None, None)? && map.map().is_empty()?);

    map.upsert("key", "1", HOUR)?;
    let before = map.map().get("key")?.expect("just put");
    let kept = map.edit_with("key", |current| {
        current.map(|(value, left)| ([value, b"1"].concat(), left))
    })?;
    assert!(kept.is_some_and(|(value, left)| value == b"11" && left <= HOUR));
    let after = map.map().get("key")?.expect("still alive");
    assert_eq!(before[..8], after[..8], "the life is the same to the millisecond");
    assert_eq!(map.edit_with("key", |_| None)?, None);
    map.upsert("key", "1", OVER)?;
    let absent = map.edit_with("key", |current| {
        assert_eq!(current, None);
        None
    })?;
    assert!(absent.is_none() && map.map().is_empty()?);

    map.map().upsert("foreign", "short")?;
    assert!(matches!(map.contains("foreign"), Err(Error::NotExpiring(_))));
    assert!(matches!(
        map.edit_with("foreign", |_| None),
        Err(Error::NotExpiring(_))
    ));
    assert!(map.first().is_err() && map.len().is_err() && map.multi_get(&["foreign"]).is_err());
    assert_eq!(map.map().get("foreign")?, Some(b"short".to_vec()));
    Ok(())
}

/// In a transaction, too, an expired entry is absent.
#[test]
fn expired_entries_are_absent_in_transactions() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = Expiring::new(db.map("m")?);
    map.upsert("a1", "old", OVER)?;
    map.upsert("a2", "old", HOUR)?;
    db.transact(|tx| {
        assert!(!map.contains_in(tx, "a1")? && map.contains_in(tx, "a2")?);
        assert!(map.insert_in(tx, "a1", "new", None)? && !map.insert_in(tx, "a2", "new", None)?);
        map.upsert_in(tx, "a3", "new", OVER)?;
        assert_eq!(map.prefix_in(tx, "a")?.count(), 2);
        Ok::<_, Error>(())
    })?;
    assert_eq!(map.get("a1")?, Some(b"new".to_vec()));
    assert_eq!(map.get("a2")?, Some(b"old".to_vec()));
    Ok(())
}

/// Maps without an order have no ends in any form, and their entries can be read all the same.
#[test]
fn maps_without_order_have_no_ends() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = db.map_with("m", IndexKind::Clht)?;
    let expiring = Expiring::new(map.clone());
    expiring.upsert("a", "1", None)?;
    let view = db.snapshot()?.view(&map)?;
    assert!(view.first().is_err() && view.last().is_err());
    assert_eq!((view.len()?, view.is_empty()?), (1, false));
    assert!(expiring.first().is_err() && expiring.last().is_err());
    assert_eq!((expiring.len()?, expiring.is_empty()?), (1, false));
    let mut tx = db.begin();
    assert!(tx.first(&map).is_err() && tx.pop_last(&map).is_err());
    assert!(tx.multi_get(&map, &["a", "b"])?[0].is_some());
    Ok(())
}
