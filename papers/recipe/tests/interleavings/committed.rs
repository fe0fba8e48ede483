//! A durable remove of P-ART has succeeded, whatever the tidying after it meets; and nothing leaks.

use crate::media::{Step, Stopping, Stops, at};
use art::Tagged;
use heap::Heap;
use index::conformance::settled;
use index::{Index, OnHeap};
use pmem::{Link, Offset, PWord, Pool, PoolOptions};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use wollemi_recipe::Part;

type Tree = Part<Stopping>;

/// A tree with these keys.
fn tree(keys: &[&str]) -> Arc<Tree> {
    let pool = Pool::anonymous(&PoolOptions::default(), Stopping::machine(Stops)).expect("memory");
    let heap = Heap::new(pool).expect("a heap");
    let tree = Tree::create(&heap, b"test").expect("room");
    for key in keys {
        assert!(tree.insert(key.as_bytes(), b"old").expect("no error"));
    }
    Arc::new(tree)
}

/// The links in the object at `link`, and its length.
fn below(tree: &Tree, link: Link) -> (Vec<Link>, u64) {
    // SAFETY: no thread writes meanwhile.
    let heap = unsafe { tree.heap().access() };
    let mut children = Vec::new();
    let len = Tree::tracer().trace(heap, link, &mut children).expect("sound");
    (children, len)
}

/// The node to which these bytes lead, one byte per node.
fn node_at(tree: &Tree, path: &[u8]) -> Link {
    let root = tree
        .heap()
        .root(b"test")
        .expect("no error")
        .expect("the root")
        .link;
    path.iter().fold(root, |node, byte| {
        let (children, _) = below(tree, node);
        let mut children = children.into_iter();
        let child = children.find(|child| child.is_inner() && child.byte() == *byte);
        child.expect("an inner node")
    })
}

/// Makes all links of a node lead to the end of the address space.
fn damage(tree: &Tree, node: Link) {
    let (children, len) = below(tree, node);
    // SAFETY: no thread writes meanwhile.
    let heap = unsafe { tree.heap().access() };
    let media = tree.heap().media();
    let start = node.offset().expect("not null").get();
    for line in (start..start + len).step_by(16) {
        let words: &[PWord] = heap
            .slice(Offset::new(line).expect("not null"), 2)
            .expect("inside");
        for word in words {
            if children.iter().any(|child| child.bits() == word.load(media)) {
                word.store_unpersisted(word.load(media) | Offset::MASK, media);
            }
        }
    }
}

/// A thread that holds the lock of the node of a key, to change the key's value.
struct Holder {
    go_on: Sender<()>,
    thread: JoinHandle<()>,
}

impl Holder {
    fn start(tree: &Arc<Tree>, key: &'static str) -> Holder {
        let (locked, is_locked) = channel();
        let (go_on, may_go_on) = channel::<()>();
        let tree = Arc::clone(tree);
        let thread = std::thread::spawn(move || {
            // The leaf is written, its link is not stored yet.
            at(Step::Fence, 1, move || {
                locked.send(()).expect("the other thread waits");
                may_go_on.recv().expect("the other thread sends");
            });
            tree.upsert(key.as_bytes(), b"newer").expect("no error");
        });
        is_locked.recv().expect("the holder sends");
        Holder { go_on, thread }
    }

    fn end(self) {
        self.go_on.send(()).expect("the holder waits");
        self.thread.join().expect("no panic");
    }
}

fn remove(tree: &Tree, key: &str) -> Result<bool, String> {
    tree.remove(key.as_bytes()).map_err(|error| error.to_string())
}

fn is_there(tree: &Tree, key: &str) -> bool {
    tree.get(key.as_bytes(), &heap::pin())
        .expect("no error")
        .is_some()
}

/// Objects in use, once retired ones have been freed.
fn objects(tree: &Tree) -> u64 {
    settled(tree.heap()).objects
}

/// The node is left with one child, a damaged node, which therefore cannot take its place.
#[test]
fn a_remove_beside_a_damaged_neighbour_has_succeeded() {
    let tree = tree(&["pb", "pca", "pcb"]);
    let neighbour = node_at(&tree, b"pc");
    let before = objects(&tree);
    let holder = Holder::start(&tree, "pca");
    let damaged = Arc::clone(&tree);
    // The remove is durable; the lock that has kept it from more is free, and the neighbour damaged.
    at(Step::Fence, 1, move || {
        holder.end();
        damage(&damaged, neighbour);
    });
    assert_eq!(remove(&tree, "pb"), Ok(true));
    assert!(!is_there(&tree, "pb"));
    assert_eq!(objects(&tree), before - 1, "the leaf is free");
}

/// The node is removed with its last key, and the one above is left with a damaged child.
#[test]
fn a_remove_that_takes_its_node_along_has_succeeded() {
    let tree = tree(&["qaa", "qab", "qbca", "qbcb", "qbd"]);
    // The node of `qbd` stays, with one child, since that child's lock is taken.
    let holder = Holder::start(&tree, "qbca");
    assert_eq!(remove(&tree, "qbd"), Ok(true));
    holder.end();
    assert_eq!(remove(&tree, "qbcb"), Ok(true));
    let before = objects(&tree);
    damage(&tree, node_at(&tree, b"qa"));
    assert_eq!(remove(&tree, "qbca"), Ok(true));
    assert!(!is_there(&tree, "qbca"));
    assert_eq!(objects(&tree), before - 2, "the leaf and its node are free");
}
