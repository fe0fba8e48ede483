//! Commits that are held up, or fail, in the middle.

use super::*;
use crate::write::guarded::Guarded;
use crate::write::intent::KeyChange;
use crate::write::intent::{self, INTENT, Intent, SingleSlot};
use crate::write::journal::{Durability, Journal};
use crate::write::stripes::StripeId;
use crate::write::watch::Watches;
use crate::{Db, IndexKind, Map, Options};
use crossbeam_utils::sync::Parker;
use index::{Action, Direction, Edit, Index, Visit};
use pmem::{Hardware, LinkAndPersist, PSlot, Purpose, Tag, persist_scope};
use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A map whose writes wait until they are released, or fail.
struct Held {
    map: Map,
    /// Receives a message when a write has arrived.
    came: Sender<()>,
    /// Whether the write continues (`true`) or fails.
    goes: Mutex<Receiver<bool>>,
    /// Writes that have arrived.
    writes: AtomicUsize,
}

impl Held {
    /// Returns a map whose first write blocks, the signal that the write has arrived, and the one that releases it.
    fn of(map: &Map) -> (Map, Receiver<()>, Sender<bool>) {
        let ((came, comes), (go, goes)) = (channel(), channel());
        let held = Held {
            map: map.clone(),
            came,
            goes: Mutex::new(goes),
            writes: AtomicUsize::new(0),
        };
        let held = Map::new(map.index_kind(), Arc::new(held), None);
        (held, comes, go)
    }
}

impl Index for Held {
    index::delegate!(map.index: get, write, scan, check);
}

impl MapIndex for Held {
    fn name(&self) -> &str {
        self.map.name()
    }
    fn write_durably(
        &self,
        key: &[u8],
        edit: &mut dyn Edit,
        durability: Option<Durability>,
    ) -> Result<Action, index::Error> {
        self.map.index.write_durably(key, edit, durability)
    }
    fn bare(&self) -> &dyn Index {
        self.map.index.bare()
    }
    fn write_held(
        &self,
        key: &[u8],
        edit: &mut dyn Edit,
        recording: Recording,
    ) -> Result<Action, index::Error> {
        if self.writes.fetch_add(1, SeqCst) == 0 {
            let _ = self.came.send(());
            let goes = self.goes.lock().unwrap_or_else(PoisonError::into_inner);
            if !goes.recv().unwrap_or(false) {
                return Err(index::Error::ReadOnly);
            }
        }
        self.map.index.write_held(key, edit, recording)
    }
    fn stripe_of(&self, key: &[u8]) -> StripeId {
        self.map.index.stripe_of(key)
    }
    fn close_gate(&self) -> Result<crate::write::gate::Closed<'_>, index::Error> {
        self.map.index.close_gate()
    }
    fn gate(&self) -> &Gate {
        self.map.index.gate()
    }
    fn journal(&self) -> Option<&Arc<Journal>> {
        self.map.index.journal()
    }
    fn watches(&self) -> &Arc<Watches> {
        self.map.index.watches()
    }
    fn commit(&self, plan: &mut dyn FnMut() -> Result<Plan, Error>) -> Result<(), Error> {
        self.map.index.commit(plan)
    }
}

type Outcome = Result<(), Error>;

/// Puts two keys with this prefix into a map, in a transaction that has read one of them.
fn put_two(db: &Db, map: &Map, prefix: &str) -> Outcome {
    let mut tx = db.begin();
    tx.insert(map, format!("{prefix} 1"), "one")?;
    tx.upsert(map, format!("{prefix} 2"), "two")?;
    tx.commit()
}

/// Returns a prefix whose two keys share no stripe with the keys of another prefix.
fn apart_from(map: &Map, other: &str) -> String {
    let ids = |prefix: &str| [1, 2].map(|i| map.index.stripe_of(format!("{prefix} {i}").as_bytes()));
    let taken = ids(other);
    let mut prefixes = (0..).map(|i| format!("other {i}"));
    let apart = prefixes.find(|prefix| ids(prefix).iter().all(|id| !taken.contains(id)));
    apart.expect("there are many stripes")
}

