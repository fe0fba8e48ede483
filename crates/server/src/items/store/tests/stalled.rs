//! Writes of the record that stall, and edits meanwhile.

use super::*;
use index::{Edit, Error};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// A wait that is longer than this has found a deadlock.
const PATIENCE: Duration = Duration::from_secs(120);

/// A reference index in which, once `stalls` is set, the next write of the record blocks until the test releases it.
struct Stalling {
    index: ModelIndex,
    stalls: Arc<AtomicBool>,
    waits: Sender<()>,
    let_on: Mutex<Receiver<()>>,
}

impl Index for Stalling {
    index::delegate!(index: get, scan, check);

    fn write(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        if key == record::KEY && self.stalls.swap(false, Ordering::SeqCst) {
            // If the test has failed, its end of both channels is closed.
            let _ = self.waits.send(());
            self.let_on
                .lock()
                .expect("one write waits")
                .recv_timeout(PATIENCE)
                .map_err(|_| Error::Unfinished)?;
        }
        self.index.write(key, edit)
    }
}

/// While one thread reserves uniques, and the index stalls, other edits take uniques that are left, all below the
/// durable reservation.
#[test]
fn edits_go_on_while_uniques_are_reserved() {
    let index = ModelIndex::new();
    let stalls = Arc::new(AtomicBool::new(false));
    let ((waits, waiting), (go_on, let_on)) = (channel(), channel());
    let stalling = Stalling {
        index: index.clone(),
        stalls: stalls.clone(),
        waits,
        let_on: Mutex::new(let_on),
    };
    let largest = Arc::new(AtomicUsize::new(LARGEST));
    let store =
        &ItemStore::open(held(stalling), Arc::default(), largest, Arc::default(), NOW).expect("it is empty");
    let reserved = || {
        let guard = heap::pin();
        let record = index.get(record::KEY, &guard).expect("no failure");
        StoreRecord::read(&record.expect("the record"))
            .expect("a record")
            .reserved
    };
    let before = reserved();
    store.next.store(before - LOW + 1, Ordering::SeqCst);
    stalls.store(true, Ordering::SeqCst);
    std::thread::scope(|scope| {
        let reserving = scope.spawn(|| set(store, "reserves", "x", 0));
        waiting.recv_timeout(PATIENCE).expect("a block is reserved");
        for key in ["a", "b", "a"] {
            set(store, key, "x", 0);
            let (_, unique) = get(store, key, NOW).expect("just set");
            assert!(unique < before);
        }
        let counted = store.count(b"n", 1, true, NOW, &mut Vec::new());
        assert_eq!(counted.expect("no failure").0, Outcome::NotFound);
        assert_eq!(reserved(), before, "the write has not come through");
        go_on.send(()).expect("the write waits for it");
        reserving.join().expect("no panic");
    });
    assert_eq!(reserved(), before + BLOCK);
}
