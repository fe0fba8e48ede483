//! Bugs of published P-BwTrees, and possible ones of this implementation, each as a property.

mod amid;

use amid::{decided, filled, images, key, open};
use index::conformance::steps::{Stepping, ThreadStep, with_hook};
use index::conformance::{Entries, IndexInFile, settled};
use index::{Index, OnHeap};
use pmem::{Hardware, Media};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::mpsc::channel;
use wollemi_recipe::BwTree;

/// Nodes of few entries, so that few keys split inner nodes.
type Small<M> = BwTree<M, 8>;

/// Objects in use by an index of this kind without keys: the root, the cell of its leaf, and the base.
const EMPTY: u64 = 3;

/// Removes all keys; then exactly the objects of an empty index are in use.
fn empty<M: Media>(store: &IndexInFile<Small<M>>, model: &mut Entries) {
    for key in model.keys().cloned().collect::<Vec<_>>() {
        store.remove(model, &key);
    }
    store.compare(model);
}

/// A half split that a later writer completes keeps writes acknowledged in both halves since: wherever the crash
/// came, values change on both sides first, then keys are inserted on both sides, and after another crash all of it
/// is there. The same holds with a new root, and when inner nodes split.
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

/// Crashes at any step of a removal of a node, on any level: no key of a sibling is lost, keys can be inserted where
/// the node was, and when all are removed nothing is left of it.
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

