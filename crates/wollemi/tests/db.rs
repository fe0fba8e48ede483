//! Databases: reopening, maps by name, files that are not pools.

use std::fs;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use wollemi::{Db, Error, IndexError, IndexKind, Options, RecoveryState};

/// Upper bound on any wait; beyond it the test counts as hung.
const PATIENCE: Duration = Duration::from_secs(120);

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn names(db: &Db) -> Result<Vec<String>, Error> {
    Ok(db.maps()?.into_iter().map(|map| map.name).collect())
}

/// Writes are present after each reopening, while more are added, and all counts agree.
#[test]
fn reopening_finds_everything() -> Outcome {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("a.pool");
    for round in 0..5u64 {
        let db = Db::open(&path)?;
        let map = db.map("m")?;
        assert_eq!(map.count()?, round * 1000);
        map.load((round * 1000..(round + 1) * 1000).map(|i| (i.to_be_bytes(), i.to_le_bytes())))?;
        let check = db.check()?;
        assert!(check.is_clean(), "{check:?}");
        assert_eq!(check.maps[0].keys, (round + 1) * 1000);
        let stats = db.stats()?;
        assert_eq!(u64::from(stats.generation), round + 1);
        assert_eq!(
            stats.space.used + stats.space.free + stats.space.unswept,
            stats.space.reserved
        );
    }
    Ok(())
}

/// Maps do not see each other's keys, and two handles to one map are the same map.
#[test]
fn maps_are_apart() -> Outcome {
    let db = Db::anonymous()?;
    let (one, two) = (db.map("one")?, db.map("two")?);
    one.upsert("k", "1")?;
    assert_eq!(two.get("k")?, None);
    assert_eq!(db.clone().map("one")?.get("k")?, Some(b"1".to_vec()));
    assert_eq!(names(&db)?, ["one", "two"]);
    assert!(db.find_map("three")?.is_none());
    for name in ["", &"n".repeat(wollemi::MAX_NAME + 1)] {
        assert!(matches!(db.map(name), Err(Error::MapName(_))));
    }
    Ok(())
}

/// Each map keeps the index that it was created with, whatever the default for new maps; a request for another index is
/// an error that names both, and changes nothing. All indexes coexist, are checked, and are dropped without a trace.
#[test]
fn maps_stay_with_their_index() -> Outcome {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("a.pool");
    let entries = || (0..2000u32).map(|i| (i.to_be_bytes(), vec![1; (i % 50) as usize]));
    {
        let db = Options::new().index(IndexKind::Wort).open(&path)?;
        assert_eq!(db.map("by default")?.index_kind(), IndexKind::Wort);
        for &kind in IndexKind::ALL {
            let map = db.map_with(kind.name(), kind)?;
            assert_eq!(map.index_kind(), kind);
            map.load(entries())?;
        }
    }
    let db = Db::open(&path)?;
    assert_eq!(db.map("by default")?.index_kind(), IndexKind::Wort);
    for &kind in IndexKind::ALL {
        let map = db.map(kind.name())?;
        assert_eq!(map.count()?, 2000);
        // An ablation with the index's byte layout is opened as the index.
        let found = map.index_kind();
        assert!(found == kind || kind.is_ablation(), "{kind} opened as {found}");
        for &wanted in IndexKind::ALL.iter().filter(|&&wanted| wanted != found) {
            let error = db
                .map_with(kind.name(), wanted)
                .expect_err("held as another")
                .to_string();
            assert!(
                error.contains(&format!("'{found}'")) && error.contains(&format!("'{wanted}'")),
                "{error}"
            );
        }
    }
    for (made, wanted) in [
        (IndexKind::Roart, IndexKind::Part),
        (IndexKind::Part, IndexKind::Roart),
    ] {
        let error = db.map_with(made.name(), wanted).expect_err("another index");
        assert!(matches!(error, Error::OtherIndex { .. }), "{error}");
    }
    let check = db.check()?;
    assert!(check.is_clean(), "{check:?}");
    for (check, stats) in check.maps.iter().zip(db.stats()?.maps) {
        assert_eq!((&check.name, &check.index), (&stats.name, &stats.index));
    }
    for &kind in IndexKind::ALL {
        assert!(db.drop_map(kind.name())?);
    }
    let check = db.check()?;
    assert!(check.is_clean(), "{check:?}");
    assert_eq!(names(&db)?, ["by default"]);
    Ok(())
}

