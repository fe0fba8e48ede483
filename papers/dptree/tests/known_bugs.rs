//! Bugs of published implementations of this design, each as a property.
//!
//! Here: merges beside writers, recycled log pages, locks found after a crash. Elsewhere:
//!
//! | The bug | The property |
//! |---|---|
//! | a leaf flush loop leaves most of the leaf volatile | `persists_are_needed` (`lab/torture/tests/dptree.rs`) |
//! | the log is dropped before what it could repair is durable | `merges_survive_crashes` (there) |
//! | a reader returns a value that is not yet durable | by construction: log first; in place: I4 of `base::leaf` |
//! | two writers of one key log and change the tree in different orders | `hot_keys_are_linearizable`, with crashes |
//! | an update of a removed key; lost updates | `counters_add_up`, `tokens_are_conserved` |
//! | fingerprints of signed bytes; any of the 256 bytes at any position | `every_byte_everywhere` |
//! | every update leaks the old record | `overwrites_leak_nothing` |

use heap::{Heap, RecoveryStage};
use index::{Action, Edit, Index};
use pmem::watched::{ObservedStep, Observer, StepKind};
use pmem::{Counting, Hardware, Media, Pool, PoolOptions, Watched};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use tempfile::TempDir;
use wollemi_dptree::{DpTree, DpTreeOptions, tracer};

fn options(workers: usize) -> DpTreeOptions {
    DpTreeOptions {
        merge_floor: 200,
        leaf_capacity: 64,
        partitions: 3,
        log_page: 1024,
        workers,
        merge_partition: 2,
        ..DpTreeOptions::default()
    }
}

fn pool_options() -> PoolOptions {
    PoolOptions {
        max_size: 1 << 30,
        page_size: 64 << 10,
        ..PoolOptions::default()
    }
}

fn in_memory<M: Media>(media: M, options: DpTreeOptions) -> DpTree<M> {
    let pool = Pool::anonymous(&pool_options(), media).expect("a pool");
    let heap = Heap::new(pool).expect("a heap");
    DpTree::create_with(&heap, b"test", options).expect("an index")
}

