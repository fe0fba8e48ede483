//! Readers during a write, and a writer during reads.

use super::{Stepping, Steps, ThreadStep, changes, with_hook};
use crate::conformance::{ALL, Entries, Random, options, visit as visit_index};
use crate::{Direction, Index, OnHeap};
use heap::Heap;
use pmem::Pool;
use std::cell::Cell;
use std::ops::{Bound, ControlFlow};
use std::rc::Rc;

/// Number of keys to look for during a change.
const SAMPLED_KEYS: usize = 20;

/// About how many loads of one read to interrupt by a change.
const MAX_STOPS: usize = 300;

/// Repeats a read, with a change after each of its loads; after about [`MAX_STOPS`] of them if a read has more, such
/// as one through hundreds of similar layers. `amid` runs the read with the change after the load of that number, and
/// returns whether there was one. Returns whether the read loads anything.
pub(super) fn at_each_load(amid: impl Fn(usize) -> bool) -> bool {
    // Doubles the distance until there are few enough.
    let shift = (0_u32..)
        .find(|shift| !amid(MAX_STOPS << shift))
        .expect("a read ends");
    let (mut random, mut nth) = (Random::new(shift.into()), 1);
    while amid(nth) {
        nth += 1 + random.below((2 << shift) - 1);
    }
    nth > 1
}

/// An index of its own, in memory only.
pub(super) fn index<I: OnHeap<Media = Stepping>>() -> Rc<I> {
    let pool = Pool::anonymous(&options(), Stepping::machine(Steps)).expect("a pool");
    let heap = Heap::new(pool).expect("a heap");
    Rc::new(I::create(&heap, b"test").expect("an index"))
}

/// Reads an index that `fill` has filled, and runs `change` after the `nth` load; returns `false` if there are fewer
/// loads.
pub(super) fn amid<I: OnHeap<Media = Stepping> + 'static>(
    fill: impl FnOnce(&I),
    change: impl Fn(&I) + 'static,
    nth: usize,
    read: impl FnOnce(&I),
) -> bool {
    let tree = index::<I>();
    fill(&tree);
    let left = Rc::new(Cell::new(nth));
    let (count, changed) = (Rc::clone(&left), Rc::clone(&tree));
    let hook = move |step| {
        if step == ThreadStep::Load && count.get() > 0 {
            count.set(count.get() - 1);
            if count.get() == 0 {
                change(&changed);
            }
        }
    };
    with_hook(hook, || read(&tree));
    left.get() == 0
}

fn fill(tree: &impl Index, entries: &Entries) {
    for (key, value) in entries {
        tree.upsert(key, value).expect("no error");
    }
}

/// All entries that a walk visits, in the index's order.
fn scanned(tree: &impl Index, direction: Direction) -> Vec<(Vec<u8>, Vec<u8>)> {
    let guard = heap::pin();
    let mut found = Vec::new();
    let mut visit = |key: &[u8], value: crate::Value<'_>| {
        found.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    };
    visit_index(tree, ALL, direction, &guard, &mut visit).expect("no error");
    if direction == Direction::Reverse {
        found.reverse();
    }
    found
}

/// A reader that comes after any step of a change finds the state before it or the state after it, by gets and by
/// scans both ways; and once one reader has found the latter, all do.
pub fn readers_see_no_half_of_a_write<I: OnHeap<Media = Stepping> + 'static>() {
    for change in changes() {
        let tree = index::<I>();
        fill(&*tree, &change.before);
        let (before, after) = (change.before.clone(), change.after());
        let (name, changing, read) = (change.name, change.key.clone(), Rc::clone(&tree));
        let (steps, is_after) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
        let (count, seen) = (Rc::clone(&steps), Rc::clone(&is_after));
        let hook = move |step| {
            if step == ThreadStep::Load {
                return;
            }
            count.set(count.get() + 1);
            let get = |key: &[u8]| {
                let guard = heap::pin();
                let value = read.get(key, &guard).expect("no error");
                value.map(|value| value.to_vec())
            };
            seen.set(seen.get() || get(&changing).as_ref() == after.get(&changing));
            let expected = if seen.get() { &after } else { &before };
            for key in before.keys().chain([&changing]) {
                assert_eq!(
                    get(key).as_ref(),
                    expected.get(key),
                    "{name}, step {}, {key:?}",
                    count.get()
                );
            }
            let mut expected: Vec<_> = expected
                .iter()
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            I::ORDER.sort(&mut expected, |(key, _)| key);
            for direction in [Direction::Forward, Direction::Reverse] {
                assert_eq!(
                    scanned(&*read, direction),
                    expected,
                    "{name}, step {}",
                    count.get()
                );
            }
        };
        with_hook(hook, || change.apply(&*tree));
        assert!(
            steps.get() > 0 && is_after.get(),
            "{name}: the last step has the change"
        );
    }
}

/// A key that is present throughout is found, by a get and by a scan both ways, whatever changes at whichever moment
/// of the walk; and the key that changes has its old value or its new one.
pub fn readers_find_what_is_there_all_the_while<I: OnHeap<Media = Stepping> + 'static>() {
    for change in changes() {
        let (before, after) = (&change.before, &change.after());
        let amid = |nth, read: &dyn Fn(&I)| {
            let change = change.clone();
            amid::<I>(
                |tree| fill(tree, before),
                move |tree| change.apply(tree),
                nth,
                read,
            )
        };
        let changing = |value: Option<&[u8]>| {
            let value = value.map(<[u8]>::to_vec);
            [before.get(&change.key), after.get(&change.key)].contains(&value.as_ref())
        };
        // A sample, if there are many similar keys.
        let some = before.keys().step_by(1 + before.len() / SAMPLED_KEYS);
        for key in some.chain([&change.key]) {
            let get = |nth| {
                amid(nth, &|tree| {
                    let guard = heap::pin();
                    let found = tree.get(key, &guard).expect("no error");
                    let expected = before.get(key).map(|value| &value[..]);
                    let sound = if *key == change.key {
                        changing(found.as_deref())
                    } else {
                        found.as_deref() == expected
                    };
                    assert!(sound, "{}, load {nth}: {key:?} is {found:?}", change.name);
                })
            };
            assert!(at_each_load(get) || before.is_empty());
        }
        for direction in [Direction::Forward, Direction::Reverse] {
            for bound in [Bound::Unbounded, Bound::Included(&change.key[..])] {
                let (lower, upper) = match direction {
                    Direction::Forward => (bound, Bound::Unbounded),
                    Direction::Reverse => (Bound::Unbounded, bound),
                };
                let expected = before
                    .iter()
                    .filter(|(key, _)| I::ORDER.contains((lower, upper), key) && **key != change.key);
                let mut expected: Vec<_> = expected
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect();
                I::ORDER.sort(&mut expected, |(key, _)| key);
                if direction == Direction::Reverse {
                    expected.reverse();
                }
                at_each_load(|nth| {
                    amid(nth, &|tree| {
                        let guard = heap::pin();
                        let mut found = Vec::new();
                        let mut visit = |key: &[u8], value: crate::Value<'_>| {
                            if key == change.key {
                                assert!(changing(Some(&value)), "{}, load {nth}", change.name);
                            } else {
                                found.push((key.to_vec(), value.to_vec()));
                            }
                            ControlFlow::Continue(())
                        };
                        visit_index(tree, (lower, upper), direction, &guard, &mut visit).expect("no error");
                        assert_eq!(found, expected, "{}, load {nth}", change.name);
                    })
                });
            }
        }
    }
}
