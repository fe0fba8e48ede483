//! Watches: every change of the keys with a prefix is an event, in order; a watch that lags learns how many events it
//! has missed.

use std::collections::BTreeMap;
use std::time::Duration;
use wollemi::{Db, Error, Event};

/// While threads write, singly and by batches, the events of a watch, applied in order to the initial content, yield
/// the map's final content; keys without the prefix cause no events.
#[test]
fn what_is_told_is_what_is_there() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    map.load((0..20u8).map(|i| ([b'w', i], [0; 8])))?;
    let mut seen: BTreeMap<Vec<u8>, Vec<u8>> = map.prefix("w").collect::<Result<_, _>>()?;
    let watch = map.watch("w", usize::MAX)?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4u64)
            .map(|thread| {
                let (db, map) = (&db, &map);
                scope.spawn(move || -> Result<(), Error> {
                    for i in 0..2000u64 {
                        let key = [b'w' + u8::from(i % 5 == 0), (i * 7 % 20) as u8];
                        match (i + thread) % 4 {
                            0 => _ = map.remove(key)?,
                            1 => {
                                let mut batch = db.batch();
                                batch
                                    .upsert(map, key, i.to_be_bytes())
                                    .remove(map, [b'w', thread as u8]);
                                batch.commit()?;
                            }
                            _ => map.upsert(key, (i << 8 | thread).to_le_bytes())?,
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    let held: BTreeMap<_, _> = map.prefix("w").collect::<Result<_, _>>()?;
    drop((map, db));
    let mut changes = 0;
    for event in watch {
        let Event::Changed { key, value } = event else {
            panic!("nothing can be lost");
        };
        assert_eq!(key[0], b'w');
        match value {
            Some(value) => drop(seen.insert(key, value)),
            None => drop(seen.remove(&key)),
        }
        changes += 1;
    }
    assert!(changes > 4000, "{changes}");
    assert_eq!(seen, held);
    Ok(())
}

/// A watch that lags gets the number of missed events, and then the latest; a write that fails or changes nothing is
/// not an event.
#[test]
fn a_watch_that_lags_is_told() -> Result<(), Error> {
    let map = Db::anonymous()?.map("m")?;
    let mut watch = map.watch("", 2)?;
    assert_eq!(watch.try_next(), None);
    for i in 0..5u8 {
        map.upsert([i], [i])?;
    }
    assert!(!map.insert([1], "there already")?);
    assert!(!map.remove([9])?);
    assert!(map.upsert(vec![0; 70_000], "too long").is_err());
    let changed = |i: u8| Event::Changed {
        key: vec![i],
        value: Some(vec![i]),
    };
    assert_eq!(watch.next(), Some(Event::Missed(3)));
    assert_eq!(watch.next_within(Duration::from_secs(60)), Some(changed(3)));
    assert_eq!(watch.try_next(), Some(changed(4)));
    assert_eq!(watch.next_within(Duration::ZERO), None);
    Ok(())
}

/// A watch ends when its map is dropped, and does not see the next map of that name.
#[test]
fn a_watch_ends_with_its_map() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    let other = db.map("other")?;
    let (watch, mut of_other) = (map.watch("", 10)?, other.watch("", 10)?);
    map.upsert("a", "1")?;
    drop(map);
    assert!(db.drop_map("m")?);
    db.map("m")?.upsert("b", "2")?;
    let changed = |key: &str, value: &str| Event::Changed {
        key: key.into(),
        value: Some(value.into()),
    };
    assert_eq!(watch.collect::<Vec<_>>(), [changed("a", "1")]);
    other.upsert("c", "3")?;
    assert_eq!(of_other.try_next(), Some(changed("c", "3")));
    Ok(())
}
