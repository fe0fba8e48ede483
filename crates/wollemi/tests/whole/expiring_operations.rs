//! Expiring maps: loads, pops, and their use in transactions, in views of snapshots and with watches.

use crate::unordered::is_unordered;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use wollemi::{
    Db, Entry, Error, Event, Expiring, ExpiringIter, IndexKind, Transaction, TransactionRange, WithLife,
};

const HOUR: Option<Duration> = Some(Duration::from_secs(3600));
const EXPIRED: Option<Duration> = Some(Duration::ZERO);

/// Entries of which those with the odd numbers have expired.
const MIXED: [(&str, &str, Option<Duration>); 5] = [
    ("a1", "1", EXPIRED),
    ("a2", "2", HOUR),
    ("a3", "3", EXPIRED),
    ("b4", "4", None),
    ("b5", "5", EXPIRED),
];

fn entry(key: &str, value: &str) -> Entry {
    (key.into(), value.into())
}

/// Returns the value, and whether it has a life of at most an hour.
fn shown(found: Option<WithLife>) -> Option<(String, bool)> {
    let (value, life) = found?;
    assert!(life <= HOUR);
    Some((String::from_utf8(value).expect("text"), life.is_some()))
}

/// A load sets many entries with their lives.
#[test]
fn a_load_has_lives() -> Result<(), Error> {
    let map = Expiring::new(Db::anonymous()?.map("m")?);
    assert_eq!(map.load(MIXED)?, 5);
    assert_eq!((map.len()?, map.map().len()?), (2, 5));
    assert_eq!(shown(map.get_with_life("a2")?), Some(("2".into(), true)));
    assert_eq!(shown(map.get_with_life("b4")?), Some(("4".into(), false)));
    Ok(())
}

/// Pops return live entries alone, and leave none of the expired ones that they have passed.
#[test]
fn pops_pass_over_expired_entries() -> Result<(), Error> {
    let map = Expiring::new(Db::anonymous()?.map("m")?);
    map.load(MIXED)?;
    assert_eq!(map.pop_last()?, Some(entry("b4", "4")));
    assert_eq!(map.map().len()?, 3);
    assert_eq!(map.pop_first()?, Some(entry("a2", "2")));
    assert_eq!(map.map().len()?, 1);
    assert_eq!((map.pop_first()?, map.pop_last()?), (None, None));
    assert!(map.map().is_empty()?);

    map.map().upsert("foreign", "short")?;
    assert!(matches!(map.pop_first(), Err(Error::NotExpiring(_))));
    assert!(matches!(map.pop_last(), Err(Error::NotExpiring(_))));
    assert_eq!(map.map().get("foreign")?, Some(b"short".to_vec()));
    Ok(())
}

/// Threads that pop from both ends, while others put live and expired entries, pop each live entry once.
#[test]
fn each_live_entry_is_popped_once() -> Result<(), Error> {
    const PUTTERS: u32 = 2;
    const EACH: u32 = 400;
    let map = Expiring::new(Db::anonymous()?.map("m")?);
    let (popped, all) = (AtomicUsize::new(0), (PUTTERS * EACH / 2) as usize);
    let pop = |first: bool| {
        let mut entries = Vec::new();
        while popped.load(Ordering::SeqCst) < all {
            let entry = if first { map.pop_first() } else { map.pop_last() };
            match entry.expect("a try without a conflict") {
                Some(entry) => {
                    popped.fetch_add(1, Ordering::SeqCst);
                    entries.push(entry);
                }
                None => std::thread::yield_now(),
            }
        }
        entries
    };
    let entries: Vec<Entry> = std::thread::scope(|scope| {
        for putter in 0..PUTTERS {
            let map = &map;
            scope.spawn(move || {
                for i in 0..EACH {
                    let life = if i % 2 == 0 { EXPIRED } else { HOUR };
                    let key = (i * PUTTERS + putter).to_be_bytes();
                    assert!(map.insert(key, key, life).expect("there is room"));
                }
            });
        }
        let poppers = [true, false, true].map(|first| scope.spawn(move || pop(first)));
        let entries = poppers
            .into_iter()
            .flat_map(|popper| popper.join().expect("no panic"));
        entries.collect()
    });
    assert!(entries.iter().all(|(key, value)| key == value));
    let keys: BTreeSet<_> = entries.iter().map(|(key, _)| key).collect();
    assert_eq!((keys.len(), entries.len()), (all, all));
    assert_eq!((map.pop_first()?, map.map().len()?), (None, 0));
    Ok(())
}

