//! Mistakes of published implementations about restarts, locks and memory, each as a property of an index on a heap.

use super::store::{Entries, IndexInFile, options};
use super::{Plan, settled};
use crate::{Action, Edit, Index, OnHeap};
use pmem::Hardware;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

const VALUE: &[u8] = b"8 bytes!";

/// Sixteen-byte keys that lead to a node with `children` children below `first`.
fn fan(first: u8, children: u8) -> impl Iterator<Item = Vec<u8>> {
    let each = 65usize.div_ceil(children.into()) as u8;
    (0..children).rev().flat_map(move |child| {
        (0..each).map(move |i| [&[first, b'-', 255 - child, b'-', b'a' + i][..], b"~~~~~~~~~~~"].concat())
    })
}

/// Nodes of several sizes, and keys beside them.
fn fans<I: OnHeap<Media = Hardware>>(store: &IndexInFile<I>) -> Entries {
    let mut model = Entries::new();
    for (first, children) in [(b'a', 3), (b'b', 10), (b'c', 30), (b'd', 60)] {
        for key in fan(first, children) {
            store.put(&mut model, &key, VALUE);
        }
    }
    for key in [&b"a pair, one"[..], b"a pair, two", b"zero"] {
        store.put(&mut model, key, VALUE);
    }
    model
}

/// Checks that counts are rebuilt correctly after a restart: a wrong one makes the next insert overwrite the last
/// child. A node of each size is filled up after a restart, to its capacity and past it, and emptied after another; no
/// old or new key is lost.
pub fn nodes_fill_up_and_empty_after_a_restart<I: OnHeap<Media = Hardware>>() {
    for (i, children) in [2, 3, 4, 5, 15, 16, 17, 40, 47, 48, 49, 60]
        .into_iter()
        .enumerate()
    {
        let mut model = Entries::new();
        let mut store = IndexInFile::<I>::create();
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

/// A large index, restarted, accepts a third more keys and loses none.
pub fn old_keys_stay_when_new_ones_come_after_a_restart<I: OnHeap<Media = Hardware>>() {
    let mut model = Entries::new();
    let number = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    let mut store = IndexInFile::<I>::create();
    for i in 0..15_000 {
        store.put(&mut model, &number(i), VALUE);
    }
    store = store.reopen();
    for i in 15_000..20_000 {
        store.put(&mut model, &number(i), b"another value");
    }
    store.compare(&model);
}

/// Some hangs and losses take two crashes to show: one restart after another, with nothing, little, or much done
/// between.
pub fn restarts_follow_restarts<I: OnHeap<Media = Hardware>>() {
    let mut model = Entries::new();
    let mut store = IndexInFile::<I>::create();
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
            let key = [b"rs"[usize::from(i % 2)], b'-', round * 10 + i];
            store.put(&mut model, &key, VALUE);
        }
        if round % 5 == 4 {
            store.compare(&model);
        }
    }
    store.compare(&model);
}

/// An edit that stops in its middle, with its key's lock held, until it is released.
struct Blocking {
    reached: SyncSender<()>,
    go: Receiver<()>,
    action: Action,
}

impl Edit for Blocking {
    fn decide(&mut self, _current: Option<&[u8]>) -> Action {
        self.reached.send(()).expect("the test waits");
        self.go.recv().expect("the test releases it");
        self.action
    }
    fn value(&self) -> &[u8] {
        b"in progress"
    }
}

