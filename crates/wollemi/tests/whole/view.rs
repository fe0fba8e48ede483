//! Reads of views: all of them show the map at the snapshot's moment.

use wollemi::{Db, Entry, Error, View};

fn summary(view: &View) -> Result<(Option<Entry>, Option<Entry>, u64, bool), Error> {
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
    assert_eq!(summary(&empty)?, (None, None, 0, true));
    let entry = |key: &str, value: &str| Some((key.into(), value.into()));
    assert_eq!(summary(&full)?, (entry("b", "1"), entry("d", "3"), 3, false));
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

/// Each read of an outgrown view returns `SnapshotOutgrown`.
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
        view.last().map(drop),
        view.len().map(drop),
        view.is_empty().map(drop),
    ];
    for result in results {
        assert!(matches!(result, Err(Error::SnapshotOutgrown(_))), "{result:?}");
    }
    Ok(())
}

/// An iterator over a view that has ended, or that has yielded an error, yields nothing more.
#[test]
fn what_has_ended_stays_ended() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    map.upsert("a", "1")?;
    let view = db.snapshot_within(1)?.view(&map)?;
    let (mut ended, mut failed) = (view.iter(), view.iter());
    assert_eq!(ended.by_ref().filter(Result::is_ok).count(), 1);
    map.upsert("a", "2")?;
    assert!(ended.next().is_none());
    assert!(matches!(failed.next(), Some(Err(Error::SnapshotOutgrown(_)))));
    assert!(failed.next().is_none() && failed.next_back().is_none());
    Ok(())
}