/// In a transaction an expired entry is absent.
#[test]
fn expired_entries_are_absent_in_transactions() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = Expiring::new(db.map("m")?);
    map.upsert("a1", "old", EXPIRED)?;
    map.upsert("a2", "old", HOUR)?;
    db.transact(|tx| {
        assert!(!map.contains_in(tx, "a1")? && map.contains_in(tx, "a2")?);
        assert!(map.insert_in(tx, "a1", "new", None)? && !map.insert_in(tx, "a2", "new", None)?);
        map.upsert_in(tx, "a3", "new", EXPIRED)?;
        let live = map.prefix_in(tx, "a")?.collect::<Result<Vec<_>, _>>()?;
        assert_eq!(live, [entry("a1", "new"), entry("a2", "old")]);
        Ok::<_, Error>(())
    })?;
    assert_eq!(map.get("a1")?, Some(b"new".to_vec()));
    assert_eq!(map.get("a2")?, Some(b"old".to_vec()));
    Ok(())
}

/// In a transaction an expired entry is absent for edits, and a live one keeps or changes its life as the
/// closure returns.
#[test]
fn transactions_edit_live_entries() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = Expiring::new(db.map("m")?);
    map.load(MIXED)?;
    let before = map.map().get("a2")?.expect("just put");
    let mut tx = db.begin();
    assert!(!map.update_in(&mut tx, "a1", "new", HOUR)? && !map.update_in(&mut tx, "x", "new", HOUR)?);
    assert!(!map.touch_in(&mut tx, "a3", HOUR)? && !map.touch_in(&mut tx, "x", HOUR)?);
    assert!(tx.is_empty());
    assert!(map.update_in(&mut tx, "b4", "new", HOUR)? && map.touch_in(&mut tx, "b4", None)?);
    let grow = |current: Option<(&[u8], Option<Duration>)>| {
        current.map(|(value, left)| ([value, b"2"].concat(), left))
    };
    assert_eq!(
        shown(map.edit_with_in(&mut tx, "a2", grow)?),
        Some(("22".into(), true))
    );
    assert_eq!(map.edit_with_in(&mut tx, "x", grow)?, None);
    let born = map.edit_with_in(&mut tx, "a3", |current| {
        assert_eq!(current, None);
        Some((b"33".to_vec(), None))
    })?;
    assert_eq!(shown(born), Some(("33".into(), false)));
    assert_eq!(map.edit_with_in(&mut tx, "b5", |_| None)?, None);
    let found = map.multi_get_in(&tx, &["b5", "b4", "a3", "a2", "a1"])?;
    let expected = [None, Some("new"), Some("33"), Some("22"), None];
    assert_eq!(found, expected.map(|value| value.map(Into::into)));
    tx.commit()?;

    let after = map.map().get("a2")?.expect("still alive");
    assert_eq!(before[..8], after[..8], "the life is the same to the millisecond");
    assert_eq!(shown(map.get_with_life("b4")?), Some(("new".into(), false)));
    assert!(!map.map().contains("b5")?, "an edit removes an expired entry");

    map.map().upsert("foreign", "short")?;
    let mut tx = db.begin();
    let refused = [
        map.update_in(&mut tx, "foreign", "new", None).map(drop),
        map.touch_in(&mut tx, "foreign", None).map(drop),
        map.edit_with_in(&mut tx, "foreign", |_| None).map(drop),
        map.multi_get_in(&tx, &["foreign"]).map(drop),
    ];
    for result in refused {
        assert!(matches!(result, Err(Error::NotExpiring(_))), "{result:?}");
    }
    assert!(tx.is_empty());
    Ok(())
}

/// In a transaction the ends of a map are those of its live entries, and pops remove the expired ones that they pass.
#[test]
fn transactions_pop_live_entries() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = Expiring::new(db.map("m")?);
    map.load(MIXED)?;
    let mut tx = db.begin();
    assert_eq!(map.first_in(&tx)?, Some(entry("a2", "2")));
    assert_eq!(map.last_in(&tx)?, Some(entry("b4", "4")));
    map.upsert_in(&mut tx, "0", "expired", EXPIRED)?;
    map.upsert_in(&mut tx, "a0", "0", HOUR)?;
    assert_eq!(map.pop_first_in(&mut tx)?, Some(entry("a0", "0")));
    assert_eq!(map.first_in(&tx)?, Some(entry("a2", "2")));
    assert_eq!(map.pop_last_in(&mut tx)?, Some(entry("b4", "4")));
    assert_eq!(tx.len(), 4, "0, a0, b4 and b5");
    assert_eq!(map.pop_last_in(&mut tx)?, Some(entry("a2", "2")));
    assert_eq!(
        (map.pop_last_in(&mut tx)?, map.pop_first_in(&mut tx)?),
        (None, None)
    );
    assert_eq!((map.first_in(&tx)?, map.last_in(&tx)?), (None, None));
    tx.commit()?;
    assert!(map.map().is_empty()?);

    map.map().upsert("foreign", "short")?;
    let mut tx = db.begin();
    assert!(map.first_in(&tx).is_err() && map.last_in(&tx).is_err());
    assert!(map.pop_first_in(&mut tx).is_err() && map.pop_last_in(&mut tx).is_err());
    assert!(tx.is_empty());
    Ok(())
}

