//! What published P-BwTrees got wrong, each as a property.

mod amid;

use amid::{decided, filled, images, key, open};
use index::conformance::steps::Stepping;
use index::conformance::{Entries, Store, settled};
use index::{Index, OnHeap};
use pmem::{Hardware, Media};
use wollemi_recipe::BwTree;

/// Nodes of few entries, so that few keys split inner nodes.
type Small<M> = BwTree<M, 8>;

/// Objects in use by an index of this kind without keys: the root, the cell of its leaf, and the base.
const EMPTY: u64 = 3;

/// Removes all keys; what is in use then is what an empty index has.
fn empty<M: Media>(store: &Store<Small<M>>, model: &mut Entries) {
    for key in model.keys().cloned().collect::<Vec<_>>() {
        store.remove(model, &key);
    }
    store.compare(model);
}

/// A half split that a later writer completes keeps what was acknowledged in both halves since: wherever the crash
/// came, values change on both sides first, then keys come on both sides, and after another crash all of it is there.
/// So with a new root, and where inner nodes split.
#[test]
fn a_split_that_is_completed_later_keeps_what_both_halves_were_told() {
    let mut crashes = 0;
    for count in [8, 62, 63, 64] {
        let (store, model) = filled::<Small<Stepping>>((0..count).map(|number| 4 * number));
        for between in (0..8).map(|number| key(4 * (count - 8) + 4 * number + 1)) {
            let model = decided(&store, &model, &between, b"between!");
            let images = images(&store, |index| {
                assert!(index.insert(&between, b"between!").expect("room"))
            });
            for image in images {
                crashes += 1;
                let store = open::<Small<Hardware>>(image);
                let mut model = model.clone();
                for number in 0..8 {
                    let key = key(4 * (count - 8) + 4 * number + 1);
                    model = decided(&store, &model, &key, b"between!");
                }
                for number in (0..count).rev() {
                    store.put(&mut model, &key(4 * number), b"changed.");
                }
                let store = store.crashed();
                store.compare(&model);
                for number in (0..count).rev() {
                    store.put(&mut model, &key(4 * number + 2), b"new key!");
                }
                store.crashed().compare(&model);
            }
        }
    }
    assert!(crashes > 100, "{crashes} crashes");
}

/// Crashes at any step of a removal of a node, on any level: no key of a sibling is lost, keys come where the node was,
/// and when all are gone nothing is left of it.
#[test]
fn a_crash_in_a_removal_loses_no_sibling() {
    let mut crashes = 0;
    let (store, mut model) = filled::<Small<Stepping>>(0..150);
    // Leaves that are the first of their parent, among others, and the last ones.
    for number in (40..150).chain(0..40) {
        if model.len() % 3 != 0 {
            store.remove(&mut model, &key(number));
            continue;
        }
        let images = images(&store, |index| {
            assert!(index.remove(&key(number)).expect("no error"))
        });
        let left = decided(&store, &model, &key(number), b"8 bytes!");
        for image in images.into_iter().step_by(2) {
            crashes += 1;
            let store = open::<Small<Hardware>>(image);
            let mut model = decided(&store, &model, &key(number), b"8 bytes!");
            store.compare(&model);
            for other in number.saturating_sub(9)..number + 9 {
                store.put(&mut model, &key(other), b"again...");
            }
            store.compare(&model);
            let store = store.crashed();
            empty(&store, &mut model);
        }
        model = left;
    }
    assert!(crashes > 100, "{crashes} crashes");
    assert_eq!(settled(store.index().heap()).objects, EMPTY);
}

/// Nothing is inserted into a node that is being removed, and a compare-and-swap that fails gives back what it was to
/// publish, once: threads empty leaves again and again, others put keys where they were, and each finds its own.
#[test]
fn threads_that_split_and_merge_the_same_nodes_lose_and_leak_nothing() {
    let store = Store::<Small<Hardware>>::create();
    let index = store.index();
    const ROUNDS: u64 = 300;
    std::thread::scope(|threads| {
        for thread in 0..4 {
            threads.spawn(move || {
                for round in 0..ROUNDS {
                    let keys = || (0..40).map(|number| key(number * 4 + thread));
                    for key in keys() {
                        assert!(index.insert(&key, b"8 bytes!").expect("room"), "{round}: {key:?}");
                    }
                    for key in keys() {
                        assert!(index.remove(&key).expect("no error"), "{round}: {key:?} is lost");
                    }
                }
            });
        }
    });
    store.compare(&Entries::new());
    assert_eq!(settled(store.index().heap()).objects, EMPTY);
}

/// A key is its bytes: it is removed, and found removed, by any copy of them, in place or in a record, and comes again
/// with a value of another form.
#[test]
fn a_key_is_removed_by_another_copy_of_its_bytes() {
    let store = Store::<BwTree>::create();
    let mut model = Entries::new();
    for round in 0..6 {
        for number in 0..20_u64 {
            let value: &[u8] = if (round + number) % 2 == 0 {
                b"8 bytes!"
            } else {
                b"some more bytes"
            };
            store.put(&mut model, &key(number), value);
        }
        store.compare(&model);
        for number in (0..20).step_by(1 + round as usize % 3) {
            store.remove(&mut model, &key(number));
        }
        store.compare(&model);
    }
}

/// Keys that share all but their last bytes, as long as keys may be, are parted by separators as long.
#[test]
fn the_longest_keys_are_parted() {
    let mut store = Store::<Small<Hardware>>::create();
    let mut model = Entries::new();
    let long = vec![b'x'; index::MAX_KEY];
    for last in 0..100 {
        let mut key = long.clone();
        key[index::MAX_KEY - 1] = last;
        store.put(&mut model, &key, b"8 bytes!");
    }
    store.compare(&model);
    store = store.crashed();
    empty(&store, &mut model);
    assert_eq!(settled(store.index().heap()).objects, EMPTY);
}
