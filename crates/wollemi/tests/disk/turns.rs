//! Turns of one thread that end in an order other than the reverse of their beginnings.

use crate::{Place, is_durable};
use std::cell::RefCell;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use wollemi::{Db, Durability, Error, Map, Turn};

fn appended(db: &Db) -> u64 {
    db.log_stats().expect("a log").appended
}

fn durable(db: &Db) -> u64 {
    db.log_stats().expect("a log").durable
}

/// Whichever of two turns ends first, its writes are durable when it has ended, or the turn around it waits for them;
/// later writes wait as usual.
#[test]
fn turns_of_one_thread_end_in_any_order() -> Result<(), Error> {
    for older_first in [true, false] {
        let place = Place::new();
        let db = place.open_unhurried()?;
        let map = db.map("m")?;
        let older = db.turn();
        map.upsert("older", "1")?;
        let of_older = appended(&db);
        let newer = db.turn();
        if older_first {
            older.end()?;
            assert!(durable(&db) >= of_older);
            map.upsert("newer", "2")?;
            assert!(!is_durable(&db));
            newer.end()?;
        } else {
            map.upsert("newer", "2")?;
            newer.end()?;
            assert!(!is_durable(&db));
            older.end()?;
        }
        assert!(is_durable(&db));
        for key in ["later", "last"] {
            map.upsert(key, "3")?;
            assert!(is_durable(&db), "{key}");
        }
        assert_eq!(place.cut().open()?.map("m")?.count()?, 4);
    }
    Ok(())
}

/// A turn that ends while a newer one is paused takes nothing from it.
#[test]
fn an_older_turn_is_paused_within_a_newer_one() -> Result<(), Error> {
    let place = Place::new();
    let db = place.open_unhurried()?;
    let map = db.map("m")?;
    let older = db.turn();
    let newer = db.turn();
    map.upsert("newer", "1")?;
    let older = older.pause();
    map.upsert("newer", "2")?;
    let newer = newer.pause();
    db.resume(older).end()?;
    assert!(!is_durable(&db));
    db.resume(newer).end()?;
    assert!(is_durable(&db));
    Ok(())
}

/// Turns of two databases end in any order, each when its own writes are durable.
#[test]
fn turns_of_two_databases_are_apart() -> Result<(), Error> {
    let (first, second) = (Place::new(), Place::new());
    let (one, two) = (first.open_unhurried()?, second.open_unhurried()?);
    let maps = [one.map("m")?, two.map("m")?];
    for one_first in [true, false] {
        let turns = (one.turn(), two.turn());
        for map in &maps {
            // The positions differ between the databases, in both directions.
            map.upsert("key", vec![7; 10_000])?;
            assert!(!is_durable(&one));
        }
        assert!(!is_durable(&two));
        if one_first {
            turns.0.end()?;
            assert!(is_durable(&one) && !is_durable(&two));
            turns.1.end()?;
        } else {
            turns.1.end()?;
            assert!(is_durable(&two) && !is_durable(&one));
            turns.0.end()?;
        }
        for (db, map) in [&one, &two].into_iter().zip(&maps) {
            assert!(is_durable(db));
            map.upsert("key", "later")?;
            assert!(is_durable(db));
        }
    }
    Ok(())
}

/// A paused turn remains a turn of its database, whichever database resumes it.
#[test]
fn a_paused_turn_stays_with_its_database() -> Result<(), Error> {
    let (first, second) = (Place::new(), Place::new());
    let (one, two) = (first.open_unhurried()?, second.open_unhurried()?);
    let turn = one.turn();
    one.map("m")?.upsert("key", "value")?;
    let turn = two.resume(turn.pause());
    two.map("m")?.upsert("key", "value")?;
    assert!(is_durable(&two) && !is_durable(&one));
    turn.end()?;
    assert!(is_durable(&one));
    Ok(())
}

/// A forgotten turn delays no write of another database.
#[test]
fn a_forgotten_turn_is_of_its_database_alone() -> Result<(), Error> {
    for _ in 0..8 {
        let place = Place::new();
        let db = place.open_unhurried()?;
        let map = db.map("m")?;
        map.upsert("key", "value")?;
        assert!(is_durable(&db));
        std::mem::forget(db.turn());
    }
    Ok(())
}

