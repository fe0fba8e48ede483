//! Checkpoints beside changes of the set of maps.

use crate::{Place, entries, options};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Duration;
use wollemi::{Db, Error, FilesError, IndexKind, Level};

/// A map whose drop is refused, because it has a handle, is in the checkpoint as a whole, however often the drop is
/// attempted.
#[test]
fn a_drop_that_is_refused_takes_nothing_from_a_checkpoint() -> Result<(), Error> {
    let place = Place::new();
    let db = place.open()?;
    let map = db.map("m")?;
    let turn = db.turn();
    for i in 0..4000u32 {
        map.upsert(i.to_be_bytes(), [i as u8; 500])?;
    }
    turn.end()?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let dropper = scope.spawn(|| {
            while !done.load(SeqCst) {
                let refused = db.drop_map("m");
                assert!(matches!(refused, Err(Error::MapInUse(_))), "{refused:?}");
            }
        });
        let taken: Vec<_> = (0..5).map(|_| db.checkpoint(true)).collect();
        done.store(true, SeqCst);
        dropper.join().expect("the drop was refused");
        for checkpoint in taken {
            assert_eq!(checkpoint?.expect("there is a log").entries, 4000);
        }
        Ok::<(), Error>(())
    })?;
    assert_eq!(entries(&place.cut().open()?, "m").len(), 4000);
    Ok(())
}

/// Maps that are created while a checkpoint begins survive a loss of power, with their entries.
#[test]
fn maps_are_made_beside_checkpoints() -> Result<(), Error> {
    let place = Place::new();
    let db = place.open()?;
    for round in 0..100u32 {
        let begun = AtomicU32::new(0);
        let names = |maker: u32| (0..10u32).map(move |i| format!("{maker} {i}"));
        let make = |maker: u32| {
            let turn = db.turn();
            for name in names(maker) {
                begun.fetch_add(1, SeqCst);
                db.map(&name)?.upsert("round", round.to_be_bytes())?;
            }
            turn.end()
        };
        std::thread::scope(|scope| {
            let makers: Vec<_> = (0..2).map(|maker| scope.spawn(move || make(maker))).collect();
            while begun.load(SeqCst) <= round % 20 && !makers.iter().all(|maker| maker.is_finished()) {
                std::hint::spin_loop();
            }
            db.checkpoint(true)?;
            makers
                .into_iter()
                .try_for_each(|maker| maker.join().expect("no panic"))
        })?;
        let left = place.cut().open()?;
        for name in (0..2).flat_map(names) {
            let held = [(b"round".to_vec(), round.to_be_bytes().to_vec())];
            assert_eq!(entries(&left, &name), held, "{name}");
            assert!(db.drop_map(&name)?);
        }
    }
    Ok(())
}

/// Incompressible bytes.
fn noise(mut seed: u64, len: usize) -> Vec<u8> {
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed as u8
    };
    (0..len).map(|_| next()).collect()
}

/// A loss of power after each of several delta checkpoints leaves the current content: keys that were put, put again,
/// removed and put back, and maps that were created, dropped and recreated.
#[test]
fn deltas_have_what_has_changed() -> Result<(), Error> {
    let place = Place::new();
    let db = place.open()?;
    // Compared with this map, the changes are small.
    let large = db.map("large")?;
    let turn = db.turn();
    for i in 1..=320u64 {
        large.upsert(i.to_be_bytes(), noise(i, 64 << 10))?;
    }
    turn.end()?;
    drop(large);
    let map = db.map("m")?;
    let mut held = BTreeMap::new();
    for i in 0..20u8 {
        map.upsert([i], "at first")?;
        held.insert(vec![i], b"at first".to_vec());
    }
    assert!(db.checkpoint(true)?.expect("there is a log").full);
    // All of its runs are still those of the full checkpoint.
    assert!(!db.checkpoint(false)?.expect("there is a log").full);
    for round in 0..5u8 {
        for i in [3 * round, 3 * round + 1, 7, 40 + round, 50] {
            map.upsert([i], [round])?;
            held.insert(vec![i], vec![round]);
        }
        for i in [3 * round + 1, 3 * round + 2, 50 * (round % 2), 39 + round] {
            assert_eq!(map.remove([i])?, held.remove(&vec![i]).is_some());
        }
        let index = [IndexKind::Roart, IndexKind::DpTree][usize::from(round % 2)];
        db.map("anew")?.upsert("goes with the map", "soon")?;
        assert!(db.drop_map("anew")?);
        db.map_with("anew", index)?.upsert([round], "anew")?;
        if round == 3 {
            assert!(db.drop_map("large")?);
        }
        let taken = db.checkpoint(false)?.expect("there is a log");
        assert_eq!(taken.full, round == 4, "round {round}: {taken:?}");
        map.upsert("behind", [round])?;
        held.insert(b"behind".to_vec(), vec![round]);
        for left in [place.cut(), place.kill()] {
            let db = left.open()?;
            assert_eq!(entries(&db, "m"), held.clone().into_iter().collect::<Vec<_>>());
            assert_eq!(entries(&db, "anew"), [(vec![round], b"anew".to_vec())]);
            let large = db.find_map("large")?.map(|map| map.count()).transpose()?;
            assert_eq!(large, (round < 3).then_some(320));
        }
    }
    Ok(())
}

