//! Backups: a restore yields the content of one moment; anything but a complete backup is refused.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use wollemi::{Db, Error, IndexKind};

type Outcome = Result<(), Box<dyn std::error::Error>>;
type Maps = Vec<(String, &'static str, BTreeMap<Vec<u8>, Vec<u8>>)>;

fn maps(db: &Db) -> Result<Maps, Error> {
    let mut maps = Maps::new();
    for info in db.maps()? {
        let map = db.map(&info.name)?;
        let entries = map.iter().collect::<Result<_, _>>()?;
        maps.push((info.name, map.index_kind().name(), entries));
    }
    Ok(maps)
}

/// Returns a database with maps of several indexes, and entries of all sizes.
fn filled() -> Result<Db, Error> {
    let db = Db::anonymous()?;
    for (i, kind) in [IndexKind::Roart, IndexKind::Wort, IndexKind::Part]
        .into_iter()
        .enumerate()
    {
        let map = db.map_with(&format!("map {i}"), kind)?;
        map.load((0..500u32).map(|n| (n.to_be_bytes(), vec![i as u8; n as usize % 90])))?;
        map.upsert("", "the empty key")?;
    }
    db.map("empty")?;
    db.map("large")?.upsert(vec![7; 65_535], vec![8; 3 << 20])?;
    Ok(db)
}

/// Every map is restored as it was, in its original index; progress is reported; a copy is the same.
#[test]
fn what_is_restored_is_what_there_was() -> Outcome {
    let db = filled()?;
    let mut bytes = Vec::new();
    let mut reported = 0;
    let copied = db.snapshot()?.backup(&mut bytes, |copied| {
        assert!(copied.entries >= reported);
        reported = copied.entries;
    })?;
    assert_eq!(
        (copied.maps, copied.entries, copied.bytes),
        (5, 1504, bytes.len() as u64)
    );
    assert_eq!(reported, 1504);

    let restored = Db::anonymous()?;
    assert_eq!(restored.restore(&mut &bytes[..], |_| {})?, copied);
    assert_eq!(maps(&restored)?, maps(&db)?);
    assert!(restored.check()?.is_clean());
    let error = restored
        .restore(&mut &bytes[..], |_| {})
        .expect_err("they are there");
    assert!(matches!(error, Error::MapExists(_)), "{error}");

    let copy = Db::anonymous()?;
    assert_eq!(copy.copy_from(&db.snapshot()?, |_| {})?.entries, 1504);
    assert_eq!(maps(&copy)?, maps(&db)?);
    Ok(())
}

/// A backup of format 1 is restored, and refused if any bit of it was changed or any byte is missing.
#[test]
fn backups_of_format_1_are_restored() -> Outcome {
    let parts: [&[u8]; 8] = [
        b"WOLLEMIB\x01\0\0\0",
        b"\x01\x07\x05defaultroart",
        b"\x02\x05\0\x03\0\0\0alphaone",
        b"\x02\x06\0\x0c\0\0\0alpha2twelve bytes",
        b"\x01\x05\x05otherroart",
        b"\x02\x04\0\0\0\0\0beta",
        b"\x03\x03\0\0\0\0\0\0\0",
        b"\x8d\xd2\x2c\x4b\x58\x4e\xee\x98",
    ];
    let bytes = parts.concat();
    let restore = |bytes: &[u8]| -> Result<Db, Error> {
        let db = Db::anonymous()?;
        db.restore(&mut &bytes[..], |_| {})?;
        Ok(db)
    };
    let db = restore(&bytes)?;
    assert_eq!(db.map("default")?.get("alpha")?, Some(b"one".to_vec()));
    assert_eq!(db.map("default")?.get("alpha2")?, Some(b"twelve bytes".to_vec()));
    assert_eq!(db.map("other")?.get("beta")?, Some(vec![]));
    assert_eq!(db.maps()?.len(), 2);
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        for damaged in [&bytes[..at], &flipped] {
            let error = restore(damaged).expect_err("damaged");
            assert!(
                matches!(error, Error::NotBackup(_) | Error::MapName(_)),
                "{at}: {error}"
            );
        }
    }
    Ok(())
}

