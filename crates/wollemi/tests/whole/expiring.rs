//! Maps whose entries expire: an expired entry is absent for all readers, swept or not.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::Duration;
use wollemi::{Action, Db, Durability, Edit, Entry, Error, Expiring};

const HOUR: Option<Duration> = Some(Duration::from_secs(3600));
const EXPIRED: Option<Duration> = Some(Duration::ZERO);

#[derive(Clone, Debug)]
enum Op {
    Upsert(u8, Vec<u8>, Option<Duration>),
    Insert(u8, Vec<u8>, Option<Duration>),
    Touch(u8, Option<Duration>),
    Remove(u8),
    Sweep(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let life = || prop_oneof![Just(None), Just(HOUR), Just(EXPIRED), Just(Some(Duration::MAX))];
    let value = || prop::collection::vec(any::<u8>(), 0..12);
    prop_oneof![
        (0..12u8, value(), life()).prop_map(|(key, value, life)| Op::Upsert(key, value, life)),
        (0..12u8, value(), life()).prop_map(|(key, value, life)| Op::Insert(key, value, life)),
        (0..12u8, life()).prop_map(|(key, life)| Op::Touch(key, life)),
        (0..12u8).prop_map(Op::Remove),
        (1..5usize).prop_map(Op::Sweep),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// An expiring map behaves as a map of its live entries; sweeping changes nothing visible, and leaves no expired
    /// entry.
    #[test]
    fn what_is_over_is_absent(ops in prop::collection::vec(op(), 0..80)) {
        let map = Expiring::new(Db::anonymous()?.map("m")?);
        // The live entries, and whether each expires.
        let mut model: BTreeMap<u8, (Vec<u8>, bool)> = BTreeMap::new();
        let mut cursor = None;
        for op in ops {
            match op {
                Op::Upsert(key, value, life) => {
                    map.upsert([key], &value, life)?;
                    model.remove(&key);
                    if life != EXPIRED {
                        model.insert(key, (value, life.is_some()));
                    }
                }
                Op::Insert(key, value, life) => {
                    let absent = !model.contains_key(&key);
                    prop_assert_eq!(map.insert([key], &value, life)?, absent);
                    if absent && life != EXPIRED {
                        model.insert(key, (value, life.is_some()));
                    }
                }
                Op::Touch(key, life) => {
                    prop_assert_eq!(map.touch([key], life)?, model.contains_key(&key));
                    if life == EXPIRED {
                        model.remove(&key);
                    } else if let Some((_, ends)) = model.get_mut(&key) {
                        *ends = life.is_some();
                    }
                }
                Op::Remove(key) => prop_assert_eq!(map.remove([key])?, model.remove(&key).is_some()),
                Op::Sweep(limit) => {
                    let swept = map.sweep(&mut cursor, limit)?;
                    prop_assert!(swept.removed <= swept.seen && swept.seen <= limit);
                    prop_assert_eq!(cursor.is_none(), swept.seen < limit);
                }
            }
            for key in 0..12u8 {
                let found = map.get_with_life([key])?.map(|(value, life)| (value, life.is_some()));
                prop_assert_eq!(found.as_ref(), model.get(&key));
                prop_assert_eq!(map.get([key])?, found.map(|(value, _)| value));
            }
        }
        let expected: Vec<Entry> = model.iter().map(|(&key, (value, _))| (vec![key], value.clone())).collect();
        prop_assert_eq!(map.range(..).collect::<Result<Vec<_>, _>>()?, expected.clone());
        let mut cursor = None;
        while map.sweep(&mut cursor, 3)?.seen == 3 {}
        prop_assert_eq!(map.map().count()?, model.len() as u64);
        prop_assert_eq!(map.range(..).rev().count(), expected.len());
    }
}

fn entries(found: impl Iterator<Item = Result<Entry, Error>>) -> Result<Vec<Entry>, Error> {
    found.collect()
}

/// All readers of an expiring map pass over expired entries, from both ends.
#[test]
fn expired_entries_are_passed_over() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = Expiring::new(db.map("m")?).with_durability(Durability::Eventual);
    for (key, life) in [
        ("a1", EXPIRED),
        ("a2", None),
        ("b1", EXPIRED),
        ("b2", HOUR),
        ("c", EXPIRED),
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
    assert_eq!(entries(map.prefix("a"))?, [entry("a2")]);
    assert_eq!(entries(map.range("b".."c"))?, [entry("b2")]);
    // The iterator owns its bounds and its map.
    let rest = {
        let (map, lower) = (map.clone(), String::from("b"));
        map.range(&lower..)
    };
    assert_eq!(entries(rest)?, [entry("b2")]);
    map.remove("a2")?;
    map.touch("b2", EXPIRED)?;
    assert_eq!((map.first()?, map.len()?, map.is_empty()?), (None, 0, true));
    Ok(())
}

/// Edits see an expired entry as absent, and keep or replace the life of a live one as the closure returns.
#[test]
fn edits_of_expiring_entries() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = Expiring::new(db.map("m")?);
    map.upsert("over", "1", EXPIRED)?;
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
    map.upsert("key", "1", EXPIRED)?;
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
    assert!(matches!(map.first(), Err(Error::NotExpiring(_))));
    assert!(matches!(map.len(), Err(Error::NotExpiring(_))));
    assert!(matches!(map.multi_get(&["foreign"]), Err(Error::NotExpiring(_))));
    assert_eq!(map.map().get("foreign")?, Some(b"short".to_vec()));
    Ok(())
}

/// The sweeper removes expired entries and nothing else, while other threads write, and ends when it is dropped.
#[test]
fn the_sweeper_removes_what_is_over() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = Expiring::new(db.map("m")?);
    for i in 0..2000u32 {
        map.upsert(i.to_be_bytes(), "value", if i % 4 == 0 { HOUR } else { EXPIRED })?;
    }
    let sweeper = map.sweeper(Duration::from_micros(10))?;
    for round in 0u64.. {
        map.upsert(1_000_000u32.to_be_bytes(), round.to_le_bytes(), None)?;
        if sweeper.removed() >= 1500 {
            break;
        }
    }
    drop(sweeper);
    assert_eq!(map.map().count()?, 501);
    assert_eq!(map.range(..).count(), 501);
    drop(map);
    assert!(db.drop_map("m")?);
    Ok(())
}

