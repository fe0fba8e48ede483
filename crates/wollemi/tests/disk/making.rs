//! Loss of power while a database is being created.

use crate::{Place, entries, options};
use pmem::Watched;
use pmem::watched::{ObservedStep, Observer, StepKind};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex};
use wollemi::{Db, Error, Options};

/// Marks the pool at `place` as open when the machine stopped, and gives the machine another boot id.
fn stop_machine(place: &Place) {
    if let Ok(mut pool) = std::fs::read(&place.path) {
        // The id of another boot: the pool's own UUID, which has the same layout (docs/format.md).
        pool.copy_within(24..48, 72);
        std::fs::write(&place.path, pool).expect("written");
    }
}

/// Checks that the database opens, is empty and can be used.
fn is_new(place: &Place) -> Result<(), Error> {
    let db = place.open()?;
    assert_eq!(db.maps()?.len(), 0);
    db.map("m")?.upsert("key", "value")?;
    drop(db);
    assert_eq!(
        entries(&place.open()?, "m"),
        [(b"key".to_vec(), b"value".to_vec())]
    );
    let check = place.open()?.check()?;
    assert!(check.is_clean(), "{check:?}");
    Ok(())
}

/// Returns all files of a place, with their bytes.
fn files(place: &Place) -> BTreeMap<OsString, Vec<u8>> {
    let read = |path: &Path| std::fs::read(path).expect("a file");
    let mut files: BTreeMap<_, _> = crate::names(&place.files())
        .into_iter()
        .map(|name| (name.clone(), read(&place.files().join(&name))))
        .collect();
    if place.path.exists() {
        files.insert("the pool".into(), read(&place.path));
    }
    files
}

/// Stops the machine before each store into the pool that is being created, and before each fence.
#[derive(Clone, Debug)]
struct Stops(Arc<Mutex<Making>>);

#[derive(Debug)]
struct Making {
    place: Option<Place>,
    stops: u32,
    refused: Vec<String>,
}

impl Observer for Stops {
    fn before(&self, step: &ObservedStep) {
        if !step.stores() && !matches!(step.what, StepKind::Fence(_)) {
            return;
        }
        let mut making = self.0.lock().expect("no panic");
        let Some(place) = &making.place else {
            return;
        };
        let left = match place.path.exists() {
            true => place.kill(),
            false => place.cut(),
        };
        stop_machine(&left);
        let opened = is_new(&left);
        making.stops += 1;
        if let Err(error) = opened {
            making.refused.push(error.to_string());
        }
    }
}

/// Whenever the power fails during the creation of a database, the next opening creates it.
#[test]
fn power_lost_amid_the_making() -> Result<(), Error> {
    let place = Place::new();
    let path = place.path.clone();
    let making = Arc::new(Mutex::new(Making {
        place: Some(place),
        stops: 0,
        refused: Vec::new(),
    }));
    let db = options().open_on(&path, Watched::machine(Stops(making.clone())))?;
    let (place, stops, refused) = {
        let mut making = making.lock().expect("no panic");
        (
            making.place.take(),
            making.stops,
            std::mem::take(&mut making.refused),
        )
    };
    assert!(stops > 10, "{stops}");
    let first = refused.first();
    assert!(first.is_none(), "{} of {stops} stops: {first:?}", refused.len());
    drop((db, place));
    Ok(())
}

/// Returns a place where a crash has interrupted the creation of a database before it had a manifest. Of the files
/// beside the pool, those whose names `keep` accepts are left.
fn interrupted(keep: impl Fn(&str) -> bool) -> Place {
    let place = Place::new();
    drop(place.open().expect("room"));
    std::fs::remove_file(&place.path).expect("removed");
    let manifest = place.files().join("manifest");
    std::fs::rename(&manifest, place.files().join("manifest.new")).expect("renamed");
    for name in crate::names(&place.files()) {
        if !keep(name.to_str().expect("a plain name")) {
            std::fs::remove_file(place.files().join(name)).expect("removed");
        }
    }
    place
}

