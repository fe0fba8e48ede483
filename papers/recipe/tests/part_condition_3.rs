//! RECIPE's Condition #3 in P-ART: reads tolerate the state left by a crash between the two steps of an SMO; writes
//! distinguish it from a change in flight, and the first one that meets it completes it.
//!
//! A media stops a thread at a step of the test's choice. There the test copies the pool's file, which is the state
//! left by a kill, or lets another write run.

use index::Index;
use index::conformance::{Entries, IndexInFile, folder};
use pmem::Watched;
use pmem::watched::{self, Observer, StepKind};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wollemi_recipe::Part;

/// The steps at which a thread can be stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Before a load, until the thread first takes a lock.
    Load,
    /// Before a load of a lock, until the thread first takes one.
    LoadLock,
    /// Before a store to a word that other threads can see.
    Store,
}

type Hook = Box<dyn FnOnce()>;

thread_local! {
    /// The kind of step, the step's number counted from 1, and the hook to call there, for this thread.
    static HOOK: RefCell<Option<(Step, usize, Hook)>> = const { RefCell::new(None) };
}

static STORES: AtomicU64 = AtomicU64::new(0);

/// Runs `work`, and calls `hook` in this thread at the `nth` such step; returns `false` if there are fewer.
fn at(step: Step, nth: usize, hook: impl FnOnce() + 'static, work: impl FnOnce()) -> bool {
    let called = Rc::new(Cell::new(false));
    let calls = Rc::clone(&called);
    let hook = move || {
        calls.set(true);
        hook();
    };
    HOOK.set(Some((step, nth, Box::new(hook))));
    work();
    HOOK.take();
    called.get()
}

fn pass(step: Step) {
    let hook = HOOK.with_borrow_mut(|slot| match slot {
        Some((wanted, left, _)) if *wanted == step => {
            *left -= 1;
            if *left == 0 { slot.take() } else { None }
        }
        _ => None,
    });
    if let Some((_, _, hook)) = hook {
        hook();
    }
}

#[derive(Clone)]
struct Stops;

impl Observer for Stops {
    fn before(&self, step: &watched::ObservedStep) {
        match step.what {
            StepKind::Load | StepKind::Peek => pass(Step::Load),
            StepKind::LoadVolatile => pass(Step::LoadLock),
            StepKind::Store | StepKind::StoreUnpersisted => {
                pass(Step::Store);
                STORES.fetch_add(1, Relaxed);
            }
            StepKind::ExchangeVolatile => {
                HOOK.with_borrow_mut(|hook| hook.take_if(|(step, ..)| *step != Step::Store));
            }
            _ => {}
        }
    }
}

type Stopping = Watched<Stops>;

type Tree = IndexInFile<Part<Stopping>>;

const VALUE: &[u8] = b"8 bytes!";

/// One test at a time: they share the counters.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The number of stores of an operation to words that other threads can see.
fn stores(operation: impl FnOnce()) -> u64 {
    let before = STORES.load(Relaxed);
    operation();
    STORES.load(Relaxed) - before
}

/// Opens the file as it is before the `nth` store of an operation.
fn crash_before_store(store: &Tree, nth: usize, operation: impl FnOnce()) -> Tree {
    let image = Rc::new(RefCell::new(None));
    let (taken, pool) = (Rc::clone(&image), store.path());
    let hook = move || {
        let folder = folder();
        std::fs::copy(pool, folder.path().join("pool")).expect("a copy");
        *taken.borrow_mut() = Some(folder);
    };
    assert!(
        at(Step::Store, nth, hook, operation),
        "the operation has fewer stores"
    );
    Tree::open_in(image.take().expect("taken"), Watched::machine(Stops))
}

/// A key that shares `len` bytes with those of [`pair`], followed by this one.
fn aside(len: usize, last: u8) -> Vec<u8> {
    [&b"p"[..], &vec![b'-'; len], &[last]].concat()
}

/// An index with two keys that share `len` bytes after their first.
fn pair(len: usize) -> (Tree, Entries) {
    let store = Tree::create_on(Watched::machine(Stops));
    let mut model = Entries::new();
    for last in [b'1', b'2'] {
        store.put(&mut model, &aside(len, last), VALUE);
    }
    (store, model)
}