/// A crash during an edit leaves its lock taken in the file: the lock is free after the crash, whatever it guards,
/// and the edit has not happened. The same holds after a second crash during the same edit.
pub fn locks_held_at_a_crash_are_free_after_it<I: OnHeap<Media = Hardware>>() {
    let mut store = IndexInFile::<I>::create();
    let mut model = fans(&store);
    let present = model.keys().step_by(17).cloned();
    let others = [
        "zero",
        "a pair, one",
        "a-~",
        "b-~",
        "c-~",
        "d-~",
        "nowhere yet",
        "a pair, 3",
    ];
    let keys: Vec<Vec<u8>> = present.chain(others.map(|key| key.into())).collect();
    for (i, key) in keys.iter().enumerate() {
        let action = if i % 2 == 0 { Action::Put } else { Action::Remove };
        for _ in 0..2 {
            // The original's edit is completed in the end; the image is from before.
            let image = crash_amid_edit(&store, key, action);
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

/// Opens a copy of the file made during an edit of `key`.
fn crash_amid_edit<I: OnHeap<Media = Hardware>>(
    store: &IndexInFile<I>,
    key: &[u8],
    action: Action,
) -> IndexInFile<I> {
    let (reached, is_reached) = sync_channel(0);
    let (release, go) = sync_channel(0);
    let mut edit = Blocking { reached, go, action };
    std::thread::scope(|threads| {
        let editor = threads.spawn(move || store.index().write(key, &mut edit).expect("no error"));
        is_reached.recv().expect("the edit gets there");
        let image = store.crashed();
        release.send(()).expect("the edit waits");
        editor.join().expect("no panic");
        image
    })
}

/// Whatever flags a crash leaves in locks (taken, obsolete, in repair: any line with a lock may have been written
/// back at any moment), they mean nothing after it.
pub fn flags_of_locks_mean_nothing_after_a_crash<I: OnHeap<Media = Hardware>>() {
    // In objects without locks, other words may look like locks.
    if I::IS_LOCK_FREE {
        return;
    }
    let mut store = IndexInFile::<I>::create();
    let mut model = fans(&store);
    for _ in 0..3 {
        let folder = store.image();
        let generation = u64::from(store.index().heap().generation());
        assert!(set_all_flags(&folder.path().join("pool"), generation) > 0);
        store = IndexInFile::open_in(folder, Hardware::detect());
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

/// Sets all flags in every word that looks like a lock word of the generation; keys and values do not.
fn set_all_flags(path: &std::path::Path, generation: u64) -> usize {
    let mut bytes = std::fs::read(path).expect("read");
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(path)
        .expect("opened");
    let directory_end = options().page_size as usize;
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

/// Chunks freed by threads can be reused when the threads have ended, and so can those that they had claimed.
pub fn memory_of_ended_threads_is_reused<I: OnHeap<Media = Hardware>>() {
    let store = IndexInFile::<I>::create();
    let round = |round: u64| {
        std::thread::scope(|threads| {
            for thread in 0..3u64 {
                let index = store.index();
                threads.spawn(move || {
                    for half in [true, false] {
                        for i in 0..2000u64 {
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
        settled(store.index().heap());
        store.index().heap().pool().len()
    };
    let early = (0..5).map(round).max();
    let late = (5..30).map(round).max();
    // Without reuse each round would take a megabyte more; within a round the amount that waits varies.
    assert!(
        late <= early.map(|len| len + (8 << 20)),
        "{early:?} bytes became {late:?}"
    );
    store.compare(&Entries::new());
}

/// Random operations, now and then a restart of either kind, in one pool from beginning to end.
pub fn a_long_life_with_restarts<I: OnHeap<Media = Hardware>>() {
    let plan = Plan::from_env();
    let mut random = plan.random("a_long_life_with_restarts");
    let mut model = Entries::new();
    let mut store = IndexInFile::<I>::create();
    for round in 0..30 {
        for _ in 0..plan.sized(300) {
            let len = *random.pick(&[0, 1, 2, 3, 8, 8, 8, 20, 40]);
            let key: Vec<u8> = (0..len).map(|_| *random.pick(b"\0\x01ab\xff")).collect();
            let len = *random.pick(&[0, 8, 8, 30]);
            let value = random.bytes(len);
            match random.below(3) {
                0 => store.remove(&mut model, &key),
                _ => store.put(&mut model, &key, &value),
            }
        }
        if round % 5 == 0 {
            store.compare(&model);
        }
        store = if round % 2 == 0 {
            store.reopen()
        } else {
            store.crashed()
        };
    }
    store.compare(&model);
}
