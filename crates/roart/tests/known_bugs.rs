//! What published implementations of this design got wrong, each as a property.
//!
//! Here: what has to do with restarts, locks and memory. Elsewhere, in the conformance suite
//! (`index::conformance`, run by `conformance.rs`):
//!
//! | The bug | The property |
//! |---|---|
//! | two inserts of one key both pass the check made before the lock | `racing_inserts_have_one_winner` |
//! | an update locks something else than a remove: a removed key comes back | `hot_keys_are_linearizable` |
//! | a key that is a prefix of another; zero bytes; the empty key | `chains_of_prefixes`, `zeros_and_ones` |
//! | a prefix read before the lock is trusted under it; an obsolete node written | `neighbours_are_linearizable` |
//! | the full key is not compared after skipped bytes | `shared_prefixes`, `long_keys` |
//! | a node left with one child, or none | `grows_and_empties_key_by_key` |
//! | a value is used after its guard is gone | `borrowed_values_stay` |
//! | fingerprints of signed bytes; any of the 256 bytes at any position | `every_byte_everywhere` |
//! | a scan misses a key that a get finds | `scans_see_stable_keys`, and every comparison with the model |
//! | every update leaks the old leaf | `overwrites_leak_nothing` |
//! | ablation variants tested less than the default | the suite runs for each of them |
//!
//! That the lines of a new object, its header's too, are written back before it is published is counted in
//! `persist_counts.rs`, and does not compile otherwise (`pmem`).

mod common;

use common::{Model, Store};
use index::{Action, Edit, Index};
use pmem::{Hardware, Media, Purpose};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use wollemi_roart::{
    Full, Raw, Roart, Streaming, Variant, WithoutEc, WithoutInline, WithoutLc, WithoutMo, WithoutSmp,
};

const VALUE: &[u8] = b"8 bytes!";

/// Sixteen-byte keys that lead to a node with `children` children below `first`; further ones have room to join.
fn fan(first: u8, children: u8) -> impl Iterator<Item = Vec<u8>> {
    let each = 65usize.div_ceil(children.into()) as u8;
    (0..children).rev().flat_map(move |child| {
        (0..each).map(move |i| [&[first, b'-', 255 - child, b'-', b'a' + i][..], b"~~~~~~~~~~~"].concat())
    })
}

/// Runs the property for each variant.
macro_rules! each_variant {
    ($property:ident) => {{
        $property::<Full>();
        $property::<Streaming>();
        $property::<WithoutInline>();
        $property::<WithoutEc>();
        $property::<WithoutSmp>();
        $property::<WithoutMo>();
        $property::<WithoutLc>();
        $property::<Raw>();
    }};
}

/// A count rebuilt wrongly at the first touch after a restart makes the next insert overwrite the last child. A node
/// of each size is filled up after a restart, to its capacity and past it, or emptied; nothing old or new is lost.
#[test]
fn nodes_fill_up_and_empty_after_a_restart() {
    fn property<V: Variant>() {
        for (i, children) in [2, 3, 4, 5, 15, 16, 17, 40, 47, 48, 49, 60]
            .into_iter()
            .enumerate()
        {
            let mut model = Model::new();
            let mut store = Store::<V>::create();
            for key in fan(b'n', children) {
                store.put(&mut model, &key, VALUE);
            }
            store = if i % 2 == 0 {
                store.reopen()
            } else {
                store.crashed()
            };
            // The node is at level 2.
            for byte in 0..=160u8 {
                store.put(&mut model, &[b'n', b'-', byte, b'+'], b"new, of another length");
                if [0, 1, 2, 16, 48].contains(&byte) {
                    store.compare(&model);
                }
            }
            store = store.crashed();
            let keys: Vec<_> = model.keys().cloned().collect();
            for key in keys {
                store.remove(&mut model, &key);
                if model.len().is_multiple_of(40) {
                    store.compare(&model);
                }
            }
        }
    }
    each_variant!(property);
}

/// A large index, restarted, takes a third more keys and loses none.
#[test]
fn old_keys_stay_when_new_ones_come_after_a_restart() {
    fn property<V: Variant>() {
        let mut model = Model::new();
        let number = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let mut store = Store::<V>::create();
        for i in 0..15_000 {
            store.put(&mut model, &number(i), VALUE);
        }
        store = store.reopen();
        for i in 15_000..20_000 {
            store.put(&mut model, &number(i), b"another value");
        }
        store.compare(&model);
    }
    each_variant!(property);
}

