//! Writes that a full pool refuses.

use super::*;
use crate::{Action, Edit};

/// An edit that puts a value when it is first asked, and keeps the entry afterwards.
struct PutThenKeep(bool);

impl Edit for PutThenKeep {
    fn decide(&mut self, _: Option<&[u8]>) -> Action {
        match std::mem::replace(&mut self.0, true) {
            false => Action::Put,
            true => Action::Keep,
        }
    }
    fn value(&self) -> &[u8] {
        &[2; 3000]
    }
}

/// A write that found no room returns only once the record that undoes it is durable, whether it is refused or changes
/// nothing when it is tried again: if only its first record survived a loss of power, the write would be applied.
#[test]
fn what_fails_is_undone_durably() {
    let (files, held) = (folder(), Held::default());
    let directory = Directory::open(files.path()).expect("a directory");
    let db = open_on(Slow(directory, held.clone(), ""), Hardware::detect(), 1 << 20);
    let map = db.map("map").expect("room");
    let is_refused = |i: &u32| map.upsert(i.to_be_bytes(), [1; 3000]).is_err();
    // Guards of other tests may hold space back, which a second try can use.
    let full = (0..400u32).find(|i| {
        is_refused(i) && {
            while db.store().heap.stats().retired > 0 {
                heap::pin().flush();
                std::thread::yield_now();
            }
            is_refused(i)
        }
    });
    let full = full.expect("at last").to_be_bytes();
    let upsert = || map.upsert(full, [2; 3000]).map(|()| Action::Put);
    let commit = || {
        let mut batch = db.batch();
        batch.upsert(&map, full, [2; 3000]);
        batch.commit().map(|_| Action::Put)
    };
    let keep = || {
        let edit = &mut PutThenKeep(false);
        let kept = map.index.write_durably(&full, edit, Some(Durability::Eventual));
        kept.map_err(Error::from)
    };
    let writes: [&(dyn Fn() -> Result<Action, Error> + Sync); 3] = [&upsert, &commit, &keep];
    for (number, write) in writes.into_iter().enumerate() {
        let _hold = Hold::new(&held);
        std::thread::scope(|scope| {
            let (sender, results) = mpsc::channel();
            scope.spawn(move || sender.send(write()));
            let early = results.recv_timeout(MOMENT);
            held.hold(false);
            assert!(early.is_err(), "write {number} has returned early: {early:?}");
            match results.recv().expect("it ends") {
                Ok(done) => assert_eq!((number, done), (2, Action::Keep)),
                Err(refused) => assert!(number < 2 && refused.to_string().contains("no room"), "{refused}"),
            }
        });
    }
}
