//! Scans, point reads and changes, with another thread's change or scan at each of their steps.

use heap::{Guard, Heap};
use index::{Direction, Index};
use pmem::watched::{ObservedStep, Observer, StepKind};
use pmem::{Pool, PoolOptions, Watched};
use std::cell::{Cell, RefCell};
use std::ops::{Bound, ControlFlow};
use std::rc::Rc;
use std::sync::mpsc::channel;
use wollemi_dptree::{DpTree, DpTreeOptions};

/// A hook to call before a load of this thread, or after a store or a fence, and the number of such steps to skip.
type Hook = (Kind, usize, Box<dyn FnOnce()>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Load,
    Store,
    Fence,
}

thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
    /// Number of this thread's fences.
    static FENCES: Cell<usize> = const { Cell::new(0) };
}

fn happens(kind: Kind) {
    let then = HOOK.with_borrow_mut(|hook| match hook {
        Some((of, left, _)) if *of == kind && *left > 0 => {
            *left -= 1;
            None
        }
        Some((of, ..)) if *of == kind => hook.take().map(|(.., then)| then),
        _ => None,
    });
    if let Some(then) = then {
        then();
    }
}

/// Calls the hook at its step.
#[derive(Debug)]
struct HookWatch;

impl Observer for HookWatch {
    fn before(&self, step: &ObservedStep) {
        if let StepKind::Load = step.what {
            happens(Kind::Load);
        }
    }

    fn after(&self, step: &ObservedStep) {
        match step.what {
            StepKind::Fence(_) => {
                FENCES.set(FENCES.get() + 1);
                happens(Kind::Fence);
            }
            _ if step.stores() => happens(Kind::Store),
            _ => {}
        }
    }
}

type Tree = DpTree<Watched<HookWatch>>;

fn key(i: u64) -> [u8; 8] {
    i.to_be_bytes()
}

/// A tree of one leaf, with these keys in it.
fn tree(keys: u64) -> Tree {
    let options = PoolOptions {
        max_size: 1 << 30,
        page_size: 64 << 10,
        ..PoolOptions::default()
    };
    let pool = Pool::anonymous(&options, Watched::machine(HookWatch)).expect("memory");
    let heap = Heap::new(pool).expect("a heap");
    let options = DpTreeOptions {
        merge_floor: 1000,
        leaf_capacity: 64,
        workers: 0,
        fill_rate: 1.0,
        ..DpTreeOptions::default()
    };
    let tree = DpTree::create_with(&heap, b"test", options).expect("room");
    for i in 0..keys {
        tree.insert(&key(i), &[1; 8]).expect("room");
    }
    tree.settle().expect("room");
    tree
}

fn scan(tree: &Tree, direction: Direction, guard: &Guard) -> Vec<u64> {
    let (mut keys, all) = (Vec::new(), Bound::Unbounded);
    let visit = &mut |key: &[u8], _: index::Value<'_>| {
        keys.push(u64::from_be_bytes(key.try_into().expect("eight bytes")));
        ControlFlow::Continue(())
    };
    tree.scan(all, all, direction, guard, visit).expect("sound");
    keys
}

/// A key is removed in place, and a merge gives its slot to another key, before one load of a scan, whichever it is:
/// the scan visits each key that is present throughout, once and in order.
#[test]
fn a_slot_serves_again_amid_a_scan() {
    const KEYS: u64 = 40;
    for (direction, removed) in [
        (Direction::Forward, 31),
        (Direction::Forward, 0),
        (Direction::Reverse, 8),
    ] {
        let mut loads = 0;
        loop {
            let tree = tree(KEYS);
            let others = tree.clone();
            let then = move || {
                let change = move || {
                    assert!(others.remove(&key(removed)).expect("room"));
                    // One more than there are free slots besides that of the removed key.
                    for i in 0..25 {
                        others.insert(&key(1000 + i), &[2; 8]).expect("room");
                    }
                    others.settle().expect("room");
                };
                std::thread::spawn(change).join().expect("no panic");
            };
            HOOK.set(Some((Kind::Load, loads, Box::new(then))));
            let visited = scan(&tree, direction, &heap::pin());
            let all_seen = HOOK.take().is_some();
            let mut stayed: Vec<_> = visited
                .iter()
                .copied()
                .filter(|key| *key < KEYS && *key != removed)
                .collect();
            if direction == Direction::Reverse {
                stayed.reverse();
            }
            let expected: Vec<_> = (0..KEYS).filter(|key| *key != removed).collect();
            assert_eq!(
                stayed, expected,
                "{direction:?}, {removed} removed at load {loads}: {visited:?}"
            );
            if all_seen {
                break;
            }
            loads += 1;
        }
        assert!(loads > 100, "{loads}");
    }
}

