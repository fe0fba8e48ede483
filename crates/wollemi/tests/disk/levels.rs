//! Changing from one level to another.

use crate::{Place, entries, names, options};
use pmem::pool::LastShutdown;
use pmem::{Hardware, Pool, PoolOptions};
use std::time::Duration;
use wollemi::{AfterPowerLoss, Db, Error, IndexError, IndexKind, Level, Options, Parts, Sorted};

/// A pool without a log gets one that covers its content; a log can be ended, and neither loses anything.
#[test]
fn a_pool_changes_its_level() -> Result<(), Error> {
    let place = Place::new();
    {
        let db = Db::open(&place.path)?;
        assert_eq!(db.level(), Level::Process);
        db.map("m")?
            .load((0..5000u32).map(|i| (i.to_be_bytes(), i.to_le_bytes())))?;
    }
    for round in 0..2u32 {
        let db = place.open()?;
        assert_eq!(db.level(), Level::Disk);
        let map = db.map("m")?;
        map.upsert(round.to_be_bytes(), "at level disk")?;
        let left = place.cut().open()?;
        assert_eq!(left.map("m")?.count()?, 5000);
        assert_eq!(
            left.map("m")?.get(round.to_be_bytes())?,
            Some(b"at level disk".to_vec())
        );
        assert!(matches!(db.clone().end_log(), Err(Error::InUse)));
        drop(map);
        db.end_log()?;
        let db = Db::open(&place.path)?;
        assert_eq!(db.level(), Level::Process);
        assert_eq!(db.map("m")?.count()?, 5000);
        assert!(!place.files().exists());
    }
    Ok(())
}

/// An abandoned pool is left as a kill leaves it, at either level, however it is closed.
#[test]
fn an_abandoned_pool_is_not_closed() -> Result<(), Error> {
    for level in [Level::Process, Level::Disk] {
        let place = Place::new();
        let open = || options().level(level).open(&place.path);
        for round in 0..4u32 {
            let db = open()?;
            let before = if round == 0 { "new" } else { "clean" };
            assert_eq!(db.stats()?.last_shutdown, before);
            db.map("m")?.upsert(round.to_be_bytes(), "kept")?;
            db.abandon();
            if round % 2 == 0 {
                db.close()?;
            } else {
                drop(db);
            }
            let db = open()?;
            assert_eq!(db.stats()?.last_shutdown, "process crash");
            assert_eq!(db.map("m")?.count()?, u64::from(round) + 1);
        }
    }
    Ok(())
}

/// If a crash interrupts the removal of an ended log, the next opening removes the leftover files, even if it requests
/// no log. A pool beside another pool's files leaves them alone.
#[test]
fn what_is_left_of_an_ended_log_goes() -> Result<(), Error> {
    for (what, is_left) in [
        (
            "all but the manifest",
            (|name| name != "manifest") as fn(&str) -> bool,
        ),
        ("the log", |name| name.starts_with("log-")),
        ("its first segment", |name| name == "log-00000000"),
    ] {
        let (place, others) = (Place::new(), Place::new());
        let db = place.open()?;
        db.map("m")?.upsert("key", "value")?;
        db.checkpoint(true)?;
        let left = place.kill();
        db.end_log()?;
        Db::open(&others.path)?.map("m")?.upsert("key", "another's")?;
        for place in [&place, &others] {
            std::fs::create_dir(place.files()).expect("made");
            for name in names(&left.files()) {
                if name.to_str().is_some_and(is_left) {
                    std::fs::copy(left.files().join(&name), place.files().join(&name)).expect("copied");
                }
            }
            assert!(!names(&place.files()).is_empty(), "{what}");
        }
        let db = Db::open(&place.path)?;
        assert_eq!(
            (db.level(), entries(&db, "m").len()),
            (Level::Process, 1),
            "{what}"
        );
        assert!(!place.files().exists(), "{what}");
        let left = names(&others.files());
        assert_eq!(entries(&Db::open(&others.path)?, "m").len(), 1, "{what}");
        let refused = others.open().map(drop).expect_err("another's log").to_string();
        assert!(refused.contains("log-") || refused.contains("run-"), "{refused}");
        assert_eq!(names(&others.files()), left, "{what}");
    }
    Ok(())
}

