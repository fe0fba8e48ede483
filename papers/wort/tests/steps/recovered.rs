//! Headers that a crash has left behind.

use index::conformance::IndexInFile;
use index::conformance::steps::{StepChange, Stepping, Steps, ThreadStep, changes, with_hook};
use index::{Index, OnHeap};
use pmem::{Counting, Hardware};
use std::cell::RefCell;
use std::ops::Bound;
use std::rc::Rc;
use tempfile::TempDir;
use wollemi_wort::woart::Woart;
use wollemi_wort::wort::Wort;

/// The state left by a crash between the two steps of a change, the header's and the slot's.
fn image_between<S: OnHeap<Media = Stepping> + 'static>(change: &StepChange) -> TempDir {
    let store = Rc::new(IndexInFile::<S>::create_on(Stepping::machine(Steps)));
    for (key, value) in &change.before {
        store.index().upsert(key, value).expect("no error");
    }
    let image = Rc::new(RefCell::new(None));
    let (source, copy) = (Rc::clone(&store), Rc::clone(&image));
    let hook = move |step| {
        if step == ThreadStep::Unpersisted {
            copy.borrow_mut().get_or_insert_with(|| source.image());
        }
    };
    with_hook(hook, || change.apply(store.index()));
    image.take().expect("the header is stored")
}

/// A header that a crash has left behind is recovered by the next writer that reaches it, once, by one store. Readers
/// do without it, and store nothing.
fn headers_are_recovered<S: OnHeap<Media = Stepping> + 'static, T: OnHeap<Media = Counting>>() {
    let mut recovered = 0;
    for change in changes() {
        let splits = change.name.starts_with("split");
        if !splits && !change.name.starts_with("a node is left") {
            continue;
        }
        let media = Counting::new(Hardware::detect());
        let store = IndexInFile::<T>::open_in(image_between::<S>(&change), media.clone());
        store.index().heap().wait_recovered();
        // Below the node in question.
        let other = change
            .before
            .keys()
            .find(|key| key.ends_with(&[5, 5, 5, 0x22]))
            .expect("there");
        {
            let guard = heap::pin();
            let before = media.counts();
            assert!(store.index().get(other, &guard).expect("no error").is_some());
            let range = store
                .index()
                .range(Bound::Included(other), Bound::Unbounded, &guard);
            assert!(range.count() > 0);
            assert_eq!(
                media.counts(),
                before,
                "{}: a reader has stored something",
                change.name
            );
        }
        let cost = |value: &[u8]| {
            let before = media.counts();
            store.index().upsert(other, value).expect("no error");
            let spent = media.counts() - before;
            (spent.node.write_backs, spent.node.fences, spent.bytes)
        };
        let (first, second) = (cost(b"first"), cost(b"later"));
        assert_eq!(first, (second.0, second.1, second.2 + 8), "{}", change.name);
        assert_eq!(cost(b"again"), second, "{}", change.name);
        recovered += 1;
    }
    assert_eq!(recovered, 7 * 7);
}

#[test]
fn headers_are_recovered_once() {
    headers_are_recovered::<Wort<Stepping>, Wort<Counting>>();
    headers_are_recovered::<Woart<Stepping>, Woart<Counting>>();
}