/// While a commit is held up in the middle of its changes, transactions and writes of other keys continue, over ranges
/// too; a transaction that has read a key changed by the commit fails; and readers do not wait.
#[test]
fn nobody_waits_for_a_commit_of_other_keys() -> Outcome {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    map.upsert("held 2", "before")?;
    let (held, comes, go) = Held::of(&map);
    let apart = apart_from(&map, "held");
    let (mut early, looks) = (db.begin(), db.begin());
    assert!(early.contains(&map, "held 2")? && looks.contains(&map, "held 2")?);
    std::thread::scope(|scope| {
        // If this fails, `go` is dropped, and then the committer fails.
        let go = go;
        let committer = scope.spawn(|| put_two(&db, &held, "held"));
        comes.recv().expect("it comes to its changes");
        put_two(&db, &map, &apart)?;
        map.upsert(format!("{apart} 1"), "single")?;
        let mut batch = db.batch();
        batch
            .upsert(&map, format!("{apart} 1"), "1")
            .upsert(&map, format!("{apart} 2"), "2");
        assert!(batch.commit()?);
        assert_eq!(map.get("held 2")?, Some(b"before".to_vec()));

        early.upsert(&map, format!("{apart} 1"), "in vain")?;
        assert!(matches!(early.commit(), Err(Error::Conflict { key, .. }) if key == b"held 2"));
        assert!(matches!(looks.commit(), Err(Error::Conflict { .. })));
        let mut tx = db.begin();
        assert_eq!(tx.prefix(&map, &apart)?.count(), 2);
        tx.upsert(&map, format!("{apart} 1"), "after the range")?;
        tx.commit()?;
        let mut tx = db.begin();
        assert_eq!(tx.prefix(&map, "held")?.count(), 1);
        tx.upsert(&map, format!("{apart} 1"), "in vain")?;
        assert!(matches!(tx.commit(), Err(Error::Conflict { .. })));
        let tx = db.begin();
        assert_eq!(tx.prefix(&map, "held")?.count(), 1);
        assert!(matches!(tx.commit(), Err(Error::Conflict { .. })));
        go.send(true).expect("it waits");
        committer.join().expect("no panic")
    })?;
    assert_eq!(map.get("held 2")?, Some(b"two".to_vec()));
    assert_eq!(map.get(format!("{apart} 1"))?, Some(b"after the range".to_vec()));
    Ok(())
}

/// A compare-and-swap of an absent key to an absent one comes before or after the whole of a commit: it takes its turn
/// among the writers of the key, unlike a read.
#[test]
fn a_swap_that_changes_nothing_waits_for_a_commit_of_its_key() -> Outcome {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    let (held, comes, go) = Held::of(&map);
    let (swapped, swap) = channel();
    std::thread::scope(|scope| {
        let go = go;
        let committer = scope.spawn(|| put_two(&db, &held, "held"));
        comes.recv().expect("it comes to its changes");
        scope.spawn(|| swapped.send(map.compare_and_swap("held 2", None::<&str>, None)));
        // Time for a swap that does not wait.
        let early = swap.recv_timeout(Duration::from_millis(50)).ok();
        go.send(true).expect("it waits");
        let swapped = early.unwrap_or_else(|| swap.recv().expect("it ends"))?;
        assert!(!swapped, "held 2 was absent after the commit's moment");
        committer.join().expect("no panic")
    })?;
    assert!(map.compare_and_swap("held 3", None::<&str>, None)?);
    Ok(())
}

/// A write into a range while it is checked breaks it.
#[test]
fn a_range_is_broken_by_a_write_that_comes_while_it_is_checked() -> Outcome {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    let tx = db.begin();
    assert_eq!(tx.prefix(&map, "a")?.count(), 0);
    let (_, ranges) = tx.into_reads().into_parts().expect("no conflict");
    let reads = AnnouncedReads { ranges, points: None };
    breaks(&db, &map, &reads, &[("a", true), ("b", false), ("aa", true)])
}

