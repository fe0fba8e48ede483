//! Interleavings that threads left alone hardly ever meet, brought about by a media that stops a thread at a step.

use heap::Heap;
use index::Index;
use pmem::{Hardware, Media, Pool, PoolOptions, Purpose};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::channel;
use wollemi_roart::{Full, Roart};

/// The steps at which a thread can be stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Before a lock, or other volatile word, is changed by a compare-and-swap.
    Lock,
    /// After a fence for an index's own objects.
    Fence,
}

type Hook = Box<dyn FnOnce()>;

thread_local! {
    /// At which step of which kind, counted from 1, this thread calls what.
    static HOOK: RefCell<Option<(Step, usize, Hook)>> = const { RefCell::new(None) };
}

/// Lets this thread call `hook` when it comes to the `nth` such step from now on.
fn at(step: Step, nth: usize, hook: impl FnOnce() + 'static) {
    HOOK.set(Some((step, nth, Box::new(hook))));
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

struct Stopping(Hardware);

// SAFETY: each call is the hardware's.
unsafe impl Media for Stopping {
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
        if purpose == Purpose::Node {
            pass(Step::Fence);
        }
    }
    fn load_volatile(&self, word: &AtomicU64) -> u64 {
        self.0.load_volatile(word)
    }
    fn store_volatile(&self, word: &AtomicU64, value: u64) {
        self.0.store_volatile(word, value);
    }
    fn compare_exchange_volatile(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        pass(Step::Lock);
        self.0.compare_exchange_volatile(word, old, new)
    }
}

fn index() -> Arc<Roart<Stopping, Full>> {
    let pool = Pool::anonymous(&PoolOptions::default(), Stopping(Hardware::detect())).expect("memory");
    let heap = Heap::new(pool).expect("a heap");
    Arc::new(Roart::create(&heap, b"test").expect("room"))
}

/// The keys below one slot of a node: a full leaf array.
fn in_array(i: u32) -> String {
    format!("pazz{i:02}")
}

/// A writer that found its leaf array through a node which a larger one is just replacing must not write into the
/// array when that has moved down below the larger node meanwhile.
#[test]
fn an_array_that_moved_down_below_a_replaced_node_is_noticed() {
    let index = index();
    for i in 0..62 {
        assert!(index.insert(in_array(i).as_bytes(), b"old").unwrap());
    }
    for key in ["pb", "pc", "pd"] {
        assert!(index.insert(key.as_bytes(), b"old").unwrap());
    }
    for i in 62..64 {
        assert!(index.insert(in_array(i).as_bytes(), b"old").unwrap());
    }

    let (grown, has_grown) = channel();
    let (go_on, may_go_on) = channel::<()>();
    let (tell, told) = channel();
    let others = Arc::clone(&index);
    at(Step::Lock, 1, move || {
        // This thread is about to lock the array, by way of the full node above it.
        let growing = Arc::clone(&others);
        let grower = std::thread::spawn(move || {
            // The second fence of the insert: the larger node is published, the insert has not ended.
            at(Step::Fence, 2, move || {
                grown.send(()).expect("somebody waits");
                may_go_on.recv().expect("somebody sends");
            });
            assert!(growing.insert(b"pe", b"new").unwrap());
        });
        has_grown.recv().expect("the grower sends");
        // The array moves down, and has room again.
        assert!(others.insert(b"pax", b"first").unwrap());
        assert!(others.remove(in_array(0).as_bytes()).unwrap());
        tell.send(grower).expect("somebody waits");
    });
    let inserted = index.insert(b"pax", b"second").unwrap();
    go_on.send(()).expect("the grower waits");
    told.recv().expect("the hook sends").join().expect("no panic");

    assert!(!inserted, "the key was there already");
    let faults = index.check().unwrap().found;
    assert!(faults.is_empty(), "{faults:#?}");
    let guard = heap::pin();
    assert_eq!(index.get(b"pax", &guard).unwrap().as_deref(), Some(&b"first"[..]));
}
