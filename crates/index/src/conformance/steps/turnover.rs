//! Readers, in a walk and in a get, while slots on their way are emptied and reused for other keys.

use super::readers::{amid, index};
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

/// Sequences of bytes whose keys are removed (`false`) or inserted (`true`): a node may put an inserted key into the
/// slot of a removed one.
const TURNOVERS: [&[(u8, bool)]; 4] = [
    &[(1, false), (200, true)],
    &[(1, false), (1, true)],
    &[(1, false), (200, true), (200, false), (1, true)],
    &[(1, false), (0, false), (200, true), (201, true), (1, true)],
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

/// The keys for a byte, which are below a node or in an array of their own. If there are more than two for each byte, a
/// byte that turns over has one.
fn keys(byte: u8, each: u8) -> impl Iterator<Item = Vec<u8>> {
    let turns = TURNOVERS
        .iter()
        .any(|turnover| turnover.iter().any(|(other, _)| *other == byte));
    let each = if turns && each > 2 { 1 } else { each };
    (1..=each).map(move |last| vec![7, byte, last])
}

/// Removes and inserts the keys of a turnover.
fn turn(tree: &impl Index, turnover: &[(u8, bool)], each: u8) {
    for &(byte, comes) in turnover {
        for key in keys(byte, each) {
            match comes {
                true => tree.upsert(&key, NEW).expect("no error"),
                false => assert!(tree.remove(&key).expect("no error")),
            }
        }
    }
}

/// Each key that stays is found, once and in order; each that comes or goes has a value that it had, or none.
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
                amid::<I>(fill, move |tree| turn(tree, turnover, each), nth, read)
            };
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
                while amid(nth, &|tree| {
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
                while amid(nth, &|tree| {
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
                    let stayed = found.iter().filter(|key| !turns(key)).count();
                    assert_eq!(stayed, stable, "{children}, load {nth}: {found:?}");
                }) {
                    nth += if children > 20 { 3 } else { 1 };
                }
            }
        }
    }
}

/// What a get finds.
fn get(tree: &impl Index, key: &[u8]) -> Option<Vec<u8>> {
    let guard = heap::pin();
    let found = tree.get(key, &guard).expect("no error");
    found.map(|value| value.to_vec())
}

/// A reader looks for a key. After its `nth` load the key is removed, and after step number `step` of its reinsertion
/// the reader goes on: if it finds the new value, so do readers that come then, before the next step. Returns whether
/// the reader makes `nth` loads, and whether the insertion takes `step` steps.
fn go_on_amid_an_insertion<I>(children: u8, nth: usize, step: usize) -> (bool, bool)
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
    let reached = Rc::new(Cell::new(false));
    let is_stopped = std::thread::scope(|scope| {
        let shared = &*tree;
        scope.spawn(move || {
            let mut loads = 0;
            let hook = move |step| {
                loads += usize::from(step == ThreadStep::Load);
                if step == ThreadStep::Load && loads == nth {
                    stop.send(()).expect("the test waits");
                    // The insertion may have ended.
                    let _ = may_go.recv();
                }
            };
            let _ = sender.send(with_hook(hook, || get(shared, &key)));
        });
        let is_stopped = stopped.recv().is_ok();
        if is_stopped {
            assert!(tree.remove(&key).expect("no error"));
            let (later, is_reached, mut steps) = (Rc::clone(&tree), Rc::clone(&reached), 0);
            let hook = move |_| {
                steps += 1;
                if steps == step {
                    is_reached.set(true);
                    go.send(()).expect("the reader waits");
                    if receiver
                        .recv_timeout(PATIENCE)
                        .expect("the reader ends")
                        .as_deref()
                        == Some(NEW)
                    {
                        let what = format!("{children} children, load {nth}, step {step}");
                        assert_eq!(get(&*later, &key).as_deref(), Some(NEW), "{what}");
                    }
                }
            };
            with_hook(hook, || tree.upsert(&key, NEW).expect("no error"));
        }
        is_stopped
    });
    (is_stopped, reached.get())
}

/// A key is removed and inserted again, which a node may put into the same slot, while a reader is on its way to it:
/// once that reader has found the new value, all readers do, at whichever step of the insertion that is.
pub fn readers_find_no_insertion_too_early<I: OnHeap<Media = Stepping> + 'static>() {
    for children in [3, 10, 30, 60] {
        for nth in 1.. {
            let ends = (1..).find_map(|step| {
                let (is_stopped, is_reached) = go_on_amid_an_insertion::<I>(children, nth, step);
                (!is_reached).then_some(!is_stopped)
            });
            if ends == Some(true) {
                break;
            }
        }
    }
}
