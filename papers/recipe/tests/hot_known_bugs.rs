//! Bugs of published implementations of HOT on persistent memory.
//!
//! | The bug | The property |
//! |---|---|
//! | a node is written back, but not fenced before it is published | `objects_are_durable_before_links` |
//! | the swap of the root, or of any link, is not made durable | `links_are_durable_at_return` |
//! | a dirty bit that is one of the bits of the node's type | `marks_do_not_change_what_a_link_leads_to` |
//! | prefixes as keys, zero bytes, the empty key | `chains_of_prefixes`, `extreme_bytes` (conformance) |
//! | only the branching bits are compared at the leaf | `keys_that_branch_alike_are_told_apart` |
//! | a thread waits for a lock that it holds | `a_parent_that_moved_up_is_locked_once` |
//! | a parent is not checked again under its lock | `a_node_put_above_meanwhile_stays` |
//!
//! `lab/torture` looks for readers that act on a link that is not durable.

use index::{Action, Edit, Index, OnHeap};
use pmem::watched::{ObservedStep, Observer, StepKind};
use pmem::{LINE, Pool, PoolOptions, Watched};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use wollemi_recipe::Hot;

/// The lines that are not durable yet, with their progress.
#[derive(Default)]
struct Lines {
    /// Lines of drafts, and whether they are written back.
    drafted: BTreeMap<usize, bool>,
    /// Lines of words stored in place.
    stored: BTreeMap<usize, bool>,
    /// Stores made while a draft was not durable.
    early: Vec<String>,
}

#[derive(Clone, Default)]
struct Order(Arc<Mutex<Lines>>);

impl Observer for Order {
    fn before(&self, step: &ObservedStep) {
        let mut lines = self.0.lock().expect("no panic");
        // The heap takes pages while drafts are written.
        let is_heap = step.site.file().contains("heap/src");
        if step.what == StepKind::Store && !is_heap && !lines.drafted.is_empty() {
            lines.early.push(step.site.to_string());
        }
    }

    fn after(&self, step: &ObservedStep) {
        let mut lines = self.0.lock().expect("no panic");
        let first = step.start.addr() / LINE;
        match step.what {
            StepKind::Drafted => {
                let last = (step.start.addr() + step.len - 1) / LINE;
                lines.drafted.extend((first..=last).map(|line| (line, false)));
            }
            StepKind::Store => _ = lines.stored.insert(first, false),
            StepKind::WriteBack(_) | StepKind::WriteBackJoined(_) => {
                let Lines { drafted, stored, .. } = &mut *lines;
                for state in [drafted.get_mut(&first), stored.get_mut(&first)]
                    .into_iter()
                    .flatten()
                {
                    *state = true;
                }
            }
            StepKind::Fence(_) => {
                lines.drafted.retain(|_, written_back| !*written_back);
                lines.stored.retain(|_, written_back| !*written_back);
            }
            _ => {}
        }
    }
}

/// Makes writes of every kind, calling `look` after each.
fn write_everything(look: impl Fn(&str, &Order)) {
    let order = Order::default();
    let media = Watched::machine(order.clone());
    let heap =
        heap::Heap::new(Pool::anonymous(&PoolOptions::default(), media).expect("a pool")).expect("a heap");
    let index = Hot::create(&heap, b"hot").expect("room");
    let mut reached = BTreeSet::new();
    let key = |i: u64| match i % 4 {
        0 => i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec(),
        1 => vec![b'a'; i as usize / 4 % 50],
        2 => vec![7, (i * 37) as u8],
        _ => format!("/a/long/path/to/{}", i * 7).into_bytes(),
    };
    for turn in 0..3 {
        for i in 0..2000 {
            index
                .upsert(&key(i), if i % 3 == turn { b"8 bytes!" } else { b"another" })
                .expect("room");
            look("upsert", &order);
        }
        for i in (0..2000).filter(|i| i % 3 != turn || turn == 2) {
            reached.insert(index.remove(&key(i)).expect("no error"));
            look("remove", &order);
        }
    }
    assert_eq!(reached.len(), 2);
}

/// Before a link is stored anywhere, all lines of its object, and of new objects below it, were written back and
/// fenced.
#[test]
fn objects_are_durable_before_links() {
    write_everything(|what, order| {
        let lines = order.0.lock().expect("no panic");
        assert!(
            lines.early.is_empty(),
            "{what}: stored before a draft was durable: {:?}",
            lines.early
        );
    });
}

/// When a write returns, the line of each word that it has stored in place was written back and fenced.
#[test]
fn links_are_durable_at_return() {
    write_everything(|what, order| {
        let lines = order.0.lock().expect("no panic");
        assert!(
            lines.stored.is_empty(),
            "{what}: {} lines are not durable",
            lines.stored.len()
        );
        assert!(
            lines.drafted.is_empty(),
            "{what}: {} lines of drafts are not durable",
            lines.drafted.len()
        );
    });
}

