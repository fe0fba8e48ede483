//! The content after a kill, and after a loss of power.

use crate::{Place, entries, is_durable};
use heap::MayBeFull;
use pmem::pool::LastShutdown;
use pmem::{Hardware, Pool, PoolOptions};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use wollemi::{Action, Db, Durability, Edit, Error, Expiring, IndexError, IndexKind, MAX_VALUE, Rebuilding};

type Truth = BTreeMap<Vec<u8>, Vec<u8>>;

fn truth(truth: &Truth) -> Vec<(Vec<u8>, Vec<u8>)> {
    truth
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Checks that the database has this content and is sound.
fn holds(place: &Place, maps: &[(&str, &Truth)]) -> Result<(), Error> {
    let db = place.open()?;
    for (name, held) in maps {
        assert_eq!(entries(&db, name), truth(held), "map {name}");
    }
    let check = db.check()?;
    assert!(check.is_clean(), "{check:?}");
    Ok(())
}

/// At many moments among two hundred steps of every kind, acknowledged writes survive a kill and a loss of power.
#[test]
fn every_step_survives() -> Result<(), Error> {
    let place = Place::new();
    let db = place.open()?;
    let (a, b) = (db.map("a")?, db.map_with("b", IndexKind::DpTree)?);
    let (mut in_a, mut in_b) = (Truth::new(), Truth::new());
    for i in 0..200u32 {
        let key = (i % 37).to_be_bytes().to_vec();
        let value = vec![i as u8; (i % 300) as usize];
        match i % 9 {
            0 | 1 => {
                a.upsert(&key, &value)?;
                in_a.insert(key, value);
            }
            2 => {
                b.upsert(&key, &value)?;
                in_b.insert(key, value);
            }
            3 => {
                assert_eq!(a.remove(&key)?, in_a.remove(&key).is_some());
            }
            4 => {
                let mut batch = db.batch();
                batch.upsert(&a, &key, &value).remove(&b, &key);
                assert!(batch.commit()?);
                in_a.insert(key.clone(), value);
                in_b.remove(&key);
            }
            5 => {
                db.transact(|tx| {
                    let old = tx.get(&a, &key)?.unwrap_or_default();
                    tx.upsert(&b, &key, [&old[..], &value].concat())
                })?;
                let old = in_a.get(&key).cloned().unwrap_or_default();
                in_b.insert(key, [old, value].concat());
            }
            6 => {
                if a.insert(&key, &value)? {
                    assert!(in_a.insert(key, value).is_none());
                }
            }
            7 => {
                let popped = b.pop_first()?;
                assert_eq!(popped, in_b.pop_first());
            }
            _ => {
                db.checkpoint(i % 2 == 0)?.expect("there is a log");
            }
        }
        if i % 5 == 0 || i > 190 {
            holds(&place.cut(), &[("a", &in_a), ("b", &in_b)])?;
            holds(&place.kill(), &[("a", &in_a), ("b", &in_b)])?;
        }
    }
    drop((a, b, db));
    holds(&place, &[("a", &in_a), ("b", &in_b)])?;
    holds(&place.cut(), &[("a", &in_a), ("b", &in_b)])
}

/// Dropped maps stay dropped, and recreated ones have the entries put since.
#[test]
fn maps_come_and_go() -> Result<(), Error> {
    let place = Place::new();
    let db = place.open()?;
    for round in 0..6u8 {
        let map = db.map("m")?;
        map.upsert("round", [round])?;
        map.upsert([round], "of this round")?;
        if round % 2 == 0 {
            db.checkpoint(round % 4 == 0)?;
        }
        drop(map);
        for left in [place.cut(), place.kill()] {
            let db = left.open()?;
            assert_eq!(db.map("m")?.get("round")?, Some(vec![round]));
            assert_eq!(db.map("m")?.count()?, 2);
        }
        assert!(db.drop_map("m")?);
        for left in [place.cut(), place.kill()] {
            assert!(left.open()?.find_map("m")?.is_none(), "round {round}");
        }
    }
    Ok(())
}

/// The entries of a group that `load` writes wait for one sync, and all are durable when it returns.
#[test]
fn loaded_entries_wait_together() -> Result<(), Error> {
    let place = Place::new();
    let db = place.open()?;
    let map = db.map("m")?;
    let entries = || (0..640u32).map(|i| (i.to_be_bytes(), [7; 10]));
    for map in [map.clone(), map.with_durability(Durability::Immediate)] {
        let before = db.log_stats().expect("a log").waits;
        assert_eq!(map.load(entries())?, 640);
        let waits = db.log_stats().expect("a log").waits - before;
        assert!((1..=10).contains(&waits), "{waits} waits for ten groups");
        assert!(crate::is_durable(&db));
    }
    assert_eq!(place.cut().open()?.map("m")?.count()?, 640);
    Ok(())
}

/// A record that needs more than half of the log waits for a checkpoint to make room, like a small one. The waits and
/// the checkpoints are counted.
#[test]
fn a_long_record_waits_for_room() -> Result<(), Error> {
    let place = Place::new();
    let db = crate::options().log_limit(0).open(&place.path)?;
    let limit = db.log_stats().expect("a log").limit;
    let map = db.map("m")?.with_durability(Durability::Eventual);
    let value = vec![7; 1 << 20];
    let mut keys = 0u64..;
    let mut put = |bytes: u64| -> Result<(), Error> {
        let mut batch = db.batch();
        for key in keys.by_ref().take((bytes >> 20) as usize) {
            batch.upsert(&map, (key % 64).to_be_bytes(), &value);
        }
        batch.commit().map(drop)
    };
    put(limit * 3 / 8)?;
    for _ in 0..4 {
        put(limit * 11 / 16)?;
    }
    let log = db.log_stats().expect("a log");
    assert!(log.room_waits > 0 && log.room_wait_seconds > 0.0, "{log:?}");
    assert_eq!(log.room_wait_micros.iter().sum::<u64>(), log.room_waits);
    assert_eq!(log.checkpoint_millis.iter().sum::<u64>(), log.checkpoints);
    Ok(())
}

/// The last report of a rebuild, and no other, says that it is done; then the pool is in its place, and complete.
#[test]
fn a_rebuild_is_done_when_the_pool_is_in_its_place() -> Result<(), Error> {
    let place = Place::new();
    let db = place.open()?;
    db.map("m")?.upsert("key", "value")?;
    db.checkpoint(true)?;
    db.map("m")?.upsert("later", "value")?;
    let left = place.cut();
    let (path, reports) = (left.path.clone(), Arc::new(Mutex::new(Vec::new())));
    let seen = reports.clone();
    let report = move |done: &Rebuilding| {
        let seen = &mut *seen.lock().expect("no panic");
        seen.push((*done, path.exists()));
    };
    let db = crate::options().on_rebuild(report).open(&left.path)?;
    let rebuilt = db.stats()?.log.expect("a log").rebuilt.expect("a rebuild");
    let reports = reports.lock().expect("no panic");
    let (last, earlier) = reports.split_last().expect("there are reports");
    assert!(last.0.is_done && last.1, "{reports:?}");
    assert_eq!(
        (last.0.entries, last.0.log),
        (last.0.entries_in_all, last.0.log_in_all)
    );
    assert_eq!((rebuilt.entries, rebuilt.log), (last.0.entries, last.0.log));
    drop(db);
    // The next opening finds a pool.
    let db = crate::options().open(&left.path)?;
    assert_eq!(db.stats()?.log.expect("a log").rebuilt, None);
    assert!(
        earlier.iter().all(|(done, is_there)| !done.is_done && !is_there),
        "{reports:?}"
    );
    Ok(())
}

/// Checkpoints shorten a log that reaches its limit, and writes continue.
#[test]
fn a_full_log_is_checkpointed() -> Result<(), Error> {
    let place = Place::new();
    let db = crate::options().log_limit(0).open(&place.path)?;
    let map = db.map("m")?.with_durability(Durability::Eventual);
    let value = vec![7; 1 << 20];
    for i in 0..200u32 {
        map.upsert((i % 10).to_be_bytes(), &value)?;
    }
    db.sync()?;
    let log = db.stats()?.log.expect("there is a log");
    assert!(log.checkpoints > 0 && log.kept <= log.limit, "{log:?}");
    let left = place.cut().open()?;
    assert_eq!(left.map("m")?.count()?, 10);
    assert_eq!(left.map("m")?.get(9u32.to_be_bytes())?, Some(value));
    Ok(())
}

/// An opening that fails does not mark the pool as closed: the pool may hold data that is not durable in the log, and
/// would be trusted after a loss of power.
#[test]
fn an_opening_that_fails_closes_nothing() -> Result<(), Error> {
    let place = Place::new();
    let db = place.open()?;
    db.map("m")?.upsert("key", "value")?;
    let left = place.kill();
    let manifest = left.files().join("manifest");
    let bytes = std::fs::read(&manifest).expect("there");
    std::fs::remove_file(&manifest).expect("removed");
    assert!(left.open().is_err());
    let options = PoolOptions {
        read_only: true,
        ..PoolOptions::default()
    };
    let pool = Pool::open(&left.path, &options, Hardware::detect()).expect("a pool");
    assert_eq!(pool.last_shutdown(), LastShutdown::ProcessCrash);
    drop(pool);
    std::fs::write(&manifest, bytes).expect("written");
    assert_eq!(left.open()?.map("m")?.get("key")?, Some(b"value".to_vec()));
    Ok(())
}

/// A full pool, in which values were removed to make room for others, opens after a kill and after a loss of power:
/// intermediate values need not find room beside the present ones.
#[test]
fn a_full_pool_opens_again() -> Result<(), Error> {
    const VALUE: usize = 300 << 10;
    let options = || crate::options().max_size(4 << 20);
    let place = Place::new();
    let db = options().open(&place.path)?;
    let started = Instant::now();
    let (map, mut held) = (db.map("m")?, Truth::new());
    let mut put = |number: u8, oldest: &mut u8| {
        let (key, value) = (vec![number], vec![number; VALUE]);
        while !written(map.upsert(&key, &value))? {
            if *oldest == number {
                // Guards of other tests keep back the space of all removed values.
                assert!(
                    started.elapsed() < Duration::from_secs(120),
                    "no room becomes free"
                );
                std::thread::yield_now();
                continue;
            }
            assert!(map.remove([*oldest])?);
            held.remove(&[*oldest][..]);
            *oldest += 1;
        }
        held.insert(key, value);
        Ok::<_, Error>(())
    };
    let mut oldest = 0;
    for number in 0..40 {
        put(number, &mut oldest)?;
    }
    // More values than needed are removed if other threads' guards keep their space back.
    assert!((20..40).contains(&oldest), "{oldest} have gone");
    for left in [place.kill(), place.cut()] {
        let db = options().open(&left.path)?;
        assert_eq!(entries(&db, "m"), truth(&held));
        let check = db.check()?;
        assert!(check.is_clean(), "{check:?}");
    }
    Ok(())
}

/// The record of a write for which the pool has no room is in the log before the write fails, and another record undoes
/// it. A kill between the two leaves a pool that opens, with its previous content.
#[test]
fn a_kill_amid_a_refused_write_leaves_a_pool_that_opens() -> Result<(), Error> {
    const VALUE: usize = 300 << 10;
    let options = || crate::options().max_size(4 << 20);
    let place = Place::new();
    let db = options().open(&place.path)?;
    // A map whose name the log drops earlier is not dropped again.
    db.map("again")?.upsert("before", "1")?;
    db.drop_map("again")?;
    db.map_with("again", IndexKind::Part)?.upsert("after", "2")?;
    let again = [(b"after".to_vec(), b"2".to_vec())];
    let (map, mut held) = (db.map("m")?, Truth::new());
    map.upsert("small", "1")?;
    held.insert(b"small".to_vec(), b"1".to_vec());
    for number in 0..=u8::MAX {
        let (key, value) = (vec![number], vec![number; VALUE]);
        if !written(map.upsert(&key, &value))? {
            break;
        }
        held.insert(key, value);
    }
    let killed = RefCell::default();
    for key in [&b"new"[..], &[3]] {
        let mut edit = Killed(&place, vec![255; VALUE], &killed);
        let refused = map.edit(key, &mut edit).expect_err("no room");
        assert!(refused.to_string().contains("no room"), "{refused}");
    }
    drop((map, db));
    let killed = killed.into_inner();
    assert!(killed.len() >= 6, "{} times", killed.len());
    for (n, left) in killed.iter().enumerate() {
        let db = options().recovery_threads(n % 2).open(&left.path)?;
        assert_eq!(entries(&db, "m"), truth(&held), "kill {n}");
        assert_eq!(entries(&db, "again"), again, "kill {n}");
        // A loss of power does not bring it back either.
        let cut = options().open(&left.cut().path).map(|db| entries(&db, "m"))?;
        assert_eq!(cut, truth(&held), "kill {n}");
    }
    Ok(())
}

/// A kill comes when a batch is in the log but not yet in the pool, beside a write without room that is also in the
/// log. The opening discards all of both, and a loss of power does not bring them back. If the write is not in the log,
/// or is undone there, the whole batch is applied.
#[test]
fn a_batch_beside_a_refused_write_is_left_out_whole() -> Result<(), Error> {
    let options = || crate::options().page_size(64 << 10).max_size(8 << 20);
    let place = Place::new();
    let db = options().open(&place.path)?;
    let (a, b) = (db.map("a")?, db.map("b")?);
    a.load([("changed", "1"), ("removed", "1")])?;
    let before = Place::new();
    std::fs::copy(&place.path, &before.path).expect("copied");
    let mut batch = db.batch();
    batch
        .upsert(&a, "changed", "2")
        .remove(&a, "removed")
        .upsert(&b, "new", "2");
    assert!(batch.commit()?);
    let killed = RefCell::default();
    let mut edit = Killed(&place, vec![255; 9 << 20], &killed);
    let refused = b.edit(b"large", &mut edit).expect_err("no room");
    assert!(refused.to_string().contains("no room"), "{refused}");
    let mut killed = killed.into_inner();
    killed.push(place.kill());
    drop((a, b, db));

    let pair = |key: &str, value: &str| (key.as_bytes().to_vec(), value.as_bytes().to_vec());
    let left_out = (vec![pair("changed", "1"), pair("removed", "1")], vec![]);
    let made = (vec![pair("changed", "2")], vec![pair("new", "2")]);
    let held = |db: &Db| (entries(db, "a"), entries(db, "b"));
    let mut outcomes = Vec::new();
    for (n, left) in killed.iter().enumerate() {
        // The pool from before the batch.
        std::fs::copy(&before.path, &left.path).expect("copied");
        let db = options().open(&left.path)?;
        let is_made = held(&db) == made;
        let expected = if is_made { &made } else { &left_out };
        assert_eq!(&held(&db), expected, "kill {n}");
        let cut = options().open(&left.cut().path)?;
        assert_eq!(held(&cut), held(&db), "kill {n}");
        outcomes.push(is_made);
    }
    assert_eq!((outcomes.first(), outcomes.last()), (Some(&true), Some(&true)));
    assert!(outcomes.contains(&false), "the write is never in the log");
    Ok(())
}

/// A rebuilt database contains nothing of batches for which the pool had no room.
#[test]
fn refused_batches_are_not_rebuilt() -> Result<(), Error> {
    const PAGE: usize = 64 << 10;
    let options = || crate::options().page_size(PAGE as u64).max_size(8 << 20);
    let place = Place::new();
    let db = options().open(&place.path)?;
    let (map, mut held) = (db.map("m")?, Truth::new());
    let put = |batch: &[u8], len| {
        let mut changes = db.batch();
        for key in batch {
            changes.upsert(&map, [*key], vec![*key; len]);
        }
        written(changes.commit().map(drop))
    };
    // Some 2.5 MiB are free.
    for number in 0..88 {
        assert!(put(&[number], PAGE - 200)?, "{number}");
        held.insert(vec![number], vec![number; PAGE - 200]);
        if db.stats()?.space.reserved >= 88 * PAGE as u64 {
            break;
        }
    }
    let rebuilt = |left: Place| options().open(&left.path).map(|db| entries(&db, "m"));
    for batch in [&[0, 255][..], &[0, 1], &[255], &[0]] {
        assert!(!put(batch, 3 << 20)?, "there is room for {batch:?}");
        assert_eq!(entries(&db, "m"), truth(&held), "{batch:?}");
    }
    assert_eq!(rebuilt(place.cut())?, truth(&held));
    // At some length there is room for a batch's intent but not for its changes; later for both.
    let (mut len, mut refused) = (2 << 20, 0);
    while !put(&[254, 255], len)? {
        assert_eq!(entries(&db, "m"), truth(&held), "{len}");
        assert_eq!(rebuilt(place.cut())?, truth(&held), "{len}");
        (len, refused) = (len * 2 / 3, refused + 1);
    }
    assert!(refused > 3, "{refused} refused");
    held.extend([254, 255].map(|key| (vec![key], vec![key; len])));
    assert_eq!(rebuilt(place.kill())?, truth(&held));
    Ok(())
}

/// An edit that puts a value, and copies the files as a kill would leave them each time the index asks it: before a
/// record of it exists, and after.
struct Killed<'k>(&'k Place, Vec<u8>, &'k RefCell<Vec<Place>>);

impl Edit for Killed<'_> {
    fn decide(&mut self, _: Option<&[u8]>) -> Action {
        Action::Put
    }

    fn value(&self) -> &[u8] {
        self.2.borrow_mut().push(self.0.kill());
        &self.1
    }
}

