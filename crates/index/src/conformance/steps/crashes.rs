//! A crash after each step of a change.

use super::{StepChange, Stepping, Steps, ThreadStep, changes, with_hook};
use crate::conformance::IndexInFile;
use crate::{Index, OnHeap};
use pmem::Hardware;
use std::cell::RefCell;
use std::rc::Rc;
use tempfile::TempDir;

/// The files that a killed process leaves after each step of the change that alters memory or makes it durable.
fn images<S: OnHeap<Media = Stepping> + 'static>(change: &StepChange) -> Vec<TempDir> {
    let store = Rc::new(IndexInFile::<S>::create_on(Stepping::machine(Steps)));
    for (key, value) in &change.before {
        store.index().upsert(key, value).expect("no error");
    }
    let images = Rc::new(RefCell::new(vec![store.image()]));
    let (source, copies) = (Rc::clone(&store), Rc::clone(&images));
    let hook = move |step| {
        if step != ThreadStep::Load {
            copies.borrow_mut().push(source.image());
        }
    };
    with_hook(hook, || change.apply(store.index()));
    images.take()
}

/// After a crash at any step all keys are there, and the one being changed has its old value or its new one: the old
/// before the commit point, the new after it. Then the tree accepts further changes of all kinds. `S` and `T` are one
/// index, on two media.
pub fn any_step_can_be_the_last<S: OnHeap<Media = Stepping> + 'static, T: OnHeap<Media = Hardware>>() {
    for change in changes() {
        let (before, after) = (&change.before, &change.after());
        let mut is_after = false;
        for (i, image) in images::<S>(&change).into_iter().enumerate() {
            let what = || format!("{}, after step {i}, key {:?}", change.name, change.key);
            let store = IndexInFile::<T>::open_in(image, Hardware::detect());
            let found = {
                let guard = heap::pin();
                let value = store.index().get(&change.key, &guard).expect("no error");
                value.map(|value| value.to_vec())
            };
            is_after |= found.as_ref() == after.get(&change.key);
            let mut model = if is_after { after } else { before }.clone();
            assert_eq!(found.as_ref(), model.get(&change.key), "{}", what());
            store.compare(&model);
            // Down every path: new keys beside all existing ones, and then all old ones are removed.
            let keys: Vec<_> = model.keys().cloned().collect();
            for key in &keys {
                let parts = key.len().saturating_sub(2);
                for part in [parts, parts + 1, key.len()] {
                    if let Some(lead) = key.get(..part) {
                        store.put(&mut model, &[lead, &[0x4f]].concat(), b"8 bytes.");
                    }
                }
            }
            store.compare(&model);
            for key in &keys {
                store.remove(&mut model, key);
            }
            store.compare(&model);
        }
        assert!(is_after, "{}: the last image has the change", change.name);
    }
}
