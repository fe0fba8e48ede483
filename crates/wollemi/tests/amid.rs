//! Another thread writes at each load of the pool during a read of a snapshot, a sweep, or a pop.

use pmem::Watched;
use pmem::watched::{ObservedStep, Observer, StepKind};
use std::cell::RefCell;
use std::sync::mpsc::channel;
use std::time::Duration;
use wollemi::{Db, Error, Expiring, Options};

type Hook = Box<dyn FnOnce()>;

thread_local! {
    /// A hook, and the number of this thread's loads before it runs.
    static LOADS: RefCell<Option<(usize, Hook)>> = const { RefCell::new(None) };
    /// A hook that runs when this thread waits for another.
    static WAITS: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// Calls the hooks.
struct Hooks;

impl Observer for Hooks {
    fn before(&self, step: &ObservedStep) {
        if !matches!(step.what, StepKind::Load | StepKind::Touch) {
            return;
        }
        let due = LOADS.with_borrow_mut(|loads| {
            let (left, _) = loads.as_mut()?;
            *left -= 1;
            if *left == 0 { loads.take() } else { None }
        });
        if let Some((_, hook)) = due {
            hook();
        }
    }

    fn waits(&self) {
        if let Some(hook) = WAITS.take() {
            hook();
        }
    }
}

type Hooked = Db<Watched<Hooks>>;

fn open(folder: &tempfile::TempDir) -> Result<Hooked, Error> {
    let options = Options::new().page_size(64 << 10).recovery_threads(0);
    options.open_on(folder.path().join("pool"), Watched::machine(Hooks))
}

/// Runs `operation`, and before its `nth` load `write` in another thread, to its end or until it waits for this thread.
/// Returns `None` for the write if there are fewer loads.
fn amid<R>(
    nth: usize,
    operation: impl FnOnce() -> R,
    write: impl FnOnce() -> Result<(), Error> + Send,
) -> (R, Option<Result<(), Error>>) {
    let (go, may_go) = channel();
    let (progress_sender, progress) = channel();
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || {
            // The operation may have ended.
            may_go.recv().ok()?;
            let waits = progress_sender.clone();
            WAITS.set(Some(Box::new(move || _ = waits.send(()))));
            let done = write();
            let _ = progress_sender.send(());
            Some(done)
        });
        let hook: Hook = Box::new(move || {
            go.send(()).expect("the writer waits for this hook");
            progress.recv().expect("the writer ends or waits");
        });
        LOADS.set(Some((nth, hook)));
        let result = operation();
        LOADS.set(None);
        (result, writer.join().expect("no panic"))
    })
}

/// A key of a snapshot keeps its old value, whenever it is changed, removed or created.
#[test]
fn a_view_shows_what_was_there_amid_a_write() -> Result<(), Box<dyn std::error::Error>> {
    for (held, comes) in [
        (Some("old"), Some("new")),
        (Some("old"), None),
        (None, Some("new")),
    ] {
        for nth in 1.. {
            let folder = tempfile::tempdir()?;
            let db = open(&folder)?;
            let map = db.map("m")?;
            map.load([("beside", "1"), ("key", "2")])?;
            if let Some(held) = held {
                map.upsert("key", held)?;
            } else {
                map.remove("key")?;
            }
            let snapshot = db.snapshot()?;
            let view = snapshot.view(&map)?;
            let write = || match comes {
                Some(value) => map.upsert("key", value),
                None => map.remove("key").map(|_| ()),
            };
            let (found, written) = amid(nth, || view.get("key"), write);
            assert_eq!(
                found?.as_deref(),
                held.map(str::as_bytes),
                "before load {nth}: {held:?}, {comes:?}"
            );
            match written {
                Some(written) => written?,
                None => break,
            }
        }
    }
    Ok(())
}

/// A sweep keeps an entry whose life was extended after the sweep saw it.
#[test]
fn a_sweep_leaves_what_was_renewed_meanwhile() -> Result<(), Box<dyn std::error::Error>> {
    for nth in 1.. {
        let folder = tempfile::tempdir()?;
        let db = open(&folder)?;
        let map = Expiring::new(db.map("m")?);
        map.upsert("key", "old", Some(Duration::ZERO))?;
        let mut cursor = None;
        let renew = || {
            map.upsert("key", "new", Some(Duration::from_secs(3600)))
                .map(|_| ())
        };
        let (swept, written) = amid(nth, || map.sweep(&mut cursor, 10), renew);
        swept?;
        let Some(written) = written else {
            assert!(map.get("key")?.is_none() && nth > 1);
            break;
        };
        written?;
        assert_eq!(map.get("key")?.as_deref(), Some(&b"new"[..]), "before load {nth}");
    }
    Ok(())
}

/// There is always a key before the far one, but not always the same one, so no thread may pop the far one.
#[test]
fn what_is_taken_is_at_the_end() -> Result<(), Box<dyn std::error::Error>> {
    for (is_first, near, far) in [(true, "a", "z"), (false, "y", "")] {
        for nth in 1.. {
            let folder = tempfile::tempdir()?;
            let db = open(&folder)?;
            let map = db.map("m")?;
            map.load([("m", "1"), (far, "2")])?;
            let write = || {
                map.upsert(near, "3")?;
                map.remove("m").map(|_| ())
            };
            let pop = || if is_first { map.pop_first() } else { map.pop_last() };
            let (taken, written) = amid(nth, pop, write);
            let (key, _) = taken?.ok_or("it is not empty")?;
            assert!(
                [near.as_bytes(), b"m"].contains(&&*key),
                "before load {nth}: {key:?}"
            );
            match written {
                Some(written) => written?,
                None => break,
            }
        }
    }
    Ok(())
}