/// An opening that may not create a database distinguishes leftovers of a creation from no files, and keeps them; one
/// that may creates the database again.
#[test]
fn left_overs_of_a_making_are_recognised() -> Result<(), Error> {
    let log = |name: &str| name.starts_with("log-");
    let both = interrupted(|_| true);
    let only_log = interrupted(log);
    let only_aside = interrupted(|name| name == "manifest.new");
    // The length of the file was durable, but not its bytes.
    let zeros = interrupted(log);
    std::fs::write(zeros.files().join("manifest.new"), [0; 64]).expect("written");
    let cut_short = interrupted(|_| false);
    std::fs::write(cut_short.files().join("spare-00000000"), [0; 700]).expect("written");
    std::fs::write(cut_short.files().join("manifest.new"), []).expect("written");
    for place in [both, only_log, only_aside, zeros, cut_short] {
        let before = files(&place);
        let reads = options().read_only(true);
        for unasked in [options().create(false), Options::new().create(false), reads] {
            let refused = unasked.open(&place.path).expect_err("there is none").to_string();
            assert!(refused.contains("a crash interrupted its creation"), "{refused}");
            assert_eq!(files(&place), before);
        }
        is_new(&place)?;
    }
    let nothing = interrupted(|_| false);
    let refused = options().create(false).open(&nothing.path);
    let refused = refused.expect_err("there is none").to_string();
    assert!(refused.contains("no such file"), "{refused}");
    is_new(&nothing)
}

/// Files of a database that has acknowledged writes are never mistaken for leftovers of a creation, even without its
/// pool and its manifest.
#[test]
fn a_database_that_was_used_is_not_made_anew() -> Result<(), Error> {
    let step = |db: &Db, number: usize| -> Result<(), Error> {
        match number {
            0 => db.map("m").map(drop),
            1 => db.map("m")?.upsert("key", "value"),
            2 => db.checkpoint(true).map(drop),
            _ => db.checkpoint(false).map(drop),
        }
    };
    for steps in 1..=4 {
        let place = Place::new();
        let db = place.open()?;
        (0..steps).try_for_each(|number| step(&db, number))?;
        for left in [place.cut(), {
            drop(db);
            place.cut()
        }] {
            std::fs::remove_file(left.files().join("manifest")).expect("removed");
            let before = files(&left);
            let ways = [true, false].map(|create| options().create(create));
            for way in ways.into_iter().chain([Options::default()]) {
                let refused = way.open(&left.path).map(drop);
                let refused = refused.expect_err("the database was used").to_string();
                assert!(
                    refused.contains("whose pool and manifest are missing"),
                    "{refused}"
                );
                assert!(files(&left) == before, "after {steps} steps");
            }
        }
    }
    Ok(())
}

/// Foreign files with the names of a database's files are refused and kept.
#[test]
fn files_of_others_are_left_alone() -> Result<(), Error> {
    for name in ["log-00000000", "spare-00000000", "manifest.new", "manifest"] {
        let place = Place::new();
        std::fs::create_dir(place.files()).expect("made");
        std::fs::write(place.files().join(name), "a list of passengers").expect("written");
        let before = files(&place);
        let refused = place.open().map(drop).expect_err("another's file").to_string();
        assert!(refused.contains(name), "{refused}");
        assert!(files(&place) == before, "{name}");
    }
    // Names that only resemble those of a database.
    let place = Place::new();
    std::fs::create_dir(place.files()).expect("made");
    let names = ["log-book", "run-away", "manifesto", "manifest.old", "log-0"];
    for name in names {
        std::fs::write(place.files().join(name), name).expect("written");
    }
    is_new(&place)?;
    place.open()?.end_log()?;
    for name in names {
        let bytes = std::fs::read(place.files().join(name)).expect("there");
        assert_eq!(bytes, name.as_bytes());
    }
    // The pool's own name.
    let place = Place::new();
    std::fs::write(&place.path, "a list of passengers").expect("written");
    let refused = place.open().map(drop).expect_err("another's file").to_string();
    assert!(refused.contains("not a Wollemi pool"), "{refused}");
    let bytes = std::fs::read(&place.path).expect("there");
    assert_eq!(bytes, b"a list of passengers");
    Ok(())
}