/// Makes sure that the heap has chunks at hand, so that taking them stores nothing.
fn warm_up(store: &Tree) {
    for len in 0..50 {
        let keys = [0, 1].map(|last| [&b"warm"[..], &vec![b'x'; len], &[last]].concat());
        for key in &keys {
            store.index().upsert(key, VALUE).expect("no error");
        }
        for key in &keys {
            assert!(store.index().remove(key).expect("no error"));
        }
    }
}

/// The number of stores of a write that changes nothing, all the way down to where the pair parts: those of repairs.
fn repairs(store: &Tree, len: usize) -> u64 {
    stores(|| assert!(!store.index().remove(&aside(len, b'z')).expect("no error")))
}

/// All keys are found before any write; the first write repairs one prefix (and clears its mark), and only the first.
fn assert_repaired_once(store: &Tree, model: &Entries, len: usize) {
    store.compare(model);
    assert_eq!([repairs(store, len), repairs(store, len)], [2, 0]);
    store.compare(model);
}

/// The prefix lengths to try: stored whole in a node, and not.
const LENGTHS: [usize; 4] = [1, 5, 7, 40];

/// Numbers of the stores before which a crash leaves either SMO between its steps. The first store is that of the
/// pointer, the second clears the pointer's mark, and the third stores the prefix.
const STORES_BETWEEN: [usize; 2] = [2, 3];

/// A crash after the first step of a split leaves a prefix that is too long.
#[test]
fn an_interrupted_split_is_finished() {
    let _alone = alone();
    for len in LENGTHS {
        for (parting, nth) in (0..len).flat_map(|parting| STORES_BETWEEN.map(|nth| (parting, nth))) {
            let (store, mut model) = pair(len);
            let new = aside(parting, b'!');
            warm_up(&store);
            let image = crash_before_store(&store, nth, || {
                store.index().upsert(&new, VALUE).expect("no error");
            });
            model.insert(new, VALUE.to_vec());
            assert_repaired_once(&image, &model, len);
        }
    }
}

/// A crash after the first step of a merge leaves a prefix that is too short.
#[test]
fn an_interrupted_merge_is_finished() {
    let _alone = alone();
    for len in LENGTHS {
        for (parting, nth) in (0..len).flat_map(|parting| STORES_BETWEEN.map(|nth| (parting, nth))) {
            let (store, model) = pair(len);
            let other = aside(parting, b'!');
            store.index().upsert(&other, VALUE).expect("no error");
            let image = crash_before_store(&store, nth, || {
                assert!(store.index().remove(&other).expect("no error"));
            });
            assert_repaired_once(&image, &model, len);
        }
    }
}

/// A pointer that a crash has left in an N4 beyond the counter is emptied by the first writer there. If the words of
/// a line can be torn apart, a later crash could leave a counter that counts it: its leaf is freed by then.
#[test]
fn an_uncounted_pointer_is_emptied() {
    let _alone = alone();
    let (store, model) = pair(1);
    warm_up(&store);
    // The pointer, then the counter.
    let image = crash_before_store(&store, 2, || {
        store.index().upsert(&aside(1, b'3'), VALUE).expect("no error");
    });
    image.compare(&model);
    assert_eq!([repairs(&image, 1), repairs(&image, 1)], [1, 0]);
    image.compare(&model);
}

/// Each split is interrupted, and so is the next one, after it has repaired the leftovers of the one before.
#[test]
fn crashes_follow_crashes() {
    let _alone = alone();
    let len = 20;
    let (mut store, mut model) = pair(len);
    for parting in 0..len {
        let new = aside(parting, b'!');
        warm_up(&store);
        // The repair stores a prefix first, and clears its mark.
        let nth = if parting == 0 { 3 } else { 5 };
        let image = crash_before_store(&store, nth, || {
            store.index().upsert(&new, VALUE).expect("no error");
        });
        store = image;
        model.insert(new, VALUE.to_vec());
        if parting % 4 == 0 {
            // A crash before the first store of the repair, too.
            store = crash_before_store(&store, 1, || _ = repairs(&store, len));
        }
        store.compare(&model);
    }
    assert_repaired_once(&store, &model, len);
}