/// A file gets its name when it is complete, replaces no existing name, and leaves nothing on failure.
#[test]
fn a_file_is_whole_or_not_there() -> Outcome {
    let db = filled()?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("a");
    // The temporary file that an interrupted backup leaves, and a user's file with a similar name.
    let part = folder.path().join(".a.wollemi-0123456789abcdef");
    let theirs = folder.path().join("a.part");
    std::fs::write(&theirs, "a user's")?;
    let names = || std::fs::read_dir(folder.path()).map(Iterator::count);

    // A backup removes the leftovers of an interrupted one.
    std::fs::write(&part, "left over")?;
    let copied = db
        .snapshot()?
        .backup_to(&path, |_| assert!(!part.exists() && !path.exists()))?;
    assert_eq!(copied.bytes, std::fs::metadata(&path)?.len());
    assert_eq!(std::fs::read(&theirs)?, b"a user's");
    std::fs::remove_file(&theirs)?;
    assert_eq!(names()?, 1);
    let restored = Db::anonymous()?;
    restored.restore(&mut std::fs::File::open(&path)?, |_| {})?;
    assert_eq!(maps(&restored)?, maps(&db)?);

    let error = db
        .snapshot()?
        .backup_to(&path, |_| {})
        .expect_err("the name is taken");
    assert!(matches!(error, Error::Backup(_)), "{error}");

    std::fs::remove_file(&path)?;
    // Another backup is running, in another process or in this one.
    let other = std::fs::File::create_new(&part)?;
    other.lock()?;
    db.snapshot()?.backup_to(&path, |_| {}).expect_err("another one");
    assert!(part.exists(), "the other's file stays");
    drop(other);

    // Its name is taken at the last moment.
    let late = db.snapshot()?.backup_to(&path, |_| {
        std::fs::write(&path, "another's").expect("a file");
    });
    assert!(matches!(late, Err(Error::Backup(_))), "{late:?}");
    assert_eq!(
        (std::fs::read(&path)?.as_slice(), names()?),
        (&b"another's"[..], 1)
    );
    std::fs::remove_file(&path)?;

    let snapshot = db.snapshot_within(1)?;
    db.map("map 0")?.upsert("", "another value")?;
    let error = snapshot
        .backup_to(&path, |_| {})
        .expect_err("the snapshot is outgrown");
    assert!(matches!(error, Error::SnapshotOutgrown(_)), "{error}");
    assert_eq!(names()?, 0);
    Ok(())
}

/// A pool whose name was removed while it is open can still be backed up.
#[test]
fn a_pool_without_a_name_is_backed_up() -> Outcome {
    let folder = tempfile::tempdir()?;
    let [pool, path] = ["pool", "backup"].map(|name| folder.path().join(name));
    let db = Db::open(&pool)?;
    db.map("m")?.upsert("key", "value")?;
    std::fs::remove_file(&pool)?;
    assert_eq!(db.snapshot()?.backup_to(&path, |_| {})?.entries, 1);
    Ok(())
}

/// A backup taken beside a writer of pairs shows one moment.
#[test]
fn a_backup_is_one_moment() -> Outcome {
    let db = Db::anonymous()?;
    let (one, two) = (db.map("one")?, db.map("two")?);
    let stop = AtomicBool::new(false);
    let bytes = std::thread::scope(|scope| -> Result<_, Box<dyn std::error::Error>> {
        let writer = scope.spawn(|| -> Result<(), Error> {
            let mut round = 0u64;
            while !stop.load(SeqCst) {
                let mut batch = db.batch();
                for i in 0..20u8 {
                    batch.upsert(if i % 2 == 0 { &one } else { &two }, [i], round.to_le_bytes());
                }
                batch.commit()?;
                round += 1;
            }
            Ok(())
        });
        while one.is_empty()? {
            std::thread::yield_now();
        }
        let mut backups = Vec::new();
        for _ in 0..10 {
            let mut bytes = Vec::new();
            db.snapshot()?.backup(&mut bytes, |_| {})?;
            backups.push(bytes);
        }
        stop.store(true, SeqCst);
        writer.join().expect("no panic")?;
        Ok(backups)
    })?;
    for bytes in bytes {
        let restored = Db::anonymous()?;
        restored.restore(&mut &bytes[..], |_| {})?;
        let mut values: Vec<_> = maps(&restored)?
            .into_iter()
            .flat_map(|(_, _, map)| map.into_values())
            .collect();
        assert_eq!(values.len(), 20);
        values.dedup();
        assert_eq!(values.len(), 1);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// However a backup is truncated or changed, restoring it returns an error that says so, and never panics.
    #[test]
    fn damage_is_noticed(cut: prop::sample::Index, flip: prop::sample::Index, bit in 0..8u32, noise: Vec<u8>) {
        let db = Db::anonymous()?;
        db.map("m")?.load((0..20u8).map(|i| ([i], vec![i; 10])))?;
        let mut bytes = Vec::new();
        db.snapshot()?.backup(&mut bytes, |_| {})?;
        let mut flipped = bytes.clone();
        flipped[flip.index(bytes.len())] ^= 1u8 << bit;
        for damaged in [&bytes[..cut.index(bytes.len())], &flipped, &noise] {
            let error = Db::anonymous()?.restore(&mut &damaged[..], |_| {}).expect_err("damaged");
            prop_assert!(
                matches!(error, Error::NotBackup(_) | Error::MapName(_)),
                "{}", error
            );
        }
    }
}
