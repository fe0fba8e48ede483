//! Bugs of published implementations of this design. The table names the properties of the conformance suite
//! (`index::conformance`, run by `conformance.rs` for each variant) that would show them; the tests below are those
//! that the suite cannot run for every index.
//!
//! | The bug | The property |
//! |---|---|
//! | two inserts of one key both pass the check made before the lock | `racing_inserts_have_one_winner` |
//! | an update locks something else than a remove: a removed key comes back | `hot_keys_are_linearizable` |
//! | a key that is a prefix of another; zero bytes; the empty key | `chains_of_prefixes`, `extreme_bytes` |
//! | a prefix read before the lock is trusted under it; an obsolete node written | `neighbours_are_linearizable` |
//! | the full key is not compared after skipped bytes | `shared_prefixes`, `long_keys` |
//! | a node left with one child, or none | `grows_and_empties_key_by_key` |
//! | a value is used after its guard is gone | `borrowed_values_stay` |
//! | fingerprints of signed bytes; any of the 256 bytes at any position | `every_byte_everywhere` |
//! | a scan misses a key that a get finds | `scans_see_stable_keys`, and every comparison with the model |
//! | every update leaks the old leaf | `overwrites_leak_nothing` |
//! | a count rebuilt wrongly after a restart | `nodes_fill_up_and_empty_after_a_restart` |
//! | a hang or a loss that takes two crashes | `restarts_follow_restarts` |
//! | a lock held at a crash | `locks_held_at_a_crash_are_free_after_it` |
//! | lock flags left by a crash | `flags_of_locks_mean_nothing_after_a_crash` |
//! | memory of ended threads is lost | `memory_of_ended_threads_is_reused` |
//! | ablation variants tested less than the default | the suite runs for each of them |
//!
//! `persist_counts.rs` counts that the lines of a new object, its header's too, are written back before it is
//! published; code that omits this does not compile (`pmem`).

use index::conformance::{Entries, IndexInFile};
use pmem::watched::{ObservedStep, Observer, StepKind};
use pmem::{Hardware, Watched};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wollemi_roart::{Full, Raw, Roart, Streaming, WithoutEc, WithoutInline};

const VALUE: &[u8] = b"8 bytes!";

/// Sixteen-byte keys that lead to a node with `children` children below `first`; it has room for further ones.
fn fan(first: u8, children: u8) -> impl Iterator<Item = Vec<u8>> {
    let each = 65usize.div_ceil(children.into()) as u8;
    (0..children).rev().flat_map(move |child| {
        (0..each).map(move |i| [&[first, b'-', 255 - child, b'-', b'a' + i][..], b"~~~~~~~~~~~"].concat())
    })
}

/// Counts stores of words that mean something within this generation only.
#[derive(Clone, Default)]
struct Volatile(Arc<AtomicU64>);

impl Observer for Volatile {
    fn before(&self, step: &ObservedStep) {
        if step.what == StepKind::StoreVolatile {
            self.0.fetch_add(1, Relaxed);
        }
    }
}

/// A node is repaired at its first touch after a restart, once; one made after the restart never is, since its
/// generation is current.
#[test]
fn nodes_are_repaired_once_and_new_ones_never() {
    let stores = Arc::new(AtomicU64::new(0));
    let media = || Watched::machine(Volatile(Arc::clone(&stores)));
    let mut store = IndexInFile::<Roart<Watched<Volatile>, Full>>::create_on(media());
    let mut model = Entries::new();
    for key in fan(b'o', 30) {
        store.put(&mut model, &key, VALUE);
    }
    store = IndexInFile::open_in(store.close(), media());
    // An N48's repair writes its index, 32 words.
    let mut insert = |key: &[u8]| {
        let before = stores.load(Relaxed);
        store.put(&mut model, key, VALUE);
        stores.load(Relaxed) - before
    };
    assert!(insert(b"o-1") >= 32, "the first touch repairs");
    for key in [b"o-2", b"o-3", b"o-4"] {
        assert!(insert(key) < 8, "an old node is repaired once");
    }
    let made: Vec<_> = fan(b'p', 30).collect();
    for key in &made {
        insert(key);
    }
    for key in [b"p-1", b"p-2", b"p-3"] {
        assert!(insert(key) < 8, "a new node is not repaired");
    }
    store.compare(&model);
}

/// Nodes with and without entry compression have their key bytes in different places, and indexes with and without
/// inline leaf arrays their pairs: neither opens the other's.
#[test]
fn variants_do_not_misread_each_other() {
    let store = IndexInFile::<Roart<Hardware, Full>>::create();
    let heap = store.index().heap();
    assert!(matches!(
        Roart::<Hardware, WithoutEc>::open(heap, b"test"),
        Err(heap::Error::Damaged { .. })
    ));
    assert!(Roart::<Hardware, Streaming>::open(heap, b"test").is_ok_and(|index| index.is_some()));
    assert!(matches!(
        Roart::<Hardware, WithoutInline>::open(heap, b"test"),
        Err(heap::Error::Damaged { .. })
    ));
    let raw = IndexInFile::<Roart<Hardware, Raw>>::create();
    assert!(matches!(
        Roart::<Hardware, Full>::open(raw.index().heap(), b"test"),
        Err(heap::Error::Damaged { .. })
    ));
    assert!(
        Roart::<Hardware, WithoutEc>::open(raw.index().heap(), b"test").is_ok_and(|index| index.is_some())
    );
}
