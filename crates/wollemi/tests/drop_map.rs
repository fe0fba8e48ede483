//! Dropping maps beside recovery and beside the use of other maps.

use pmem::Watched;
use pmem::watched::{ObservedStep, Observer, StepKind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::ThreadId;
use std::time::Duration;
use wollemi::{Db, Error, IndexKind, Media, Options, RecoveryState};

/// Upper bound on a wait for another thread; beyond it the test counts as hung.
const PATIENCE: Duration = Duration::from_secs(120);

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn key(i: u32) -> String {
    format!("user:{i:08}:profile")
}

/// Creates and closes a pool with a map to be dropped and one to be kept.
fn create(path: &Path, dropped: u32, kept: u32) -> Outcome {
    let db = Db::open(path)?;
    for (name, keys) in [("dropped", dropped), ("kept", kept)] {
        db.map(name)?.load((0..keys).map(|i| (key(i), key(i))))?;
    }
    Ok(())
}

fn assert_holds<M: Media>(db: &Db<M>, name: &str, keys: u32, why: &str) -> Outcome {
    let map = db.map(name)?;
    for i in 0..keys {
        assert_eq!(map.get(key(i))?, Some(key(i).into_bytes()), "{why}: key {i}");
    }
    let check = db.check()?;
    assert!(check.is_clean(), "{why}: {check:?}");
    Ok(())
}

/// Right after a pool is opened, one of its maps is dropped while a thread writes to the other: the drop succeeds, the
/// other map keeps all of its keys, and nothing is lost or freed twice.
#[test]
fn a_map_can_be_dropped_right_after_the_opening() -> Outcome {
    const DROPPED: u32 = 60_000;
    const KEPT: u32 = 3000;
    const WRITTEN: u32 = 12_000;
    let dir = tempfile::tempdir()?;
    let closed = dir.path().join("closed.pool");
    create(&closed, DROPPED, KEPT)?;
    for round in 0..6 {
        let path = dir.path().join("a.pool");
        std::fs::copy(&closed, &path)?;
        let db = Db::open(&path)?;
        let dropped = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let kept = db.map("kept").expect("sound");
                for i in KEPT..KEPT + WRITTEN {
                    kept.upsert(key(i), key(i)).expect("room");
                }
            });
            let dropped = db.drop_map("dropped");
            writer.join().expect("no panic");
            dropped
        });
        assert!(dropped?, "round {round}");
        assert_holds(&db, "kept", KEPT + WRITTEN, &format!("round {round}"))?;
    }
    Ok(())
}

/// A stop of the thread that drops a map: it sends a signal, and waits for one to continue.
struct Stop {
    thread: ThreadId,
    unlinked: bool,
    here: Sender<()>,
    go: Receiver<()>,
}

/// Stops a thread between the fence that makes the removal of a root durable and the next access to an object.
#[derive(Clone, Default)]
struct AfterUnlinking(Arc<Mutex<Option<Stop>>>);

fn is_in_root_directory(step: &ObservedStep) -> bool {
    let file = step.site.file().replace('\\', "/");
    ["roots/directory.rs", "recovery/retire_tree.rs"]
        .iter()
        .any(|of_roots| file.ends_with(&format!("heap/src/{of_roots}")))
}

impl Observer for AfterUnlinking {
    fn before(&self, step: &ObservedStep) {
        let looks = matches!(step.what, StepKind::Load | StepKind::Peek | StepKind::Touch);
        let stop = {
            let mut stop = self.0.lock().expect("no panic");
            stop.take_if(|stop| {
                stop.thread == std::thread::current().id()
                    && stop.unlinked
                    && looks
                    && !is_in_root_directory(step)
            })
        };
        if let Some(stop) = stop {
            stop.here.send(()).expect("awaited");
            stop.go.recv_timeout(PATIENCE).expect("the others hang");
        }
    }

    fn after(&self, step: &ObservedStep) {
        if let Some(stop) = &mut *self.0.lock().expect("no panic")
            && stop.thread == std::thread::current().id()
            && matches!(step.what, StepKind::Fence(_))
            && is_in_root_directory(step)
        {
            stop.unlinked = true;
        }
    }
}

/// Any of this file's watches, as one type, so that the indexes are compiled once.
struct AnyWatch(Arc<dyn Observer>);

impl Observer for AnyWatch {
    fn before(&self, step: &ObservedStep) {
        self.0.before(step);
    }
    fn after(&self, step: &ObservedStep) {
        self.0.after(step);
    }
    fn comes_to(&self, step: &'static str) {
        self.0.comes_to(step);
    }
    fn waits(&self) {
        self.0.waits();
    }
}

/// Returns the machine's media with a watch.
fn watched(watch: &(impl Observer + Clone)) -> Watched<AnyWatch> {
    Watched::machine(AnyWatch(Arc::new(watch.clone())))
}

type StoppedDb = Db<Watched<AnyWatch>>;