/// Returns whether there was room.
fn written(done: Result<(), Error>) -> Result<bool, Error> {
    match done {
        Err(error) if error.is_full() => Ok(false),
        done => done.map(|()| true),
    }
}

/// Several threads write while checkpoints are taken; their acknowledged writes are present afterwards.
#[test]
fn checkpoints_beside_writers() -> Result<(), Error> {
    let place = Place::new();
    let db = place.open()?;
    let map = db.map("m")?;
    let done = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3u8)
            .map(|thread| {
                let map = &map;
                scope.spawn(move || {
                    let mut held = Truth::new();
                    for i in 0..400u32 {
                        let key = [&[thread][..], &(i * 7919 % 101).to_be_bytes()].concat();
                        if i % 5 == 4 {
                            map.remove(&key)?;
                            held.remove(&key);
                        } else {
                            map.upsert(&key, i.to_be_bytes())?;
                            held.insert(key, i.to_be_bytes().to_vec());
                        }
                    }
                    Ok::<_, Error>(held)
                })
            })
            .collect();
        for i in 0..20 {
            db.checkpoint(i % 3 == 0)?;
        }
        let held = writers.into_iter().map(|writer| writer.join().expect("no panic"));
        held.collect::<Result<Vec<_>, Error>>()
    })?;
    let held = done.into_iter().flatten().collect();
    holds(&place.cut(), &[("m", &held)])?;
    holds(&place.kill(), &[("m", &held)])
}

