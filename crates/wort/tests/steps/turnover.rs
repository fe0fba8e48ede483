//! Readers amid a walk, while slots that they come by are emptied and serve other keys.

use super::for_each_tree;
use index::conformance::Store;
use index::conformance::steps::{Step, Stepping, Steps, with_hook};
use index::{Direction, OnHeap};
use std::cell::Cell;
use std::ops::{Bound, ControlFlow};
use std::rc::Rc;

const OLD: &[u8] = b"old";
const NEW: &[u8] = b"new";

/// One key goes, another comes, which a node may put into the same slot; and so on.
const TURNOVERS: [&[(u8, bool)]; 4] = [
    &[(1, false), (200, true)],
    &[(1, false), (1, true)],
    &[(1, false), (200, true), (200, false), (1, true)],
    &[(1, false), (0, false), (200, true), (201, true), (1, true)],
];

/// The key for a byte: some end below a node of their own.
fn keys(byte: u8) -> [Vec<u8>; 2] {
    [vec![7, byte, 1], vec![7, byte, 2]]
}

/// Carries a turnover out after the `nth` load of `read`; `false` if there are not so many.
fn amid<I: OnHeap<Media = Stepping> + 'static>(
    children: u8,
    turnover: &'static [(u8, bool)],
    nth: usize,
    read: impl FnOnce(&I),
) -> bool {
    use index::Index;
    let store = Rc::new(Store::<I>::create_on(Stepping::machine(Steps)));
    for key in (0..children).flat_map(keys) {
        store.index().upsert(&key, OLD).expect("no error");
    }
    let left = Rc::new(Cell::new(nth));
    let (count, tree) = (Rc::clone(&left), Rc::clone(&store));
    let hook = move |step| {
        if step != Step::Load || count.get() == 0 {
            return;
        }
        count.set(count.get() - 1);
        if count.get() == 0 {
            for &(byte, comes) in turnover {
                for key in keys(byte) {
                    match comes {
                        true => tree.index().upsert(&key, NEW).expect("no error"),
                        false => assert!(tree.index().remove(&key).expect("no error")),
                    }
                }
            }
        }
    };
    with_hook(hook, || read(store.index()));
    left.get() == 0
}

/// Each key that stays is found, once and in order; each that goes or comes has a value that it had, or none.
fn turnovers_do_not_mislead<I: OnHeap<Media = Stepping> + 'static>() {
    use index::Index;
    for children in [3, 4, 10, 30, 60] {
        for turnover in TURNOVERS {
            let turns = |key: &[u8]| turnover.iter().any(|(byte, _)| *byte == key[1]);
            let sound = |key: &[u8], value: Option<&[u8]>| match (turns(key), value) {
                (false, value) => value == (key[1] < children).then_some(OLD),
                (true, None) => true,
                (true, Some(value)) => {
                    value == OLD && key[1] < children || value == NEW && turnover.contains(&(key[1], true))
                }
            };
            let bytes = (0..children.min(5)).chain([200, 201]);
            for key in bytes.flat_map(keys) {
                let mut nth = 1;
                while amid::<I>(children, turnover, nth, |tree| {
                    let guard = heap::pin();
                    let found = tree.get(&key, &guard).expect("no error");
                    assert!(
                        sound(&key, found.as_deref()),
                        "{children}, load {nth}: {key:?} is {found:?}"
                    );
                }) {
                    nth += 1;
                }
            }
            let stable = (0..children).flat_map(keys).filter(|key| !turns(key)).count();
            for direction in [Direction::Forward, Direction::Reverse] {
                let mut nth = 1;
                while amid::<I>(children, turnover, nth, |tree| {
                    let guard = heap::pin();
                    let mut found: Vec<Vec<u8>> = Vec::new();
                    let mut visit = |key: &[u8], value: index::Value<'_>| {
                        assert!(
                            sound(key, Some(&value)),
                            "{children}, load {nth}: {key:?} is {value:?}"
                        );
                        found.push(key.to_vec());
                        ControlFlow::Continue(())
                    };
                    tree.scan(Bound::Unbounded, Bound::Unbounded, direction, &guard, &mut visit)
                        .expect("no error");
                    if direction == Direction::Reverse {
                        found.reverse();
                    }
                    assert!(
                        found.is_sorted_by(|a, b| a < b),
                        "{children}, load {nth}: {found:?}"
                    );
                    let stayed = found.iter().filter(|key| !turns(key)).count();
                    assert_eq!(stayed, stable, "{children}, load {nth}: {found:?}");
                }) {
                    nth += if children > 10 { 3 } else { 1 };
                }
            }
        }
    }
}

for_each_tree! {
    readers_are_not_misled_by_turnovers => turnovers_do_not_mislead [Stepping];
}
