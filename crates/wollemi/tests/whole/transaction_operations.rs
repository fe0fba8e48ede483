//! Map operations within transactions: each sees the transaction's own changes, and its reads are checked.

use proptest::prelude::*;
use std::collections::BTreeMap;
use wollemi::{Db, Entry, Error, Map};

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

/// Each of these operations adds what it reads to the transaction's reads: a write of that key before the commit is a
/// conflict, and a write of another key is not.
#[test]
fn reads_of_each_operation_are_checked() -> Result<(), Error> {
    type Operation = fn(&mut wollemi::Transaction<'_>, &Map) -> Result<(), Error>;
    let operations: [(&str, Operation, &str, &str); 7] = [
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
        ("pop_last", |tx, map| tx.pop_last(map).map(drop), "e", "c"),
        ("first", |tx, map| tx.first(map).map(drop), "a", "c"),
        ("last", |tx, map| tx.last(map).map(drop), "e", "c"),
    ];
    for (name, operation, read, other) in operations {
        for (key, conflicts) in [(read, true), (other, false)] {
            let db = Db::anonymous()?;
            let (map, log) = (db.map("m")?, db.map("log")?);
            map.load([("b", "1"), ("c", "2"), ("d", "3")])?;
            let mut tx = db.begin();
            operation(&mut tx, &map)?;
            tx.upsert(&log, "done", name)?;
            map.upsert(key, "other")?;
            let conflict = match tx.commit() {
                Ok(()) => false,
                Err(Error::Conflict { .. }) => true,
                Err(other) => return Err(other),
            };
            assert_eq!(conflict, conflicts, "{name}, and a write of {key}");
        }
    }
    Ok(())
}

/// Maps of another database are refused by each operation.
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
