//! What may be moved into another thread, and what may be shared by several.

use std::ops::Bound;
use wollemi::{
    Batch, Check, Db, Error, Event, Expiring, ExpiringIter, ExpiringView, ExpiringWatch, Iter, Map, Options,
    Overlay, Retry, Snapshot, Stats, Sweeper, Transaction, TransactionCursor, View, ViewIter, Watch,
};

fn is_send<T: Send + 'static>() {}
fn is_send_and_sync<T: Send + Sync + 'static>() {}

/// Each of these owns what it needs, so all but a [`Transaction`], which notes its reads without a lock, may be shared.
/// A `Reader` and what it yields stay on their thread, and a `TransactionRange` on its transaction's.
#[test]
fn what_owns_its_data_moves_into_threads() {
    is_send_and_sync::<Db>();
    is_send_and_sync::<Options>();
    is_send_and_sync::<Retry>();
    is_send_and_sync::<Map>();
    is_send_and_sync::<Iter>();
    is_send_and_sync::<Snapshot>();
    is_send_and_sync::<View>();
    is_send_and_sync::<ViewIter>();
    is_send_and_sync::<Batch>();
    is_send_and_sync::<Overlay>();
    is_send_and_sync::<Watch>();
    is_send_and_sync::<Event>();
    is_send_and_sync::<Expiring>();
    is_send_and_sync::<ExpiringIter>();
    is_send_and_sync::<ExpiringIter<ViewIter>>();
    is_send_and_sync::<ExpiringView>();
    is_send_and_sync::<ExpiringWatch>();
    is_send_and_sync::<Sweeper>();
    is_send_and_sync::<TransactionCursor>();
    is_send_and_sync::<Check>();
    is_send_and_sync::<Stats>();
    is_send_and_sync::<Error>();
    is_send::<Transaction<'static>>();
}

/// Typed handles move whatever the keys and values are, as they hold none.
#[cfg(feature = "typed")]
#[test]
fn typed_handles_move_into_threads() {
    use std::rc::Rc;
    use wollemi::{TypedIter, TypedMap, TypedView, TypedViewIter, TypedWatch};
    is_send_and_sync::<TypedMap<String, Rc<u8>>>();
    is_send_and_sync::<TypedIter<String, Rc<u8>>>();
    is_send_and_sync::<TypedView<String, Rc<u8>>>();
    is_send_and_sync::<TypedViewIter<String, Rc<u8>>>();
    is_send_and_sync::<TypedWatch<String, Rc<u8>>>();
}

/// Iterators, a batch, a transaction and a view that one thread has begun are finished by another.
#[test]
fn another_thread_finishes_what_one_has_begun() -> Result<(), Error> {
    let db = Db::anonymous()?;
    let map = db.map("numbers")?;
    map.load((0..1000u32).map(|i| (i.to_be_bytes(), i.to_le_bytes())))?;
    let snapshot = db.snapshot()?;
    let mut now = map.range((Bound::Excluded(9u32.to_be_bytes()), Bound::Unbounded));
    let mut then = snapshot.view(&map)?.iter();
    assert!(now.next().is_some() && then.next_back().is_some());
    let mut batch = db.batch();
    batch.remove(&map, 0u32.to_be_bytes());
    let mut tx = db.begin_owned();
    assert!(tx.remove(&map, 1u32.to_be_bytes())?);
    let counts = std::thread::spawn(move || {
        assert!(batch.commit()?);
        tx.commit()?;
        drop(snapshot);
        Ok::<_, Error>((now.count(), then.rev().count(), map.len()?))
    });
    assert_eq!(counts.join().expect("no panic")?, (989, 999, 998));
    Ok(())
}
