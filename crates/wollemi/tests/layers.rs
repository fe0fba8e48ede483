//! How a database uses the layers below: other media, and unknown roots.

use heap::Heap;
use index::{Index, OnHeap};
use pmem::{Counting, PWord, Pool, PoolOptions, Purpose, Tag, persist_scope, persistent};
use std::path::Path;
use wollemi::{Db, Error, Hardware, IndexKind, Level, Options, RecoveryState};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A database works the same on another media, and every write passes through it: none returns without a fence, and
/// reads need none.
#[test]
fn writes_are_fenced_and_reads_are_not() -> Outcome {
    let media = Counting::new(Hardware::detect());
    let db = Options::new().anonymous_on(media.clone())?;
    let map = db.map("m")?;
    for i in 0..1000u32 {
        let before = media.counts();
        match i % 4 {
            3 => assert!(map.remove((i - 1).to_be_bytes())?),
            _ => map.upsert(i.to_be_bytes(), [7; 20])?,
        }
        let spent = media.counts() - before;
        assert!(spent.node.fences >= 1 && spent.node.write_backs >= 1, "{spent:?}");
    }
    let before = media.counts();
    assert_eq!(map.count()?, 500);
    assert_eq!(map.get(1u32.to_be_bytes())?, Some(vec![7; 20]));
    assert_eq!((media.counts() - before).total().fences, 0);
    Ok(())
}

/// A batch of several changes costs its writes and three more fences; one of a single change, or of none, costs no more
/// than its writes.
#[test]
fn a_batch_costs_three_fences_more() -> Outcome {
    let media = Counting::new(Hardware::detect());
    let db = Options::new().anonymous_on(media.clone())?;
    let map = db.map("m")?;
    let commit = |changes: u64| -> Result<u64, Error> {
        let mut batch = db.batch();
        for i in 0..changes {
            batch.upsert(&map, i.to_be_bytes(), changes.to_be_bytes());
        }
        let before = media.counts();
        assert!(batch.commit()?);
        // Without the heap's own fences, for the first page of a class.
        let spent = media.counts() - before;
        Ok(spent.node.fences + spent.log.fences)
    };
    // Creates the keys, and the database's own root.
    commit(9)?;
    // Values of eight bytes are changed in place, with one fence each.
    for changes in 2..9 {
        assert_eq!(commit(changes)?, changes + 3);
    }
    assert_eq!((commit(0)?, commit(1)?), (0, 1));
    Ok(())
}

persistent! {
    struct Alien [size: 32] {
        words: [PWord; 4],
    }
}

/// Adds to the pool a root of a kind that no index here has.
fn land(path: &Path) -> Outcome {
    let pool = Pool::open_or_create(path, &PoolOptions::default(), Hardware::detect())?;
    let heap = Heap::new(pool)?;
    persist_scope(heap.media(), Purpose::Node, |batch| {
        let alien = Alien {
            words: [const { PWord::new(7) }; 4],
        };
        let object = heap.draft(alien, 0, &batch)?.flush(&batch);
        let fenced = batch.fence();
        // SAFETY: no code knows the kind.
        unsafe { heap.create_root(b"alien", 0xa11e, object.persisted(&fenced), Tag::default()) }
    })?;
    Ok(())
}

/// A map of an unknown kind is listed, refused and reported, and keeps everything it may hold: nothing is swept. All
/// other maps work as usual.
#[test]
fn unknown_kinds_are_refused_and_kept() -> Outcome {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("a.pool");
    Db::open(&path)?.map("known")?.upsert("k", "v")?;
    land(&path)?;
    for _ in 0..2 {
        let db = Db::open(&path)?;
        let maps: Vec<_> = db.maps()?.into_iter().map(|map| (map.name, map.index)).collect();
        let expected = [("alien", "unknown kind 41246"), ("known", "roart")];
        assert_eq!(
            maps,
            expected.map(|(name, index)| (name.to_owned(), index.to_owned()))
        );
        let error = db.map("alien").expect_err("refused");
        assert!(matches!(error, Error::OtherKind { kind: 0xa11e, .. }), "{error}");
        assert!(db.drop_map("alien").is_err());
        let map = db.map("known")?;
        assert_eq!(map.get("k")?, Some(b"v".to_vec()));
        map.load((0..1000u32).map(|i| (i.to_be_bytes(), "more")))?;
        assert!(matches!(db.wait_recovered().state, RecoveryState::Failed(_)));
        let check = db.check()?;
        assert!(!check.is_clean());
        assert_eq!(check.maps[0].faults.len(), 1);
        assert!(check.maps[1].faults.is_empty());
        assert_eq!(check.heap.faults.len(), 1);
    }
    Ok(())
}