/// Nothing is inserted into a node that is being removed, and a failed compare-and-swap gives back the object that it
/// was to publish, once: threads empty leaves again and again, others insert keys where they were, and each finds its
/// own.
#[test]
fn threads_that_split_and_merge_the_same_nodes_lose_and_leak_nothing() {
    let store = IndexInFile::<Small<Hardware>>::create();
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

/// A key is identified by its bytes: it is removed, and found removed, by any copy of them, in place or in a record,
/// and can be inserted again with a value of another form.
#[test]
fn a_key_is_removed_by_another_copy_of_its_bytes() {
    let store = IndexInFile::<BwTree>::create();
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

/// Keys of the maximum length that share all but their last bytes are separated by equally long separators.
#[test]
fn the_longest_keys_are_parted() {
    let mut store = IndexInFile::<Small<Hardware>>::create();
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

/// Number of keys of an index whose root is to be lowered.
const KEYS: u64 = 24;

/// The number of the key whose removal makes the root a leaf again, if keys are removed from the last one down.
fn lowers_root() -> u64 {
    let (store, mut model) = filled::<Small<Stepping>>(0..KEYS);
    let is_leaf = || settled(store.index().heap()).objects == EMPTY;
    assert!(!is_leaf());
    let lowers = |number: &u64| {
        store.remove(&mut model, &key(*number));
        is_leaf()
    };
    (0..KEYS).rev().find(lowers).expect("at last")
}

/// An index whose root will be lowered by the removal of this key.
fn about_to_lower(last: u64) -> (amid::Stepped<Small<Stepping>>, Entries) {
    let (store, mut model) = filled::<Small<Stepping>>(0..KEYS);
    for number in (last + 1..KEYS).rev() {
        store.remove(&mut model, &key(number));
    }
    (store, model)
}

/// The contents are as in the model, and everything in use is reachable, once.
fn is_sound(store: &IndexInFile<Small<Stepping>>, model: &Entries, at: &str) {
    let guard = heap::pin();
    for (key, value) in model {
        let found = store.index().get(key, &guard).expect("no error");
        assert_eq!(found.as_deref(), Some(&value[..]), "{at}: {key:?}");
    }
    drop(guard);
    let faults = store.index().check().expect("no error");
    assert_eq!(
        (faults.found, faults.keys),
        (Vec::new(), model.len() as u64),
        "{at}"
    );
    let heap = store.index().heap();
    let used = settled(heap).objects;
    let audit = heap
        .audit(&vec![Small::<Stepping>::tracer()], 1)
        .expect("an audit");
    assert!(audit.is_clean(), "{at}: {audit:?}");
    assert_eq!(audit.reachable, used, "{at}");
}

/// Changes by other threads to the only leaf below a root that is being removed count, at whichever load of the
/// lowering they come: the leaf no longer changes once its new cell has been written.
#[test]
fn writes_beside_the_lowering_of_a_root_count() {
    let last = lowers_root();
    let others: [(u64, Option<&[u8]>); 3] = [(1, None), (1, Some(b"changed.")), (KEYS, Some(b"new key!"))];
    for (number, value) in others {
        let mut loads = 1;
        loop {
            let (store, mut model) = about_to_lower(last);
            let (left, other) = (Rc::new(Cell::new(loads)), store.clone());
            let count = left.clone();
            let hook = move |step| {
                if step == ThreadStep::Load && count.get() > 0 {
                    count.set(count.get() - 1);
                    if count.get() == 0 {
                        match value {
                            Some(value) => other.index().upsert(&key(number), value).expect("room"),
                            None => assert!(other.index().remove(&key(number)).expect("no error")),
                        }
                    }
                }
            };
            with_hook(hook, || {
                assert!(store.index().remove(&key(last)).expect("no error"))
            });
            if left.get() > 0 {
                break;
            }
            model.remove(&key(last));
            match value {
                Some(value) => model.insert(key(number), value.to_vec()),
                None => model.remove(&key(number)),
            };
            is_sound(&store, &model, &format!("{number} after load {loads}"));
            loads += 1;
        }
        assert!(loads > 100, "{loads} loads");
    }
}

/// A leaf is about to split, and at some load of that, another writer removes keys of it, after which it has fewer
/// pairs than its base: the split starts over.
#[test]
fn removals_beside_a_split_count() {
    // One more key gives the leaf a base with twice as many pairs as allowed.
    const BEFORE: u64 = 15;
    let mut loads = 1;
    loop {
        let (store, mut model) = filled::<Small<Stepping>>(0..BEFORE);
        let (others, met) = (store.clone(), Rc::new(Cell::new(false)));
        let meets = met.clone();
        let then = move || {
            meets.set(true);
            for number in [2, 3, 4, 9] {
                assert!(others.index().remove(&key(number)).expect("no error"));
            }
        };
        stopped_at(ThreadStep::Load, loads, then, || {
            assert!(store.index().insert(&key(BEFORE), b"8 bytes!").expect("room"))
        });
        if !met.get() {
            break;
        }
        model.insert(key(BEFORE), b"8 bytes!".to_vec());
        for number in [2, 3, 4, 9] {
            model.remove(&key(number));
        }
        is_sound(&store, &model, &format!("after load {loads}"));
        loads += 1;
    }
    assert!(loads > 100, "{loads} loads");
}

/// Runs `change`, and returns how many loads it had made at each of its stores, and in all.
fn loads_at_stores(change: impl FnOnce()) -> (Vec<usize>, usize) {
    let seen = Rc::new(RefCell::new((Vec::new(), 0)));
    let counts = seen.clone();
    let hook = move |step| {
        let (at_stores, loads) = &mut *counts.borrow_mut();
        match step {
            ThreadStep::Load => *loads += 1,
            ThreadStep::Store => at_stores.push(*loads),
            _ => {}
        }
    };
    with_hook(hook, change);
    seen.take()
}

/// Runs `change`, and `then` after the `nth` step of it of this kind.
fn stopped_at(kind: ThreadStep, nth: usize, then: impl Fn() + 'static, change: impl FnOnce()) {
    let mut count = 0;
    let hook = move |step| {
        count += usize::from(step == kind);
        if step == kind && count == nth {
            then();
        }
    };
    with_hook(hook, change);
}

/// Keys behind all others, so that the only leaf splits.
const MORE: std::ops::Range<u64> = 100..109;

/// Inserts more keys, and removes this many of them, from the last one down.
fn grow_and_shrink(index: &Small<Stepping>, removals: usize) {
    for number in MORE {
        assert!(index.insert(&key(number), b"8 bytes!").expect("room"));
    }
    for number in MORE.rev().take(removals) {
        assert!(index.remove(&key(number)).expect("no error"));
    }
}

/// A root with one child left is lowered only if it is unchanged since the child was loaded. A thread is about to
/// load it; another lets the child split, removes the new leaf, and stops before it loads the root. Whichever thread
/// goes on first, nothing of the root is freed twice.
#[test]
fn a_root_that_has_changed_is_not_lowered() {
    let last = lowers_root();
    let (store, _) = about_to_lower(last);
    let index = store.index();
    let (at_stores, loads) = loads_at_stores(|| assert!(index.remove(&key(last)).expect("no error")));
    // The last stores are those of the lowering.
    let first = at_stores[at_stores.len() - 5];
    // The removal that removes the new leaf is the longest one.
    grow_and_shrink(index, 0);
    let removals = MORE
        .rev()
        .map(|number| loads_at_stores(|| assert!(index.remove(&key(number)).expect("no error"))));
    let removals: Vec<_> = removals.collect();
    let (before, (at_stores, _)) = removals
        .iter()
        .enumerate()
        .max_by_key(|(_, (at_stores, _))| at_stores.len())
        .expect("some");
    let mut met = 0;
    for (load, stores) in
        (first..=loads).flat_map(|load| (1..=at_stores.len()).map(move |stores| (load, stores)))
    {
        let (store, mut model) = about_to_lower(last);
        let index = store.index();
        let ((stops, stopped), (goes, may_go), (ends, ended)) = (channel(), channel(), channel());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let then = move || {
                    stops.send(()).expect("the test waits");
                    may_go.recv().expect("the test releases the thread");
                };
                stopped_at(ThreadStep::Load, load, then, || {
                    assert!(index.remove(&key(last)).expect("no error"))
                });
                // The other thread may have made fewer stores.
                let _ = ends.send(());
            });
            if stopped.recv().is_err() {
                return;
            }
            met += 1;
            grow_and_shrink(index, before);
            let goes_on = goes.clone();
            let then = move || {
                goes_on.send(()).expect("the thread waits");
                ended.recv().expect("the thread ends");
            };
            let number = MORE.rev().nth(before).expect("a number of the range");
            stopped_at(ThreadStep::Store, stores, then, || {
                assert!(index.remove(&key(number)).expect("no error"))
            });
            let _ = goes.send(());
        });
        model.remove(&key(last));
        for number in MORE.rev().skip(before + 1) {
            model.insert(key(number), b"8 bytes!".to_vec());
        }
        is_sound(&store, &model, &format!("load {load}, store {stores}"));
    }
    assert!(met > 100, "{met} pairs of steps");
}