/// A scan that begins below everything left in a leaf reads nothing of it: even so, a removal that it shows is
/// durable by then.
#[test]
fn what_a_scan_shows_as_removed_is_durable() {
    let mut stores = 0;
    loop {
        let tree = tree(40);
        let others = tree.clone();
        let (sender, receiver) = channel();
        let then = move || {
            let before = FENCES.get();
            let look = move || {
                FENCES.set(0);
                let mut found = false;
                let visit = &mut |_: &[u8], _: index::Value<'_>| {
                    found = true;
                    ControlFlow::Continue(())
                };
                let (guard, upper) = (heap::pin(), key(0));
                let upper = Bound::Included(&upper[..]);
                others
                    .scan(Bound::Unbounded, upper, Direction::Reverse, &guard, visit)
                    .expect("sound");
                found || FENCES.get() > 0
            };
            let is_right = std::thread::spawn(look).join().expect("no panic");
            sender.send((before, is_right)).expect("the test waits");
        };
        FENCES.set(0);
        HOOK.set(Some((Kind::Store, stores, Box::new(then))));
        assert!(tree.remove(&key(0)).expect("room"));
        if HOOK.take().is_some() {
            break;
        }
        let (fences, is_right) = receiver.recv().expect("the hook has run");
        assert!(is_right || fences == FENCES.get(), "after store {stores}");
        stores += 1;
    }
    assert!(stores > 0);
}

/// A reader stays in a base tree while one merge gives its key another slot, and the next one gives the old slot to
/// another key: it finds a value that its key had, at whichever load that happens.
#[test]
fn a_reader_that_two_merges_pass_finds_its_key() {
    const KEYS: u64 = 40;
    let (before, after) = ([1; 8], *b"nine byte");
    let mut loads = 0;
    loop {
        let tree = tree(KEYS);
        let others = tree.clone();
        let merging = Rc::new(Cell::new(None));
        let merges = merging.clone();
        let then = move || {
            let changing = others.clone();
            let change = move || {
                changing.upsert(&key(7), &after).expect("room");
                changing.settle().expect("room");
                // As many as there are free slots, including the key's.
                for i in 0..64 - KEYS {
                    changing.insert(&key(1000 + i), &[2; 8]).expect("room");
                }
            };
            std::thread::spawn(change).join().expect("no panic");
            let ((filled, is_filled), (go, goes)) = (channel(), channel::<()>());
            let merge = move || {
                let wait = move || {
                    filled.send(()).expect("the test waits");
                    goes.recv().expect("the test releases the merge");
                };
                HOOK.set(Some((Kind::Fence, 0, Box::new(wait))));
                others.settle().expect("room");
            };
            let thread = std::thread::spawn(merge);
            is_filled.recv().expect("the merge has put its pairs");
            merges.set(Some((thread, go)));
        };
        HOOK.set(Some((Kind::Load, loads, Box::new(then))));
        let found = tree
            .get(&key(7), &heap::pin())
            .expect("sound")
            .map(|value| value.to_vec());
        let all_seen = HOOK.take().is_some();
        if let Some((thread, go)) = merging.take() {
            go.send(()).expect("the merge waits");
            thread.join().expect("no panic");
        }
        assert!(
            found
                .as_deref()
                .is_some_and(|found| found == before || found == after),
            "at load {loads}: {found:?}"
        );
        if all_seen {
            break;
        }
        loads += 1;
    }
    assert!(loads > 5, "{loads}");
}