/// A sweeper walks the whole map at once, however long it sleeps afterwards and however little it finds.
#[test]
fn a_sweeper_rests_between_rounds_only() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = Expiring::new(db.map("m")?);
    for i in 0..4000u32 {
        map.upsert(i.to_be_bytes(), "value", if i % 8 == 0 { EXPIRED } else { HOUR })?;
    }
    let sweeper = map.sweeper(Duration::from_secs(3600))?;
    // Upper bound; beyond it the sweeper counts as hung.
    for _ in 0..6000 {
        if sweeper.removed() == 500 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(sweeper.removed(), 500);
    Ok(())
}

/// A batch's puts equal the map's own, and a snapshot's view reads like the map.
#[test]
fn batches_and_snapshots_have_its_bytes() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = Expiring::new(db.map("m")?);
    let lives = [("ever", None), ("hour", HOUR), ("over", EXPIRED)];
    let mut batch = db.batch();
    for (key, life) in lives {
        batch.upsert(map.map(), key, map.bytes("value", life));
    }
    assert!(batch.commit()?);
    let snapshot = db.snapshot()?;
    let view = snapshot.view(map.map())?;
    for (key, life) in lives {
        map.upsert("another", "value", life)?;
        for (key, bytes) in [(key, view.get(key)?), ("another", map.map().get("another")?)] {
            let read = map.read(&bytes.expect("the entry exists"))?;
            let shown = read.map(|(value, left)| (value, left.is_some()));
            let found = map
                .get_with_life(key)?
                .map(|(value, left)| (value, left.is_some()));
            assert_eq!(
                shown,
                (life != EXPIRED).then(|| (b"value".to_vec(), life.is_some()))
            );
            assert_eq!(shown, found);
        }
    }
    assert!(matches!(map.read(b"short"), Err(Error::NotExpiring(_))));
    Ok(())
}

/// Every operation refuses a value that was not written through `Expiring`, and leaves it alone.
#[test]
fn other_values_are_refused() -> Result<(), Error> {
    let map = Db::anonymous()?.map("m")?;
    map.upsert("k", "short")?;
    let expiring = Expiring::new(map.clone());
    assert!(matches!(expiring.get("k"), Err(Error::NotExpiring(_))));
    assert!(matches!(expiring.remove("k"), Err(Error::NotExpiring(_))));
    assert!(matches!(
        expiring.insert("k", "v", None),
        Err(Error::NotExpiring(_))
    ));
    assert!(expiring.range(..).any(|entry| entry.is_err()));
    expiring.sweep(&mut None, 10)?;
    assert_eq!(map.get("k")?, Some(b"short".to_vec()));
    Ok(())
}

/// An edit that signals that it was called, and returns when it is released.
struct Held(mpsc::Sender<()>, mpsc::Receiver<()>);

impl Edit for Held {
    fn decide(&mut self, _: Option<&[u8]>) -> Action {
        self.0.send(()).expect("the test waits");
        self.1.recv().expect("the test releases it");
        Action::Keep
    }

    fn value(&self) -> &[u8] {
        &[]
    }
}

/// A touch that has waited for the key does not revive an entry that expired meanwhile and that readers have seen
/// absent.
#[test]
fn a_touch_that_waits_revives_nothing() -> Result<(), Error> {
    const LIFE: Duration = Duration::from_millis(300);
    let db = Db::anonymous()?;
    let map = Expiring::new(db.map("m")?);
    map.upsert("key", "value", Some(LIFE))?;
    let ((asked, is_asked), (go, goes)) = (mpsc::channel(), mpsc::channel());
    std::thread::scope(|scope| {
        let editor = scope.spawn(|| map.map().edit("key", &mut Held(asked, goes)));
        is_asked.recv().expect("the edit is called");
        let toucher = scope.spawn(|| map.touch("key", HOUR));
        while map.get("key")?.is_some() {
            std::thread::sleep(LIFE / 30);
        }
        go.send(()).expect("the edit waits");
        editor.join().expect("no panic")?;
        assert!(!toucher.join().expect("no panic")?, "the entry had expired");
        assert_eq!(map.get("key")?, None);
        Ok(())
    })
}
