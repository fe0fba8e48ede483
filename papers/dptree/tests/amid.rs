//! A scan, at each of whose steps another thread changes the tree.

use heap::{Guard, Heap};
use index::{Direction, Index};
use pmem::watched::{Step, Watch, What};
use pmem::{Pool, PoolOptions, Watched};
use std::cell::RefCell;
use std::ops::{Bound, ControlFlow};
use wollemi_dptree::{DpTree, Options};

/// What happens at a load of this thread, and how many come before it.
type Amid = (usize, Box<dyn FnOnce()>);

thread_local! {
    static AMID: RefCell<Option<Amid>> = const { RefCell::new(None) };
}

/// Does what is to happen during loads.
#[derive(Debug)]
struct Loads;

impl Watch for Loads {
    fn before(&self, step: &Step) {
        if !matches!(step.what, What::Load) {
            return;
        }
        let then = AMID.with_borrow_mut(|amid| match amid {
            Some((0, _)) => amid.take().map(|(_, then)| then),
            Some((left, _)) => {
                *left -= 1;
                None
            }
            None => None,
        });
        if let Some(then) = then {
            then();
        }
    }
}

type Tree = DpTree<Watched<Loads>>;

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
    let pool = Pool::anonymous(&options, Watched::machine(Loads)).expect("memory");
    let heap = Heap::new(pool).expect("a heap");
    let options = Options {
        merge_floor: 1000,
        leaf_capacity: 64,
        workers: 0,
        fill_rate: 1.0,
        ..Options::default()
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

/// A key is removed in place, and a merge gives its slot to another key, before any load of a scan: the scan visits
/// each key that is there throughout, once and in order.
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
                    // One more than there are free slots beside that of the removed key.
                    for i in 0..25 {
                        others.insert(&key(1000 + i), &[2; 8]).expect("room");
                    }
                    others.settle().expect("room");
                };
                std::thread::spawn(change).join().expect("no panic");
            };
            AMID.set(Some((loads, Box::new(then))));
            let visited = scan(&tree, direction, &heap::pin());
            let all_seen = AMID.take().is_some();
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