/// The directory of the log may be a link to another place.
#[test]
fn a_log_may_be_elsewhere() -> Result<(), Error> {
    let place = Place::new();
    let elsewhere = tempfile::tempdir().expect("a directory");
    place.open()?.map("m")?.upsert("key", "1")?;
    let there = elsewhere.path().join("log");
    std::fs::rename(place.files(), &there).expect("moved");
    std::os::unix::fs::symlink(&there, place.files()).expect("linked");
    let db = place.open()?;
    db.map("m")?.upsert("key", "2")?;
    drop(db);
    std::fs::remove_file(&place.path).expect("removed");
    let db = place.open()?;
    assert_eq!(db.map("m")?.get("key")?, Some(b"2".to_vec()));
    assert!(there.join("manifest").exists());
    db.end_log()?;
    assert!(!there.join("manifest").exists());
    Ok(())
}

/// A log that another process begins as soon as this one has ended its own is left alone.
#[test]
fn the_log_of_the_next_process_stays() -> Result<(), Error> {
    for _ in 0..20 {
        let place = Place::new();
        let db = place.open()?;
        db.map("m")?.upsert("ours", "1")?;
        let theirs = options().lock_wait(Duration::from_secs(120));
        let theirs = std::thread::scope(|scope| {
            let opener = scope.spawn(|| theirs.open(&place.path));
            std::thread::sleep(Duration::from_millis(2));
            db.end_log()?;
            opener.join().expect("no panic")
        })?;
        theirs.map("m")?.upsert("theirs", "2")?;
        assert_eq!(place.cut().open()?.map("m")?.count()?, 2);
    }
    Ok(())
}

/// A log is not ended while the database has a reader, such as an iterator: its pool would be closed without a log.
#[test]
fn a_log_with_readers_is_not_ended() -> Result<(), Error> {
    let place = Place::new();
    let db = place.open()?;
    let map = db.map("m")?;
    map.upsert("a", "1")?;
    let mut entries = map.iter();
    drop(map);
    assert!(matches!(db.end_log(), Err(Error::InUse)));
    assert_eq!(entries.next().transpose()?, Some((b"a".to_vec(), b"1".to_vec())));
    drop(entries);
    assert_eq!(place.cut().open()?.map("m")?.count()?, 1);
    assert_eq!(place.open()?.level(), Level::Disk);
    Ok(())
}

/// Closing returns when the pool is marked as closed. While another handle keeps it open, closing reports that, and
/// that handle closes it.
#[test]
fn closing_tells_how_it_ended() -> Result<(), Error> {
    for level in [Level::Process, Level::Disk] {
        let place = Place::new();
        let open = || options().level(level).open(&place.path);
        let db = open()?;
        let map = db.map("m")?;
        map.upsert("a", "1")?;
        assert!(matches!(db.clone().close(), Err(Error::InUse)));
        assert!(matches!(db.close(), Err(Error::InUse)));
        map.upsert("b", "2")?;
        drop(map);
        let db = open()?;
        assert_eq!(db.stats()?.last_shutdown, "clean");
        assert_eq!(db.map("m")?.count()?, 2);
        db.close()?;
        let db = open()?;
        assert_eq!(db.stats()?.last_shutdown, "clean");
        let snapshot = db.snapshot()?;
        assert!(matches!(db.close(), Err(Error::InUse)));
        drop(snapshot);
        let read = Options::new().read_only(true).open(&place.path)?;
        assert_eq!(read.stats()?.last_shutdown, "clean");
        read.close()?;
    }
    Ok(())
}

/// If building a map fails, the entries that other threads have written to it stay.
#[test]
fn a_failed_build_takes_nothing_from_others() -> Result<(), Error> {
    let place = Place::new();
    let db = place.open()?;
    let pairs = ["b", "a"].into_iter().inspect(|_| {
        let theirs = db.map("m").expect("the map is being built");
        theirs.upsert("theirs", "kept").expect("room");
    });
    let failed = db.build_map("m", pairs.map(|key| (key, "made")));
    let out_of_order = Error::Index(IndexError::OutOfOrder).to_string();
    assert_eq!(failed.expect_err("out of order").to_string(), out_of_order);
    let theirs = (b"theirs".to_vec(), b"kept".to_vec());
    assert!(entries(&db, "m").contains(&theirs));
    assert!(entries(&place.cut().open()?, "m").contains(&theirs));
    assert!(matches!(
        db.build_map("m", [("a", "1")]),
        Err(Error::MapExists(_))
    ));
    Ok(())
}

/// The keys of each part must lie within it, as at other levels.
#[test]
fn a_build_refuses_keys_beyond_their_part() -> Result<(), Error> {
    let place = Place::new();
    let db = place.open()?;
    let (mut lower, mut upper) = (Sorted::new([("a", "1"), ("n", "2")]), Sorted::new([("z", "3")]));
    let parts = Parts::new(&mut lower).and(b"m", &mut upper);
    let built = db.build_map_with("m", IndexKind::Roart, parts);
    assert!(
        matches!(built, Err(Error::Index(IndexError::OutOfOrder))),
        "{built:?}"
    );
    Ok(())
}

