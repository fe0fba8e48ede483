//! Processes killed during a change, as images of their pools.

use index::conformance::steps::{Stepping, Steps, ThreadStep, with_hook};
use index::conformance::{Entries, IndexInFile};
use index::{Index, OnHeap};
use pmem::Hardware;
use std::cell::RefCell;
use std::rc::Rc;
use tempfile::TempDir;

pub type Stepped<I> = Rc<IndexInFile<I>>;

/// Keys of eight bytes, in the order of their numbers.
pub fn key(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// An index of these keys, and its contents.
pub fn filled<I: OnHeap<Media = Stepping>>(numbers: impl Iterator<Item = u64>) -> (Stepped<I>, Entries) {
    let store = IndexInFile::<I>::create_on(Stepping::machine(Steps));
    let mut model = Entries::new();
    for number in numbers {
        store.put(&mut model, &key(number), b"8 bytes!");
    }
    (Rc::new(store), model)
}

/// The images that a process leaves if it is killed before `change`, or after one of its steps that alter memory.
pub fn images<I: OnHeap + 'static>(store: &Stepped<I>, change: impl FnOnce(&I)) -> Vec<TempDir> {
    let images = Rc::new(RefCell::new(vec![store.image()]));
    let (source, copies) = (Rc::clone(store), Rc::clone(&images));
    let hook = move |step| {
        if matches!(step, ThreadStep::Store | ThreadStep::Unpersisted) {
            copies.borrow_mut().push(source.image());
        }
    };
    with_hook(hook, || change(store.index()));
    images.take()
}

/// Opens the image of a killed process.
pub fn open<I: OnHeap<Media = Hardware>>(image: TempDir) -> IndexInFile<I> {
    IndexInFile::open_in(image, Hardware::detect())
}

/// The contents of the index, if all but one key are as in `model`: accepts either state of the key in flight.
pub fn decided<I: OnHeap>(store: &IndexInFile<I>, model: &Entries, key: &[u8], value: &[u8]) -> Entries {
    let mut model = model.clone();
    let guard = heap::pin();
    if store.index().get(key, &guard).expect("no error").is_some() {
        model.insert(key.to_vec(), value.to_vec());
    } else {
        model.remove(key);
    }
    model
}
