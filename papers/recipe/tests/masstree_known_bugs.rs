//! Bugs of published P-Masstrees, and possible ones of this implementation, each as a property.

mod amid;

use amid::{decided, filled, images, key, open};
use heap::{Heap, RecoveryStage};
use index::conformance::steps::{Stepping, Steps, ThreadStep, with_hook};
use index::conformance::{Entries, IndexInFile, settled};
use index::{Index, OnHeap};
use pmem::watched::Observer;
use pmem::{Hardware, Pool, Watched};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use wollemi_recipe::Masstree;

/// A half split that is completed after a crash keeps writes acknowledged in the sibling since: wherever the crash
/// came, values change on both sides first, then keys are inserted on both sides, and after another crash all of it
/// is there. (Replaying the split by copying would restore the values of the first crash.) The same holds with a new
/// root, which exists or not; and if a key above all others is inserted first, whose writer does not change the node
/// itself.
#[test]
fn a_split_that_is_ended_later_keeps_what_the_sibling_was_told() {
    for count in [13, 37] {
        let (store, model) = filled::<Masstree<Stepping>>((0..count).map(|number| 4 * number));
        let between = key(4 * (count - 13) + 9);
        let images = images(&store, |index| {
            assert!(index.insert(&between, b"between!").expect("room"))
        });
        assert!(images.len() > 10, "{}", images.len());
        for image in images {
            let store = open::<Masstree<Hardware>>(image);
            let mut model = decided(&store, &model, &between, b"between!");
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

/// A writer that does not change a node left half split by a crash completes the split all the same, before it goes
/// to the sibling: from then on other threads reach the sibling without the node, while scans read the node's
/// entries.
#[test]
fn a_half_split_is_ended_before_it_is_passed() {
    for count in [13, 37] {
        let (store, model) = filled::<Masstree<Stepping>>((0..count).map(|number| 4 * number));
        let between = key(4 * (count - 13) + 9);
        let images = images(&store, |index| {
            assert!(index.insert(&between, b"between!").expect("room"))
        });
        for image in images {
            let store = open::<Masstree<Hardware>>(image);
            let mut model = decided(&store, &model, &between, b"between!");
            // Above all entries of the node and its sibling.
            store.put(&mut model, &key(4 * count), b"new key!");
            for number in (count - 5..count).rev() {
                store.put(&mut model, &key(4 * number), b"changed.");
                store.compare(&model);
            }
        }
    }
}

/// A border splits after any load of the trace. The objects that the sibling has taken over are neither swept nor
/// reported twice.
#[test]
fn a_split_amid_the_trace_takes_nothing_from_it() {
    const LONG: &[u8] = b"in a leaf of its own";
    let (store, _) = filled::<Masstree<Stepping>>(0..0);
    let numbers: Vec<_> = (0..26).map(|number| 4 * number).collect();
    for &number in &numbers {
        store.index().upsert(&key(number), LONG).expect("room");
    }
    let image = store.image();
    let mut loads = 0;
    loop {
        let folder = index::conformance::folder();
        std::fs::copy(image.path().join("pool"), folder.path().join("pool")).expect("a copy");
        let options = index::conformance::options();
        let pool = Pool::open(folder.path().join("pool"), &options, Stepping::machine(Steps));
        let heap = Heap::new(pool.expect("the pool")).expect("the heap");
        let opened = Masstree::<Stepping>::open(&heap, b"test").expect("the index");
        let index = Rc::new(opened.expect("the root"));
        let (left, splits) = (Rc::new(Cell::new(loads)), index.clone());
        let count = left.clone();
        let hook = move |step| {
            if step == ThreadStep::Load && count.get() > 0 {
                count.set(count.get() - 1);
                if count.get() == 0 {
                    // Borders filled in ascending order have room for one.
                    for number in [21, 22] {
                        assert!(splits.insert(&key(number), LONG).expect("room"));
                    }
                }
            }
        };
        let tracers = vec![Masstree::<Stepping>::tracer()];
        let state = with_hook(hook, || heap.recover_now(&tracers));
        assert_eq!(state, RecoveryStage::Done, "load {loads}");
        for number in &numbers {
            let guard = heap::pin();
            let found = index.get(&key(*number), &guard).expect("no error");
            assert_eq!(found.as_deref(), Some(LONG), "load {loads}: {number}");
        }
        let audit = heap.audit(&tracers, 1).expect("an audit");
        assert!(audit.is_clean(), "load {loads}: {audit:?}");
        assert_eq!(
            audit.reachable,
            settled(&heap).objects,
            "load {loads}: what is reached is in use"
        );
        if left.get() > 0 {
            break;
        }
        loads += 1;
    }
    assert!(loads > 100, "{loads}");
}

/// A crash in a split, and then another in the removal of its results or leftovers: no key of the right sibling is
/// lost, at any pair of steps.
#[test]
fn a_crash_in_a_split_and_then_in_a_removal_loses_no_sibling() {
    let (store, model) = filled::<Masstree<Stepping>>(0..37);
    let split = images(&store, |index| {
        assert!(index.insert(&key(37), b"8 bytes!").expect("room"))
    });
    let mut crashes = 0;
    for image in split.into_iter().step_by(2) {
        let path = image.path().join("pool");
        let bytes = std::fs::read(&path).expect("read");
        // Removes the whole border that was split, the one before it, or the one that it has created.
        for range in [24..36, 12..24, 36..38] {
            std::fs::write(&path, &bytes).expect("written");
            let folder = index::conformance::folder();
            std::fs::copy(&path, folder.path().join("pool")).expect("a copy");
            let store = Rc::new(IndexInFile::<Masstree<Stepping>>::open_in(
                folder,
                Stepping::machine(Steps),
            ));
            let there = |number: &u64| {
                let guard = heap::pin();
                store
                    .index()
                    .get(&key(*number), &guard)
                    .expect("no error")
                    .is_some()
            };
            let mut left = model.clone();
            if there(&37) {
                left.insert(key(37), b"8 bytes!".to_vec());
            }
            let goes: Vec<u64> = range.filter(there).collect();
            let (&last, before) = goes.split_last().expect("some");
            for &number in before {
                store.remove(&mut left, &key(number));
            }
            for image in images(&store, |index| {
                assert!(index.remove(&key(last)).expect("no error"))
            }) {
                crashes += 1;
                let store = open::<Masstree<Hardware>>(image);
                let mut left = decided(&store, &left, &key(last), b"8 bytes!");
                store.compare(&left);
                for number in 0..45 {
                    store.put(&mut left, &key(number), b"again...");
                }
                store.compare(&left);
            }
        }
    }
    assert!(crashes > 100, "{crashes} pairs of crashes");
}

/// Nothing is inserted into a node that is being removed: one thread empties borders again and again, another inserts
/// keys where they were, and each finds its own.
#[test]
fn no_key_goes_into_a_node_that_is_removed() {
    let store = IndexInFile::<Masstree>::create();
    let index = store.index();
    const ROUNDS: u64 = 400;
    std::thread::scope(|threads| {
        for thread in 0..2 {
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
}

/// Kind and length of a key, and the contents of its entry, belong to one key: while an entry is reused for keys of
/// the same slice and other lengths in turn, in place, as leaves and as layers, a reader finds each key's own value
/// or none.
#[test]
fn lengths_and_suffixes_are_not_read_apart() {
    let store = IndexInFile::<Masstree>::create();
    let index = store.index();
    let slice = b"eightby\0";
    let keys: Vec<Vec<u8>> = [7, 8, 9, 12, 20]
        .into_iter()
        .map(|len| [&slice[..], &[b'~'; 12]].concat()[..len].to_vec())
        .chain([b"eightby\0-other".to_vec()])
        .collect();
    let value = |number: usize, long: bool| vec![b'0' + number as u8; if long { 11 } else { 8 }];
    let ended = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for round in 0..30_000_usize {
                let number = round * 7 % keys.len();
                index
                    .upsert(&keys[number], &value(number, round % 3 == 0))
                    .expect("room");
                let other = (number + 1 + round % 4) % keys.len();
                let _ = index.remove(&keys[other]).expect("no error");
            }
            ended.store(true, SeqCst);
        });
        while !ended.load(SeqCst) {
            for (number, key) in keys.iter().enumerate() {
                let guard = heap::pin();
                if let Some(found) = index.get(key, &guard).expect("no error") {
                    assert!([8, 11].contains(&found.len()), "{key:?} is {found:?}");
                    assert!(
                        found.iter().all(|byte| *byte == b'0' + number as u8),
                        "{key:?} is {found:?}"
                    );
                }
            }
        }
    });
}

/// If each key shares all but its last bytes with the others, layers as deep as the longest key are built, walked,
/// checked and removed on a stack of the usual size.
#[test]
fn the_longest_keys_need_no_long_stack() {
    let mut store = IndexInFile::<Masstree>::create();
    let mut model = Entries::new();
    let long = vec![b'x'; index::MAX_KEY];
    for cut in [0, 1, 7, 8, 9, 30_000, index::MAX_KEY] {
        store.put(&mut model, &long[cut..], b"8 bytes!");
    }
    let mut other = long.clone();
    other[index::MAX_KEY - 1] = b'y';
    store.put(&mut model, &other, b"another value");
    store.compare(&model);
    store = store.crashed();
    for key in model.keys().cloned().collect::<Vec<_>>() {
        store.remove(&mut model, &key);
    }
    store.compare(&model);
    let objects = settled(store.index().heap()).objects;
    assert_eq!(objects, 2, "the root and its border");
}

thread_local! {
    static WAITS: Cell<u64> = const { Cell::new(0) };
}

/// Counts how often a thread waits.
#[derive(Debug)]
struct Waits;

impl Observer for Waits {
    fn waits(&self) {
        WAITS.set(WAITS.get() + 1);
        // A failed try waits too, and there are at most 20,000 of them.
        assert!(WAITS.get() < 5_000_000, "a writer waits for itself");
    }
}

type Waiting = Watched<Waits>;

/// The words of a pool that hold links to nodes, with their values.
fn node_links(index: &Masstree<Hardware>) -> Vec<(usize, u64)> {
    // SAFETY: no thread writes.
    let heap = unsafe { index.heap().access() };
    let root = heap.root(b"test").expect("sound").expect("the root").link;
    let (mut links, mut stack, mut children) = (Vec::new(), vec![root], Vec::new());
    while let Some(link) = stack.pop() {
        let at = link.offset().expect("not null");
        let len = Masstree::<Hardware>::tracer()
            .trace(heap, link, &mut children)
            .expect("sound") as usize;
        for (i, word) in heap.bytes(at, len).expect("inside").chunks(8).enumerate() {
            let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
            if children.iter().any(|child| child.bits() == word) {
                links.push((at.get() as usize + 8 * i, word));
            }
        }
        stack.append(&mut children);
    }
    links
}

/// No writer waits for a lock that it holds itself, wherever a link to a node leads: to the border that it is in,
/// say, as if that were the root of a layer below it.
#[test]
fn no_writer_waits_for_itself() {
    // Three borders and their root; then a layer below one of them.
    let store = IndexInFile::<Masstree>::create();
    let of_layer = |rest: &[u8]| [&key(34), rest].concat();
    let mut keys: Vec<_> = (0..30).map(|number| key(2 * number)).collect();
    keys.extend([of_layer(b"a longer key"), of_layer(b"b longer key")]);
    keys.iter()
        .for_each(|key| assert!(store.index().insert(key, b"8 bytes!").expect("room")));
    let others = (0..30).map(|number| of_layer(&key(2 * number + 1)));
    let others: Vec<_> = others.chain((0..30).map(|number| key(2 * number + 1))).collect();
    let links = node_links(store.index());
    assert!(links.len() > 5, "{links:?}");
    let image = std::fs::read(store.close().path().join("pool")).expect("read");
    let pairs = links
        .iter()
        .flat_map(|one| links.iter().map(move |other| (one, other)));
    for (&(at, old), &(_, new)) in pairs.filter(|(one, other)| one.1 != other.1) {
        let folder = index::conformance::folder();
        let mut image = image.clone();
        image[at..at + 8].copy_from_slice(&new.to_le_bytes());
        std::fs::write(folder.path().join("pool"), image).expect("written");
        let options = index::conformance::options();
        let pool = Pool::open(folder.path().join("pool"), &options, Waiting::machine(Waits));
        let heap = Heap::new(pool.expect("the pool")).expect("the heap");
        let index = Masstree::<Waiting>::open(&heap, b"test");
        let Ok(Some(index)) = index else { continue };
        // Results may be anything.
        let changes = AssertUnwindSafe(|| {
            for _ in 0..2 {
                for key in others.iter().chain(&keys) {
                    WAITS.set(0);
                    let _ = index.insert(key, b"8 bytes!");
                }
                for key in keys.iter().chain(&others) {
                    WAITS.set(0);
                    let _ = index.remove(key);
                }
            }
        });
        assert!(catch_unwind(changes).is_ok(), "{at:#x}: {old:#x}, now {new:#x}");
    }
}

/// Calls `then` after the `nth` fence of `change` for the index.
fn at_fence<R>(nth: usize, then: impl FnOnce() + 'static, change: impl FnOnce() -> R) -> R {
    let (mut left, mut then) = (nth, Some(then));
    let hook = move |step| {
        left -= usize::from(step == ThreadStep::Fence && left > 0);
        if left == 0
            && let Some(then) = then.take()
        {
            then();
        }
    };
    with_hook(hook, change)
}

/// A writer splits a layer's root, so that the layer gets another one, finds the entry that leads to the layer gone,
/// and looks for it again from above. It waits for no border of the layer, whose holder may wait for the writer.
#[test]
fn a_place_of_a_layer_is_found_again_from_above() {
    let store = Arc::new(IndexInFile::<Masstree<Stepping>>::create_on(Stepping::machine(
        Steps,
    )));
    let of_layer = |number: u64| [key(2_000), key(number)].concat();
    let put = |key: &[u8]| assert!(store.index().insert(key, b"8 bytes!").expect("room"));
    (0..30).for_each(|number| put(&key(100 * number)));
    // Thirteen borders of twelve keys or thirteen, and their root is full.
    (0..157).for_each(|number| put(&of_layer(1_000 * number)));
    let (left, right) = (8 * 12_000, 10 * 12_000);
    [left, right].iter().for_each(|number| put(&of_layer(number + 1)));

    let (others, stands) = (Arc::clone(&store), Arc::clone(&store));
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let (ended, has_ended) = mpsc::channel();
    let amid = move || {
        // The entry that leads to the layer moves into a new border, and its old one is removed.
        let index = others.index();
        (1..20).for_each(|number| assert!(index.insert(&key(1_900 + number), b"8 bytes!").expect("room")));
        for number in (1_000..2_000).filter(|number| *number % 100 == 0 || *number > 1_900) {
            index.remove(&key(number)).expect("no error");
        }
        // A border left of the writer's is half split.
        let (standing, is_standing) = mpsc::channel();
        std::thread::spawn(move || {
            let stop = move || {
                standing.send(()).expect("the writer waits");
                may_go_on.recv().expect("the test ends it");
            };
            let added = at_fence(2, stop, || {
                stands.index().insert(&of_layer(left + 2), b"8 bytes!")
            });
            ended.send(added.expect("room")).expect("the test waits");
        });
        is_standing.recv().expect("the other thread splits");
    };
    let (writes, has_written) = mpsc::channel();
    let writer = Arc::clone(&store);
    std::thread::spawn(move || {
        // The border's sibling in three steps, then the root's, which the second of them publishes.
        let added = at_fence(5, amid, || {
            writer.index().insert(&of_layer(right + 2), b"8 bytes!")
        });
        writes.send(added.expect("room")).expect("the test waits");
    });
    let patience = Duration::from_secs(120);
    assert_eq!(
        has_written.recv_timeout(patience),
        Ok(true),
        "the writer waits for the border"
    );
    go_on.send(()).expect("the other thread waits");
    assert_eq!(has_ended.recv_timeout(patience), Ok(true));
    let guard = heap::pin();
    for number in (0..157)
        .map(|number| 1_000 * number)
        .chain([left, right].into_iter().flat_map(|at| [at + 1, at + 2]))
    {
        let found = store.index().get(&of_layer(number), &guard).expect("sound");
        assert_eq!(found.as_deref(), Some(&b"8 bytes!"[..]), "{number}");
    }
    drop(guard);
    let faults = store.index().check().expect("sound");
    assert_eq!(faults.found, Vec::<String>::new());
}
