//! Headers with wrong bits.

use heap::Heap;
use index::conformance::{Entries, IndexInFile};
use index::{Index, OnHeap};
use pmem::{Hardware, Link};
use std::os::unix::fs::FileExt;
use wollemi_wort::wort::Wort;

/// Places of all nodes.
fn nodes(heap: &Heap) -> Vec<u64> {
    let root = heap.root(b"test").expect("sound").expect("the root").link;
    let (mut stack, mut nodes, mut children): (_, _, Vec<Link>) = (vec![root], Vec::new(), Vec::new());
    // SAFETY: no thread writes.
    let heap = unsafe { heap.access() };
    while let Some(link) = stack.pop() {
        Wort::<Hardware>::tracer()
            .trace(heap, link, &mut children)
            .expect("sound");
        if link != root && !children.is_empty() {
            nodes.push(link.offset().expect("not null").get());
        }
        stack.append(&mut children);
    }
    nodes
}

/// Each bit of each header is checked: a header whose depth is not the one at which its node is reached is sound only
/// if it would be right at that depth.
#[test]
fn checks_find_every_flipped_bit_of_a_header() {
    let store = IndexInFile::<Wort>::create();
    let mut model = Entries::new();
    for key in [
        &b""[..],
        b"\x11",
        b"\x11\x11",
        b"\x11\x11\x11\x11\x11\x22",
        b"\x11\x11\x11\x11\x11\x23",
        b"\x11\x12",
    ] {
        store.put(&mut model, key, b"value");
        store.put(&mut model, &[&[0x42; 300], key].concat(), b"value");
    }
    let nodes = nodes(store.index().heap());
    assert!(nodes.len() >= 8, "{nodes:?}");
    for node in nodes {
        for bit in 0..64 {
            let image = store.image();
            let path = image.path().join("pool");
            let file = std::fs::OpenOptions::new()
                .read(true)
                .write(true)
                .open(path)
                .expect("opened");
            let mut byte = [0];
            file.read_exact_at(&mut byte, node + bit / 8).expect("read");
            file.write_all_at(&[byte[0] ^ 1 << (bit % 8)], node + bit / 8)
                .expect("written");
            let damaged = IndexInFile::<Wort>::open_in(image, Hardware::detect());
            let faults = damaged.index().check().expect("no error").found;
            assert!(!faults.is_empty(), "bit {bit} of the node at {node:#x}");
        }
    }
}
