//! Layers of a damaged pool that are below themselves: a scan ends.

use index::conformance::{Entries, IndexInFile};
use index::{Direction, Index, OnHeap};
use pmem::{Hardware, Link};
use std::ops::{Bound, ControlFlow};
use std::os::unix::fs::FileExt;
use wollemi_recipe::Masstree;

const LAYERS: usize = 12;

/// The tag of a link to a node.
const NODE: u64 = 2;

/// An index whose keys are in `LAYERS` layers, each below the one before it; and the links to the layers, outermost
/// first.
fn layered() -> (IndexInFile<Masstree>, Vec<Link>) {
    let store = IndexInFile::<Masstree>::create();
    let mut model = Entries::new();
    // The last key needs no layer of its own: its leaf contains the rest.
    for layer in 1..=LAYERS + 1 {
        store.put(&mut model, &vec![7; 8 * layer], b"8 bytes!");
    }
    let tracer = Masstree::<Hardware>::tracer();
    // SAFETY: no thread writes.
    let heap = unsafe { store.index().heap().access() };
    let mut layers = Vec::new();
    let roots = heap.roots().expect("sound");
    let mut below = vec![roots[0].1.link];
    while let Some(link) = below.pop() {
        let mut children = Vec::new();
        tracer.trace(heap, link, &mut children).expect("sound");
        children.retain(|link| link.tag().get() >> 1 & 7 == NODE);
        assert!(children.len() < 2, "{children:?}");
        layers.extend(&children);
        below.extend(children);
    }
    assert_eq!(layers.len(), LAYERS);
    (store, layers)
}

/// Opens a copy of the pool in which the link to layer `to` leads to layer `instead`.
fn led_astray(
    store: &IndexInFile<Masstree>,
    layers: &[Link],
    to: usize,
    instead: usize,
) -> IndexInFile<Masstree> {
    let image = store.image();
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .open(image.path().join("pool"))
        .expect("a file");
    let node = layers[to - 1].offset().expect("not null").get();
    let mut bytes = [0; 256];
    file.read_exact_at(&mut bytes, node).expect("read");
    let link = layers[to].bits().to_le_bytes();
    let words = bytes.chunks_exact(8).enumerate();
    let at: Vec<_> = words.filter(|(_, word)| *word == link).collect();
    assert_eq!(at.len(), 1);
    file.write_all_at(&layers[instead].bits().to_le_bytes(), node + 8 * at[0].0 as u64)
        .expect("written");
    IndexInFile::open_in(image, Hardware::detect())
}

/// Whichever layer leads to itself or one above, in either direction: an error, after a few rounds at most.
#[test]
fn scans_end_where_a_layer_is_below_itself() {
    let (store, layers) = layered();
    for to in 1..LAYERS {
        for instead in 0..to {
            let damaged = led_astray(&store, &layers, to, instead);
            for direction in [Direction::Forward, Direction::Reverse] {
                let mut seen = 0;
                let mut visit = |_: &[u8], _: index::Value<'_>| {
                    seen += 1;
                    ControlFlow::Continue(())
                };
                let guard = heap::pin();
                let index = damaged.index();
                let result = index.scan(Bound::Unbounded, Bound::Unbounded, direction, &guard, &mut visit);
                let error = result.expect_err("a layer below itself").to_string();
                assert!(error.contains("layer below itself"), "{error}");
                assert!(seen <= 4 * LAYERS, "{seen} keys, layer {to} leads to {instead}");
            }
        }
    }
}
