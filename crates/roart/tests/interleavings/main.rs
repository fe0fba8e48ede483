//! Interleavings that rarely occur by chance, forced by a media that stops a thread at a step.

mod committed;
mod media;
mod stalled;

use index::Index;
use media::{Step, Stopping, at, index};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use wollemi_roart::{Full, Roart};

/// The keys below one slot of a node: a full leaf array.
fn in_array(i: u32) -> String {
    format!("pazz{i:02}")
}

/// A writer that found its leaf array through a node which is just being replaced by a larger one must not write into
/// the array if that has moved down below the larger node meanwhile.
#[test]
fn an_array_that_moved_down_below_a_replaced_node_is_noticed() {
    let index = index();
    for i in 0..62 {
        assert!(index.insert(in_array(i).as_bytes(), b"old").unwrap());
    }
    for key in ["pb", "pc", "pd"] {
        assert!(index.insert(key.as_bytes(), b"old").unwrap());
    }
    for i in 62..64 {
        assert!(index.insert(in_array(i).as_bytes(), b"old").unwrap());
    }

    let (grown, has_grown) = channel();
    let (go_on, may_go_on) = channel::<()>();
    let (sender, receiver) = channel();
    let others = Arc::clone(&index);
    at(Step::Lock, 1, move || {
        // This thread is about to lock the array, by way of the full node above it.
        let growing = Arc::clone(&others);
        let grower = std::thread::spawn(move || {
            // The second fence of the insert: the larger node is published, the insert has not ended.
            at(Step::Fence, 2, move || {
                grown.send(()).expect("the other thread waits");
                may_go_on.recv().expect("the other thread sends");
            });
            assert!(growing.insert(b"pe", b"new").unwrap());
        });
        has_grown.recv().expect("the grower sends");
        // The array moves down, and has room again.
        assert!(others.insert(b"pax", b"first").unwrap());
        assert!(others.remove(in_array(0).as_bytes()).unwrap());
        sender.send(grower).expect("the other thread waits");
    });
    let inserted = index.insert(b"pax", b"second").unwrap();
    go_on.send(()).expect("the grower waits");
    receiver.recv().expect("the hook sends").join().expect("no panic");

    assert!(!inserted, "the key was there already");
    let faults = index.check().unwrap().found;
    assert!(faults.is_empty(), "{faults:#?}");
    let guard = heap::pin();
    assert_eq!(index.get(b"pax", &guard).unwrap().as_deref(), Some(&b"first"[..]));
}

/// A writer, removing `key`, that has stored the removal but does not know yet whether it is durable.
struct Removing {
    go_on: Sender<()>,
    thread: JoinHandle<()>,
}

impl Removing {
    fn start(index: &Arc<Roart<Stopping, Full>>, key: &'static [u8]) -> Removing {
        let index = Arc::clone(index);
        let (stored, has_stored) = channel();
        let (go_on, may_go_on) = channel::<()>();
        let thread = std::thread::spawn(move || {
            at(Step::Fence, 1, move || {
                stored.send(()).expect("the other thread waits");
                may_go_on.recv().expect("the other thread sends");
            });
            assert!(index.remove(key).unwrap());
        });
        has_stored.recv().expect("the writer sends");
        Removing { go_on, thread }
    }

    fn end(self) {
        self.go_on.send(()).expect("the writer waits");
        self.thread.join().expect("no panic");
    }
}

/// A reader that helped one publication must not clear the mark of a later one that stored the same word: data that
/// others then read might not be durable.
#[test]
fn a_late_helper_leaves_later_marks_alone() {
    // Without a neighbour the removal empties the slot; with one it holds the neighbour's leaf again.
    for with_neighbour in [false, true] {
        let index = index();
        if with_neighbour {
            assert!(index.insert(b"ka", b"old").unwrap());
        }
        assert!(index.insert(b"kb", b"first").unwrap());

        let first = Removing::start(&index, b"kb");
        let others = Arc::clone(&index);
        let (sender, receiver) = channel();
        at(Step::Fence, 1, move || {
            // This reader has persisted the first removal, but not the second.
            first.end();
            assert!(others.insert(b"kb", b"second").unwrap());
            sender
                .send(Removing::start(&others, b"kb"))
                .expect("the other thread waits");
        });
        let guard = heap::pin();
        assert_eq!(index.get(b"kb", &guard).unwrap(), None);
        let second = receiver.recv().expect("the hook sends");

        let helped = Rc::new(Cell::new(false));
        let help = Rc::clone(&helped);
        at(Step::Fence, 1, move || help.set(true));
        assert_eq!(index.get(b"kb", &guard).unwrap(), None);
        assert!(
            helped.get(),
            "absent, but that is not persisted; with a neighbour: {with_neighbour}"
        );
        second.end();
    }
}
