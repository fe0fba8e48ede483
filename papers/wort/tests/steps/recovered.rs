//! Recovery of compression headers whose depth does not match their place: after a crash during a split, or after a
//! removal that merged nodes.

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

/// Returns the pool as a crash leaves it: after a split has stored the lower node's header and before it has stored the
/// slot; for a removal, after it.
fn crashed<S: OnHeap<Media = Stepping> + 'static>(change: &StepChange) -> TempDir {
    let store = Rc::new(IndexInFile::<S>::create_on(Stepping::machine(Steps)));
    for (key, value) in &change.before {
        store.index().upsert(key, value).expect("no error");
    }
    if change.value.is_none() {
        change.apply(store.index());
        return store.image();
    }
    let image = Rc::new(RefCell::new(None));
    let (source, copy) = (Rc::clone(&store), Rc::clone(&image));
    let hook = move |step| {
        if step == ThreadStep::Unpersisted {
            copy.borrow_mut().get_or_insert_with(|| source.image());
        }
    };
    with_hook(hook, || change.apply(store.index()));
    image.take().expect("the change makes an unpersisted store")
}

/// The next writer that reaches a node with such a header recovers it, once, by one 8-byte store without a write-back.
/// Readers ignore the header's prefix and store nothing. Both types are the same index, on a media with hooks and on
/// one that counts.
fn headers_are_recovered<OnStepping, OnCounting>()
where
    OnStepping: OnHeap<Media = Stepping> + 'static,
    OnCounting: OnHeap<Media = Counting>,
{
    let mut recovered = 0;
    for change in changes() {
        let is_split = change.name.starts_with("split");
        if !is_split && !change.name.starts_with("a node is left") {
            continue;
        }
        let media = Counting::new(Hardware::detect());
        let store = IndexInFile::<OnCounting>::open_in(crashed::<OnStepping>(&change), media.clone());
        store.index().heap().wait_recovered();
        // A key below the node with that header.
        let other = change
            .before
            .keys()
            .find(|key| key.ends_with(&[5, 5, 5, 0x22]))
            .expect("every such change has this key");
        {
            let guard = heap::pin();
            let slot = store.index().get(&change.key, &guard).expect("no error");
            assert!(slot.is_none(), "{}: the key is present", change.name);
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
        let with_header = (second.0, second.1, second.2 + 8);
        assert_eq!(first, with_header, "{}: no header was recovered", change.name);
        assert_eq!(cost(b"again"), second, "{}", change.name);
        recovered += 1;
    }
    // Five kinds of split and two of removal, under seven common prefixes.
    assert_eq!(recovered, 7 * 7);
}

#[test]
fn headers_are_recovered_once() {
    headers_are_recovered::<Wort<Stepping>, Wort<Counting>>();
    headers_are_recovered::<Woart<Stepping>, Woart<Counting>>();
}
