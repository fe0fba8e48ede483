//! What published implementations of HOT on persistent memory got wrong.
//!
//! | The bug | The property |
//! |---|---|
//! | a node written back and not fenced before it is published | `objects_are_durable_before_links` |
//! | the swap of the root, or of any link, not made durable | `links_are_durable_at_return` |
//! | a dirty bit that is one of the bits of the node's type | `marks_do_not_change_what_a_link_leads_to` |
//! | keys that are prefixes of each other, zero bytes, the empty key | `chains_of_prefixes`, `zeros_and_ones` (conformance) |
//! | only the branching bits compared at the leaf | `keys_that_branch_alike_are_told_apart` |
//!
//! That a reader acts on a link that is not durable is what `lab/torture` looks for.

use index::{Index, OnHeap};
use pmem::watched::{Step, Watch, What};
use pmem::{LINE, Pool, PoolOptions, Watched};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex};
use wollemi_recipe::Hot;

/// How far lines have come that are not durable.
#[derive(Default)]
struct Lines {
    /// Of drafts, and whether they are written back.
    drafted: BTreeMap<usize, bool>,
    /// Of words stored in place.
    stored: BTreeMap<usize, bool>,
    /// Stores made while a draft was not durable.
    early: Vec<String>,
}

#[derive(Clone, Default)]
struct Order(Arc<Mutex<Lines>>);

impl Watch for Order {
    fn before(&self, step: &Step) {
        let mut lines = self.0.lock().expect("no panic");
        // The heap takes pages while drafts are written.
        let is_heap = step.site.file().contains("heap/src");
        if step.what == What::Store && !is_heap && !lines.drafted.is_empty() {
            lines.early.push(step.site.to_string());
        }
    }

    fn after(&self, step: &Step) {
        let mut lines = self.0.lock().expect("no panic");
        let first = step.start.addr() / LINE;
        match step.what {
            What::Drafted => {
                let last = (step.start.addr() + step.len - 1) / LINE;
                lines.drafted.extend((first..=last).map(|line| (line, false)));
            }
            What::Store => _ = lines.stored.insert(first, false),
            What::WriteBack(_) | What::WriteBackJoined(_) => {
                let Lines { drafted, stored, .. } = &mut *lines;
                for state in [drafted.get_mut(&first), stored.get_mut(&first)]
                    .into_iter()
                    .flatten()
                {
                    *state = true;
                }
            }
            What::Fence(_) => {
                lines.drafted.retain(|_, written_back| !*written_back);
                lines.stored.retain(|_, written_back| !*written_back);
            }
            _ => {}
        }
    }
}

/// Writes of every kind, after each of which `look` is called.
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

/// Whatever a link is stored to, all lines of it, and of what is new below it, were written back and fenced before.
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

/// Keys that have all branching bits alike differ in bytes that no node looks at.
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
