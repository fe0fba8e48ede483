//! Maps built from sorted pairs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use wollemi::{Db, Error, IndexError, IndexKind, Options, Pair, Pairs, Parts, Sorted};

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn entries(count: u32) -> Entries {
    let value = |i: u32| vec![i as u8; (i % 20) as usize];
    (0..count).map(|i| (i.to_be_bytes().to_vec(), value(i))).collect()
}

/// Returns all entries in the order of the keys, which some indexes lack.
fn all(map: &wollemi::Map) -> Result<Entries, Error> {
    let mut entries = map.iter().collect::<Result<Entries, _>>()?;
    entries.sort();
    Ok(entries)
}

/// A map of each index, built by three threads, holds the pairs, accepts writes, and exists after reopening.
#[test]
fn a_map_is_built() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pool");
    let pairs = entries(3000);
    let borders = [700_u32, 2100].map(u32::to_be_bytes);
    for &kind in IndexKind::ALL {
        let db = Db::open(&path)?;
        let mut parts = [&pairs[..700], &pairs[700..2100], &pairs[2100..]]
            .map(|pairs| Sorted::new(pairs.iter().map(|(key, value)| (key, value))));
        let [first, second, third] = &mut parts;
        let parts = Parts::new(first).and(&borders[0], second).and(&borders[1], third);
        let map = db.build_map_with(kind.name(), kind, parts)?;
        assert_eq!(map.index_kind(), kind);
        assert_eq!(all(&map)?, pairs);
        map.upsert("later", "written")?;
    }
    let db = Db::open(&path)?;
    for &kind in IndexKind::ALL {
        let map = db.find_map(kind.name())?.expect("the map was built");
        assert_eq!(map.count()?, 3001);
        assert_eq!(map.get("later")?, Some(b"written".to_vec()));
    }
    assert!(db.check()?.is_clean());
    Ok(())
}

/// While a map is being built, no thread finds, creates or drops one of its name, and it is not created twice.
#[test]
fn a_name_is_taken_while_its_map_is_built() -> Result<(), Error> {
    struct Asking<'d>(&'d Db, u8, [u8; 1]);
    impl Pairs for Asking<'_> {
        fn next(&mut self) -> Result<Option<Pair<'_>>, IndexError> {
            let db = self.0;
            assert!(db.find_map("map").expect("sound").is_none());
            assert!(matches!(db.map("map"), Err(Error::MapExists(_))));
            assert!(matches!(
                db.build_map("map", [("a", "b")]),
                Err(Error::MapExists(_))
            ));
            assert!(!db.drop_map("map").expect("sound"));
            self.1 += 1;
            self.2 = [self.1];
            Ok((self.1 < 4).then_some((&self.2, b"value")))
        }
    }
    let db = Db::anonymous()?;
    let map = db.build_map_with("map", IndexKind::Roart, Parts::new(&mut Asking(&db, 0, [0])))?;
    assert_eq!(map.count()?, 3);
    assert!(matches!(
        db.build_map("map", [("a", "b")]),
        Err(Error::MapExists(_))
    ));
    drop(map);
    assert!(db.drop_map("map")?);
    assert_eq!(
        all(&db.build_map("map", [("a", "b")])?)?,
        [(b"a".to_vec(), b"b".to_vec())]
    );
    Ok(())
}

/// A build that fails leaves its name free.
#[test]
fn a_build_that_fails_leaves_no_map() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let failed = db.build_map("map", [("b", "1"), ("a", "2")]);
    assert!(
        matches!(failed, Err(Error::Index(IndexError::OutOfOrder))),
        "{failed:?}"
    );
    let failed = db.build_map("map", [("a", "1"), ("a", "2")]);
    assert!(
        matches!(failed, Err(Error::Index(IndexError::OutOfOrder))),
        "{failed:?}"
    );
    assert!(db.maps()?.is_empty());
    assert!(db.map("map")?.is_empty()?);
    assert!(matches!(db.build_map("", [("a", "b")]), Err(Error::MapName(0))));
    assert!(db.check()?.is_clean());
    Ok(())
}

