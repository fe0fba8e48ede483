//! P-CLHT: a crash, a reader, a writer, at every step.

use heap::Heap;
use index::conformance::steps::{Stepping, Steps, ThreadStep, with_hook};
use index::conformance::{IndexInFile, settled};
use index::{Direction, Index, OnHeap};
use pmem::{Pool, PoolOptions};
use std::cell::{Cell, RefCell};
use std::ops::{Bound, ControlFlow};
use std::rc::Rc;
use wollemi_recipe::Clht;

index::conformance_step_by_step! {
    clht: Clht<Stepping>, Clht;
}

type Pair = ([u8; 8], [u8; 8]);

/// Pairs stored in place, of the first bucket of small tables: those with the smallest hashes of many.
fn pairs_of_one_bucket() -> impl Iterator<Item = Pair> {
    let keys = (0_u64..).map(u64::to_le_bytes);
    let keys = keys.filter(|key| index::codec::checksum(key) < u64::MAX / 64);
    keys.zip((100_u64..).map(u64::to_le_bytes))
}

/// Reads a table that holds `stays` and `first`, whose slot is reused for the pairs of `next`, one after the other,
/// after the `nth` load of the read. Returns `false` if there are fewer loads.
fn amid(
    (stays, first): (Pair, Pair),
    next: Vec<Pair>,
    nth: usize,
    read: impl FnOnce(&Clht<Stepping>),
) -> bool {
    let pool = Pool::anonymous(&PoolOptions::default(), Stepping::machine(Steps)).expect("a pool");
    let table = Clht::create(&Heap::new(pool).expect("a heap"), b"table").expect("room");
    let table: Rc<Clht<Stepping>> = Rc::new(table);
    for (key, value) in [stays, first] {
        table.upsert(&key, &value).expect("room");
    }
    let left = Rc::new(Cell::new(nth));
    let (count, changed) = (left.clone(), table.clone());
    let hook = move |step| {
        if step == ThreadStep::Load && count.get() > 0 {
            count.set(count.get() - 1);
            if count.get() == 0 {
                let mut there = first.0;
                for (key, value) in &next {
                    assert!(changed.remove(&there).expect("room"));
                    changed.upsert(key, value).expect("room");
                    there = *key;
                }
            }
        }
    };
    with_hook(hook, || read(&table));
    left.get() == 0
}

/// A get finds a value that its key had, or none, and a walk finds whole pairs, while the slot is reused for other
/// keys.
#[test]
fn a_slot_that_serves_another_key_misleads_no_reader() {
    let pairs: Vec<_> = pairs_of_one_bucket().take(4).collect();
    let stays = pairs[3];
    let again = (pairs[0].0, pairs[2].1);
    for next in [
        vec![pairs[1]],
        vec![pairs[1], again],
        vec![pairs[1], pairs[2], again],
    ] {
        let had = |key: &[u8], value: &[u8]| {
            let mut all = next.iter().chain([&pairs[0], &stays]);
            all.any(|pair| pair.0 == key && pair.1 == value)
        };
        let mut loads = 0;
        let get = |table: &Clht<Stepping>| {
            let guard = heap::pin();
            let found = table.get(&pairs[0].0, &guard).expect("sound");
            assert!(found.is_none_or(|value| had(&pairs[0].0, &value)));
        };
        while amid((stays, pairs[0]), next.clone(), loads + 1, get) {
            loads += 1;
        }
        assert!(loads > 3);
        let walk = |table: &Clht<Stepping>| {
            let (guard, all) = (heap::pin(), Bound::Unbounded);
            let visit = &mut |key: &[u8], value: index::Value<'_>| {
                assert!(had(key, &value), "{key:?} with the value of another");
                ControlFlow::Continue(())
            };
            table
                .walk(all, all, Direction::Forward, &guard, visit)
                .expect("sound");
        };
        loads = 0;
        while amid((stays, pairs[0]), next.clone(), loads + 1, walk) {
            loads += 1;
        }
        assert!(loads > 3);
    }
}