/// A program with ablations opens a map that an ablation holds as what it is. Any other program lists it, refuses it
/// with an error that names the program to use, and keeps it; all other maps work as usual.
#[test]
fn ablations_are_left_to_the_laboratory() -> Outcome {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("a.pool");
    Db::open(&path)?.map("known")?.upsert("k", "v")?;
    {
        let pool = Pool::open_or_create(&path, &PoolOptions::default(), Hardware::detect())?;
        let heap = Heap::new(pool)?;
        let measured = roart::Roart::<Hardware, roart::WithoutInline>::create(&heap, b"measured")?;
        for i in 0..1000u32 {
            measured.upsert(&i.to_be_bytes(), b"value")?;
        }
    }
    let name = "roart-without-inline";
    let has_them = IndexKind::ALL.iter().any(|kind| kind.is_ablation());
    for _ in 0..2 {
        let db = Db::open(&path)?;
        assert_eq!(db.wait_recovered().state, RecoveryState::Done);
        let listed = db.maps()?.into_iter().find(|map| map.name == "measured");
        let listed = listed.expect("the map is listed").index;
        if has_them {
            let map = db.map("measured")?;
            assert_eq!((listed.as_str(), map.count()?), (name, 1000));
            assert_eq!(map.index_kind(), name.parse()?);
        } else {
            assert!(listed.contains("wollemi-lab"), "{listed}");
            let error = db.map("measured").expect_err("refused");
            assert!(matches!(error, Error::LeftOut { .. }), "{error}");
            let message = error.to_string();
            assert!(
                message.contains("'measured'") && message.contains("wollemi-lab"),
                "{message}"
            );
            assert!(db.drop_map("measured").is_err());
            let error = name.parse::<IndexKind>().expect_err("left out").to_string();
            assert!(error.contains(name) && error.contains("wollemi-lab"), "{error}");
        }
        assert_eq!(db.map("known")?.get("k")?, Some(b"v".to_vec()));
        assert_eq!(db.check()?.heap.unreachable, 0);
    }
    Ok(())
}

/// A map whose index the program is built without is listed, refused with the index's name, and kept; all other maps
/// work as usual.
#[test]
fn an_index_that_is_left_out_is_named() -> Outcome {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("a.pool");
    Db::open(&path)?.map("known")?.upsert("k", "v")?;
    {
        let pool = Pool::open_or_create(&path, &PoolOptions::default(), Hardware::detect())?;
        let part = recipe::part::Part::<Hardware>::create(&Heap::new(pool)?, b"other")?;
        part.upsert(b"key", b"value")?;
    }
    let db = Db::open(&path)?;
    match "part".parse::<IndexKind>() {
        Ok(part) => {
            let map = db.map("other")?;
            assert_eq!((map.index_kind(), map.count()?), (part, 1));
        }
        Err(unknown) => {
            assert_eq!(
                unknown.to_string(),
                "this program is built without the index 'part'"
            );
            let error = db.map("other").expect_err("refused").to_string();
            let expected = "map 'other': held by the index 'part', which this program is built without";
            assert_eq!(error, expected);
            assert!(db.drop_map("other").is_err());
        }
    }
    let map = db.map("known")?;
    map.load((0..1000u32).map(|i| (i.to_be_bytes(), "more")))?;
    assert_eq!(map.get("k")?, Some(b"v".to_vec()));
    drop((map, db));
    // A checkpoint could not cover the other map.
    let at_disk = Options::new().level(Level::Disk).open(&path);
    match "part".parse::<IndexKind>() {
        Ok(_) => assert_eq!(at_disk?.level(), Level::Disk),
        Err(_) => {
            let refused = at_disk.expect_err("left out");
            assert!(matches!(refused, Error::LeftOut { .. }), "{refused}");
            assert_eq!(Db::open(&path)?.level(), Level::Process);
        }
    }
    Ok(())
}

/// A map whose name is not text, which only another program can create, is not found by its name. So nothing copies the
/// other maps as if they were all, and a check reports it.
#[test]
fn maps_without_a_text_as_name_are_not_left_out() -> Outcome {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("a.pool");
    Db::open(&path)?.map("known")?.upsert("k", "v")?;
    {
        let pool = Pool::open_or_create(&path, &PoolOptions::default(), Hardware::detect())?;
        let cafe = roart::Roart::<Hardware>::create(&Heap::new(pool)?, b"caf\xe9")?;
        cafe.upsert(b"key", b"value")?;
    }
    // A map has the name by which the other one is listed.
    Db::open(&path)?.map("caf\u{fffd}")?.upsert("k", "v")?;
    let db = Db::open(&path)?;
    let is_refused = |error: Error| {
        assert!(error.to_string().contains("'caf\u{fffd}'"), "{error}");
        assert!(error.to_string().contains("UTF-8"), "{error}");
    };
    let snapshot = db.snapshot()?;
    is_refused(snapshot.backup(&mut Vec::new(), |_| {}).expect_err("refused"));
    is_refused(
        Db::anonymous()?
            .copy_from(&snapshot, |_| {})
            .expect_err("refused"),
    );
    let check = db.check()?;
    let faults: Vec<_> = check
        .maps
        .iter()
        .map(|map| (&*map.name, map.faults.len()))
        .collect();
    assert!(!check.is_clean(), "{check:?}");
    assert_eq!(
        faults.iter().filter(|(_, faults)| *faults == 1).count(),
        1,
        "{faults:?}"
    );
    assert_eq!(
        faults.iter().filter(|(name, _)| *name == "caf\u{fffd}").count(),
        2,
        "{faults:?}"
    );
    assert_eq!(db.map("known")?.get("k")?, Some(b"v".to_vec()));
    drop((snapshot, db));
    is_refused(
        Options::new()
            .level(Level::Disk)
            .open(&path)
            .map(drop)
            .expect_err("refused"),
    );
    assert_eq!(Db::open(&path)?.level(), Level::Process);
    Ok(())
}