/// A turn waits once for all of its operations.
#[test]
fn a_turn_waits_once() -> Result<(), Error> {
    let place = Place::new();
    let db = place.open_unhurried()?;
    let map = db.map("m")?;
    let syncs = |db: &Db| db.stats().map(|stats| stats.log.expect("a log").syncs);
    let before = syncs(&db)?;
    let turn = db.turn();
    for i in 0..100u32 {
        map.upsert(i.to_be_bytes(), "value")?;
        assert_eq!(map.get(i.to_be_bytes())?, Some(b"value".to_vec()));
    }
    turn.end()?;
    assert!(syncs(&db)? <= before + 2);
    assert!(is_durable(&db));
    let left = place.cut().open()?;
    assert_eq!(left.map("m")?.count()?, 100);
    Ok(())
}

/// A sweep of expired entries does not wait for a sync of each.
#[test]
fn a_sweep_waits_for_no_sync() -> Result<(), Error> {
    let place = Place::new();
    let db = place.open_unhurried()?;
    let map = Expiring::new(db.map("m")?);
    let turn = db.turn();
    for i in 0..100u32 {
        map.upsert(i.to_be_bytes(), "value", Some(Duration::ZERO))?;
    }
    turn.end()?;
    let syncs = |db: &Db| db.stats().map(|stats| stats.log.expect("a log").syncs);
    let before = syncs(&db)?;
    assert_eq!(map.sweep(&mut None, 1000)?.removed, 100);
    assert_eq!(syncs(&db)?, before);
    Ok(())
}

