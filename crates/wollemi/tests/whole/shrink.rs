//! Free pages are returned to the file system, and reused.

use rustix::fs::FallocateFlags;
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};
use wollemi::{Db, Error, Map, Options};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const VALUE: usize = 1000;
const MIB: u64 = 1 << 20;

/// Upper bound on any wait for other threads, on a busy machine; beyond it the test counts as hung.
const PATIENCE: Duration = Duration::from_secs(120);

/// Returns whether files in this folder can have holes.
fn holes_can_be_punched(folder: &Path) -> Result<bool, std::io::Error> {
    let mut file = tempfile::tempfile_in(folder)?;
    file.write_all(&[1; 1 << 16])?;
    let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let can = rustix::fs::fallocate(&file, how, 0, 1 << 16).is_ok();
    if !can {
        eprintln!("holes cannot be punched here: not tried");
    }
    Ok(can)
}

fn blocks(path: &Path) -> Result<u64, std::io::Error> {
    Ok(std::fs::metadata(path)?.blocks() * 512)
}

fn fill(map: &Map, keys: std::ops::Range<u32>) -> Result<(), wollemi::Error> {
    map.load(keys.map(|i| (i.to_be_bytes(), vec![i as u8; VALUE])))?;
    Ok(())
}

fn expect(map: &Map, keys: std::ops::Range<u32>) -> Outcome {
    assert_eq!(map.count()?, u64::from(keys.end - keys.start));
    for i in keys {
        assert_eq!(map.get(i.to_be_bytes())?, Some(vec![i as u8; VALUE]), "key {i}");
    }
    Ok(())
}

/// `give_back` returns free pages to the file system. A crash afterwards leaves all entries intact, and the returned
/// space is usable again.
#[test]
fn free_pages_are_given_back_and_serve_again() -> Outcome {
    let dir = tempfile::tempdir()?;
    if !holes_can_be_punched(dir.path())? {
        return Ok(());
    }
    let path = dir.path().join("a.pool");
    let db = Db::open(&path)?;
    let map = db.map("m")?;
    fill(&map, 0..40_000)?;
    let full = blocks(&path)?;
    for i in 100..40_000u32 {
        map.remove(i.to_be_bytes())?;
    }
    // Guards of other tests in this process may delay it for a while.
    let begin = Instant::now();
    let mut given = db.give_back()?;
    while given <= 30 * MIB {
        assert!(begin.elapsed() < PATIENCE, "{given} bytes were given back");
        std::thread::sleep(Duration::from_millis(1));
        given += db.give_back()?;
    }
    let stats = db.stats()?.space;
    assert!(
        blocks(&path)? < full - 30 * MIB,
        "{full} blocks before, {} now",
        blocks(&path)?
    );
    assert!(
        stats.given_back >= given && stats.given_back <= stats.free,
        "{stats:?}"
    );
    assert_eq!(stats.used + stats.free, stats.reserved);
    drop(map);

    // The file as a crash leaves it, while the database is open.
    let image = dir.path().join("image.pool");
    std::fs::copy(&path, &image)?;
    let crashed = Db::open(&image)?;
    expect(&crashed.map("m")?, 0..100)?;
    assert!(crashed.check()?.is_clean());

    for (db, path) in [(db, path), (crashed, image)] {
        let map = db.map("m")?;
        fill(&map, 100..40_000)?;
        expect(&map, 0..40_000)?;
        let check = db.check()?;
        assert!(check.is_clean(), "{check:?}");
        let space = db.stats()?.space;
        assert!(blocks(&path)? >= space.used, "what is in use has blocks");
        drop((map, db));
        let db = Options::new().open(&path)?;
        expect(&db.map("m")?, 0..40_000)?;
    }
    Ok(())
}

/// If much more space is free than needed, writes return it by themselves, piece by piece, and keep a reserve.
#[test]
fn long_runs_go_back_by_themselves() -> Outcome {
    long_runs_go_back(|_, map, keys, put| {
        keys.map(u32::to_be_bytes).try_for_each(|key| match put {
            true => map.upsert(key, [1]),
            false => map.remove(key).map(drop),
        })
    })
}

/// So do commits.
#[test]
fn long_runs_go_back_by_commits() -> Outcome {
    long_runs_go_back(|db, map, keys, put| {
        let mut batch = db.batch();
        for key in keys.map(u32::to_be_bytes) {
            match put {
                true => batch.upsert(map, key, [1]),
                false => batch.remove(map, key),
            };
        }
        batch.commit().map(drop)
    })
}

/// `write` puts or removes keys.
fn long_runs_go_back(write: impl Fn(&Db, &Map, Range<u32>, bool) -> Result<(), Error>) -> Outcome {
    let dir = tempfile::tempdir()?;
    if !holes_can_be_punched(dir.path())? {
        return Ok(());
    }
    let path = dir.path().join("a.pool");
    let db = Db::open(&path)?;
    let map = db.map("m")?;
    fill(&map, 0..160_000)?;
    let full = blocks(&path)?;
    let before = db.stats()?.space;
    assert_eq!(before.given_back, 0, "nothing is free yet");
    for i in 0..160 {
        write(&db, &map, i * 1000..(i + 1) * 1000, false)?;
    }
    // Guards of other tests in this process may keep removed space back until later writes.
    let begin = Instant::now();
    let mut space = db.stats()?.space;
    while space.given_back <= 16 * MIB {
        assert!(begin.elapsed() < PATIENCE, "{space:?}");
        write(&db, &map, 0..1000, true)?;
        write(&db, &map, 0..1000, false)?;
        space = db.stats()?.space;
    }
    assert!(
        space.free.saturating_sub(space.given_back) > 32 * MIB,
        "a reserve is kept: {space:?}"
    );
    // Commits may make the pool grow first.
    let grown = space.reserved - before.reserved;
    assert!(blocks(&path)? < full + grown - 16 * MIB);
    Ok(())
}