/// In an earlier snapshot, a map built later is empty, even after it is written to.
#[test]
fn a_snapshot_shows_nothing_of_a_map_that_is_built_later() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let before = db.snapshot()?;
    let map = db.build_map("map", entries(100))?;
    let after = db.snapshot()?;
    for key in [7_u32, 500] {
        map.upsert(key.to_be_bytes(), "written")?;
    }
    let view = before.view(&map)?;
    assert_eq!(view.iter().count(), 0);
    assert_eq!(view.get(7_u32.to_be_bytes())?, None);
    assert!(
        before
            .find_view("map")?
            .is_none_or(|view| view.iter().next_back().is_none())
    );
    let view = after.view(&map)?;
    assert_eq!(view.iter().collect::<Result<Vec<_>, _>>()?, entries(100));
    Ok(())
}

/// Nothing is built in a database that is opened read-only.
#[test]
fn nothing_is_built_where_nothing_is_written() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pool");
    Db::open(&path)?.map("map")?;
    let db = Options::new().read_only(true).open(&path)?;
    let failed = db.build_map("other", [("a", "b")]);
    assert!(
        matches!(failed, Err(Error::Index(IndexError::ReadOnly))),
        "{failed:?}"
    );
    Ok(())
}

/// A source that panics ends the build as an error does: the panic propagates to the caller, and nothing of what was
/// built remains, whichever part's source panicked.
#[test]
fn a_source_that_panics_leaves_nothing() -> Result<(), Error> {
    let pairs = entries(3000);
    let border = 1500_u32.to_be_bytes();
    for &kind in IndexKind::ALL {
        for (first_ends, second_ends) in [(1400, 3000), (1500, 2800)] {
            let db = Db::anonymous()?;
            let source = |from: usize, ends: usize, until: usize| {
                let pairs = pairs[from..until].iter().enumerate();
                Sorted::new(pairs.map(move |(i, (key, value))| {
                    assert!(from + i < ends, "the source is broken");
                    (key, value)
                }))
            };
            let (mut first, mut second) = (source(0, first_ends, 1500), source(1500, second_ends, 3000));
            let parts = Parts::new(&mut first).and(&border, &mut second);
            let build = AssertUnwindSafe(|| db.build_map_with("map", kind, parts).map(drop));
            let panic = catch_unwind(build).expect_err("a panic");
            assert_eq!(
                panic.downcast_ref::<&str>(),
                Some(&"the source is broken"),
                "{kind}"
            );
            assert!(db.maps()?.is_empty(), "{kind}");
            let check = db.check()?;
            assert!(check.is_clean(), "{kind}: {check:?}");
        }
    }
    Ok(())
}

/// A source of short pairs that takes a millisecond for each, and would take ten seconds.
struct Slow {
    key: [u8; 5],
    asked: u32,
}

impl Slow {
    /// The number of its pairs.
    const PAIRS: u32 = 10_000;
}

impl Pairs for Slow {
    fn next(&mut self) -> Result<Option<Pair<'_>>, IndexError> {
        std::thread::sleep(std::time::Duration::from_millis(1));
        self.asked += 1;
        self.key[1..].copy_from_slice(&self.asked.to_be_bytes());
        Ok((self.asked <= Slow::PAIRS).then_some((&self.key, b"value")))
    }
}

/// If the pool has no room for a part of a build, the sources of the other parts are not read to their ends.
#[test]
fn a_part_without_room_ends_the_others() -> Result<(), Error> {
    const ROOM: usize = 16 << 20;
    let large = vec![7; 2 * ROOM];
    for &kind in IndexKind::ALL {
        let db = Options::new().max_size(ROOM as u64).anonymous()?;
        let mut first = Sorted::new([(b"a", &large)]);
        let mut slow = Slow {
            key: *b"s\0\0\0\0",
            asked: 0,
        };
        let parts = Parts::new(&mut first).and(b"s", &mut slow);
        let failed = db.build_map_with("map", kind, parts).map(drop);
        assert!(
            matches!(failed, Err(Error::Index(IndexError::Heap(_)))),
            "{kind}: {failed:?}"
        );
        assert!(slow.asked < Slow::PAIRS, "{kind}: the source was read to its end");
        assert!(db.check()?.is_clean(), "{kind}");
    }
    Ok(())
}