/// A write of an announced single key breaks it; writes of other keys, even of its stripe, do not.
#[test]
fn an_announced_key_is_broken_by_its_own_writes_alone() -> Outcome {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    let tx = db.begin();
    assert_eq!((tx.get(&map, "a")?, tx.get(&map, "a 1")?), (None, None));
    let (points, _) = tx.into_reads().into_parts().expect("no conflict");
    let reads = AnnouncedReads {
        points: Some(points),
        ..AnnouncedReads::default()
    };
    let neighbor = neighbors(&map, b"a").next().expect("many keys").to_vec();
    breaks(
        &db,
        &map,
        &reads,
        &[
            (&b"a"[..], true),
            (b"b", false),
            (&neighbor, false),
            (b"a 1", true),
        ],
    )
}

/// Asserts which single writes break these reads while they are announced, and that none does afterwards. The commit of
/// "a 1" and "a 2" does, and refuses them while it is in progress.
fn breaks<K: AsRef<[u8]>>(db: &Db, map: &Map, reads: &AnnouncedReads, writes: &[(K, bool)]) -> Outcome {
    let active = &db.store().traffic.active;
    for (key, breaks) in writes {
        let mut announced = active.announce(&Arc::default(), reads)?;
        map.upsert(key, "1")?;
        map.remove(key)?;
        let key = key.as_ref().escape_ascii();
        assert_eq!(announced.end_check().is_err(), *breaks, "{key}");
    }
    for (key, _) in writes {
        let mut announced = active.announce(&Arc::default(), reads)?;
        assert!(announced.end_check().is_ok());
        map.upsert(key, "1")?;
        map.remove(key)?;
        assert!(announced.end_check().is_ok());
    }
    let mut announced = active.announce(&Arc::default(), reads)?;
    put_two(db, map, "a")?;
    assert!(matches!(announced.end_check(), Err(Error::Conflict { key, .. }) if key == b"a 1"));
    let changes = [KeyState::new(&map.index, b"a 1", None)].into();
    let changing = active.announce(&changes, &AnnouncedReads::default())?;
    assert!(matches!(
        active.announce(&Arc::default(), reads),
        Err(Error::Conflict { .. })
    ));
    drop(changing);
    active.announce(&Arc::default(), reads).map(drop)
}

/// Several commits fail after they are published. Their intents remain, all writes fail, no transaction can read the
/// keys that they change; and the next opening applies the changes of all of them.
#[test]
fn an_opening_finishes_all_commits() -> Result<(), Box<dyn std::error::Error>> {
    const COMMITS: usize = 3;
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("a.pool");
    {
        let db = Db::open(&path)?;
        let maps = [
            db.map("a")?,
            db.map_with("b", IndexKind::DpTree)?,
            db.map_with("c", IndexKind::Part)?,
        ];
        maps[1].upsert("b 1 and more", "stays")?;
        std::thread::scope(|scope| {
            let committers: Vec<_> = maps
                .iter()
                .map(|map| {
                    let (held, comes, go) = Held::of(map);
                    let db = &db;
                    let committer = scope.spawn(move || put_two(db, &held, held.name()));
                    comes.recv().expect("it comes to its changes");
                    (committer, go)
                })
                .collect();
            for (committer, go) in committers {
                go.send(false).expect("it waits");
                let failed = committer.join().expect("no panic");
                assert!(matches!(failed, Err(Error::Unfinished(_))), "{failed:?}");
            }
        });
        let unfinished = |done: Outcome| matches!(done, Err(Error::Index(index::Error::Unfinished)));
        assert!(unfinished(maps[0].upsert("a 1", "lost")));
        assert!(unfinished(maps[0].upsert("another", "lost")));
        assert!(unfinished(put_two(&db, &maps[0], "another")));
        assert!(unfinished(db.snapshot().map(drop)));
        let tx = db.begin();
        assert!(unfinished(tx.get(&maps[0], "a 1").map(drop)));
        assert_eq!(tx.prefix(&maps[0], "a")?.count(), 0);
        assert!(unfinished(tx.commit()));
        assert_eq!(maps[0].get("a 1")?, None);
    }
    let db = Db::open(&path)?;
    assert_eq!(db.carried_out(), 2 * COMMITS);
    for name in ["a", "b", "c"] {
        let map = db.find_map(name)?.ok_or("a map is gone")?;
        assert_eq!(map.get(format!("{name} 1"))?, Some(b"one".to_vec()));
        assert_eq!(map.get(format!("{name} 2"))?, Some(b"two".to_vec()));
    }
    assert!(db.check()?.is_clean());
    put_two(&db, &db.map("a")?, "again")?;
    drop(db);
    assert_eq!(Db::open(&path)?.carried_out(), 0);
    Ok(())
}

