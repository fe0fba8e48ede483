//! Wrong key bytes of an N16: which of them are damage, and which a crash may leave; and damaged links to it.

use art::{Kind, Tagged};
use index::conformance::{Entries, IndexInFile};
use index::{Index, OnHeap};
use pmem::{Hardware, Link};
use std::os::unix::fs::FileExt;
use wollemi_recipe::Part;

/// The offset of a node's counter, whose lowest bit is the mark, and of an N16's key bytes.
const COUNTER: u64 = 8;
const KEYS: u64 = 32;

const CHILDREN: u8 = 10;

/// A tree with an N16, whose entries are in the order of their key bytes, from 0; its contents; and the node's place.
fn tree() -> (IndexInFile<Part>, Entries, u64) {
    tree_below(&[7])
}

/// The same, with another string that leads to the N16.
fn tree_below(string: &[u8]) -> (IndexInFile<Part>, Entries, u64) {
    let store = IndexInFile::<Part>::create();
    let mut model = Entries::new();
    for byte in 0..CHILDREN {
        store.put(&mut model, &[string, &[byte]].concat(), &[byte]);
    }
    let mut below: Vec<Link> = Vec::new();
    let tracer = Part::<Hardware>::tracer();
    // SAFETY: no thread writes.
    let heap = unsafe { store.index().heap().access() };
    tracer
        .trace(heap, store.index().root(), &mut below)
        .expect("sound");
    let node = below
        .pop()
        .filter(|link| link.kind() == Kind::N16)
        .expect("an N16");
    let at = node.offset().expect("not null").get();
    (store, model, at)
}

/// Opens a copy of the pool in which bits of these bytes are flipped.
fn flipped(store: &IndexInFile<Part>, flips: &[(u64, u8)]) -> IndexInFile<Part> {
    let image = store.image();
    let path = image.path().join("pool");
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .open(path)
        .expect("a file");
    for &(at, bits) in flips {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).expect("read");
        file.write_all_at(&[byte[0] ^ bits], at).expect("written");
    }
    IndexInFile::open_in(image, Hardware::detect())
}

fn is_sound(store: &IndexInFile<Part>) -> bool {
    store.index().check().expect("no error").found.is_empty()
}

/// Every bit of every key byte is checked, and a key byte of zero.
#[test]
fn checks_find_every_damaged_key_byte() {
    let (store, _, node) = tree();
    for entry in 0..CHILDREN {
        // A key byte is its entry's number.
        for bits in (0..8)
            .map(|bit| 1 << bit)
            .chain([entry])
            .filter(|bits| *bits != 0)
        {
            let damaged = flipped(&store, &[(node + KEYS + u64::from(entry), bits)]);
            assert!(!is_sound(&damaged), "entry {entry}, bits {bits:#x}");
        }
    }
}

/// If the words of a line become durable in any order, the last entry's key byte may be missing, while the counter
/// has its mark: then the key is absent, and the first holder of the lock empties the entry. This applies to no other
/// entry, and not without the mark.
#[test]
fn a_key_byte_that_a_crash_has_left_out_is_no_damage() {
    let (store, mut model, node) = tree();
    let mark = (node + COUNTER, 1);
    for entry in 1..CHILDREN {
        let torn = flipped(&store, &[mark, (node + KEYS + u64::from(entry), entry)]);
        assert_eq!(is_sound(&torn), entry + 1 == CHILDREN, "entry {entry}");
    }
    let last = CHILDREN - 1;
    let torn = flipped(&store, &[mark, (node + KEYS + u64::from(last), last)]);
    model.remove(&[7, last][..]);
    torn.compare(&model);
    torn.put(&mut model, &[7, 200], b"beside it");
    torn.compare(&model);
    torn.put(&mut model, &[7, last], b"again");
    torn.compare(&model);
    let reopened = torn.reopen();
    reopened.compare(&model);
}

/// Whichever bit of the link to an N16 is damaged, of those that make it lead to another kind of node or to another
/// place: the write is an error, and has stored nothing beyond the lock beside the link.
fn is_refused(store: &IndexInFile<Part>, node: u64, write: impl Fn(&Part) -> Result<bool, index::Error>) {
    let bytes = std::fs::read(store.path()).expect("read");
    let leads_there = |at: &usize| {
        let word = bytes[*at..][..8].try_into().expect("eight bytes");
        u64::from_le_bytes(word) & 0xffff_ffff_fffe == node | (Kind::N16 as u64) << 1
    };
    let slots: Vec<usize> = (0..bytes.len()).step_by(8).filter(leads_there).collect();
    let [slot] = slots[..] else {
        panic!("{slots:?} lead to the node")
    };
    // Two bits of the kind, and those of the place, which is a multiple of 64.
    for bit in [1, 2].into_iter().chain(6..24) {
        let damaged = flipped(store, &[(slot as u64 + bit / 8, 1 << (bit % 8))]);
        damaged.index().heap().wait_recovered();
        let image = || std::fs::read(damaged.path()).expect("read");
        let before = image();
        let written = write(damaged.index());
        let now = image();
        let differs = |&at: &usize| before[at] != now[at] && at / 64 != slot / 64;
        let changed: Vec<usize> = (0..before.len()).filter(differs).collect();
        assert!(changed.is_empty(), "bit {bit}: changes at {changed:x?}");
        assert!(written.is_err(), "bit {bit}: {written:?}");
    }
}

/// A writer compares a node with the link that has led there before it locks it.
#[test]
fn writers_store_nothing_behind_a_damaged_link() {
    let (store, _, node) = tree();
    is_refused(&store, node, |index| index.insert(&[7, 200], b"a value"));
    is_refused(&store, node, |index| index.remove(&[7, 3]));
}

/// A node whose only other child is removed is replaced by the one below it, which is locked for that.
#[test]
fn removals_store_nothing_behind_a_damaged_link() {
    let (store, mut model, node) = tree_below(&[7, 5]);
    store.put(&mut model, &[7, 9], b"beside it");
    is_refused(&store, node, |index| index.remove(&[7, 9]));
    store.remove(&mut model, &[7, 9]);
    store.compare(&model);
}