/// A map in use is not dropped; a dropped map is gone, also after reopening, and its space is free again.
#[test]
fn a_dropped_map_leaves_nothing() -> Outcome {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("a.pool");
    let db = Db::open(&path)?;
    let keep = db.map("keep")?;
    keep.upsert("k", "v")?;
    let doomed = db.map("doomed")?;
    doomed.load((0..5000u32).map(|i| (i.to_be_bytes(), vec![1; (i % 300) as usize])))?;
    doomed.upsert("large", vec![1; 3 << 20])?;
    assert!(matches!(db.drop_map("doomed"), Err(Error::MapInUse(_))));
    drop(doomed);
    assert!(db.drop_map("doomed")?);
    assert!(!db.drop_map("doomed")?);
    assert_eq!(names(&db)?, ["keep"]);
    let check = db.check()?;
    assert!(check.is_clean(), "{check:?}");
    assert!(db.map("doomed")?.is_empty()?);
    drop((db, keep));

    let db = Db::open(&path)?;
    assert_eq!(db.map("keep")?.get("k")?, Some(b"v".to_vec()));
    assert!(db.map("doomed")?.is_empty()?);
    let check = db.check()?;
    assert!(check.is_clean(), "{check:?}");
    Ok(())
}

/// A handle to a map keeps the pool open: a second opener is refused until the last handle is dropped.
#[test]
fn a_second_opener_is_refused() -> Outcome {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("a.pool");
    let db = Db::open(&path)?;
    let map = db.map("m")?;
    drop(db);
    let at_once = Options::new().lock_wait(Duration::ZERO);
    assert!(matches!(at_once.open(&path), Err(Error::Pool(_))));
    map.upsert("k", "v")?;
    drop(map);
    assert_eq!(Db::open(&path)?.map("m")?.get("k")?, Some(b"v".to_vec()));
    Ok(())
}

/// By default an opening waits two seconds for a database that another opener has. Then it reports how long it has
/// waited, and for which process.
#[test]
fn a_second_opener_waits_two_seconds_by_default() -> Outcome {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("a.pool");
    let _first = Db::open(&path)?;
    let begin = Instant::now();
    let refused = Db::open(&path).map(drop).expect_err("it is open");
    let waited = begin.elapsed();
    assert!(waited >= Duration::from_secs(2), "{waited:?}");
    let text = refused.to_string();
    // Some systems do not report which process holds the lock.
    let holders = [
        format!("process {}", std::process::id()),
        "another process".into(),
    ];
    let endings = holders.map(|holder| format!("opened by {holder} (waited 2s)"));
    assert!(endings.iter().any(|ending| text.ends_with(ending)), "{text}");
    Ok(())
}

/// A database opened read-only shows its content, beside other readers, refuses every kind of write, and leaves every
/// byte of its file unchanged. So it does after a crash, whatever the opening and a recovery have to do then, for every
/// index.
#[test]
fn reading_leaves_the_file_as_it_was() -> Outcome {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("a.pool");
    let read = Options::new().read_only(true);
    assert!(
        matches!(read.open(&path), Err(Error::Pool(_))),
        "it is not created"
    );
    assert!(!path.exists());
    {
        let db = Db::open(&path)?;
        for &kind in IndexKind::ALL {
            db.map_with(kind.name(), kind)?
                .load((0..1000u32).map(|i| (i.to_be_bytes(), vec![1; (i % 50) as usize])))?;
        }
        db.map("gone")?.upsert("k", "v")?;
        db.drop_map("gone")?;
        // The file as a kill at this moment leaves it: with all stores.
        fs::copy(&path, dir.path().join("killed.pool"))?;
    }
    for name in ["a.pool", "killed.pool"] {
        let path = dir.path().join(name);
        let before = fs::read(&path)?;
        {
            let (db, other) = (read.open(&path)?, read.open(&path)?);
            assert!(db.stats()?.read_only && !db.stats()?.suspect);
            assert_eq!(db.stats()?.generation, 1);
            let check = db.check()?;
            assert!(check.is_clean(), "{check:?}");
            for &kind in IndexKind::ALL {
                let map = db.map(kind.name())?;
                assert_eq!((map.count()?, other.map(kind.name())?.count()?), (1000, 1000));
                let one = map.upsert("k", "v").expect_err("read only");
                assert!(matches!(one, Error::Index(IndexError::ReadOnly)), "{one}");
                map.load([("k", "v"), ("l", "w")]).expect_err("read only");
                map.remove(0u32.to_be_bytes()).expect_err("read only");
                let mut batch = db.batch();
                batch.upsert(&map, "k", "v").remove(&map, "l");
                batch.commit().expect_err("read only");
                assert_eq!(map.count()?, 1000);
            }
            db.map("new").map(drop).expect_err("read only");
            db.drop_map(IndexKind::ALL[0].name()).expect_err("read only");
            db.give_back().expect_err("read only");
            assert_eq!(db.snapshot()?.maps().len(), IndexKind::ALL.len());
        }
        assert!(fs::read(&path)? == before, "{name} was changed");
    }
    Ok(())
}

