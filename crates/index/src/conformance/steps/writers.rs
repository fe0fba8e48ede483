//! A writer during another write.

use super::readers::index;
use super::{StepChange, Stepping, ThreadStep, changes, with_hook, with_waits_hook};
use crate::conformance::{ALL, Entries, visit as visit_index};
use crate::{Direction, Index, OnHeap, Value};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::mpsc::channel;

/// Maximum length of keys; longer prefixes are of the same kinds.
const MAX_KEY_LEN: usize = 48;

/// Maximum number of keys for which every load is stopped at.
const MAX_KEYS_FOR_EVERY_LOAD: usize = 60;

/// Makes `change` in `tree`, and after its `nth` load `other`, in another thread: completely, or until that thread
/// waits; it then goes on when `change` does. Returns `false` if there are fewer loads; `other` then comes after
/// `change`.
fn beside<I: OnHeap<Media = Stepping>>(
    tree: &I,
    change: &StepChange,
    other: &StepChange,
    nth: usize,
) -> bool {
    let (go, may_go) = channel();
    let (sender, receiver) = channel();
    let reached = Rc::new(Cell::new(0));
    std::thread::scope(|scope| {
        let second = scope.spawn(move || {
            let waits = sender.clone();
            // The first thread may have ended.
            if may_go.recv().is_ok() {
                with_waits_hook(move || _ = waits.send(()), || other.apply(tree));
                let _ = sender.send(());
            }
        });
        let loads = Rc::clone(&reached);
        let hook = move |step| {
            loads.set(loads.get() + usize::from(step == ThreadStep::Load));
            if step == ThreadStep::Load && loads.get() == nth {
                go.send(()).expect("the writer waits for this hook");
                receiver.recv().expect("the writer ends or waits");
            }
        };
        with_hook(hook, || change.apply(tree));
        second.join().expect("the second writer goes on");
    });
    let is_reached = reached.get() >= nth;
    if !is_reached {
        other.apply(tree);
    }
    is_reached
}

/// Whether the two changes begin with the same entries and have different keys that are not too long. So they may come
/// in either order, and neither removes what the other needs.
fn go_together(change: &StepChange, other: &StepChange) -> bool {
    change.before == other.before && change.key.len() <= MAX_KEY_LEN && change.key != other.key
}

/// Two writers of different keys both complete their changes, wherever one interrupts the other: all keys are there
/// afterwards, by gets and by a scan, and the check finds no fault.
pub fn writers_do_not_mislead_writers<I: OnHeap<Media = Stepping> + 'static>() {
    let changes = changes();
    for change in &changes {
        for other in changes.iter().filter(|other| go_together(change, other)) {
            let mut after: Entries = change.after();
            match other.value {
                Some(value) => after.insert(other.key.clone(), value.to_vec()),
                None => after.remove(&other.key),
            };
            let mut nth = 1;
            loop {
                let tree = index::<I>();
                for (key, value) in &change.before {
                    tree.upsert(key, value).expect("no error");
                }
                let goes_on = beside(&*tree, change, other, nth);
                let what = || {
                    let (one, two) = ((change.name, &change.key), (other.name, &other.key));
                    format!("{one:?}, and after load {nth} of it {two:?}")
                };
                compare(&*tree, &after, &what);
                if !goes_on {
                    break;
                }
                nth += if change.before.len() > MAX_KEYS_FOR_EVERY_LOAD {
                    3
                } else {
                    1
                };
            }
        }
    }
}

fn compare<I: OnHeap>(tree: &I, expected: &Entries, what: &dyn Fn() -> String) {
    let guard = heap::pin();
    for (key, value) in expected {
        let found = tree.get(key, &guard).expect("no error");
        assert_eq!(found.as_deref(), Some(&value[..]), "{}: {key:?}", what());
    }
    let mut found = Entries::new();
    let mut visit = |key: &[u8], value: Value<'_>| {
        found.insert(key.to_vec(), value.to_vec());
        ControlFlow::Continue(())
    };
    let walk = visit_index(tree, ALL, Direction::Forward, &guard, &mut visit);
    walk.expect("no error");
    assert_eq!(found, *expected, "{}", what());
    let faults = tree.check().expect("no error");
    assert_eq!(faults.found, [""; 0], "{}", what());
    let audit = tree.heap().audit(&vec![I::tracer()], 1).expect("no error");
    assert!(audit.is_clean(), "{}: {audit:?}", what());
}