/// Creates a root with one slot, as older pools had it, with an intent that puts a key.
fn make_single_slot(db: &Db) -> Outcome {
    let heap = &db.store().heap;
    let slot = PSlot::null();
    let change = KeyChange {
        map: "m",
        key: b"key",
        value: Some(b"value"),
    };
    persist_scope(heap.media(), Purpose::Log, |batch| {
        let mut draft = heap.draft(Intent::new(change.len(), 1), change.len(), &batch)?;
        Intent::write([change].into_iter(), draft.tail_mut());
        let flushed = draft.flush(&batch);
        let own = heap.draft(SingleSlot { intent: slot }, 0, &batch)?.flush(&batch);
        let fenced = batch.fence();
        let own = own.persisted(&fenced);
        // SAFETY: it is a root of that kind.
        let link = unsafe { heap.create_root(intent::NAME, intent::SINGLE_SLOT, own, Tag::default()) }?;
        let offset = link.offset().expect("a root");
        // SAFETY: it is used to read the root just created, which no thread removes meanwhile.
        let access = unsafe { heap.access() };
        let own: &SingleSlot = access.at(offset).map_err(heap::Error::from)?;
        let intent = flushed.persisted(&fenced);
        let _durable = own
            .intent
            .publish::<LinkAndPersist, Hardware, Intent>(heap.media(), intent, INTENT)
            .commit();
        Ok(())
    })
}

/// A pool whose root has one slot is opened, and its intent applied; the first commit of several changes gives it the
/// current kind of root.
#[test]
fn a_root_with_one_slot_is_replaced() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("a.pool");
    let root = |db: &Db| {
        db.store()
            .heap
            .root(intent::NAME)
            .map(|root| root.map(|root| root.kind))
    };
    {
        let db = Db::open(&path)?;
        db.map("m")?;
        make_single_slot(&db)?;
    }
    {
        let db = Options::new().read_only(true).open(&path)?;
        assert_eq!(db.map("m")?.get("key")?, Some(b"value".to_vec()));
    }
    for commits in [false, true] {
        let db = Db::open(&path)?;
        assert_eq!(db.carried_out(), usize::from(!commits));
        assert_eq!(root(&db)?, Some(intent::SINGLE_SLOT));
        let map = db.map("m")?;
        assert_eq!(map.get("key")?, Some(b"value".to_vec()));
        assert_eq!(db.maps()?.len(), 1);
        if commits {
            put_two(&db, &map, "new")?;
            assert_eq!(root(&db)?, Some(intent::KIND));
        }
        let check = db.check()?;
        assert!(check.is_clean(), "{check:?}");
    }
    let db = Db::open(Path::new(&path))?;
    assert_eq!(root(&db)?, Some(intent::KIND));
    assert_eq!(db.map("m")?.count()?, 3);
    Ok(())
}