/// A paused turn keeps the position it must wait for; other turns of the thread have their own.
#[test]
fn turns_of_a_thread_take_turns() -> Result<(), Error> {
    let place = Place::new();
    let db = place.open_unhurried()?;
    let map = db.map("m")?;
    let (writes, reads) = (db.turn(), db.turn());
    map.get("absent")?;
    let reads = reads.pause();
    map.upsert("key", "value")?;
    assert!(!db.is_turn_durable());
    let writes = writes.pause();

    let reads = db.resume(reads);
    assert!(db.is_turn_durable());
    // It has seen the other turn's write.
    assert_eq!(map.get("key")?, Some(b"value".to_vec()));
    assert!(!db.is_turn_durable());
    reads.end()?;
    assert!(is_durable(&db));

    let writes = db.resume(writes);
    assert!(db.is_turn_durable());
    map.upsert("key", "other")?;
    db.settle_turn()?;
    assert!(db.is_turn_durable());
    writes.end()?;
    assert_eq!(place.cut().open()?.map("m")?.get("key")?, Some(b"other".to_vec()));
    Ok(())
}

/// `Db::sync` makes eventual writes durable; in a turn, the turn's end does.
#[test]
fn a_turn_waits_for_eventual_writes_if_it_is_told_to() -> Result<(), Error> {
    let place = Place::new();
    let never = Duration::from_secs(1 << 20);
    let options = crate::options().durability(Durability::Eventual);
    let db = options.sync_within(never).open(&place.path)?;
    let map = db.map("m")?;
    let turn = db.turn();
    map.upsert("key", "value")?;
    assert!(db.is_turn_durable());
    db.sync()?;
    assert!(!db.is_turn_durable());
    turn.end()?;
    assert!(is_durable(&db));
    map.upsert("key", "other")?;
    assert!(!is_durable(&db));
    db.sync()?;
    assert!(is_durable(&db));
    Ok(())
}

