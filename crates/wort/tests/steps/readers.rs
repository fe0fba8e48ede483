//! Readers amid a walk, while a writer changes what they walk through.

use super::for_each_tree;
use index::conformance::Store;
use index::conformance::steps::{Change, Step, Stepping, Steps, changes, with_hook};
use index::{Direction, OnHeap};
use std::cell::Cell;
use std::ops::{Bound, ControlFlow};
use std::rc::Rc;

/// Carries the change out after the `nth` load of `read`; `false` if there are not so many.
fn amid<I: OnHeap<Media = Stepping> + 'static>(change: &Change, nth: usize, read: impl FnOnce(&I)) -> bool {
    use index::Index;
    let store = Rc::new(Store::<I>::create_on(Stepping::machine(Steps)));
    for (key, value) in &change.before {
        store.index().upsert(key, value).expect("no error");
    }
    let left = Rc::new(Cell::new(nth));
    let (count, tree) = (Rc::clone(&left), Rc::clone(&store));
    let (key, value) = (change.key.clone(), change.value);
    let hook = move |step| {
        if step == Step::Load && count.get() > 0 {
            count.set(count.get() - 1);
            if count.get() == 0 {
                match value {
                    Some(value) => tree.index().upsert(&key, value).expect("no error"),
                    None => assert!(tree.index().remove(&key).expect("no error")),
                }
            }
        }
    };
    with_hook(hook, || read(store.index()));
    left.get() == 0
}

/// A key that is there all the while is found, by a get and by a scan both ways, whatever changes at whichever moment
/// of the walk; and the key that changes has its old value or its new one.
fn what_is_there_all_the_while_is_found<I: OnHeap<Media = Stepping> + 'static>() {
    use index::Index;
    for change in changes() {
        let (before, after) = (&change.before, &change.after());
        let changing = |value: Option<&[u8]>| {
            let value = value.map(<[u8]>::to_vec);
            [before.get(&change.key), after.get(&change.key)].contains(&value.as_ref())
        };
        let get = |key: &[u8]| {
            let mut nth = 1;
            while amid::<I>(&change, nth, |tree| {
                let guard = heap::pin();
                let found = tree.get(key, &guard).expect("no error");
                let expected = before.get(key).map(|value| &value[..]);
                let sound = if key == change.key {
                    changing(found.as_deref())
                } else {
                    found.as_deref() == expected
                };
                assert!(sound, "{}, load {nth}: {key:?} is {found:?}", change.name);
            }) {
                nth += 1;
            }
            assert!(nth > 1 || before.is_empty());
        };
        for key in before.keys().chain([&change.key]) {
            get(key);
        }
        for direction in [Direction::Forward, Direction::Reverse] {
            for bound in [Bound::Unbounded, Bound::Included(&change.key[..])] {
                let (lower, upper) = match direction {
                    Direction::Forward => (bound, Bound::Unbounded),
                    Direction::Reverse => (Bound::Unbounded, bound),
                };
                let expected = before
                    .range::<[u8], _>((lower, upper))
                    .filter(|(key, _)| **key != change.key);
                let mut expected: Vec<_> = expected
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect();
                if direction == Direction::Reverse {
                    expected.reverse();
                }
                let mut nth = 1;
                while amid::<I>(&change, nth, |tree| {
                    let guard = heap::pin();
                    let mut found = Vec::new();
                    let mut visit = |key: &[u8], value: index::Value<'_>| {
                        if key == change.key {
                            assert!(changing(Some(&value)), "{}, load {nth}", change.name);
                        } else {
                            found.push((key.to_vec(), value.to_vec()));
                        }
                        ControlFlow::Continue(())
                    };
                    tree.scan(lower, upper, direction, &guard, &mut visit)
                        .expect("no error");
                    assert_eq!(found, expected, "{}, load {nth}", change.name);
                }) {
                    nth += 1;
                }
            }
        }
    }
}

for_each_tree! {
    readers_find_what_is_there_all_the_while => what_is_there_all_the_while_is_found [Stepping];
}