/// What these operations read counts as read, the expired entries before a popped one included.
#[test]
fn reads_of_transactions_are_checked() -> Result<(), Error> {
    type Form = fn(&mut Transaction<'_>, &Expiring) -> Result<(), Error>;
    let forms: [(&str, Form, &str, &str); 5] = [
        (
            "multi_get_in",
            |tx, map| map.multi_get_in(tx, &["a1", "x"]).map(drop),
            "x",
            "a2",
        ),
        (
            "update_in",
            |tx, map| map.update_in(tx, "a1", "new", None).map(drop),
            "a1",
            "a2",
        ),
        (
            "edit_with_in",
            |tx, map| map.edit_with_in(tx, "x", |_| None).map(drop),
            "x",
            "a2",
        ),
        (
            "pop_first_in",
            |tx, map| map.pop_first_in(tx).map(drop),
            "a1",
            "a3",
        ),
        ("last_in", |tx, map| map.last_in(tx).map(drop), "b5", "a2"),
    ];
    for (name, form, read, other) in forms {
        for (key, conflicts) in [(read, true), (other, false)] {
            let db = Db::anonymous()?;
            let (map, log) = (Expiring::new(db.map("m")?), db.map("log")?);
            map.load(MIXED)?;
            let mut tx = db.begin();
            form(&mut tx, &map)?;
            tx.upsert(&log, "done", name)?;
            map.upsert(key, "other", None)?;
            let conflict = matches!(tx.commit(), Err(Error::Conflict { .. }));
            assert_eq!(conflict, conflicts, "{name}, and a write of {key}");
        }
    }
    Ok(())
}

/// Returns an iterator that borrows the transaction, but neither the map nor the bounds.
fn from<'t>(
    tx: &'t Transaction<'_>,
    map: &Expiring,
    lower: &str,
) -> Result<ExpiringIter<TransactionRange<'t>>, Error> {
    map.range_in(tx, lower..)
}

/// Iterators in transactions show live entries from both ends, and can be returned by functions.
#[test]
fn iterators_borrow_the_transaction_alone() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = Expiring::new(db.map("m")?);
    map.load(MIXED)?;
    let tx = db.begin();
    let found: Vec<Entry> = from(&tx, &map, "a2")?.rev().collect::<Result<_, _>>()?;
    assert_eq!(found, [entry("b4", "4"), entry("a2", "2")]);
    let begins = {
        let prefix = String::from("a");
        map.clone().prefix_in(&tx, &prefix)?
    };
    assert_eq!(begins.count(), 1);
    Ok(())
}

/// A view shows the live entries of its moment, whatever was changed, swept and popped since.
#[test]
fn views_show_live_entries() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = Expiring::new(db.map("m")?);
    let empty = map.view(&db.snapshot()?)?;
    map.load(MIXED)?;
    let view = map.view(&db.snapshot()?)?;
    map.sweep(&mut None, 10)?;
    map.upsert("a2", "changed", None)?;
    map.upsert("a3", "alive", None)?;
    assert!(map.pop_last()?.is_some());

    assert_eq!(view.get("a2")?, Some(b"2".to_vec()));
    assert_eq!(shown(view.get_with_life("a2")?), Some(("2".into(), true)));
    assert_eq!((view.get("a3")?, view.get("x")?), (None, None));
    assert!(view.contains("b4")? && !view.contains("b5")?);
    assert_eq!(
        view.multi_get(&["b4", "a3", "a2"])?,
        [Some(b"4".to_vec()), None, Some(b"2".to_vec())]
    );
    let all: Vec<Entry> = view.iter().rev().collect::<Result<_, _>>()?;
    assert_eq!(all, [entry("b4", "4"), entry("a2", "2")]);
    assert_eq!((&view).into_iter().count(), 2);
    assert_eq!((view.range("a3"..).count(), view.prefix("a").count()), (1, 1));
    assert_eq!(view.first()?, Some(entry("a2", "2")));
    assert_eq!(view.last()?, Some(entry("b4", "4")));
    assert_eq!((view.len()?, view.is_empty()?), (2, false));
    assert_eq!((empty.first()?, empty.len()?, empty.is_empty()?), (None, 0, true));

    map.map().upsert("foreign", "short")?;
    let view = map.view(&db.snapshot()?)?;
    assert!(matches!(view.get("foreign"), Err(Error::NotExpiring(_))));
    assert!(view.multi_get(&["foreign"]).is_err() && view.len().is_err());
    let theirs = Expiring::new(Db::anonymous()?.map("m")?);
    assert!(matches!(
        theirs.view(&db.snapshot()?),
        Err(Error::OtherDatabase(_))
    ));
    Ok(())
}