/// A pool without a log that was open when the machine stopped gets one only if the caller accepts the loss.
#[test]
fn a_suspect_pool_is_given_a_log_once_it_is_accepted() -> Result<(), Error> {
    let place = Place::new();
    let db = Db::open(&place.path)?;
    db.map("m")?.upsert("key", "value")?;
    let left = Place::new();
    let mut pool = std::fs::read(&place.path).expect("a file");
    // The id of another boot: the pool's own UUID, which has the same layout (docs/format.md).
    pool.copy_within(24..48, 72);
    std::fs::write(&left.path, pool).expect("written");
    let refused = left.open().expect_err("suspect");
    assert!(refused.to_string().contains("the machine stopped"), "{refused}");
    let accept = options().after_power_loss(AfterPowerLoss::Accept);
    let db = accept.open(&left.path)?;
    assert_eq!(db.level(), Level::Disk);
    assert_eq!(db.map("m")?.get("key")?, Some(b"value".to_vec()));
    assert_eq!(left.cut().open()?.map("m")?.count()?, 1);
    Ok(())
}

/// A pool keeps its log, whatever level it is opened for.
#[test]
fn a_log_is_kept() -> Result<(), Error> {
    let place = Place::new();
    place.open()?.map("m")?.upsert("a", "1")?;
    let db = Db::open(&place.path)?;
    assert_eq!(db.level(), Level::Disk);
    db.map("m")?.upsert("b", "2")?;
    assert_eq!(place.cut().open()?.map("m")?.count()?, 2);
    Ok(())
}

/// A pool that is missing beside its log is not read; the error says what to do, and doing it rebuilds the pool.
#[test]
fn a_missing_pool_is_not_read() -> Result<(), Error> {
    let place = Place::new();
    place.open()?.map("m")?.upsert("a", "1")?;
    std::fs::remove_file(&place.path).expect("removed");
    let look = options().read_only(true).after_power_loss(AfterPowerLoss::Look);
    for options in [options().read_only(true), look] {
        let missing = options.open(&place.path).expect_err("there is none");
        assert!(missing.to_string().contains("open it to write once"), "{missing}");
        assert!(!place.path.exists());
    }
    drop(place.open()?);
    let db = options().read_only(true).open(&place.path)?;
    assert_eq!(entries(&db, "m"), [(b"a".to_vec(), b"1".to_vec())]);
    Ok(())
}

/// The files of another pool are refused, and left as they are.
#[test]
fn foreign_files_are_refused() -> Result<(), Error> {
    let (place, other) = (Place::new(), Place::new());
    drop((place.open()?, other.open()?));
    std::fs::remove_dir_all(place.files()).expect("removed");
    let missing = place.open().expect_err("the log is gone");
    assert!(missing.to_string().contains("the pool has a log"), "{missing}");
    crate::copy(&other.files(), &place.files());
    let foreign = place.open().expect_err("another pool's");
    assert!(foreign.to_string().contains("belong"), "{foreign}");
    assert!(place.files().join("manifest").exists());
    Ok(())
}

/// Nothing is written to a pool whose log is missing, but the pool can be read.
#[test]
fn a_pool_without_its_log_is_only_read() -> Result<(), Error> {
    let place = Place::new();
    let db = place.open()?;
    db.map("m")?.upsert("key", "value")?;
    drop(db);
    std::fs::remove_dir_all(place.files()).expect("removed");
    let process = Options::new().max_size(1 << 30);
    let refused = process.open(&place.path).expect_err("the log is gone");
    assert!(refused.to_string().contains("the pool has a log"), "{refused}");
    let db = process.clone().read_only(true).open(&place.path)?;
    assert_eq!(crate::entries(&db, "m"), [(b"key".to_vec(), b"value".to_vec())]);
    Ok(())
}

/// An opening that is refused because the log's directory is missing changes nothing in the pool: neither in one that
/// was open when the machine stopped, whose loss the caller accepts, nor in one that a kill has left or that was
/// closed.
#[test]
fn a_refused_opening_changes_nothing() -> Result<(), Error> {
    let place = Place::new();
    let db = place.open()?;
    db.map("m")?.upsert("key", "value")?;
    let (killed, lost) = (place.kill(), place.kill());
    drop(db);
    let mut pool = std::fs::read(&lost.path).expect("a file");
    pool.copy_within(24..48, 72);
    std::fs::write(&lost.path, pool).expect("written");
    let process = Options::new().max_size(1 << 30);
    let accept = process.clone().after_power_loss(AfterPowerLoss::Accept);
    for (place, options) in [(&place, &process), (&killed, &process), (&lost, &accept)] {
        let before = std::fs::read(&place.path).expect("a file");
        let away = place.path.with_extension("away");
        std::fs::rename(place.files(), &away).expect("moved");
        let refused = options.open(&place.path).expect_err("the log is away");
        assert!(refused.to_string().contains("the pool has a log"), "{refused}");
        assert!(before == std::fs::read(&place.path).expect("a file"));
        std::fs::rename(&away, place.files()).expect("moved");
        assert_eq!(
            entries(&place.open()?, "m"),
            [(b"key".to_vec(), b"value".to_vec())]
        );
    }
    Ok(())
}

