//! The records that an edit leaves in the log.

use super::*;
use std::sync::Mutex;

/// A log that remembers the appended records and the waits for room in it.
#[derive(Default)]
struct Remembering {
    records: Mutex<Vec<String>>,
    is_full: AtomicBool,
    /// Whether the next record reaches its limit.
    is_nearly_full: AtomicBool,
    waits: Mutex<Vec<Duration>>,
}

impl AnyLog for Remembering {
    fn append(&self, changes: &[Change<'_>]) -> Result<Lsn, log::Error> {
        if self.is_full.load(Relaxed) {
            return Err(log::Error::LogFull {
                limit: 1 << 20,
                needed: 100,
            });
        }
        self.is_full.fetch_or(self.is_nearly_full.load(Relaxed), Relaxed);
        self.append_beyond_limit(changes)
    }
    fn append_beyond_limit(&self, changes: &[Change<'_>]) -> Result<Lsn, log::Error> {
        let mut records = self.records.lock().expect("no panic");
        records.extend(changes.iter().map(|change| format!("{change:?}")));
        Ok(Lsn(records.len() as u64))
    }
    fn wait_durable(&self, _: Lsn) -> Result<(), log::Error> {
        Ok(())
    }
    fn durable(&self) -> Lsn {
        Lsn(u64::MAX)
    }
    fn is_settled(&self) -> bool {
        true
    }
    fn wait_for_room(&self, _: u64, timeout: Duration) -> Result<bool, log::Error> {
        self.waits.lock().expect("no panic").push(timeout);
        Ok(!self.is_full.load(Relaxed))
    }
    fn appended(&self) -> Lsn {
        Lsn(0)
    }
    fn failure(&self) -> Option<Arc<str>> {
        None
    }
}

/// Returns a journal whose writers do not wait for room.
fn journal_of(log: &Arc<Remembering>) -> Journal {
    Journal::new(
        log.clone(),
        Durability::Immediate,
        Duration::ZERO,
        Box::new(|| ()),
    )
}

/// An edit that decides differently each time.
struct Wavering(std::vec::IntoIter<Action>);

impl Edit for Wavering {
    fn decide(&mut self, _: Option<&[u8]>) -> Action {
        self.0.next().expect("more decisions than expected")
    }
    fn value(&self) -> &[u8] {
        b"new"
    }
}

/// Decides, and gives the decision to the log's part of the write.
fn decide(logged: &mut Logged<'_>, edit: &mut Wavering, current: Option<&[u8]>) -> Action {
    let action = edit.decide(current);
    logged.decided(action, edit, current)
}

/// If a repeated edit decides differently, its last record states the key's final value.
#[test]
fn the_last_record_is_the_last_decision() {
    let put = |value: &[u8]| {
        let change = Change::Put {
            map: "map",
            key: b"key",
            value,
        };
        format!("{change:?}")
    };
    let map = crate::Db::anonymous()
        .and_then(|db| db.map("map"))
        .expect("memory");
    let remove = format!(
        "{:?}",
        Change::Remove {
            map: "map",
            key: b"key"
        }
    );
    let (keeps, puts, removes) = (Action::Keep, Action::Put, Action::Remove);
    for (decisions, current, expected) in [
        (vec![puts, keeps], Some(&b"old"[..]), Some(put(b"old"))),
        (vec![puts, keeps], None, Some(remove.clone())),
        (vec![removes, keeps], Some(b"old"), Some(put(b"old"))),
        (vec![puts, removes], Some(b"old"), Some(remove.clone())),
        (vec![puts, removes], None, Some(remove.clone())),
        (vec![removes, puts], Some(b"old"), Some(put(b"new"))),
        (vec![keeps, keeps], Some(b"old"), None),
        (vec![removes], None, None),
    ] {
        let log = Arc::new(Remembering::default());
        let journal = journal_of(&log);
        let count = decisions.len();
        let mut edit = Wavering(decisions.into_iter());
        let mut logged = journal.logged(("map", b"key"), 0, None, map.index.bare());
        (0..count).for_each(|_| _ = decide(&mut logged, &mut edit, current));
        assert_eq!(log.records.lock().expect("no panic").last(), expected.as_ref());
    }
}

/// If the log has a record of a write and refuses the next one because of its limit, it still accepts a record that
/// states the key's value.
#[test]
fn full_log_accepts_undo_record() {
    let map = crate::Db::anonymous()
        .and_then(|db| db.map("map"))
        .expect("memory");
    let log = Arc::new(Remembering::default());
    let journal = journal_of(&log);
    let mut edit = Wavering(vec![Action::Put, Action::Put].into_iter());
    let mut logged = journal.logged(("map", b"key"), 0, None, map.index.bare());
    assert_eq!(decide(&mut logged, &mut edit, None), Action::Put);
    log.is_full.store(true, Relaxed);
    // The index calls `decide` again, and the full log refuses its record.
    assert_eq!(decide(&mut logged, &mut edit, None), Action::Keep);
    let refused = logged.ended(Ok(Action::Keep)).expect_err("no room");
    assert!(matches!(refused, Error::Refused(_)), "{refused:?}");
    let removed = Change::Remove {
        map: "map",
        key: b"key",
    };
    let records = log.records.lock().expect("no panic");
    assert_eq!(records.last(), Some(&format!("{removed:?}")));
}

/// A map that cannot be created has no record of its creation alone in the log, even if that record has filled the log.
#[test]
fn full_log_accepts_record_of_refused_map() {
    let db = crate::Db::anonymous().expect("memory");
    let log = Arc::new(Remembering::default());
    let journal = Arc::new(journal_of(&log));
    let attached = db.store().traffic.journal.get_or_init(|| journal.clone());
    assert!(Arc::ptr_eq(attached, &journal));
    log.is_nearly_full.store(true, Relaxed);
    let refused = (0..).find_map(|n: u32| {
        log.is_full.store(false, Relaxed);
        let name = n.to_string();
        db.map(&name).err().map(|error| (name, error))
    });
    let Some((name, crate::Error::Heap(heap::Error::TooManyRoots(_)))) = refused else {
        panic!("{refused:?}");
    };
    let dropped = Change::MapDropped { map: &name };
    let records = log.records.lock().expect("no panic");
    assert_eq!(records.last(), Some(&format!("{dropped:?}")));
}

/// After one write has waited for room in vain, later ones are refused at once, until there is room.
#[test]
fn one_write_waits_for_room_in_vain() {
    let log = Arc::new(Remembering::default());
    log.is_full.store(true, Relaxed);
    let journal = Journal::new(log.clone(), Durability::Immediate, ROOM_TIMEOUT, Box::new(|| ()));
    let change = Change::MapDropped { map: "m" };
    let write = || journal.with_room(|| journal.append(&[change], std::iter::empty(), Durability::Immediate));
    let waits = || std::mem::take(&mut *log.waits.lock().expect("no panic"));
    write().expect_err("no room");
    assert_eq!(waits(), [ROOM_TIMEOUT]);
    for _ in 0..2 {
        // A run that appends nothing does not prove that there is room.
        journal.with_room(|| Ok::<_, Error>(())).expect("nothing");
        write().expect_err("no room");
    }
    assert!(waits().iter().all(|wait| wait.is_zero()));
    log.is_full.store(false, Relaxed);
    write().expect("room");
    log.is_full.store(true, Relaxed);
    waits();
    write().expect_err("no room");
    assert_eq!(waits(), [ROOM_TIMEOUT]);
}