/// A pair that changes its form moves to another slot, or to an overflow bucket, and its slot is reused for another
/// key at once: a concurrent get finds the old value or the new one.
#[test]
fn a_pair_that_moves_is_found() {
    let pairs: Vec<_> = pairs_of_one_bucket().take(3).collect();
    let (key, short) = pairs[0];
    let long = b"a longer value".as_slice();
    for (others, turns) in [(1, false), (1, true), (2, false), (2, true)] {
        let (before, after) = if turns {
            (long, &short[..])
        } else {
            (&short[..], long)
        };
        let mut loads = 0;
        loop {
            let store = Rc::new(IndexInFile::<Clht<Stepping>>::create_on(Stepping::machine(Steps)));
            // In a full bucket there is no other slot.
            for (key, value) in &pairs[1..others] {
                store.index().upsert(key, value).expect("room");
            }
            store.index().upsert(&key, before).expect("room");
            if others == 2 {
                let (key, value) = pairs_of_one_bucket().nth(5).expect("some");
                store.index().upsert(&key, &value).expect("room");
            }
            let left = Rc::new(Cell::new(loads + 1));
            let (writer, count, next) = (store.clone(), left.clone(), pairs[2]);
            let after_it = after.to_vec();
            let hook = move |step| {
                if step == ThreadStep::Load && count.get() > 0 {
                    count.set(count.get() - 1);
                    if count.get() == 0 {
                        writer.index().upsert(&key, &after_it).expect("room");
                        writer.index().upsert(&next.0, &next.1).expect("room");
                    }
                }
            };
            with_hook(hook, || {
                let guard = heap::pin();
                let found = store.index().get(&key, &guard).expect("sound");
                let found = found.expect("the key is there all the while");
                assert!([before, after].contains(&&*found), "after load {}", loads + 1);
            });
            if left.get() > 0 {
                break;
            }
            loads += 1;
        }
        assert!(loads > 3, "{loads} loads");
    }
}

/// A process is killed during any step of a write. Once a writer of the next process has locked the bucket, even
/// without changing anything, reads persist nothing there.
#[test]
fn marks_that_a_kill_has_left_are_settled() {
    let pairs: Vec<_> = pairs_of_one_bucket().take(2).collect();
    let key = pairs[0].0;
    let store = Rc::new(IndexInFile::<Clht<Stepping>>::create_on(Stepping::machine(Steps)));
    store.index().upsert(&key, &pairs[0].1).expect("room");
    let images = Rc::new(RefCell::new(Vec::new()));
    let (source, copies) = (store.clone(), images.clone());
    let hook = move |step| {
        if matches!(step, ThreadStep::Store | ThreadStep::Unpersisted) {
            copies.borrow_mut().push(source.image());
        }
    };
    with_hook(hook, || store.index().upsert(&key, &pairs[1].1).expect("room"));
    let images = images.take();
    assert!(images.len() > 1, "{}", images.len());
    for (step, image) in images.into_iter().enumerate() {
        let store = IndexInFile::<Clht<Stepping>>::open_in(image, Stepping::machine(Steps));
        assert!(!store.index().insert(&key, &pairs[0].1).expect("no error"));
        let fences = Rc::new(Cell::new(0));
        let count = fences.clone();
        let hook = move |step| count.set(count.get() + usize::from(step == ThreadStep::Fence));
        with_hook(hook, || {
            let guard = heap::pin();
            assert!(store.index().get(&key, &guard).expect("sound").is_some());
        });
        assert_eq!(fences.get(), 0, "after step {step}");
    }
}

/// A process is killed during the last removal below a directory, or while that removes the table and the directory:
/// once the key is removed by the next process, whether it was still there or not, nothing is left.
#[test]
fn what_a_kill_has_left_goes_with_the_next_removal() {
    let store = Rc::new(IndexInFile::<Clht<Stepping>>::create_on(Stepping::machine(Steps)));
    let before = settled(store.index().heap()).objects;
    let keys: Vec<_> = (0_u64..3000).map(u64::to_le_bytes).collect();
    for key in &keys {
        assert!(store.index().insert(key, b"8 bytes!").expect("room"));
    }
    let (last, others) = keys.split_last().expect("some");
    for key in others {
        assert!(store.index().remove(key).expect("room"));
    }
    let images = Rc::new(RefCell::new(Vec::new()));
    let (source, copies) = (store.clone(), images.clone());
    let hook = move |step| {
        if step == ThreadStep::Store {
            copies.borrow_mut().push(source.image());
        }
    };
    assert!(with_hook(hook, || store.index().remove(last).expect("room")));
    assert_eq!(settled(store.index().heap()).objects, before);
    let (mut there, mut absent) = (0, 0);
    for (step, image) in images.take().into_iter().enumerate() {
        let store = IndexInFile::<Clht<Stepping>>::open_in(image, Stepping::machine(Steps));
        store.index().heap().wait_recovered();
        match store.index().remove(last).expect("room") {
            true => there += 1,
            false => absent += 1,
        }
        assert_eq!(
            settled(store.index().heap()).objects,
            before,
            "after store {step}"
        );
    }
    // The removal's own store, that of the table's slot, and that of the directory's.
    assert!(absent >= 3, "{there} and {absent}");
}