/// If a pool that was open when the machine stopped has lost its manifest, the error says so, whether or not the loss
/// is accepted, and accepting it is not advised.
#[test]
fn a_lost_pool_without_its_manifest_says_what_is_missing() -> Result<(), Error> {
    let place = Place::new();
    let db = place.open()?;
    db.map("m")?.upsert("key", "value")?;
    let lost = place.kill();
    drop(db);
    let mut pool = std::fs::read(&lost.path).expect("a file");
    pool.copy_within(24..48, 72);
    std::fs::write(&lost.path, pool).expect("written");
    std::fs::remove_file(lost.files().join("manifest")).expect("removed");
    for after in [AfterPowerLoss::Refuse, AfterPowerLoss::Accept] {
        let options = crate::options().after_power_loss(after);
        let refused = options.open(&lost.path).expect_err("no manifest").to_string();
        assert!(
            refused.contains("the pool has a log") && !refused.contains("accept"),
            "{refused}"
        );
    }
    // The same if nothing is left, and the caller asks for no level or only reads.
    std::fs::remove_dir_all(lost.files()).expect("removed");
    for options in [Options::new(), Options::new().read_only(true)] {
        let refused = options.open(&lost.path).expect_err("no log").to_string();
        assert!(
            refused.contains("the pool has a log") && !refused.contains("accept"),
            "{refused}"
        );
    }
    Ok(())
}

/// A closed pool stays closed when an opening at level `disk` fails: it can be read after a loss of power.
#[test]
fn a_failed_opening_leaves_a_closed_pool_closed() -> Result<(), Error> {
    let place = Place::new();
    place.open()?.map("m")?.upsert("key", "value")?;
    std::fs::remove_dir_all(place.files()).expect("removed");
    place.open().expect_err("the log is gone");
    let options = PoolOptions {
        read_only: true,
        ..PoolOptions::default()
    };
    let pool = Pool::open(&place.path, &options, Hardware::detect()).expect("a pool");
    assert_eq!(pool.last_shutdown(), LastShutdown::Clean);
    Ok(())
}

/// Files of another pool are not removed as leftovers.
#[test]
fn the_log_of_another_pool_is_kept() -> Result<(), Error> {
    let (place, other) = (Place::new(), Place::new());
    drop(other.open()?);
    let process = Options::new().max_size(1 << 30);
    drop(process.open(&place.path)?);
    crate::copy(&other.files(), &place.files());
    let foreign = process.open(&place.path).expect_err("another pool's");
    assert!(foreign.to_string().contains("belong"), "{foreign}");
    assert!(place.files().join("manifest").exists());
    Ok(())
}

/// An opening that may not create a database creates nothing.
#[test]
fn nothing_is_made_unasked() {
    let place = Place::new();
    let refused = options().create(false).open(&place.path);
    assert!(refused.is_err());
    assert!(!place.path.exists());
    let _ = Options::new();
}

/// An opening that requests no log waits for the pool. By the time it gets the pool, that has a log, and is opened with
/// it.
#[test]
fn a_log_may_begin_while_an_opening_waits() -> Result<(), Error> {
    let (place, other) = (Place::new(), Place::new());
    Db::open(&place.path)?.map("m")?.upsert("key", "1")?;
    other.open()?.map("m")?.upsert("key", "2")?;
    let held = Pool::open(&place.path, &PoolOptions::default(), Hardware::detect())?;
    let waiting = Options::new()
        .max_size(1 << 30)
        .lock_wait(Duration::from_secs(120));
    let db = std::thread::scope(|scope| {
        let opener = scope.spawn(|| waiting.open(&place.path));
        // An opening that comes later finds the log at once.
        std::thread::sleep(Duration::from_millis(200));
        std::fs::rename(other.files(), place.files()).expect("renamed");
        std::fs::rename(&other.path, &place.path).expect("renamed");
        drop(held);
        opener.join().expect("no panic")
    })?;
    assert_eq!(db.level(), Level::Disk);
    assert_eq!(db.map("m")?.get("key")?, Some(b"2".to_vec()));
    Ok(())
}