/// Drops the map in a pool that was opened without recovery, and calls `meanwhile` when the map is unlinked and none of
/// its objects is retired yet.
fn drop_and_meanwhile(
    meanwhile: impl FnOnce(&StoppedDb) -> Outcome,
) -> Result<StoppedDb, Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("a.pool");
    create(&path, 3000, 1000)?;
    let watch = AfterUnlinking::default();
    let db = Options::new()
        .recovery_threads(0)
        .open_on(&path, watched(&watch))?;
    let (here, is_here) = channel();
    let (go, may_go) = channel();
    std::thread::scope(|scope| {
        let dropping = scope.spawn(|| {
            *watch.0.lock().expect("no panic") = Some(Stop {
                thread: std::thread::current().id(),
                unlinked: false,
                here,
                go: may_go,
            });
            db.drop_map("dropped")
        });
        is_here.recv_timeout(PATIENCE).expect("the root goes");
        let done = meanwhile(&db);
        go.send(()).expect("the dropping thread waits");
        assert!(dropping.join().expect("no panic").expect("sound"));
        done
    })?;
    Ok(db)
}

/// Recovery begins and traces between the unlinking of a map and its first retirement: nothing is freed twice, and
/// nothing leaks.
#[test]
fn recovery_may_begin_while_a_map_is_dropped() -> Outcome {
    let mut recovering = None;
    let db = drop_and_meanwhile(|db| {
        let other = db.clone();
        recovering = Some(std::thread::spawn(move || other.recover()));
        // Until it has traced all of the other map; then it must not sweep.
        while db.recovery_progress().objects < 1000 {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(50));
        Ok(())
    })?;
    let recovered = recovering.expect("begun").join().expect("no panic");
    assert_eq!(recovered.state, RecoveryState::Done);
    assert_holds(&db, "kept", 1000, "after recovery")
}

/// While the objects of a dropped map are being retired, other maps are found and created, including one of the same
/// name, which keeps its entries.
#[test]
fn other_maps_are_found_while_a_map_is_dropped() -> Outcome {
    let db = drop_and_meanwhile(|db| {
        let (done, is_done) = channel();
        let other = db.clone();
        // A thread of its own, because it may hang.
        std::thread::spawn(move || {
            let made = || -> Result<(), wollemi::Error> {
                assert!(other.find_map("dropped")?.is_none());
                let map = other.map("dropped")?;
                map.load((0..2000).map(|i| (key(i), key(i))))?;
                assert!(other.find_map("kept")?.is_some());
                other.stats().map(drop)
            };
            done.send(made().map_err(|error| error.to_string()))
        });
        is_done
            .recv_timeout(PATIENCE / 4)
            .expect("maps wait for the drop")?;
        Ok(())
    })?;
    assert_holds(&db, "dropped", 2000, "made anew")?;
    assert_holds(&db, "kept", 1000, "beside it")
}

/// Statistics, which visit every open map, do not keep a map from being dropped.
#[test]
fn statistics_keep_no_map_from_being_dropped() -> Outcome {
    let db = Db::anonymous()?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(SeqCst) {
                    db.stats().expect("sound");
                }
            });
        }
        let dropped: Result<bool, Error> = (0..300).try_fold(true, |all, _| {
            drop(db.map("m")?);
            Ok(all && db.drop_map("m")?)
        });
        done.store(true, SeqCst);
        assert!(dropped?);
        Ok(())
    })
}

/// Counts the steps of a thread until it has removed a root.
#[derive(Clone, Default)]
struct UntilUnlinked(Arc<Mutex<Counted>>);

#[derive(Default)]
struct Counted {
    thread: Option<ThreadId>,
    steps: usize,
}

impl Observer for UntilUnlinked {
    fn after(&self, step: &ObservedStep) {
        let mut counted = self.0.lock().expect("no panic");
        if counted.thread == Some(std::thread::current().id()) {
            counted.steps += 1;
            if matches!(step.what, StepKind::Fence(_)) && is_in_root_directory(step) {
                counted.thread = None;
            }
        }
    }
}

/// The table of maps is locked until a dropped map is unlinked. That takes about as many steps for a large map that was
/// not opened before as for a small one, whichever index holds it.
#[test]
fn large_maps_are_unlinked_as_fast_as_small_ones() -> Outcome {
    let steps = |kind, keys: u32| -> Result<usize, Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("a.pool");
        let db = Db::open(&path)?;
        db.map_with("dropped", kind)?
            .load((0..keys).map(|i| (key(i), key(i))))?;
        drop(db);
        let watch = UntilUnlinked::default();
        let db = Options::new()
            .recovery_threads(0)
            .open_on(&path, watched(&watch))?;
        watch.0.lock().expect("no panic").thread = Some(std::thread::current().id());
        assert!(db.drop_map("dropped")?);
        let counted = watch.0.lock().expect("no panic");
        assert!(counted.thread.is_none(), "the root goes");
        Ok(counted.steps)
    };
    for &kind in IndexKind::ALL {
        let (small, large) = (steps(kind, 100)?, steps(kind, 10_000)?);
        assert!(large <= small + 100, "{kind}: {small} steps, and {large}");
    }
    Ok(())
}