fn key(i: u64) -> [u8; 8] {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// Keys in the base tree are updated in place, while inserts of others make one merge begin after the other: each key
/// has its last value at any later time, whether one thread writes or several.
#[test]
fn updates_in_place_do_not_race_with_merges() {
    const KEYS: u64 = 600;
    for writers in [1, 2, 4] {
        let index = &in_memory(Hardware::detect(), options(2));
        for i in 0..KEYS {
            index.insert(&key(i), &0_u64.to_le_bytes()).expect("room");
        }
        std::thread::scope(|threads| {
            for writer in 0..writers {
                threads.spawn(move || {
                    for round in 1..=40_u64 {
                        // Merges begin by themselves; the test runs some too, so that they occur whatever the scheduler
                        // does.
                        if writer == 0 && round % 3 == 0 {
                            index.settle().expect("room");
                        }
                        for i in (writer..KEYS).step_by(writers as usize) {
                            assert!(index.update(&key(i), &round.to_le_bytes()).expect("room"));
                            if i % 5 == 0 {
                                let other = KEYS + round * KEYS + i;
                                assert!(index.insert(&key(other), b"8 bytes!").expect("room"));
                            }
                            if i % 7 == 0 {
                                let guard = heap::pin();
                                let seen = index.get(&key(i), &guard).expect("sound");
                                assert_eq!(seen.as_deref(), Some(&round.to_le_bytes()[..]), "key {i}");
                            }
                        }
                    }
                });
            }
        });
        index.settle().expect("room");
        assert!(index.stats().merges > 10);
        let guard = heap::pin();
        for i in 0..KEYS {
            let seen = index.get(&key(i), &guard).expect("sound");
            assert_eq!(seen.as_deref(), Some(&40_u64.to_le_bytes()[..]), "key {i}");
        }
        let faults = index.check().expect("sound");
        assert_eq!(faults.found, [""; 0]);
        assert_eq!(faults.keys, KEYS + 40 * KEYS / 5);
    }
}

/// All operations work while the very first merge has not ended, and before any has begun.
#[test]
fn the_first_merge_is_like_any_other() {
    for workers in [0, 1] {
        let index = in_memory(Hardware::detect(), options(workers));
        let mut model = BTreeMap::new();
        for i in 0..1000_u64 {
            index.upsert(&key(i / 2), &i.to_le_bytes()).expect("room");
            model.insert(key(i / 2), i.to_le_bytes());
            if i % 3 == 0 {
                let removed = key(i / 4);
                assert_eq!(
                    index.remove(&removed).expect("room"),
                    model.remove(&removed).is_some()
                );
            }
            let guard = heap::pin();
            let seen = index.get(&key(i / 2), &guard).expect("sound");
            assert_eq!(seen.as_deref(), model.get(&key(i / 2)).map(|value| &value[..]));
        }
        assert_eq!(index.check().expect("sound").keys, model.len() as u64);
    }
}

/// A check that finds the background thread merging, which may be long after the last write, finds no faults. (It
/// once walked leaves that two merges had rewritten meanwhile.)
#[test]
fn checks_do_not_mind_merges() {
    let index = in_memory(
        Hardware::detect(),
        DpTreeOptions {
            merge_floor: 50,
            ..options(2)
        },
    );
    for i in 0..6000 {
        assert!(index.insert(&key(i), &i.to_le_bytes()).expect("room"));
        if i % 40 == 0 {
            let faults = index.check().expect("sound");
            assert_eq!(faults.found, [""; 0], "after {i} writes");
        }
    }
    // Writers do not outrun merges by more than the backlog.
    assert!(index.stats().merges > 4);
}

/// Opening an open tree again returns the same one, so that no two buffer trees share a log.
#[test]
fn opening_twice_gives_one_tree() {
    let first = in_memory(Hardware::detect(), options(1));
    first.insert(b"key", b"value").expect("room");
    std::thread::scope(|threads| {
        for thread in 0..4_u64 {
            let heap = first.heap();
            threads.spawn(move || {
                for i in 0..200 {
                    let index = DpTree::open_with(heap, b"test", options(0))
                        .expect("sound")
                        .expect("there");
                    assert!(index.insert(&key(1000 * thread + i), b"8 bytes!").expect("room"));
                }
            });
        }
    });
    let heap = first.heap().clone();
    drop(first);
    let again = DpTree::open_with(&heap, b"test", options(1))
        .expect("sound")
        .expect("there");
    assert_eq!(again.check().expect("sound").keys, 801);
}

/// Write-backs of each thread that no fence has followed yet.
#[derive(Clone, Default)]
struct Unfenced {
    pending: Arc<Mutex<HashMap<ThreadId, usize>>>,
    /// The word whose stores commit merges; 0 until it is known.
    state: Arc<AtomicU64>,
    commits: Arc<AtomicU64>,
    missed: Arc<AtomicBool>,
}

impl Observer for Unfenced {
    fn before(&self, step: &ObservedStep) {
        let mut pending = self.pending.lock().expect("no panic");
        match step.what {
            StepKind::Store if step.start.addr() as u64 == self.state.load(SeqCst) => {
                self.commits.fetch_add(1, SeqCst);
                // While a merge runs, no threads but its own write to the pool in this test.
                let missed = pending.values().any(|&count| count > 0);
                self.missed.fetch_or(missed, SeqCst);
            }
            StepKind::WriteBack(_) | StepKind::WriteBackJoined(_) => {
                *pending.entry(std::thread::current().id()).or_default() += 1;
            }
            StepKind::Fence(_) => {
                pending.insert(std::thread::current().id(), 0);
            }
            _ => {}
        }
    }
}

/// When a merge commits, each of its threads has fenced its own write-backs; none relies on another's fence.
#[test]
fn each_worker_fences_what_it_wrote() {
    let media = Unfenced::default();
    let index = in_memory(Watched::machine(media.clone()), options(4));
    let root = index.heap().root(b"test").expect("sound").expect("the root");
    let base = index.heap().pool().base().as_ptr().addr() as u64;
    media
        .state
        .store(base + root.link.offset().expect("not null").get(), SeqCst);
    for round in 0..40_u64 {
        for i in 0..150 {
            index
                .upsert(&key(round * 70 + i), &i.to_le_bytes())
                .expect("room");
        }
        index.settle().expect("room");
    }
    assert!(media.commits.load(SeqCst) >= 40);
    assert!(
        !media.missed.load(SeqCst),
        "a write-back was not fenced before the commit"
    );
}

struct InFile {
    // First: dropped before the folder.
    index: DpTree,
    folder: TempDir,
    options: DpTreeOptions,
}

impl InFile {
    fn create(options: DpTreeOptions) -> InFile {
        let folder = tempfile::tempdir().expect("a folder");
        let pool =
            Pool::create(folder.path().join("pool"), &pool_options(), Hardware::detect()).expect("a pool");
        let heap = Heap::new(pool).expect("a heap");
        let index = DpTree::create_with(&heap, b"test", options).expect("an index");
        InFile {
            index,
            folder,
            options,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("pool")
    }

    /// Opens a copy of the file, changed by `change`: the state that a killed process leaves.
    fn crashed(&self, change: impl FnOnce(&Path)) -> InFile {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pool");
        std::fs::copy(self.path(), &path).expect("a copy");
        change(&path);
        let pool = Pool::open(&path, &pool_options(), Hardware::detect()).expect("the pool");
        let heap = Heap::new(pool).expect("the heap");
        let options = self.options;
        let index = DpTree::open_with(&heap, b"test", options);
        let index = index.expect("the index").expect("the root");
        heap.recover(vec![tracer()], 1).expect("recovery");
        assert_eq!(heap.wait_recovered(), RecoveryStage::Done);
        InFile {
            index,
            folder,
            options,
        }
    }

    fn compare(&self, model: &BTreeMap<[u8; 8], [u8; 8]>) {
        let guard = heap::pin();
        for (key, value) in model {
            let seen = self.index.get(key, &guard).expect("sound");
            assert_eq!(seen.as_deref(), Some(&value[..]));
        }
        drop(guard);
        let faults = self.index.check().expect("sound");
        assert_eq!(faults.found, [""; 0]);
        assert_eq!(faults.keys, model.len() as u64);
        let audit = self.index.heap().audit(&vec![tracer()], 1).expect("an audit");
        assert!(audit.is_clean(), "{audit:?}");
    }
}

/// Pages of the log are reused again and again, both filled and partly filled: after a crash none of their former
/// contents comes back, however little was written since.
#[test]
fn recycled_pages_hold_nothing_of_their_past() {
    let mut model = BTreeMap::new();
    let mut store = InFile::create(options(0));
    for round in 0..30_u64 {
        // The round removes each of these keys again, so one that returns comes from an old record.
        for i in 0..190 {
            store.index.upsert(&key(i), &round.to_le_bytes()).expect("room");
        }
        for i in 0..190 {
            assert!(store.index.remove(&key(i)).expect("room"));
        }
        if round % 3 == 0 {
            store.index.settle().expect("room");
        }
        for i in 0..round * 7 % 60 {
            store
                .index
                .upsert(&key(1000 + i), &round.to_le_bytes())
                .expect("room");
            model.insert(key(1000 + i), round.to_le_bytes());
        }
        let image = store.crashed(|_| {});
        image.compare(&model);
        if round % 4 == 3 {
            store = image;
        }
    }
}

/// Whatever a crash leaves of flags in the locks of leaves (any line with a lock may have been written back at any
/// moment), and of fingerprints and orders, means nothing after it.
#[test]
fn volatile_words_mean_nothing_after_a_crash() {
    volatile_words_mean_nothing(options(0), 700);
}

/// The same for full leaves of several groups, in which many keys are behind a group that was full.
#[test]
fn volatile_words_of_full_leaves_mean_nothing_after_a_crash() {
    let options = DpTreeOptions {
        leaf_capacity: 256,
        fill_rate: 1.0,
        ..options(0)
    };
    volatile_words_mean_nothing(options, 2500);
}

fn volatile_words_mean_nothing(options: DpTreeOptions, keys: u64) {
    let mut model = BTreeMap::new();
    let capacity = options.leaf_capacity;
    let mut store = InFile::create(options);
    for round in 0..4_u64 {
        for i in 0..keys {
            store
                .index
                .upsert(&key(i + 300 * round), &round.to_le_bytes())
                .expect("room");
            model.insert(key(i + 300 * round), round.to_le_bytes());
        }
        store.index.settle().expect("room");
        let generation = u64::from(store.index.heap().generation());
        store = store.crashed(|path| {
            let mut bytes = std::fs::read(path).expect("read");
            let mut set = 0;
            // A leaf begins with a lock of this generation and its capacity.
            for at in (64 << 10..bytes.len() - 1024).step_by(64) {
                let word = |i: usize| u64::from_le_bytes(bytes[at + 8 * i..][..8].try_into().expect("eight"));
                if word(0) >> 32 == generation && word(1) == capacity as u64 {
                    let lock = word(0) | 7;
                    bytes[at..at + 8].copy_from_slice(&lock.to_le_bytes());
                    // The passed groups and the lengths; fingerprints and both orders.
                    bytes[at + 16..at + 32].fill(0xa5);
                    bytes[at + 192..at + 192 + 3 * capacity].fill(0x5a);
                    set += 1;
                }
            }
            assert!(set > 5, "{set} leaves");
            std::fs::write(path, bytes).expect("written");
        });
        store.compare(&model);
        for i in 0..100 {
            let i = i * 3 + round;
            assert_eq!(
                store.index.remove(&key(i)).expect("room"),
                model.remove(&key(i)).is_some()
            );
        }
        store.compare(&model);
    }
}

/// An edit that counts a reader's fences while it decides.
struct Stopped<'m> {
    index: &'m DpTree<Counting>,
    media: &'m Counting,
}

impl Edit for Stopped<'_> {
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        assert_eq!(current, Some(&b"8 bytes!"[..]));
        // Another thread reads the key while its lock is held: it does not wait, and needs no fence.
        std::thread::scope(|threads| {
            let read = threads.spawn(|| {
                let before = self.media.counts();
                let guard = heap::pin();
                let seen = self.index.get(&key(1), &guard).expect("sound");
                assert_eq!(seen.as_deref(), Some(&b"8 bytes!"[..]));
                self.media.counts() - before
            });
            assert_eq!(read.join().expect("no panic").total().fences, 0);
        });
        Action::Put
    }
    fn value(&self) -> &[u8] {
        b"bytes: 8"
    }
}

/// Readers do not wait for an edit in progress, whether its key is in the front or only in the base tree.
#[test]
fn readers_do_not_wait_for_edits() {
    for settled in [false, true] {
        let media = Counting::new(Hardware::detect());
        let index = in_memory(media.clone(), options(0));
        for i in 0..50 {
            index.insert(&key(i), b"8 bytes!").expect("room");
        }
        if settled {
            index.settle().expect("room");
        }
        let mut edit = Stopped {
            index: &index,
            media: &media,
        };
        assert_eq!(index.write(&key(1), &mut edit).expect("room"), Action::Put);
        let guard = heap::pin();
        let seen = index.get(&key(1), &guard).expect("sound");
        assert_eq!(seen.as_deref(), Some(&b"bytes: 8"[..]));
    }
}
