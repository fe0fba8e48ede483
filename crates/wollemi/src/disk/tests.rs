//! Checkpoints during the steps of other threads, reads beside a sync, and writes that fail.

mod amplification;
mod doubtful;
mod slow;
mod undone;
mod waiting;

use self::doubtful::Doubtful;
use self::slow::{Held, Hold, Slow};
use super::keeper::REPLAYED;
use super::manifest::Manifest;
use super::opening::{attach, open_log};
use super::settings::Settings;
use super::sizes::Sizes;
use crate::files_error::FilesError;
use crate::{Db, Durability, Error, IndexKind, Map, Media};
use log::disk::{FileMapping, OpenFile};
use log::{Directory, Disk, DiskError, DiskFile};
use pmem::watched::{ObservedStep, Observer, StepKind};
use pmem::{Hardware, Pool, PoolOptions, Watched};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long to wait for a thread that may itself wait for this one.
const MOMENT: Duration = Duration::from_millis(15);

/// The number of steps of this thread to pass, and the action at the next.
type Amid = (usize, Box<dyn FnOnce()>);

thread_local! {
    static AMID: RefCell<Option<Amid>> = const { RefCell::new(None) };
}

/// Runs an action during the steps that change the pool or make it durable.
#[derive(Debug)]
struct Changes;

impl Observer for Changes {
    fn before(&self, step: &ObservedStep) {
        if !matches!(
            step.what,
            StepKind::Store | StepKind::Exchange | StepKind::Draft | StepKind::Fence(_)
        ) {
            return;
        }
        let then = AMID.with_borrow_mut(|amid| match amid {
            Some((0, _)) => amid.take().map(|(_, then)| then),
            Some((left, _)) => {
                *left -= 1;
                None
            }
            None => None,
        });
        if let Some(then) = then {
            then();
        }
    }
}

/// Settings of these tests' databases.
fn settings(max_size: u64) -> Settings {
    Settings {
        pool: PoolOptions {
            max_size,
            page_size: 64 << 10,
            ..PoolOptions::default()
        },
        create: true,
        begins_log: true,
        recovery_threads: 1,
        index: IndexKind::default(),
        log: log::LogOptions {
            segment_size: 64 << 10,
            limit: 16 << 20,
            spares: 2,
        },
        durability: Durability::Immediate,
        sync_within: Duration::from_secs(1),
        on_rebuild: None,
        checkpoints_end: None,
        rebuild_threads: 2,
        sizes: Sizes::default(),
        has_threads: true,
    }
}

/// Opens a database in memory whose log and checkpoints are on a disk: a new one, or the one that they hold.
fn open_on<M: Media, D: Disk>(disk: D, media: M, max_size: u64) -> Db<M> {
    let settings = settings(max_size);
    let disk = Arc::new(disk);
    let manifest = Manifest::load(&*disk).expect("sound");
    let pool = Pool::anonymous(&settings.pool, media).expect("memory");
    attach(pool, disk, manifest, &settings, Instant::now(), None).expect("it opens")
}

fn open<M: Media>(path: &Path, media: M) -> Db<M> {
    open_on(Directory::open(path).expect("a directory"), media, 1 << 30)
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

/// Copies the files, as a machine crash at this moment may leave them.
fn copied(files: &Path) -> TempDir {
    // The log's files may be renamed and a checkpoint may end during the copy; then the copy is not of one moment.
    let look = || {
        let entries = std::fs::read_dir(files).expect("a directory");
        let names: BTreeSet<_> = entries.map(|file| file.expect("an entry").file_name()).collect();
        (names, std::fs::read(files.join(super::manifest::NAME)).ok())
    };
    loop {
        let (left, before) = (folder(), look());
        let copied = before.0.iter().try_for_each(|name| {
            let copied = std::fs::copy(files.join(name), left.path().join(name));
            copied.map(drop)
        });
        if copied.is_ok() && look() == before {
            return left;
        }
    }
}

/// Opens such a copy.
fn left(files: &Path) -> (TempDir, Db<Hardware>) {
    let left = copied(files);
    let db = open(left.path(), Hardware::detect());
    (left, db)
}

/// Returns all entries of a database.
fn contents<M: Media>(db: &Db<M>) -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    for info in db.maps().expect("sound") {
        let map = db.find_map(&info.name).expect("sound").expect("there");
        for entry in map.iter() {
            let (key, value) = entry.expect("sound");
            all.push((info.name.clone(), key, value));
        }
    }
    all
}