/// A pool with the maximum number of maps opens again after a kill, whatever maps were requested, dropped and created
/// before.
#[test]
fn a_pool_full_of_maps_opens_again() -> Result<(), Error> {
    let place = Place::new();
    let db = place.open()?;
    let mut made = 0;
    let refused = loop {
        match db.map(&format!("map {made}")) {
            Ok(map) => drop(map),
            Err(error) => break error,
        }
        made += 1;
    };
    assert!(
        refused.to_string().contains("root directory is full"),
        "{refused}"
    );
    let count = |db: &Db| db.maps().map(|maps| maps.len());
    assert_eq!(count(&place.kill().open()?)?, made);
    // The last map is replaced by another.
    assert!(db.drop_map("map 0")?);
    db.map("other")?.upsert("key", "value")?;
    let left = place.kill().open()?;
    assert_eq!(count(&left)?, made);
    assert_eq!(left.map("other")?.get("key")?, Some(b"value".to_vec()));
    Ok(())
}

/// A value that is too long is refused before the log has it.
#[test]
fn a_value_that_is_too_long_is_in_no_log() -> Result<(), Error> {
    let place = Place::new();
    let db = place.open()?;
    let map = db.map("m")?;
    map.upsert("key", "value")?;
    let before = db.log_stats().expect("a log").appended;
    let long = vec![0; MAX_VALUE + 1];
    let refused = map.upsert("key", long).expect_err("too long");
    assert!(
        matches!(refused, Error::Index(IndexError::ValueTooLong(_))),
        "{refused}"
    );
    assert_eq!(db.log_stats().expect("a log").appended, before);
    Ok(())
}

