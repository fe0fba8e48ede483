//! What an edit's records say.

use super::*;
use std::sync::Mutex;

/// A log that remembers what was appended.
#[derive(Default)]
struct Remembering(Mutex<Vec<String>>);

impl AnyLog for Remembering {
    fn append(&self, changes: &[Change<'_>]) -> Result<Lsn, log::Error> {
        let mut records = self.0.lock().expect("no panic");
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
    fn wait_for_room(&self, _: u64, _: Duration) -> Result<bool, log::Error> {
        Ok(true)
    }
    fn appended(&self) -> Lsn {
        Lsn(0)
    }
    fn failure(&self) -> Option<Arc<str>> {
        None
    }
}

/// Decides otherwise each time.
struct Wavering(std::vec::IntoIter<Action>);

impl Edit for Wavering {
    fn decide(&mut self, _: Option<&[u8]>) -> Action {
        self.0.next().expect("it is not asked more often")
    }
    fn value(&self) -> &[u8] {
        b"new"
    }
}

/// Where an edit that is asked again decides otherwise, its last record says what the key then holds.
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
        let journal = Journal::new(
            log.clone(),
            Durability::Immediate,
            Duration::ZERO,
            Box::new(|| {}),
        );
        let count = decisions.len();
        let mut edit = Wavering(decisions.into_iter());
        let mut logged = journal.logged(("map", b"key"), 0, None, &mut edit);
        (0..count).for_each(|_| _ = logged.decide(current));
        assert_eq!(log.0.lock().expect("no panic").last(), expected.as_ref());
    }
}
