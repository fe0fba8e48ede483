//! A durable remove has succeeded, whatever the tidying after it meets; and nothing leaks.

use crate::media::{Step, Stopping, at, index};
use art::{Kind, Tagged};
use index::Index;
use index::conformance::settled;
use pmem::{Link, Offset, PWord};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use wollemi_roart::{Full, Roart, tracer};

type Tree = Roart<Stopping, Full>;

/// A leaf array below the root that has a leaf whose key begins with `prefix`.
fn array_of(tree: &Tree, prefix: &[u8]) -> Link {
    // SAFETY: no thread writes yet.
    let heap = unsafe { tree.heap().access() };
    let below = |link| {
        let mut children = Vec::new();
        tracer().trace(heap, link, &mut children).expect("sound");
        children
    };
    let root = heap.root(b"test").expect("no error").expect("the root").link;
    let mut stack = vec![root];
    while let Some(link) = stack.pop() {
        let children = below(link);
        let is_ours = |leaf: &Link| {
            let at = leaf.offset().expect("not null").get() + 16;
            let at = Offset::new(at).expect("not null");
            heap.bytes(at, prefix.len()).expect("inside") == prefix
        };
        if link.kind() == Kind::Array && children.iter().any(is_ours) {
            return link;
        }
        if link.is_inner() {
            stack.extend(children);
        }
    }
    panic!("there is no such array");
}

/// Makes the first link of a leaf array lead to the end of the address space.
fn damage(tree: &Tree, array: Link) {
    let first = array.offset().expect("not null").get() + 16;
    let first = Offset::new(first).expect("not null");
    // SAFETY: no thread writes yet.
    let heap = unsafe { tree.heap().access() };
    let slot = heap.at::<PWord>(first).expect("inside");
    let media = tree.heap().media();
    slot.store_unpersisted(slot.load(media) | 0xffff_ffff_fff0, media);
}

/// A thread that holds the lock of a key's leaf array, to change the key's value.
struct Holder {
    go_on: Sender<()>,
    thread: JoinHandle<()>,
}

impl Holder {
    fn start(tree: &Arc<Tree>, key: &'static [u8]) -> Holder {
        let (locked, is_locked) = channel();
        let (go_on, may_go_on) = channel::<()>();
        let tree = Arc::clone(tree);
        let thread = std::thread::spawn(move || {
            // The leaf is written, its link is not stored yet.
            at(Step::Fence, 1, move || {
                locked.send(()).expect("the other thread waits");
                may_go_on.recv().expect("the other thread sends");
            });
            tree.upsert(key, b"newer").expect("no error");
        });
        is_locked.recv().expect("the holder sends");
        Holder { go_on, thread }
    }

    fn end(self) {
        self.go_on.send(()).expect("the holder waits");
        self.thread.join().expect("no panic");
    }
}

fn remove(tree: &Tree, key: &[u8]) -> Result<bool, String> {
    tree.remove(key).map_err(|error| error.to_string())
}

/// Objects in use, once retired ones have been freed.
fn objects(tree: &Tree) -> u64 {
    settled(tree.heap()).objects
}

/// The node is left with one child, a damaged array, which therefore cannot take its place.
#[test]
fn a_remove_beside_a_damaged_neighbour_has_succeeded() {
    let tree = index();
    let put = |key: &[u8]| assert!(tree.insert(key, b"old").expect("no error"));
    (0..63).for_each(|i| put(format!("pazz{i:02}").as_bytes()));
    ["pb", "pc"].iter().for_each(|key| put(key.as_bytes()));
    assert!(tree.remove(b"pc").expect("no error"));
    let array = array_of(&tree, b"pazz");
    let before = objects(&tree);
    let holder = Holder::start(&tree, b"pazz00");
    let damaged = Arc::clone(&tree);
    // When the remove is durable, the array's lock, which has kept the remover from collapsing the node, becomes free,
    // and the array is damaged.
    at(Step::Fence, 1, move || {
        holder.end();
        damage(&damaged, array);
    });
    assert_eq!(remove(&tree, b"pb"), Ok(true));
    assert_eq!(tree.get(b"pb", &heap::pin()).expect("no error"), None);
    // The node stays: before its array is copied, the array's first leaf is read.
    assert!(objects(&tree) < before, "its leaf is free");
}

/// The node is removed with its last key, and the one above is left with a damaged array.
#[test]
fn a_remove_that_takes_its_node_along_has_succeeded() {
    let tree = index();
    let put = |key: &[u8]| assert!(tree.insert(key, b"old").expect("no error"));
    (0..64).for_each(|i| put(format!("qazz{i:02}").as_bytes()));
    (0..64).for_each(|i| put(format!("qbczz{i:02}").as_bytes()));
    ["qbd", "qbe"].iter().for_each(|key| put(key.as_bytes()));
    assert!(tree.remove(b"qbe").expect("no error"));
    // The node is left with one child, which does not take its place, since the lock on that child is taken.
    let holder = Holder::start(&tree, b"qbczz00");
    assert_eq!(remove(&tree, b"qbd"), Ok(true));
    holder.end();
    for i in 1..64 {
        assert_eq!(remove(&tree, format!("qbczz{i:02}").as_bytes()), Ok(true));
    }
    let before = objects(&tree);
    damage(&tree, array_of(&tree, b"qazz"));
    assert_eq!(remove(&tree, b"qbczz00"), Ok(true));
    assert_eq!(tree.get(b"qbczz00", &heap::pin()).expect("no error"), None);
    assert!(objects(&tree) < before);
}
