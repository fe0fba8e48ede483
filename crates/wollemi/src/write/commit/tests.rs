//! Commits that are held, or fail, in the middle.

use super::*;
use crate::write::intent::KeyChange;
use crate::write::intent::{self, INTENT, Intent, SingleSlot};
use crate::write::stripes::StripeId;
use crate::write::traffic::{MapIndex, Recording, Traffic};
use crate::{Db, IndexKind, Map, Options};
use crossbeam_utils::sync::Parker;
use index::{Action, Edit, Index};
use pmem::{Hardware, LinkAndPersist, PSlot, Purpose, Tag, persist_scope};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A map whose writes wait until they are let through, or fail.
struct Held {
    map: Map,
    /// Told when a write has come.
    came: Sender<()>,
    /// What it is to do: to go on, or to fail.
    goes: Mutex<Receiver<bool>>,
    /// Writes that have come.
    writes: AtomicUsize,
}

impl Held {
    /// A map whose first write blocks, the signal that the write has come, and the one that lets it continue.
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
    fn traffic(&self) -> &Arc<Traffic> {
        self.map.index.traffic()
    }
    fn commit(&self, plan: &mut dyn FnMut() -> Result<Plan, Error>) -> Result<(), Error> {
        self.map.index.commit(plan)
    }
}

type Outcome = Result<(), Error>;

/// Puts two keys that begin so into a map, in a transaction that has read one of them.
fn put_two(db: &Db, map: &Map, prefix: &str) -> Outcome {
    let mut tx = db.begin();
    tx.insert(map, format!("{prefix} 1"), "one")?;
    tx.upsert(map, format!("{prefix} 2"), "two")?;
    tx.commit()
}

/// A prefix whose two keys share no stripe with the keys of another.
fn apart_from(map: &Map, other: &str) -> String {
    let ids = |prefix: &str| [1, 2].map(|i| map.index.stripe_of(format!("{prefix} {i}").as_bytes()));
    let taken = ids(other);
    let mut prefixes = (0..).map(|i| format!("other {i}"));
    let apart = prefixes.find(|prefix| ids(prefix).iter().all(|id| !taken.contains(id)));
    apart.expect("there are many stripes")
}

/// While a commit is held in the middle of its changes, transactions and writes of other keys go on, over ranges too;
/// one that has read what the commit changes gives up; and readers do not wait.
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
        // It goes if this fails, and then the committer does.
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

/// A write that comes into a range while it is checked breaks it.
#[test]
fn a_range_is_broken_by_a_write_that_comes_while_it_is_checked() -> Outcome {
    let db = Db::anonymous()?;
    let map = db.map("m")?;
    let tx = db.begin();
    assert_eq!(tx.prefix(&map, "a")?.count(), 0);
    let (_, ranges) = tx.into_reads().into_parts().expect("no conflict");
    let active = &map.index.traffic().active;
    for (key, breaks) in [("a", true), ("b", false), ("aa", true)] {
        let entered = active.enter(&Arc::default(), &ranges)?;
        map.upsert(key, "1")?;
        map.remove(key)?;
        assert_eq!(entered.checked().is_err(), breaks, "{key}");
        map.upsert(key, "1")?;
        map.remove(key)?;
    }
    let entered = active.enter(&Arc::default(), &ranges)?;
    put_two(&db, &map, "a")?;
    assert!(matches!(entered.checked(), Err(Error::Conflict { key, .. }) if key == b"a 1"));
    Ok(())
}

/// Several commits fail after they are published. Their intents stand, nothing is written any more, what they would
/// change cannot be read by a transaction; and the next opening makes the changes of all of them.
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

/// Makes a root with one slot, as pools had it, with an intent that puts a key.
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
        // SAFETY: what is read is the root just made, and no thread removes it meanwhile.
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

/// A pool whose root has one slot is opened, and its intent carried out; the first commit of several changes gives it
/// the root of today.
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

/// More commits at one time than there are slots: those that find none wait, and all are carried out.
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

/// A key of the same stripe as one that a transaction has read and is changed in the meantime is no conflict; the key
/// itself is, unless it is changed back.
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

/// A commit that cannot be finished is durable when it says so, at level `disk`, too.
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
