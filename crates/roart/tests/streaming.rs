//! A store past the cache is ordered with no other store, before it or after it, until the next fence (or locked
//! instruction). So with `roart-streaming` one of these lies between a publication and each plain store whose order
//! with it matters to other threads: of the obsolete flag, of a key byte's hint, of a free lock.
//!
//! On a pool of level `process` no store bypasses the cache, so the reorderings possible at level `power` do not
//! occur here. The test checks the order of the steps instead.

use heap::Heap;
use index::{Index, OnHeap};
use pmem::watched::{ObservedStep, Observer, StepKind};
use pmem::{Pool, PoolOptions, Watched};
use std::sync::{Arc, Mutex};
use wollemi_roart::{Roart, Streaming};

/// Stores of the one thread since its last fence, and errors found.
#[derive(Default)]
struct Seen {
    plain: Option<String>,
    past_cache: Option<String>,
    unordered: Vec<(String, String)>,
}

#[derive(Clone, Default)]
struct Order(Arc<Mutex<Seen>>);

impl Observer for Order {
    fn before(&self, step: &ObservedStep) {
        let mut seen = self.0.lock().expect("no panic");
        let site = || format!("{}:{}", step.site.file(), step.site.line());
        match step.what {
            StepKind::StoreNt => {
                if let Some(plain) = &seen.plain {
                    let pair = (plain.clone(), site());
                    seen.unordered.push(pair);
                }
                seen.past_cache = Some(site());
            }
            StepKind::Store | StepKind::StoreUnpersisted | StepKind::StoreVolatile => {
                if let Some(past) = &seen.past_cache {
                    let pair = (past.clone(), site());
                    seen.unordered.push(pair);
                }
                seen.plain = Some(site());
            }
            StepKind::Fence(_)
            | StepKind::Exchange
            | StepKind::ExchangeUnpersisted
            | StepKind::ExchangeVolatile => {
                (seen.plain, seen.past_cache) = (None, None);
            }
            _ => {}
        }
    }
}

/// While nodes and arrays of all kinds grow and shrink, a fence lies between each publication and all plain stores
/// before and after it.
#[test]
fn publications_are_fenced_from_plain_stores() {
    let order = Order::default();
    let pool = Pool::anonymous(&PoolOptions::default(), Watched::machine(order.clone())).expect("a pool");
    let heap = Heap::new(pool).expect("a heap");
    let index = <Roart<Watched<Order>, Streaming> as OnHeap>::create(&heap, b"test").expect("an index");
    // A node of three children that grows to 200, leaf arrays, and inline ones.
    let arrays = (0..70).map(|i| [&[b'a', i % 3][..], b"a long key", &[i]].concat());
    let leaves = (3..200).map(|i| [&[b'a', i][..], b"a long key"].concat());
    let keys: Vec<Vec<u8>> = arrays
        .chain(leaves)
        .chain((0..200).map(|i| vec![b'b', i]))
        .chain((0..200).map(|i| [&b"cccccccc"[..], &[i]].concat()))
        .collect();
    for key in &keys {
        assert!(index.insert(key, b"some value").expect("no error"));
        index.upsert(key, b"8 bytes.").expect("no error");
    }
    for key in &keys {
        assert!(index.remove(key).expect("no error"));
    }
    let mut seen = order.0.lock().expect("no panic");
    seen.unordered.sort();
    seen.unordered.dedup();
    assert_eq!(seen.unordered, []);
}