/// With more concurrent commits than slots, those that find none wait, and all of them complete.
#[test]
fn commits_wait_for_a_slot() -> Outcome {
    const COMMITS: usize = 2 * intent::SLOTS;
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let (send, parkers) = channel();
        for thread in 0..COMMITS {
            let (db, map, done, send) = (&db, &map, &done, send.clone());
            scope.spawn(move || {
                let parker = Parker::new();
                send.send(parker.unparker().clone()).expect("it listens");
                parker.park();
                for round in 0..20 {
                    // Some share stripes.
                    match put_two(db, map, &format!("{thread} {round}")) {
                        Ok(()) => _ = done.fetch_add(1, SeqCst),
                        Err(Error::Conflict { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        drop(send);
        parkers.iter().for_each(|parker| parker.unpark());
    });
    assert_eq!(map.count()?, 2 * done.into_inner() as u64);
    Ok(())
}

/// A change of another key with the same stripe is no conflict for a transaction; a change of the key that it has read
/// is, unless the key gets its old value back.
#[test]
fn keys_of_one_stripe_do_not_conflict() -> Outcome {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    let id = map.index.stripe_of(b"read");
    let mut others = (0u32..)
        .map(|i| i.to_be_bytes())
        .filter(|key| map.index.stripe_of(key) == id);
    let (other, third) = (
        others.next().expect("many keys"),
        others.next().expect("many keys"),
    );
    for changes in [&b"read"[..], b"another", &other] {
        let mut tx = db.begin();
        assert_eq!(tx.get(&map, "read")?, None);
        map.upsert(other, "changed")?;
        assert_eq!(tx.get(&map, third)?, None);
        tx.upsert(&map, changes, "1")?;
        tx.commit()?;
        map.remove("read")?;

        let mut tx = db.begin();
        assert_eq!((tx.get(&map, "read")?, tx.get(&map, third)?), (None, None));
        map.upsert(third, "not for long")?;
        map.remove(third)?;
        map.upsert("read", "1")?;
        tx.upsert(&map, changes, "2")?;
        assert!(matches!(tx.commit(), Err(Error::Conflict { key, .. }) if key == b"read"));
        map.remove("read")?;
    }
    Ok(())
}

/// A commit that reports that it cannot be completed is durable, at level `disk` too.
#[test]
fn what_is_unfinished_is_durable() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let options = Options::new().level(crate::Level::Disk).max_size(1 << 30);
    let db = options
        .sync_within(Duration::from_secs(1 << 20))
        .open(dir.path().join("a.pool"))?;
    let (held, _comes, go) = Held::of(&db.map("m")?);
    go.send(false)?;
    let failed = put_two(&db, &held, "m");
    assert!(matches!(failed, Err(Error::Unfinished(_))), "{failed:?}");
    let log = db.log_stats().ok_or("no log")?;
    assert_eq!(log.durable, log.appended);
    Ok(())
}

/// An index whose scans run a write of another map first.
struct Amid {
    index: Arc<dyn MapIndex>,
    write: Box<dyn Fn() + Send + Sync>,
}

impl Index for Amid {
    index::delegate!(index: get, write, check);

    fn scan<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), index::Error> {
        (self.write)();
        self.index.scan(lower, upper, direction, guard, visit)
    }
}

/// Returns a map with a range whose every scan runs such a write first.
fn amid(db: &Db, write: impl Fn() + Send + Sync + 'static) -> Result<Map, Error> {
    let map = db.map("range")?;
    let index = Amid {
        index: map.index.clone(),
        write: Box::new(write),
    };
    let amid = Arc::new(Guarded::new(index, "amid", db.store()));
    Ok(Map::new(map.index_kind(), amid, None))
}

/// Returns keys of a map that share a stripe with this one.
fn neighbors(map: &Map, key: &'static [u8]) -> impl Iterator<Item = [u8; 4]> {
    let (map, id) = (map.clone(), map.index.stripe_of(key));
    let keys = (0u32..).map(|i| i.to_be_bytes());
    keys.filter(move |key| map.index.stripe_of(key) == id)
}

/// A transaction that has read a key and a range commits at its second attempt at the latest, even if other keys of the
/// key's stripe are written during each check of the range. If the key itself is written, it does not.
#[test]
fn writes_of_other_keys_do_not_starve_a_transaction() -> Outcome {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    for is_neighbor in [true, false] {
        let neighbor = neighbors(&map, b"read").next().expect("many keys").to_vec();
        let written = if is_neighbor { neighbor } else { b"read".to_vec() };
        let (target, count) = (map.clone(), AtomicUsize::new(0));
        let write = move || {
            let value = count.fetch_add(1, SeqCst).to_be_bytes();
            target.upsert(&written, value).expect("room");
        };
        let (amid, mut tries) = (amid(&db, write)?, 0);
        for changes in [false, true] {
            let committed = db.transact(|tx| {
                tries += 1;
                tx.get(&map, "read")?;
                assert_eq!(tx.range(&amid, ..)?.count(), 0);
                if changes {
                    tx.upsert(&map, "changed", "1")?;
                }
                Ok::<_, Error>(())
            });
            assert_eq!(committed.is_ok(), is_neighbor, "{committed:?}");
            assert!(
                committed.is_ok() || matches!(committed, Err(Error::Conflict { key, .. }) if key == b"read")
            );
        }
        assert!(!is_neighbor || tries <= 4, "{tries} tries");
    }
    Ok(())
}

/// In a caller's own retry loop, writes of other keys fail only a transaction that was not said to run again.
#[test]
fn writes_of_other_keys_do_not_fail_a_transaction_that_runs_again() -> Outcome {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    let (target, count) = (map.clone(), AtomicUsize::new(0));
    let neighbor = neighbors(&map, b"read").next().expect("many keys");
    let amid = amid(&db, move || {
        let value = count.fetch_add(1, SeqCst).to_be_bytes();
        target.upsert(neighbor, value).expect("room");
    })?;
    for is_again in [false, true] {
        for is_committed in [false, true] {
            let mut tx = db.begin();
            tx.set_again(is_again);
            tx.get(&map, "read")?;
            assert_eq!(tx.range(&amid, ..)?.count(), 0);
            tx.upsert(&map, "changed", "1")?;
            let ended = if is_committed { tx.commit() } else { tx.check() };
            assert_eq!(ended.is_ok(), is_again, "{ended:?}");
        }
    }
    Ok(())
}

/// An edit that waits until it is released.
struct Waiting(Sender<()>, Receiver<()>);

impl Edit for Waiting {
    fn decide(&mut self, _: Option<&[u8]>) -> Action {
        let _ = self.0.send(());
        let _ = self.1.recv();
        Action::Put
    }
    fn value(&self) -> &[u8] {
        b"value"
    }
}

/// A transaction commits at its second attempt even if a writer of another key holds the read key's stripe during each
/// commit.
#[test]
fn a_writer_of_another_key_refuses_no_transaction_twice() -> Outcome {
    let db = Db::anonymous()?;
    // The writer may hold a lock of its map's index.
    let (map, changed) = (db.map("m")?, db.map("changed")?);
    let neighbor = neighbors(&map, b"read").next().expect("many keys");
    let mut tries = 0;
    std::thread::scope(|scope| {
        // Dropping it releases the writer of the previous attempt.
        let mut goes = None;
        db.transact(|tx| {
            tries += 1;
            goes = None;
            assert_eq!(tx.get(&map, "read")?, None);
            let ((came, comes), (go, wait)) = (channel(), channel());
            goes = Some(go);
            let map = &map;
            scope.spawn(move || map.edit(neighbor, &mut Waiting(came, wait)).expect("room"));
            comes.recv().expect("it comes");
            tx.upsert(&changed, "key", "1")
        })
    })?;
    assert_eq!(tries, 2);
    Ok(())
}