/// A writer that others overtake whenever it is about to publish starts over each time, and reports neither damage
/// nor a full pool: it makes the record of its pair once.
#[test]
fn a_writer_that_is_overtaken_again_and_again_gets_through() {
    const TIMES: u64 = 25_000;
    let (store, mut model) = filled::<Small<Stepping>>(0..4);
    let before = std::fs::metadata(store.path()).expect("there").len();
    let (other, mut times) = (store.clone(), 0);
    let hook = move |step| {
        if step == ThreadStep::Fence && times < TIMES {
            times += 1;
            other.index().upsert(&key(1), &times.to_le_bytes()).expect("room");
        }
    };
    let long = vec![b'v'; 20_000];
    let done = with_hook(hook, || store.index().upsert(&key(2), &long));
    done.expect("neither damaged nor full");
    model.insert(key(1), TIMES.to_le_bytes().to_vec());
    model.insert(key(2), long.clone());
    is_sound(&store, &model, "at the end");
    let grown = std::fs::metadata(store.path()).expect("there").len() - before;
    assert!(grown < TIMES / 10 * long.len() as u64, "{grown} bytes");
}

/// A record that was made for one attempt is given back if the edit decides otherwise at the next.
#[test]
fn a_record_that_serves_no_more_is_given_back() {
    let (store, mut model) = filled::<Small<Stepping>>(0..4);
    let (other, mut is_first) = (store.clone(), true);
    let hook = move |step| {
        if step == ThreadStep::Fence && std::mem::take(&mut is_first) {
            assert!(other.index().insert(&key(7), b"8 bytes!").expect("room"));
        }
    };
    with_hook(hook, || {
        let done = store.index().insert(&key(7), b"longer than eight bytes");
        assert!(!done.expect("room"));
    });
    model.insert(key(7), b"8 bytes!".to_vec());
    is_sound(&store, &model, "at the end");
}