/// An opening that waits for the process that has the pool open uses the last checkpoint which that process has taken,
/// and removes nothing of it.
#[test]
fn an_opening_that_waits_knows_the_last_checkpoint() -> Result<(), Error> {
    let place = Place::new();
    let db = place.open()?;
    let map = db.map("m")?;
    for i in 0..1000u32 {
        map.upsert(i.to_be_bytes(), noise(u64::from(i), 100))?;
    }
    db.checkpoint(true)?;
    let waiting = options().lock_wait(Duration::from_secs(120));
    std::thread::scope(|scope| {
        let opener = scope.spawn(|| waiting.open(&place.path));
        // It locks the directory, and then waits for the pool.
        let directory = std::fs::File::open(place.files()).expect("a directory");
        while directory.try_lock().is_ok() {
            directory.unlock().expect("locked");
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(50));
        map.upsert("last", "1")?;
        db.checkpoint(true)?;
        drop((map, db));
        opener.join().expect("no panic").map(drop)
    })?;
    let db = place.cut().open()?;
    assert_eq!(db.map("m")?.count()?, 1001);
    Ok(())
}

/// If the log before a checkpoint cannot be read, the checkpoint is a full one, which does not need the log; later ones
/// contain the changes since.
#[test]
fn a_checkpoint_over_a_damaged_log_is_full() -> Result<(), Error> {
    let place = Place::new();
    let db = place.open()?;
    let (large, map) = (db.map("large")?, db.map("m")?);
    let turn = db.turn();
    for i in 1..=320u64 {
        large.upsert(i.to_be_bytes(), noise(i, 64 << 10))?;
    }
    turn.end()?;
    assert!(db.checkpoint(true)?.expect("there is a log").full);
    let damaged = noise(4711, 1000);
    map.upsert("damaged", &damaged)?;
    drop((large, map, db));

    let mut files = crate::names(&place.files()).into_iter();
    let found = files.find_map(|name| {
        let path = place.files().join(name);
        let bytes = std::fs::read(&path).expect("a file");
        let at = bytes.windows(damaged.len()).position(|window| window == damaged);
        at.map(|at| (path, bytes, at))
    });
    let (path, mut bytes, at) = found.expect("a record of it");
    bytes[at] ^= 1;
    std::fs::write(path, bytes).expect("written");

    let db = place.open()?;
    let map = db.map("m")?;
    map.upsert("later", "1")?;
    assert!(db.checkpoint(false)?.expect("there is a log").full);
    map.upsert("last", "2")?;
    assert!(!db.checkpoint(false)?.expect("there is a log").full);
    let held = entries(&db, "m");
    assert_eq!(held.len(), 3);
    let left = place.cut().open()?;
    assert_eq!(entries(&left, "m"), held);
    assert_eq!(left.map("large")?.count()?, 320);
    Ok(())
}

/// A condition of the caller ends a checkpoint, and an opening that begins a log. The files before it stay in use.
#[test]
fn checkpoints_end_when_the_caller_asks_for_it() -> Result<(), Error> {
    let place = Place::new();
    Db::open(&place.path)?
        .map("m")?
        .load((0..5000u32).map(|i| (i.to_be_bytes(), [7; 200])))?;
    let is_over = Arc::new(AtomicBool::new(true));
    let asked = is_over.clone();
    let options = options().end_checkpoints_if(move || asked.load(SeqCst));
    let is_stopped = |error: Error| {
        assert!(matches!(error, Error::Files(FilesError::Stopped)), "{error}");
    };
    is_stopped(options.open(&place.path).map(drop).expect_err("ended"));
    assert!(!place.files().exists());
    assert_eq!(Db::open(&place.path)?.level(), Level::Process);
    is_over.store(false, SeqCst);
    let db = options.open(&place.path)?;
    is_over.store(true, SeqCst);
    db.map("m")?.upsert("key", "value")?;
    is_stopped(db.checkpoint(true).map(drop).expect_err("ended"));
    assert_eq!(place.cut().open()?.map("m")?.count()?, 5001);
    is_over.store(false, SeqCst);
    assert_eq!(db.checkpoint(true)?.map(|done| done.entries), Some(5001));
    Ok(())
}