/// Keys whose branching bits are all equal differ in bytes that no node tests.
#[test]
fn keys_that_branch_alike_are_told_apart() {
    let pool = Pool::anonymous(&PoolOptions::default(), pmem::Hardware::detect()).expect("a pool");
    let heap = heap::Heap::new(pool).expect("a heap");
    let index = Hot::create(&heap, b"hot").expect("room");
    for key in [&b"aaaa0"[..], b"aaaa1"] {
        assert!(index.insert(key, b"there").expect("room"));
    }
    let guard = heap::pin();
    for key in [
        &b"baaa0"[..],
        b"aaba1",
        b"aaaa0\0",
        b"aaaa1aaaaaaaa",
        b"\xff\xff\xff\xff1",
    ] {
        assert_eq!(index.get(key, &guard).expect("no error"), None);
        assert!(!index.remove(key).expect("no error"));
        assert!(!index.update(key, b"").expect("no error"));
        let from = index.range(Bound::Included(key), Bound::Included(key), &guard);
        assert_eq!(from.count(), 0);
    }
}

/// Removes its key, after another thread has called the function, while this one holds the lock of the node.
struct RemoveAfter<F>(F);

impl<F: Fn() + Sync> Edit for RemoveAfter<F> {
    fn decide(&mut self, _current: Option<&[u8]>) -> Action {
        std::thread::scope(|scope| scope.spawn(&self.0).join().expect("no panic"));
        Action::Remove
    }

    fn value(&self) -> &[u8] {
        &[]
    }
}

/// A node hangs from a node of two entries. While a writer holds the lower node's lock, the other of the two entries is
/// removed, so that the node moves up: it hangs from the node above the former parent. The writer then locks that one,
/// once.
#[test]
fn a_parent_that_moved_up_is_locked_once() {
    let pool = Pool::anonymous(&PoolOptions::default(), pmem::Hardware::detect()).expect("a pool");
    let heap = heap::Heap::new(pool).expect("a heap");
    let index = Arc::new(Hot::create(&heap, b"hot").expect("room"));
    let mut keys: Vec<Vec<u8>> = (0..2000_u16)
        .map(|number| [&b"a"[..], &number.to_be_bytes()].concat())
        .collect();
    // They fill a node below the first one...
    keys.extend((0x80..0xa0).map(|last| vec![b'b', last]));
    // ...and this one needs another node above that.
    keys.push(vec![b'b', 0]);
    for key in &keys {
        assert!(index.insert(key, b"there").expect("room"));
    }
    let mut gone: Vec<Vec<u8>> = (0x80..0x90).map(|last| vec![b'b', last]).collect();
    for key in &gone {
        assert!(index.remove(key).expect("room"));
    }
    let (ended, has_ended) = mpsc::channel();
    let shared = Arc::clone(&index);
    std::thread::spawn(move || {
        let other = || assert!(shared.remove(&[b'b', 0]).expect("no error"));
        let done = shared.write(&[b'b', 0x90], &mut RemoveAfter(other));
        ended.send(done.expect("no error"))
    });
    let done = has_ended.recv_timeout(Duration::from_secs(120));
    assert_eq!(done, Ok(Action::Remove), "the writer waits for itself");
    gone.extend([vec![b'b', 0x90], vec![b'b', 0]]);
    let guard = heap::pin();
    for key in keys {
        let found = index.get(&key, &guard).expect("no error");
        assert_eq!(found.is_some(), !gone.contains(&key), "{}", key.escape_ascii());
    }
    drop(guard);
    assert_eq!(index.check().expect("sound").found, Vec::<String>::new());
}

/// A node is put between a full one and the root, under only the root's lock, while a writer holds the full one's
/// lock and has passed the root. The writer's replacement of the full node hangs from the new node.
#[test]
fn a_node_put_above_meanwhile_stays() {
    let pool = Pool::anonymous(&PoolOptions::default(), pmem::Hardware::detect()).expect("a pool");
    let heap = heap::Heap::new(pool).expect("a heap");
    let index = Hot::create(&heap, b"hot").expect("room");
    let keys: Vec<[u8; 2]> = (0x80..0xa0).map(|last| [b'b', last]).collect();
    for key in &keys {
        assert!(index.insert(key, b"there").expect("room"));
    }
    let other = || assert!(index.insert(b"a", b"above").expect("room"));
    let done = index.write(&keys[0], &mut RemoveAfter(other));
    assert_eq!(done.expect("no error"), Action::Remove);
    let guard = heap::pin();
    let found = index.get(b"a", &guard).expect("no error");
    assert_eq!(found.as_deref(), Some(&b"above"[..]));
    for key in &keys {
        let found = index.get(key, &guard).expect("no error");
        assert_eq!(found.is_some(), *key != keys[0], "{}", key.escape_ascii());
    }
    drop(guard);
    assert_eq!(index.check().expect("sound").found, Vec::<String>::new());
}