/// A write that began while writes were eventual is durable once writes have been made immediate and the database has
/// been synced.
#[test]
fn eventual_writes_end_before_writes_are_immediate() -> Result<(), Error> {
    let place = Place::new();
    let options = crate::options().durability(Durability::Eventual);
    let db = options
        .sync_within(Duration::from_secs(1 << 20))
        .open(&place.path)?;
    let map = db.map("m")?;
    let (begin, begun) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel();
    thread::scope(|scope| {
        let map = &map;
        let writer = scope.spawn(move || {
            map.edit_with("key", |_| {
                begin.send(()).expect("the test waits");
                goes_on.recv().expect("the test releases it");
                Some(b"value".to_vec())
            })
        });
        begun.recv().expect("the write begins");
        let setter = scope.spawn(|| {
            db.set_durability(Durability::Immediate);
            db.sync()
        });
        // If it did not wait for the writer, it would finish soon.
        for _ in 0..50 {
            if !setter.is_finished() {
                thread::sleep(Duration::from_millis(4));
            }
        }
        go_on.send(()).expect("the write waits");
        writer.join().expect("no panic")?;
        setter.join().expect("no panic")
    })?;
    assert_eq!(durable(&db), appended(&db));
    assert_eq!(place.cut().open()?.map("m")?.get("key")?, Some(b"value".to_vec()));
    Ok(())
}

/// A thread-local value whose destructor uses turns while the thread exits.
enum AtExit {
    Load(Map),
    Turn(Db),
    Nothing,
}

impl Drop for AtExit {
    fn drop(&mut self) {
        match self {
            AtExit::Load(map) => assert_eq!(map.load([("a", "1"), ("b", "2")]).expect("no error"), 2),
            AtExit::Turn(db) => {
                let turn = db.resume(db.turn().pause());
                let map = db.map("m").expect("no error");
                map.upsert("a", "1").expect("no error");
                turn.end().expect("no error");
            }
            AtExit::Nothing => {}
        }
    }
}

/// Writes on a thread that then exits, and sets the thread's value before or after the write: the value's destructor
/// runs after or before that of the thread's turns.
fn write_and_exit(db: &Db, early: bool, at_exit: AtExit) {
    thread_local! {
        static AT_EXIT: RefCell<AtExit> = const { RefCell::new(AtExit::Nothing) };
    }
    let map = db.map("m").expect("no error");
    let thread = thread::spawn(move || {
        let write = || map.upsert("key", "value").expect("no error");
        if !early {
            write();
        }
        AT_EXIT.set(at_exit);
        if early {
            write();
        }
    });
    thread.join().expect("no panic");
}

/// A thread may begin and end turns while its thread-local values are being dropped, and the turns wait.
#[test]
fn turns_begin_and_end_while_their_thread_exits() -> Result<(), Error> {
    for early in [true, false] {
        let place = Place::new();
        let db = place.open_unhurried()?;
        write_and_exit(&db, early, AtExit::Load(db.map("m")?));
        assert!(is_durable(&db));
        write_and_exit(&db, early, AtExit::Turn(db.clone()));
        assert!(is_durable(&db));
    }
    Ok(())
}

/// A turn that is a thread-local value, and is settled, if it `settles`, and dropped while the thread exits.
struct Held {
    _turn: Turn<'static>,
    db: &'static Db,
    settles: bool,
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.settles {
            self.db.settle_turn().expect("no error");
            assert!(is_durable(self.db));
        }
    }
}

/// A turn that is settled or dropped as one of its thread's thread-local values waits for its writes.
#[test]
fn a_thread_local_turn_is_durable_at_the_exit() -> Result<(), Error> {
    thread_local! {
        static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
    }
    for (early, settles) in [(true, false), (false, false), (true, true), (false, true)] {
        let place = Place::new();
        let db: &'static Db = Box::leak(Box::new(place.open_unhurried()?));
        let map = db.map("m")?;
        let thread = thread::spawn(move || {
            if early {
                HELD.set(None);
            }
            let turn = db.turn();
            map.upsert("key", "value").expect("no error");
            assert!(!is_durable(db));
            HELD.set(Some(Held {
                _turn: turn,
                db,
                settles,
            }));
        });
        thread.join().expect("no panic");
        assert!(is_durable(db));
    }
    Ok(())
}