/// A turn belongs to one database: a write to another database meanwhile waits as usual.
#[test]
fn a_turn_is_of_its_database_alone() -> Result<(), Error> {
    let (place, other) = (Place::new(), Place::new());
    let never = Duration::from_secs(1 << 20);
    let (db, others) = (
        place.open()?,
        crate::options().sync_within(never).open(&other.path)?,
    );
    let (map, memory) = (others.map("m")?, Db::anonymous()?);
    for (number, turn) in [db.turn(), memory.turn()].into_iter().enumerate() {
        map.upsert(number.to_be_bytes(), "value")?;
        assert!(is_durable(&others));
        turn.end()?;
    }
    // A turn within another turn of the same database leaves the waiting to it.
    let outer = others.turn();
    let inner = others.turn();
    map.upsert("key", "value")?;
    inner.end()?;
    assert!(!others.is_turn_durable());
    outer.end()?;
    assert!(is_durable(&others));
    Ok(())
}

/// Popped entries are removed with the durability of the handle.
#[test]
fn entries_are_taken_durably() -> Result<(), Error> {
    let place = Place::new();
    let never = Duration::from_secs(1 << 20);
    let options = crate::options().durability(Durability::Eventual);
    let db = options.sync_within(never).open(&place.path)?;
    let map = db.map("m")?;
    map.load([("a", "1"), ("b", "2"), ("c", "3")])?;
    assert!(map.pop_first()?.is_some());
    assert!(!is_durable(&db));
    let now = map.with_durability(Durability::Immediate);
    assert!(now.pop_first()?.is_some());
    assert!(is_durable(&db));
    assert!(now.pop_last()?.is_some());
    assert!(is_durable(&db));
    Ok(())
}