/// Makes a change, with a checkpoint by another thread before each of its steps; the change survives a loss of power.
fn checkpoint_amid(change: impl Fn(&Db<Watched<Changes>>)) {
    let mut steps = 0;
    loop {
        let files = folder();
        let db = open(files.path(), Watched::machine(Changes));
        for name in ["a", "b"] {
            let map = db.map(name).expect("room");
            map.upsert("key", "before").expect("room");
        }
        let (other, (come, comes)) = (db.clone(), mpsc::channel());
        let then = move || {
            let (ended, end) = mpsc::channel();
            std::thread::spawn(move || ended.send(other.checkpoint(true)));
            // If the checkpoint waits for this thread, it ends later.
            let at_once = end.recv_timeout(MOMENT);
            let _ = come.send((at_once, end));
        };
        AMID.set(Some((steps, Box::new(then))));
        change(&db);
        if AMID.take().is_some() {
            break;
        }
        let (at_once, end) = comes.recv().expect("it came");
        let taken = at_once.or_else(|_| end.recv()).expect("it ends");
        taken.expect("a checkpoint");
        let (_files, db_left) = left(files.path());
        assert_eq!(contents(&db_left), contents(&db), "at step {steps}");
        steps += 1;
    }
    assert!(steps > 1, "{steps}");
}

/// A map survives a checkpoint amid its creation: the log has the record of the creation, or the checkpoint has the
/// map.
#[test]
fn a_checkpoint_comes_amid_the_making_of_a_map() {
    checkpoint_amid(|db| {
        let map = db.map("map").expect("room");
        map.upsert("key", "value").expect("room");
    });
}

#[test]
fn a_checkpoint_comes_amid_a_write() {
    let map = |db: &Db<_>, name: &str| -> Map { db.map(name).expect("there") };
    checkpoint_amid(|db| map(db, "a").upsert("another key", "value").expect("room"));
    checkpoint_amid(|db| map(db, "a").upsert("key", "after").expect("room"));
    checkpoint_amid(|db| assert!(map(db, "a").remove("key").expect("room")));
    checkpoint_amid(|db| {
        let mut batch = db.batch();
        batch
            .upsert(&map(db, "a"), "key", "after")
            .remove(&map(db, "b"), "key");
        assert!(batch.commit().expect("room"));
    });
    checkpoint_amid(|db| assert!(db.drop_map("b").expect("room")));
}

/// A key that is written while a checkpoint walks the map survives a loss of power, even if the walk had passed it.
#[test]
fn writes_come_amid_a_walk() {
    const KEYS: u32 = 4000;
    let files = folder();
    let db = open(files.path(), Hardware::detect());
    let map = db.map("map").expect("room");
    let put = |i: u32, round: u32| {
        let value = [&round.to_be_bytes()[..], &[i as u8; 400]].concat();
        map.upsert((i % KEYS).to_be_bytes(), value).expect("room");
    };
    let turn = db.turn();
    (0..KEYS).for_each(|i| put(i, 0));
    turn.end().expect("a sync");
    for round in 1..5 {
        let (written, done) = (AtomicU32::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let turn = db.turn();
                for i in 0..2 * KEYS {
                    if done.load(SeqCst) {
                        break;
                    }
                    put(i, round);
                    written.store(i + 1, SeqCst);
                }
                turn.end().expect("a sync");
            });
            while written.load(SeqCst) == 0 {
                std::thread::yield_now();
            }
            let taken = db.checkpoint(true);
            done.store(true, SeqCst);
            taken.expect("a checkpoint");
        });
        assert_eq!(contents(&left(files.path()).1), contents(&db), "round {round}");
    }
}