/// Lives run on in a view: an entry that was alive at its moment is absent once it has expired.
#[test]
fn lives_run_on_in_views() -> Result<(), Error> {
    const LIFE: Duration = Duration::from_millis(300);
    let db = Db::anonymous()?;
    let map = Expiring::new(db.map("m")?);
    map.upsert("key", "value", Some(LIFE))?;
    let view = map.view(&db.snapshot()?)?;
    while view.get("key")?.is_some() {
        std::thread::sleep(LIFE / 30);
    }
    assert_eq!(
        (view.contains("key")?, view.first()?, view.len()?),
        (false, None, 0)
    );
    Ok(())
}

/// A watch shows values with their lives, and an expired value or a removal as an absent one. An event without a header
/// is an error, and later events follow.
#[test]
fn watches_show_live_values() -> Result<(), Error> {
    let map = Expiring::new(Db::anonymous()?.map("m")?);
    let mut watch = map.watch("a", 10)?;
    map.load(MIXED)?;
    map.map().upsert("a3", "short")?;
    map.map().remove("a3")?;
    let next = |event: Option<Event<Vec<u8>, WithLife>>| match event {
        Some(Event::Changed { key, value }) => Some((String::from_utf8(key).expect("text"), shown(value))),
        other => panic!("{other:?}"),
    };
    assert_eq!(next(watch.try_next()?), Some(("a1".into(), None)));
    let patience = Duration::from_secs(60);
    let event = next(watch.next_within(patience)?);
    assert_eq!(event, Some(("a2".into(), Some(("2".into(), true)))));
    assert_eq!(
        next(watch.next().transpose()?),
        Some(("a3".into(), None)),
        "an expired value"
    );
    assert!(matches!(watch.try_next(), Err(Error::NotExpiring(_))));
    assert_eq!(next(watch.try_next()?), Some(("a3".into(), None)), "a removal");
    assert_eq!(
        (watch.try_next()?, watch.next_within(Duration::ZERO)?),
        (None, None)
    );

    let mut narrow = map.watch("", 1)?;
    map.load(MIXED)?;
    assert_eq!(narrow.try_next()?, Some(Event::Missed(4)));
    Ok(())
}

/// A watch ends when the last handle to the database is dropped: it holds none itself.
#[test]
fn a_watch_ends_with_the_database() -> Result<(), Error> {
    let map = Expiring::new(Db::anonymous()?.map("m")?);
    let watch = map.watch("", 10)?;
    map.upsert("a", "1", None)?;
    drop(map);
    let (counted, count) = mpsc::channel();
    std::thread::spawn(move || counted.send(watch.count()));
    // Upper bound; beyond it the watch counts as hung.
    assert_eq!(count.recv_timeout(Duration::from_secs(60)), Ok(1));
    Ok(())
}

/// Maps without an order have no ends in any form.
#[test]
fn maps_without_order_have_no_ends() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = Expiring::new(db.map_with("m", IndexKind::Clht)?);
    map.load(MIXED)?;
    assert!(is_unordered(map.pop_first()) && is_unordered(map.pop_last()));
    let view = map.view(&db.snapshot()?)?;
    assert!(is_unordered(view.first()) && is_unordered(view.last()));
    assert_eq!((view.len()?, view.is_empty()?), (2, false));
    let mut tx = db.begin();
    assert!(is_unordered(map.first_in(&tx)) && is_unordered(map.last_in(&tx)));
    assert!(is_unordered(map.pop_first_in(&mut tx)) && is_unordered(map.pop_last_in(&mut tx)));
    assert!(is_unordered(map.range_in(&tx, ..)));
    assert_eq!(map.map().len()?, 5);
    Ok(())
}