/// Holds merges before their commit point, and signals that.
#[derive(Clone, Default)]
struct HeldMerge(Arc<(Mutex<Merging>, Condvar)>);

#[derive(Default)]
struct Merging {
    has_come: bool,
    goes_on: bool,
    /// The thread that drops the map, and whether it waits.
    dropping: Option<ThreadId>,
    drop_waits: bool,
    /// Whether another thread waits while the dropping thread waits.
    others_wait: bool,
}

impl HeldMerge {
    fn wait(&self, until: impl Fn(&Merging) -> bool) {
        let (merging, changed) = &*self.0;
        let merging = merging.lock().expect("no panic");
        let waited = changed.wait_timeout_while(merging, PATIENCE, |merging| !until(merging));
        assert!(!waited.expect("no panic").1.timed_out(), "a merge hangs");
    }

    fn change(&self, change: impl FnOnce(&mut Merging)) {
        let (merging, changed) = &*self.0;
        change(&mut merging.lock().expect("no panic"));
        changed.notify_all();
    }
}

impl Observer for HeldMerge {
    fn waits(&self) {
        let here = std::thread::current().id();
        self.change(|merging| match merging.dropping == Some(here) {
            true => merging.drop_waits = true,
            false => merging.others_wait |= merging.drop_waits,
        });
    }
    fn comes_to(&self, step: &'static str) {
        if step == "merge: flip" {
            self.change(|merging| merging.has_come = true);
            self.wait(|merging| merging.goes_on);
        }
    }
}

/// A map whose last handle is closing it, and waits for a merge, is dropped once it is closed; other maps are found
/// meanwhile.
#[test]
fn other_maps_are_found_while_a_dropped_map_is_closed() -> Outcome {
    let dir = tempfile::tempdir()?;
    let merge = HeldMerge::default();
    let db = Options::new().open_on(dir.path().join("a.pool"), watched(&merge))?;
    db.map("kept")?.upsert("a", "1")?;
    let dropped = db.map_with("dropped", IndexKind::DpTree)?;
    // These keys begin a merge, and are too few for a writer to wait for its end.
    dropped.load((0..10_000).map(|i| (key(i), key(i))))?;
    merge.wait(|merging| merging.has_come);
    let (done, is_done) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| drop(dropped));
        let dropping = scope.spawn(|| {
            loop {
                merge.change(|merging| merging.dropping = Some(std::thread::current().id()));
                match db.drop_map("dropped") {
                    Err(Error::MapInUse(_)) => std::thread::yield_now(),
                    done => break done,
                }
            }
        });
        merge.wait(|merging| merging.drop_waits);
        let other = db.clone();
        // A thread of its own, because it may hang.
        std::thread::spawn(move || done.send(other.find_map("kept").map(|map| map.is_some())));
        let found = is_done.recv_timeout(PATIENCE / 4);
        let waits = !dropping.is_finished();
        merge.change(|merging| merging.goes_on = true);
        assert!(found.expect("maps wait for the drop").expect("sound"));
        assert!(waits, "the map is dropped while it is merged");
        assert!(dropping.join().expect("no panic").expect("sound"));
    });
    assert!(db.find_map("dropped")?.is_none());
    let check = db.check()?;
    assert!(check.is_clean(), "{check:?}");
    Ok(())
}

/// A map that is reopened while it is being closed counts as in use for a drop that has waited for the closing.
#[test]
fn a_map_that_is_opened_again_while_it_closes_is_in_use() -> Outcome {
    let dir = tempfile::tempdir()?;
    let merge = HeldMerge::default();
    let db = Options::new().open_on(dir.path().join("a.pool"), watched(&merge))?;
    let closed = db.map_with("m", IndexKind::DpTree)?;
    closed.load((0..10_000).map(|i| (key(i), key(i))))?;
    merge.wait(|merging| merging.has_come);
    let closing = std::thread::spawn(|| drop(closed));
    let (done, is_done) = channel();
    let (other, of_merge) = (db.clone(), merge.clone());
    // Threads of their own, because they may hang.
    std::thread::spawn(move || {
        of_merge.change(|merging| merging.dropping = Some(std::thread::current().id()));
        let dropped = loop {
            match other.drop_map("m") {
                Err(Error::MapInUse(_)) if !of_merge.0.0.lock().expect("no panic").drop_waits => {
                    std::thread::yield_now();
                }
                done => break done,
            }
        };
        done.send(dropped)
    });
    merge.wait(|merging| merging.drop_waits);
    let other = db.clone();
    let opening = std::thread::spawn(move || other.map_with("m", IndexKind::DpTree));
    merge.wait(|merging| merging.others_wait);
    merge.change(|merging| merging.goes_on = true);
    closing.join().expect("no panic");
    let opened = opening.join().expect("no panic")?;
    let dropped = is_done
        .recv_timeout(PATIENCE / 4)
        .expect("the drop ends while the map is open");
    assert!(matches!(dropped, Err(Error::MapInUse(_))), "{dropped:?}");
    assert_eq!(opened.get(key(7))?.as_deref(), Some(key(7).as_bytes()));
    Ok(())
}