/// A read that has seen a write returns only after that write is durable, whatever the kind of read.
#[test]
fn nothing_is_read_before_it_is_durable() {
    #[derive(Debug)]
    struct GivenUp(Option<Vec<u8>>);
    impl From<Error> for GivenUp {
        fn from(error: Error) -> GivenUp {
            panic!("{error}")
        }
    }
    type Read = fn(&Db, &Map) -> Option<Vec<u8>>;
    let reads: [Read; 8] = [
        |_, map| map.get("key").expect("sound"),
        |_, map| map.first().expect("sound").map(|(_, value)| value),
        |_, map| {
            let entry = map.range("a".."z").next_back();
            entry.map(|entry| entry.expect("sound").1)
        },
        |_, map| {
            let found = map.multi_get(&["other", "key"]).expect("sound").pop();
            found.expect("two answers")
        },
        |_, map| {
            assert!(!map.insert("key", "not put, as there is one").expect("sound"));
            Some(b"value".to_vec())
        },
        |db, map| {
            let snapshot = db.snapshot().expect("no commit is unfinished");
            snapshot
                .view(map)
                .expect("a map of it")
                .get("key")
                .expect("sound")
        },
        // The keys read by an abandoned transaction.
        |db, map| {
            let found = db.transact(|tx| match tx.get(map, "key") {
                Ok(value) => Err(GivenUp(value)),
                Err(error) => panic!("{error}"),
            });
            let GivenUp(value) = found.map(|()| "committed").expect_err("given up");
            value
        },
        |db, map| {
            let tx = db.begin();
            let mut range = tx.range(map, "a".."z").expect("sound");
            let found = range.next().map(|entry| entry.expect("sound").1);
            drop(range);
            tx.check().expect("no conflict");
            found
        },
    ];
    let (files, held) = (folder(), Held::default());
    let directory = Directory::open(files.path()).expect("a directory");
    let db = open_on(Slow(directory, held.clone(), ""), Hardware::detect(), 1 << 30);
    // Looking up the map waits as well.
    let map = db.map("map").expect("room");
    for (number, read) in reads.into_iter().enumerate() {
        map.remove("key").expect("room");
        held.hold(true);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| map.upsert("key", "value"));
            while map
                .index
                .bare()
                .get(b"key", &heap::pin())
                .expect("sound")
                .is_none()
            {
                std::thread::yield_now();
            }
            let (sender, results) = mpsc::channel();
            let (db, map) = (&db, &map);
            let reader = scope.spawn(move || sender.send(read(db, map)));
            let early = results.recv_timeout(MOMENT);
            held.hold(false);
            assert!(early.is_err(), "read {number} has returned early: {early:?}");
            assert_eq!(results.recv().expect("it ends"), Some(b"value".to_vec()));
            reader.join().expect("no panic").expect("the result was received");
            writer.join().expect("no panic").expect("room");
        });
    }
}