/// Some hangs and losses need two crashes to show: one restart after another, with nothing, little, or much done
/// between.
#[test]
fn restarts_follow_restarts() {
    fn property<V: Variant>() {
        let mut model = Model::new();
        let mut store = Store::<V>::create();
        for key in fan(b'r', 30).chain(fan(b's', 60)) {
            store.put(&mut model, &key, VALUE);
        }
        for round in 0..12u8 {
            store = if round % 3 == 2 {
                store.reopen()
            } else {
                store.crashed()
            };
            for i in 0..round % 4 * 7 {
                store.put(
                    &mut model,
                    &[b"rs"[usize::from(i % 2)], b'-', round * 10 + i],
                    VALUE,
                );
            }
            if round % 5 == 4 {
                store.compare(&model);
            }
        }
        store.compare(&model);
    }
    each_variant!(property);
}

/// An edit that stops in its middle, with its key's lock held, until it is let go.
struct Blocking {
    reached: SyncSender<()>,
    go: Receiver<()>,
    action: Action,
}

impl Edit for Blocking {
    fn decide(&mut self, _current: Option<&[u8]>) -> Action {
        self.reached.send(()).expect("the test waits");
        self.go.recv().expect("the test lets go");
        self.action
    }
    fn value(&self) -> &[u8] {
        b"in progress"
    }
}

/// A crash amid an edit leaves its lock taken in the file: the lock is free after the crash, whatever it guards, and
/// the edit has not happened. So again after a second crash amid the same edit.
#[test]
fn locks_held_at_a_crash_are_free_after_it() {
    fn property<V: Variant>() {
        let mut model = Model::new();
        let mut store = Store::<V>::create();
        for (first, children) in [(b'a', 3), (b'b', 10), (b'c', 30), (b'd', 60)] {
            for key in fan(first, children) {
                store.put(&mut model, &key, VALUE);
            }
        }
        for key in [&b"in an array, one"[..], b"in an array, two"] {
            store.put(&mut model, key, VALUE);
        }
        store.put(&mut model, b"zero", VALUE);
        let present = model.keys().step_by(17).cloned();
        let others = [
            "zero",
            "in an array, one",
            "a-~",
            "b-~",
            "c-~",
            "d-~",
            "nowhere yet",
            "in an array, three",
        ];
        let keys: Vec<Vec<u8>> = present.chain(others.map(|key| key.into())).collect();
        for (i, key) in keys.iter().enumerate() {
            let action = if i % 2 == 0 { Action::Put } else { Action::Remove };
            for _ in 0..2 {
                let image = crash_amid_edit(&store, key, action);
                // The edit of the original was carried out in the end; the image is from before.
                store = image;
            }
            store.put(&mut model, key, if i % 3 == 0 { b"after" } else { VALUE });
            if i % 4 == 0 {
                store.remove(&mut model, key);
            }
        }
        store.compare(&model);
        for key in keys {
            store.put(&mut model, &key, b"at last");
        }
        store.compare(&model);
    }
    each_variant!(property);
}

/// What opens from a copy of the file made while an edit of `key` is under way.
fn crash_amid_edit<V: Variant>(store: &Store<V>, key: &[u8], action: Action) -> Store<V> {
    let (reached, is_reached) = sync_channel(0);
    let (let_go, go) = sync_channel(0);
    let mut edit = Blocking { reached, go, action };
    std::thread::scope(|threads| {
        let editor = threads.spawn(move || store.index.write(key, &mut edit).expect("no error"));
        is_reached.recv().expect("the edit gets there");
        let image = store.crashed();
        let_go.send(()).expect("the edit waits");
        editor.join().expect("no panic");
        image
    })
}

/// Whatever flags a crash leaves in locks (taken, obsolete, amid a repair: any line with a lock may have been written
/// back at any moment), they mean nothing after it.
#[test]
fn flags_of_locks_mean_nothing_after_a_crash() {
    fn property<V: Variant>() {
        let mut model = Model::new();
        let mut store = Store::<V>::create();
        for (first, children) in [(b'a', 3), (b'b', 10), (b'c', 30), (b'd', 60)] {
            for key in fan(first, children) {
                store.put(&mut model, &key, VALUE);
            }
        }
        for _ in 0..3 {
            let folder = common::folder();
            let path = folder.path().join("pool");
            std::fs::copy(store.path(), &path).expect("a copy");
            let generation = u64::from(store.index.heap().generation());
            assert!(set_all_flags(&path, generation) > 4);
            store = Store::open_in(folder, Hardware::detect());
            store.compare(&model);
            let keys: Vec<_> = model.keys().cloned().collect();
            for (i, key) in keys.iter().enumerate() {
                match i % 3 {
                    0 => store.put(&mut model, key, b"a new leaf"),
                    1 => store.put(&mut model, &[key, &b"~"[..]].concat(), VALUE),
                    _ => store.remove(&mut model, key),
                }
            }
            store.compare(&model);
        }
    }
    each_variant!(property);
}

