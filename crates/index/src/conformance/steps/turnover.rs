//! Gets and walks during which a node's slots are emptied and reused for other keys (ABA).

use super::readers::{amid, at_each_load, index};
use super::{Stepping, ThreadStep, with_hook};
use crate::conformance::{ALL, visit as visit_index};
use crate::{Direction, Index, OnHeap, Value};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Upper bound on the wait for the reader; beyond it the test counts as hung.
const PATIENCE: Duration = Duration::from_secs(120);

const OLD: &[u8] = b"old";
const NEW: &[u8] = b"new";

/// A change of all keys with this second byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Remove(u8),
    Insert(u8),
}
use Change::{Insert, Remove};

impl Change {
    fn byte(self) -> u8 {
        let (Remove(byte) | Insert(byte)) = self;
        byte
    }
}

/// Changes after which a node may have an inserted key in the slot of a removed one.
const TURNOVERS: [&[Change]; 4] = [
    &[Remove(1), Insert(200)],
    &[Remove(1), Insert(1)],
    &[Remove(1), Insert(200), Remove(200), Insert(1)],
    &[Remove(1), Remove(0), Insert(200), Insert(201), Insert(1)],
];

/// Numbers of children of a node, and of keys below each. An index that keeps few leaves in one array has nodes only
/// where there are many.
const SHAPES: [(u8, u8); 9] = [
    (3, 1),
    (3, 2),
    (4, 2),
    (10, 1),
    (10, 2),
    (30, 1),
    (60, 2),
    (10, 9),
    (20, 7),
];

/// Returns the keys with this second byte, which are below a node or in an array of their own. With more than two keys
/// per byte, bytes of a turnover have one, so that one change empties or fills the byte's slot.
fn keys(byte: u8, each: u8) -> impl Iterator<Item = Vec<u8>> {
    let is_turned_over = TURNOVERS
        .iter()
        .any(|turnover| turnover.iter().any(|change| change.byte() == byte));
    let each = if is_turned_over && each > 2 { 1 } else { each };
    (1..=each).map(move |last| vec![7, byte, last])
}

fn apply_turnover(tree: &impl Index, turnover: &[Change], each: u8) {
    for &change in turnover {
        for key in keys(change.byte(), each) {
            match change {
                Insert(_) => tree.upsert(&key, NEW).expect("no error"),
                Remove(_) => assert!(tree.remove(&key).expect("no error")),
            }
        }
    }
}

/// During a turnover after any load of a get or walk: keys outside the turnover are found, once and in order; keys of
/// the turnover have one of their values, or none.
pub fn turnovers_do_not_mislead_readers<I: OnHeap<Media = Stepping> + 'static>() {
    for (children, each) in SHAPES {
        let keys = move |byte| keys(byte, each);
        for turnover in TURNOVERS {
            let amid = |nth, read: &dyn Fn(&I)| {
                let fill = |tree: &I| {
                    for key in (0..children).flat_map(keys) {
                        tree.upsert(&key, OLD).expect("no error");
                    }
                };
                amid::<I>(fill, move |tree| apply_turnover(tree, turnover, each), nth, read)
            };
            let is_turned_over = |key: &[u8]| turnover.iter().any(|change| change.byte() == key[1]);
            let sound = |key: &[u8], value: Option<&[u8]>| match (is_turned_over(key), value) {
                (false, value) => value == (key[1] < children).then_some(OLD),
                (true, None) => true,
                (true, Some(value)) => {
                    value == OLD && key[1] < children || value == NEW && turnover.contains(&Insert(key[1]))
                }
            };
            let bytes = (0..children.min(5)).chain([200, 201]);
            for key in bytes.flat_map(keys) {
                let get = |nth| {
                    amid(nth, &|tree| {
                        let found = get(tree, &key);
                        assert!(
                            sound(&key, found.as_deref()),
                            "{children}, load {nth}: {key:?} is {found:?}"
                        );
                    })
                };
                assert!(at_each_load(get), "{children}: a get of {key:?} loads nothing");
            }
            let stable = (0..children)
                .flat_map(keys)
                .filter(|key| !is_turned_over(key))
                .count();
            for direction in [Direction::Forward, Direction::Reverse] {
                let walk = |nth| {
                    amid(nth, &|tree| {
                        let guard = heap::pin();
                        let mut found: Vec<Vec<u8>> = Vec::new();
                        let mut visit = |key: &[u8], value: Value<'_>| {
                            assert!(
                                sound(key, Some(&value)),
                                "{children}, load {nth}: {key:?} is {value:?}"
                            );
                            found.push(key.to_vec());
                            ControlFlow::Continue(())
                        };
                        visit_index(tree, ALL, direction, &guard, &mut visit).expect("no error");
                        if direction == Direction::Reverse {
                            found.reverse();
                        }
                        assert!(
                            found.is_sorted_by(|a, b| I::ORDER.compare(a, b).is_lt()),
                            "{children}, load {nth}: {found:?}"
                        );
                        let stayed = found.iter().filter(|key| !is_turned_over(key)).count();
                        assert_eq!(stayed, stable, "{children}, load {nth}: {found:?}");
                    })
                };
                assert!(at_each_load(walk), "{children}: a walk loads nothing");
            }
        }
    }
}