/// An edit that panics when it is called again leaves no record of its earlier decision: the log agrees with the map,
/// also after a loss of power.
#[test]
fn an_edit_that_panics_leaves_no_record() -> Result<(), Error> {
    for before in [Some("before"), None] {
        let place = Place::new();
        let db = place.open_unhurried()?;
        let map = db.map_with("m", IndexKind::BwTree)?;
        if let Some(value) = before {
            map.upsert("key", value)?;
        }
        let calls = Cell::new(0);
        let edit = |_: Option<&[u8]>| {
            calls.set(calls.get() + 1);
            assert!(calls.get() == 1, "asked again");
            // A write of another key of the same node.
            std::thread::scope(|scope| scope.spawn(|| map.upsert("other", "1")).join().expect("no panic"))
                .expect("room");
            Some(b"never".to_vec())
        };
        let panicked = catch_unwind(AssertUnwindSafe(|| map.edit_with("key", edit)));
        assert!(panicked.is_err());
        assert_eq!(calls.get(), 2);
        let held = before.map(|value| value.as_bytes().to_vec());
        assert_eq!(map.get("key")?, held);
        for left in [place.kill(), place.cut()] {
            assert_eq!(left.open()?.map("m")?.get("key")?, held);
        }
    }
    Ok(())
}

/// A rebuild of few, large values reports how far it is, too.
#[test]
fn a_rebuild_of_large_values_is_reported() -> Result<(), Error> {
    let place = Place::new();
    let db = place.open()?;
    let map = db.map("m")?.with_durability(Durability::Eventual);
    for i in 0..200u32 {
        map.upsert(i.to_be_bytes(), vec![7; 100_000])?;
    }
    db.checkpoint(true)?;
    let reports = Arc::new(Mutex::new(Vec::new()));
    let report = {
        let reports = reports.clone();
        move |done: &Rebuilding| reports.lock().expect("no panic").push(*done)
    };
    let left = place.cut();
    assert_eq!(
        crate::options()
            .on_rebuild(report)
            .open(&left.path)?
            .map("m")?
            .count()?,
        200
    );
    let reports = reports.lock().expect("no panic");
    let amid = |done: &Rebuilding| 0 < done.entries && done.entries < done.entries_in_all;
    assert!(reports.iter().any(amid), "{reports:?}");
    let built = |done: &Rebuilding| !done.is_done && done.entries == done.entries_in_all;
    assert!(reports.iter().any(built), "{reports:?}");
    Ok(())
}