/// Sets all flags in everything that looks like a lock word of the generation; keys and values do not.
fn set_all_flags(path: &std::path::Path, generation: u64) -> usize {
    let mut bytes = std::fs::read(path).expect("read");
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(path)
        .expect("opened");
    let directory_end = common::options().page_size as usize;
    let mut set = 0;
    for at in (directory_end..bytes.len()).step_by(8) {
        let word = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        if word >> 32 == generation && word & 0xffff_ffff <= 7 {
            bytes[at..at + 8].copy_from_slice(&(word | 7).to_le_bytes());
            file.write_all_at(&bytes[at..at + 8], at as u64).expect("written");
            set += 1;
        }
    }
    set
}

/// Counts stores that mean something within this generation only.
#[derive(Clone)]
struct Volatile(Hardware, Arc<AtomicU64>);

// SAFETY: all is passed on to the hardware.
unsafe impl Media for Volatile {
    fn load(&self, word: &AtomicU64) -> u64 {
        self.0.load(word)
    }
    fn store(&self, word: &AtomicU64, value: u64) {
        self.0.store(word, value);
    }
    fn compare_exchange(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        self.0.compare_exchange(word, old, new)
    }
    fn store_nt(&self, word: &AtomicU64, value: u64) {
        self.0.store_nt(word, value);
    }
    fn write_back(&self, at: *const u8, purpose: Purpose) {
        self.0.write_back(at, purpose);
    }
    fn fence(&self, purpose: Purpose) {
        self.0.fence(purpose);
    }
    fn load_volatile(&self, word: &AtomicU64) -> u64 {
        self.0.load_volatile(word)
    }
    fn store_volatile(&self, word: &AtomicU64, value: u64) {
        self.1.fetch_add(1, Relaxed);
        self.0.store_volatile(word, value);
    }
    fn compare_exchange_volatile(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        self.0.compare_exchange_volatile(word, old, new)
    }
}

/// A node is repaired at its first touch after a restart, once; one made after the restart never is, since its
/// generation is set.
#[test]
fn nodes_are_repaired_once_and_new_ones_never() {
    let stores = Arc::new(AtomicU64::new(0));
    let media = || Volatile(Hardware::detect(), Arc::clone(&stores));
    let mut store = Store::<Full, Volatile>::create_on(media());
    let mut model = Model::new();
    for key in fan(b'o', 30) {
        store.put(&mut model, &key, VALUE);
    }
    store = store.reopen_on(media());
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

/// What threads have freed serves again when they have ended, and so does what they had claimed.
#[test]
fn memory_of_ended_threads_is_reused() {
    let store = Store::<Full>::create();
    let round = |round: u64| {
        std::thread::scope(|threads| {
            for thread in 0..3u64 {
                let index = &store.index;
                threads.spawn(move || {
                    for half in [true, false] {
                        for i in 0..4000u64 {
                            let key = (thread << 56 | (i << 20) ^ round).to_be_bytes();
                            let value = [round as u8; 40];
                            if half {
                                assert!(index.insert(&key, &value).expect("no error"));
                                assert!(index.update(&key, &value[..30]).expect("no error"));
                            } else {
                                assert!(index.remove(&key).expect("no error"));
                            }
                        }
                    }
                });
            }
        });
        for _ in 0..100 {
            heap::pin().flush();
        }
        store.index.heap().pool().len()
    };
    let early = (0..5).map(round).max();
    let late = (5..40).map(round).max();
    // Without reuse each round would take some megabytes more.
    assert!(
        late <= early.map(|len| len * 2),
        "{early:?} bytes became {late:?}"
    );
    store.compare(&Model::new());
}

/// Nodes with and without entry compression keep their key bytes in different places, as do indexes with and without
/// inline leaf arrays their pairs: neither opens the other's.
#[test]
fn variants_do_not_misread_each_other() {
    let store = Store::<Full>::create();
    let heap = store.index.heap();
    assert!(matches!(
        Roart::<Hardware, WithoutEc>::open(heap, b"test"),
        Err(heap::Error::Damaged { .. })
    ));
    assert!(Roart::<Hardware, Streaming>::open(heap, b"test").is_ok_and(|index| index.is_some()));
    assert!(matches!(
        Roart::<Hardware, WithoutInline>::open(heap, b"test"),
        Err(heap::Error::Damaged { .. })
    ));
    let raw = Store::<Raw>::create();
    assert!(matches!(
        Roart::<Hardware, Full>::open(raw.index.heap(), b"test"),
        Err(heap::Error::Damaged { .. })
    ));
    assert!(Roart::<Hardware, WithoutEc>::open(raw.index.heap(), b"test").is_ok_and(|index| index.is_some()));
}