/// Many writers at once meet the leftovers of a crash.
#[test]
fn writers_race_to_finish() {
    let _alone = alone();
    for round in 0..20 {
        let (store, mut model) = pair(9);
        let new = aside(4, b'!');
        warm_up(&store);
        let image = crash_before_store(&store, 3, || {
            store.index().upsert(&new, VALUE).expect("no error");
        });
        model.insert(new, VALUE.to_vec());
        let key = |thread: u8, i: u8| aside(usize::from((i + round) % 10), b'A' + 8 * thread + i);
        std::thread::scope(|threads| {
            for thread in 0..4 {
                let index = image.index();
                threads.spawn(move || {
                    for i in 0..6 {
                        index.upsert(&key(thread, i), VALUE).expect("no error");
                    }
                });
            }
        });
        let keys = (0..4).flat_map(|thread| (0..6).map(move |i| key(thread, i)));
        model.extend(keys.map(|key| (key, VALUE.to_vec())));
        image.compare(&model);
        assert_eq!(repairs(&image, 9), 0);
    }
}

/// A writer meets the leftovers of a crash, and before it has the lock another thread completes the change, and
/// changes the same prefix again: the writer must use the node's present depth, not the earlier one.
#[test]
fn who_comes_too_late_to_finish_changes_nothing() {
    let _alone = alone();
    let len = 9;
    let mut tried = 0;
    for (other, new) in [(2, 8), (6, 8), (8, 6), (9, 9)] {
        for nth in 1.. {
            let (store, mut model) = pair(len);
            let between = aside(4, b'!');
            warm_up(&store);
            let image = crash_before_store(&store, 3, || {
                store.index().upsert(&between, VALUE).expect("no error");
            });
            let (other, new) = (aside(other, b'?'), aside(new, b'7'));
            let (index, meanwhile) = (image.index().clone(), other.clone());
            let hook = move || index.upsert(&meanwhile, VALUE).expect("no error");
            let put = || {
                image.index().upsert(&new, VALUE).expect("no error");
            };
            if !at(Step::LoadLock, nth, hook, put) {
                break;
            }
            model.extend([between, other, new].map(|key| (key, VALUE.to_vec())));
            image.compare(&model);
            assert_eq!(repairs(&image, len), 0, "at look {nth} at a lock");
            tried += 1;
        }
    }
    assert!(tried >= 4, "{tried} interleavings");
}

/// A writer has read its position, or a prefix, when another write runs and changes it. Then the writer gets the lock
/// though no crash has happened, and must "repair" nothing. Tried at each load of a write before it takes a lock, for
/// writes above and below each other, in all pairs.
#[test]
fn a_lock_that_can_be_had_does_not_mean_a_crash() {
    let _alone = alone();
    type Write = (bool, usize, u8);
    let writes: [Write; 6] = [
        (true, 2, b'!'),
        (true, 5, b'!'),
        (true, 9, b'7'),
        (false, 3, b'?'),
        (false, 6, b'?'),
        (false, 9, b'2'),
    ];
    let carry_out = |index: &Part<Stopping>, (put, len, last): Write| {
        let key = aside(len, last);
        if put {
            index.upsert(&key, VALUE).expect("no error");
        } else {
            assert!(index.remove(&key).expect("no error"));
        }
    };
    let mut tried = 0;
    for (first, second) in writes
        .iter()
        .flat_map(|first| writes.iter().map(move |second| (*first, *second)))
    {
        if first == second {
            continue;
        }
        for nth in 1.. {
            let (store, mut model) = pair(9);
            store.put(&mut model, &aside(3, b'?'), VALUE);
            store.put(&mut model, &aside(6, b'?'), VALUE);
            let index = store.index().clone();
            let hook = move || carry_out(&index, second);
            if !at(Step::Load, nth, hook, || carry_out(store.index(), first)) {
                break;
            }
            for (put, len, last) in [first, second] {
                match put {
                    true => drop(model.insert(aside(len, last), VALUE.to_vec())),
                    false => drop(model.remove(&aside(len, last))),
                }
            }
            store.compare(&model);
            assert_eq!(repairs(&store, 9), 0, "{first:?} and, at load {nth}, {second:?}");
            tried += 1;
        }
    }
    assert!(tried > 200, "{tried} interleavings");
}