/// A file that is missing or not a pool is an error that names it, and is left as it was.
#[test]
fn foreign_files_are_refused() -> Outcome {
    let dir = tempfile::tempdir()?;
    let missing = dir.path().join("missing.pool");
    let error = Options::new()
        .create(false)
        .open(&missing)
        .expect_err("missing")
        .to_string();
    assert!(error.contains("missing.pool"), "{error}");
    assert!(!missing.exists());

    let foreign = dir.path().join("foreign.pool");
    let bytes = b"\x7fELF and more than enough bytes to hold what could have been a header".repeat(1000);
    fs::write(&foreign, &bytes)?;
    let error = Db::open(&foreign).expect_err("foreign").to_string();
    assert!(error.contains("foreign.pool"), "{error}");
    assert!(error.contains("not a Wollemi pool"), "{error}");
    assert_eq!(fs::read(&foreign)?, bytes);
    Ok(())
}

/// Without a recovery thread everything can be read and written; the next opening catches up.
#[test]
fn recovery_can_be_left_out() -> Outcome {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("a.pool");
    Db::open(&path)?
        .map("m")?
        .load((0..1000u32).map(|i| (i.to_be_bytes(), "old")))?;
    {
        let db = Options::new().recovery_threads(0).open(&path)?;
        let map = db.map("m")?;
        map.load((500..1500u32).map(|i| (i.to_be_bytes(), "new")))?;
        assert_eq!(map.count()?, 1500);
    }
    let db = Db::open(&path)?;
    let check = db.check()?;
    assert!(check.is_clean(), "{check:?}");
    assert_eq!(check.maps[0].keys, 1500);
    assert_eq!(db.stats()?.space.unswept, 0);
    Ok(())
}

/// Recovery reports progress while readers are served. It sweeps nothing, and so does not end, before the readers that
/// existed when it began are gone.
#[test]
fn recovery_is_told_beside_readers() -> Outcome {
    const KEYS: u32 = 1000;
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("a.pool");
    Db::open(&path)?
        .map("m")?
        .load((0..KEYS).map(|i| (i.to_be_bytes(), "value")))?;
    let db = Options::new().recovery_threads(0).open(&path)?;
    let map = db.map("m")?;
    assert_eq!(db.recovery_progress().state, RecoveryState::Idle);
    let ended = std::thread::scope(|scope| -> Result<_, Error> {
        let reader = map.reader();
        let recovering = scope.spawn(|| db.recover());
        let begin = Instant::now();
        let mut progress = db.recovery_progress();
        while progress.objects == 0 {
            assert!(begin.elapsed() < PATIENCE, "nothing is found: {progress:?}");
            std::thread::sleep(Duration::from_millis(1));
            progress = db.recovery_progress();
        }
        for i in 0..KEYS {
            let found = reader.get(i.to_be_bytes())?;
            assert_eq!(found.as_deref(), Some(&b"value"[..]));
            progress = db.recovery_progress();
            assert_eq!(
                (&progress.state, progress.pages_swept),
                (&RecoveryState::Running, 0)
            );
        }
        assert!(progress.pages > 0);
        drop(reader);
        Ok(recovering.join().expect("no panic"))
    })?;
    assert_eq!(
        (&ended.state, ended.pages_swept),
        (&RecoveryState::Done, ended.pages)
    );
    Ok(())
}

/// Handles may be sent to other threads, and the writes of all threads are present.
#[test]
fn threads_share_a_map() -> Outcome {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4u32)
            .map(|thread| {
                let map = &map;
                scope.spawn(move || {
                    let mine = (thread..20_000).step_by(4);
                    map.load(mine.map(|i| (i.to_be_bytes(), i.to_le_bytes())))
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect::<Result<Vec<_>, _>>()
    })?;
    assert_eq!(map.count()?, 20_000);
    assert!(db.check()?.is_clean());
    Ok(())
}

/// A thread that holds a reader does not wait for recovery, which waits for the reader: calls that need recovery are
/// refused.
#[test]
fn a_thread_with_a_reader_does_not_wait_for_recovery() -> Outcome {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("a.pool");
    Db::open(&path)?
        .map("m")?
        .load((0..1000u32).map(|i| (i.to_be_bytes(), "value")))?;
    let (send, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let ended = || -> Result<(), Error> {
            let db = Options::new().recovery_threads(0).open(&path)?;
            let map = db.map("m")?;
            let reader = map.reader();
            assert!(matches!(db.give_back(), Err(Error::HoldsReader)));
            assert!(matches!(db.check(), Err(Error::HoldsReader)));
            assert_ne!(db.recover().state, RecoveryState::Done);
            assert_ne!(db.wait_recovered().state, RecoveryState::Done);
            assert!(reader.get(7u32.to_be_bytes())?.is_some());
            drop(reader);
            assert_eq!(db.recover().state, RecoveryState::Done);
            let _reader = map.reader();
            assert_eq!(db.wait_recovered().state, RecoveryState::Done);
            assert!(db.check()?.is_clean());
            db.give_back().map(drop)
        };
        send.send(ended())
    });
    Ok(ended.recv_timeout(PATIENCE)??)
}