/// Returns a copy of the key's value.
fn get(tree: &impl Index, key: &[u8]) -> Option<Vec<u8>> {
    let guard = heap::pin();
    let found = tree.get(key, &guard).expect("no error");
    found.map(|value| value.to_vec())
}

/// How far [`get_amid_an_insertion`] came.
#[derive(Clone, Copy, Debug)]
enum Reached {
    /// The get made fewer loads.
    NoSuchLoad,
    /// The insertion took fewer steps.
    NoSuchStep,
    /// The get went on after the insertion's step.
    Both,
}

/// Runs a get that stops after its `nth` load. Meanwhile this thread removes the key and inserts it again, and lets the
/// get continue after step `step` of the insertion. If the get returns the new value, a get that begins before the next
/// step must return it too.
fn get_amid_an_insertion<I>(children: u8, nth: usize, step: usize) -> Reached
where
    I: OnHeap<Media = Stepping> + 'static,
{
    let tree = index::<I>();
    for key in (0..children).flat_map(|byte| keys(byte, 1)) {
        tree.upsert(&key, OLD).expect("no error");
    }
    let key = [7, 1, 1];
    let (stop, stopped) = channel();
    let (go, may_go) = channel::<()>();
    let (sender, receiver) = channel();
    let reached = Rc::new(Cell::new(Reached::NoSuchStep));
    std::thread::scope(|scope| {
        let shared = &*tree;
        scope.spawn(move || {
            let mut loads = 0;
            let hook = move |step| {
                loads += usize::from(step == ThreadStep::Load);
                if step == ThreadStep::Load && loads == nth {
                    stop.send(()).expect("the test waits");
                    // The insertion may end before that step; the sender is then dropped.
                    let _ = may_go.recv();
                }
            };
            let _ = sender.send(with_hook(hook, || get(shared, &key)));
        });
        if stopped.recv().is_err() {
            return Reached::NoSuchLoad;
        }
        assert!(tree.remove(&key).expect("no error"));
        let (later, outcome, mut steps) = (Rc::clone(&tree), Rc::clone(&reached), 0);
        let hook = move |_| {
            steps += 1;
            if steps == step {
                go.send(()).expect("the reader waits");
                let found = receiver.recv_timeout(PATIENCE).expect("the reader ends");
                if found.as_deref() == Some(NEW) {
                    let what = format!("{children} children, load {nth}, step {step}");
                    assert_eq!(get(&*later, &key).as_deref(), Some(NEW), "{what}");
                }
                outcome.set(Reached::Both);
            }
        };
        with_hook(hook, || tree.upsert(&key, NEW).expect("no error"));
        reached.get()
    })
}

/// A key is removed and inserted again, which a node may put into the same slot, during a get of it: once that get has
/// returned the new value, all do, whichever step of the insertion the first reader continued after. (In an index that
/// copies nodes no such get need find it.)
pub fn readers_find_no_insertion_too_early<I: OnHeap<Media = Stepping> + 'static>() {
    for children in [3, 10, 30, 60] {
        let mut went_on = false;
        'loads: for nth in 1.. {
            for step in 1.. {
                match get_amid_an_insertion::<I>(children, nth, step) {
                    Reached::NoSuchLoad => break 'loads,
                    Reached::NoSuchStep => break,
                    Reached::Both => went_on = true,
                }
            }
        }
        assert!(went_on, "{children} children: no get went on amid the insertion");
    }
}