/// While a long checkpoint runs, the pool's position follows the log, so that an opening after a kill replays a bounded
/// part of it. Writes that no thread waits for count as well. The position is never ahead of the durable end.
#[test]
fn the_position_is_noted_beside_a_checkpoint() {
    let (files, held) = (folder(), Held::default());
    let directory = Directory::open(files.path()).expect("a directory");
    let db = open_on(Slow(directory, held.clone(), "run-"), Hardware::detect(), 1 << 30);
    let map = db.map("map").expect("room").with_durability(Durability::Eventual);
    let value = vec![1; 64 << 10];
    let (log, position) = (
        || db.log_stats().expect("a log"),
        || db.store().heap.pool().log_position().expect("a log"),
    );
    let hangs = Instant::now() + Duration::from_secs(60);
    let wait = |what: &str, until: &dyn Fn() -> bool| {
        while !until() {
            assert!(Instant::now() < hangs, "{what}: {}, {:?}", position(), log());
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let _hold = Hold::new(&held);
    // More than half of the limit, so that a checkpoint is due; then more than is replayed.
    for (count, what) in [(136u32, "a checkpoint begins"), (100, "the position follows")] {
        for i in 0..count {
            map.upsert((i % 8).to_be_bytes(), &value).expect("room");
            let noted = position();
            assert!(noted <= log().durable, "{noted} {:?}", log());
        }
        let is_near = || position() + REPLAYED > log().appended;
        wait(what, &|| log().is_checkpointing && is_near());
    }
}

/// Writes made while a checkpoint walks the map may be in its runs, so the log must contain them if the checkpoint is
/// used: the manifest records that.
#[test]
fn the_log_must_reach_what_a_walk_has_seen() {
    let (files, held) = (folder(), Held::default());
    let directory = Directory::open(files.path()).expect("a directory");
    let db = open_on(Slow(directory, held.clone(), "run-"), Hardware::detect(), 1 << 30);
    let map = db.map("map").expect("room");
    map.upsert("key", "before").expect("room");
    let appended = || db.log_stats().expect("a log").appended;
    let written = std::thread::scope(|scope| {
        let hold = Hold::new(&held);
        let taken = scope.spawn(|| db.checkpoint(true));
        // Its run cannot end before it is synced.
        while runs_in(files.path()).is_empty() {
            assert!(!taken.is_finished(), "it has written no run");
            std::thread::yield_now();
        }
        map.upsert("key", "meanwhile").expect("room");
        let written = appended();
        drop(hold);
        taken.join().expect("no panic").expect("a checkpoint");
        written
    });
    let disk = Directory::open(files.path()).expect("a directory");
    let manifest = Manifest::load(&disk).expect("sound").expect("there");
    assert!(
        manifest.from < written && written <= manifest.until,
        "{manifest:?}, {written}"
    );
}

/// Returns the names of the runs in a directory.
fn runs_in(path: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(path).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
    names.filter(|name| name.starts_with("run-")).collect()
}

/// If the sync after a manifest's renaming fails, the runs of both manifests stay, since either may be in effect after
/// a loss of power. The next checkpoint settles it, and leaves only its own runs.
#[test]
fn a_manifest_in_doubt_takes_no_files() {
    let files = folder();
    let disk = Doubtful::new(files.path());
    let db = open_on(disk.clone(), Hardware::detect(), 1 << 30);
    let map = db.map("map").expect("room");
    for round in 0..3u32 {
        map.upsert("round", round.to_be_bytes()).expect("room");
        db.checkpoint(true).expect("a checkpoint");
        let before = runs_in(files.path());
        let manifest = std::fs::read(files.path().join("manifest")).expect("there");
        map.upsert("later", round.to_be_bytes()).expect("room");
        disk.doubts().is_armed = true;
        let failed = db.checkpoint(round < 2).map(drop).expect_err("the sync fails");
        assert!(failed.to_string().contains("fsync of the directory"), "{failed}");
        let both = runs_in(files.path());
        assert!(both.is_superset(&before) && both.len() > before.len(), "{both:?}");
        // The medium has the new manifest or its predecessor.
        for keeps_new in [true, false] {
            let left = copied(files.path());
            if !keeps_new {
                std::fs::write(left.path().join("manifest"), &manifest).expect("written");
            }
            assert_eq!(
                contents(&open(left.path(), Hardware::detect())),
                contents(&db),
                "round {round}"
            );
        }
        db.checkpoint(true).expect("a checkpoint");
        assert_eq!(runs_in(files.path()).len(), 1, "round {round}");
    }
}

/// An opening that finds a manifest whose name may not be durable writes it again, and syncs it, before it removes or
/// renames a file that its predecessor may need.
#[test]
fn an_opening_settles_a_manifest_in_doubt() {
    let files = folder();
    let disk = Doubtful::new(files.path());
    let db = open_on(disk.clone(), Hardware::detect(), 1 << 30);
    let map = db.map("map").expect("room");
    map.upsert("key", [1; 100]).expect("room");
    db.checkpoint(true).expect("a checkpoint");
    // A segment of the log that only the previous manifest needs.
    (0..8u32).for_each(|i| map.upsert(i.to_be_bytes(), vec![7; 30 << 10]).expect("room"));
    disk.doubts().is_armed = true;
    db.checkpoint(true).map(drop).expect_err("the sync fails");
    let held = contents(&db);
    // The process is killed, and the next one does not know of the failed sync. It finds the pool, or rebuilds it.
    for is_rebuilt in [false, true] {
        let left = copied(files.path());
        let next = Doubtful::new(left.path());
        if is_rebuilt {
            let db = open_on(next.clone(), Hardware::detect(), 1 << 30);
            assert_eq!(contents(&db), held);
        } else {
            let manifest = Manifest::load(&next).expect("sound").expect("there");
            open_log(
                &Arc::new(next.clone()),
                &manifest,
                manifest.from,
                &settings(1 << 30),
            )
            .expect("a log");
        }
        let done = next.doubts().done.clone();
        let at = |found: &dyn Fn(&str) -> bool| done.iter().position(|done| found(done));
        let settled = at(&|done| done == "rename manifest.new manifest");
        let gone = at(&|done| done.starts_with("remove run-") || done.starts_with("rename log-"));
        assert!(gone.is_some(), "{done:?}");
        let settled = settled.filter(|&settled| Some(settled) < gone && done[settled + 1] == "sync");
        assert!(settled.is_some(), "{done:?}");
    }
}

/// A replay does not apply a write that failed after its record was appended.
#[test]
fn what_fails_is_undone_in_the_log() {
    let files = folder();
    let directory = Directory::open(files.path()).expect("a directory");
    let db = open_on(directory, Hardware::detect(), 1 << 20);
    let map = db.map("map").expect("room");
    let mut refused = 0;
    for i in 0..400u32 {
        // Every third write makes an existing value longer.
        let (key, len) = match i % 3 {
            2 => (i / 2, 9000),
            _ => (i, 3000),
        };
        match map.upsert(key.to_be_bytes(), vec![i as u8; len]) {
            Ok(()) => {}
            Err(Error::Index(index::Error::Heap(heap::Error::Full { .. }))) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(refused > 100, "{refused}");
    assert_eq!(contents(&left(files.path()).1), contents(&db));
}

/// An index that a caller keeps also keeps the database's threads alive: what is written to it becomes durable.
#[test]
fn an_index_keeps_the_threads() {
    let files = folder();
    let db = open(files.path(), Hardware::detect());
    db.set_sync_within(Duration::from_millis(50));
    db.set_durability(Durability::Eventual);
    let index = db.map("map").expect("room").index();
    let journal = db.store().traffic.journal.get().expect("a log").clone();
    drop(db);
    let started = Instant::now();
    index.upsert(b"key", b"value").expect("room");
    while journal.log().durable() < journal.log().appended() {
        // Upper bound on a sync; beyond it nothing syncs.
        assert!(started.elapsed() < Duration::from_secs(120), "nothing syncs it");
        std::thread::sleep(Duration::from_millis(5));
    }
    let entry = ("map".to_owned(), b"key".to_vec(), b"value".to_vec());
    assert_eq!(contents(&left(files.path()).1), [entry]);
}

/// A replay reports how far it is, whatever the numbers of changes in the log's records.
#[test]
fn a_replay_of_batches_is_reported() {
    const CHANGES: u32 = 1000;
    let files = folder();
    let db = open(files.path(), Hardware::detect());
    db.set_durability(Durability::Eventual);
    let map = db.map("map").expect("room");
    for round in 0..200u32 {
        let mut batch = db.batch();
        for i in 0..CHANGES {
            batch.upsert(&map, i.to_be_bytes(), round.to_be_bytes());
        }
        assert!(batch.commit().expect("room"));
    }
    drop((map, db));
    let reports = Arc::new(Mutex::new(Vec::new()));
    let of = reports.clone();
    let settings = Settings {
        sizes: Sizes {
            merged: 1,
            ..Sizes::default()
        },
        on_rebuild: Some(Arc::new(move |done| of.lock().expect("no panic").push(*done))),
        ..settings(1 << 30)
    };
    let disk = Arc::new(Directory::open(files.path()).expect("a directory"));
    let manifest = Manifest::load(&*disk).expect("sound");
    let pool = Pool::anonymous(&settings.pool, Hardware::detect()).expect("memory");
    let db = attach(pool, disk, manifest, &settings, Instant::now(), None).expect("it opens");
    assert_eq!(
        db.map("map").expect("room").count().expect("sound"),
        CHANGES.into()
    );
    let reports = reports.lock().expect("no panic");
    let amid = reports
        .iter()
        .filter(|done| done.log_in_all / 4 < done.log && done.log < done.log_in_all);
    assert!(amid.count() > 0, "{reports:?}");
}

/// A checkpoint of small maps, full or a delta, can be stopped after each of them.
#[test]
fn checkpoints_stop_between_small_maps() {
    let (files, is_over) = (folder(), Arc::new(AtomicBool::new(false)));
    let asked = is_over.clone();
    let settings = Settings {
        sizes: Sizes {
            small: 0,
            ..Sizes::default()
        },
        checkpoints_end: Some(Arc::new(move || asked.load(SeqCst))),
        ..settings(1 << 30)
    };
    let disk = Arc::new(Directory::open(files.path()).expect("a directory"));
    let pool = Pool::anonymous(&settings.pool, Hardware::detect()).expect("memory");
    let db = attach(pool, disk, None, &settings, Instant::now(), None).expect("it opens");
    let write_all = |value: &[u8]| {
        for name in ["a", "b", "c"] {
            db.map(name).expect("room").upsert("key", value).expect("room");
        }
    };
    let numbers = |numbers: &[u32]| -> BTreeSet<_> {
        numbers.iter().map(|number| format!("run-{number:08}")).collect()
    };
    let take = |full: bool, stops: bool| {
        is_over.store(stops, SeqCst);
        let taken = db.checkpoint(full);
        match stops {
            true => assert!(
                matches!(taken, Err(Error::Files(FilesError::Stopped))),
                "{taken:?}"
            ),
            false => assert_eq!(taken.expect("no fault").map(|done| done.full), Some(full)),
        }
    };
    // An abandoned checkpoint has written one run, whose number is not used again.
    let incompressible = (0..10_000u32).map(|i| xxhash_rust::xxh3::xxh3_64(&i.to_le_bytes()) as u8);
    write_all(&incompressible.collect::<Vec<_>>());
    take(true, true);
    take(true, false);
    assert_eq!(runs_in(files.path()), numbers(&[1, 2, 3]));
    write_all(b"changed");
    take(false, true);
    take(false, false);
    assert_eq!(runs_in(files.path()), numbers(&[1, 2, 3, 5, 6, 7]));
    assert_eq!(contents(&left(files.path()).1), contents(&db));
}
