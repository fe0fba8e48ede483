//! No cliffs: on hostile keys an operation costs only what its key's length and the path to it cost.
//!
//! The test counts the lines of 64 bytes that the operation's thread touches (`lines`): loads, stores, new objects and
//! the bytes of keys in the pool, those of a key as often as it is read. So the count does not depend on the machine,
//! and repeated work of a search is visible. An index's DRAM is not counted.
//!
//! The reference is the same work on random keys of the same lengths. A hostile shape may make the path to a key
//! longer, at most as long as the key; so the lines of a get are the shape's *way*, which has a bound of its own.
//! Every other operation is limited to a fixed multiple of its cost among random keys and of the way.

mod beside;
mod lines;
mod shapes;

pub use beside::keys_beside_the_path_cost_nothing;
pub use lines::{Counted, Lines};

use super::Random;
use crate::{Direction, Index};
use heap::Heap;
use lines::lines_of;
use pmem::{LINE, Pool, PoolOptions};
use shapes::{Arrival, SHAPES, Shape};
use std::ops::{Bound, ControlFlow};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum cost of an operation, as a multiple of the sum of its cost among random keys and the shape's way.
const MAX_FACTOR: f64 = 6.0;

/// Maximum number of lines on the way for each byte at which keys diverge: a node of half-bytes has two lines, and
/// there are two such nodes per byte.
const LINES_A_BYTE: f64 = 4.0;

/// Lines to read and copy the largest node, there and back, as an insert and a remove at a boundary may do.
const NODE: f64 = 200.0;

/// Maximum growth of space, as a multiple; the pages that a few objects reserve come on top.
const MAX_GROWTH: f64 = 1.25;
const SLACK: u64 = 256 << 10;

/// Keys per scan: the first batch of an iterator.
const BATCH: usize = 16;

/// Rounds that replace every key.
const ROUNDS: usize = 3;

/// Lines per operation, on average. The last two are maxima: of a remove with the insert after it, at one boundary, and
/// of a get.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    insert: f64,
    get: f64,
    absent: f64,
    forward: f64,
    reverse: f64,
    aged_get: f64,
    remove: f64,
    boundary: f64,
    longest: f64,
}

/// The turn of one test: guards of another one in the process would delay the reclamation of retired objects.
struct Turn(#[expect(dead_code, reason = "held until dropped")] MutexGuard<'static, ()>);

impl Turn {
    fn take() -> Turn {
        static TURN: Mutex<()> = Mutex::new(());
        Turn(TURN.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// An index on a pool in memory.
struct Bed<I> {
    index: I,
    heap: Heap<Counted>,
}

/// Checks every hostile shape of keys, in every order of arrival, against the bounds of this module, and prints the
/// counts.
///
/// # Panics
///
/// If an operation costs more, or the index takes more space.
pub fn there_are_no_cliffs<I: crate::OnHeap<Media = Counted>>(make: impl Fn(&Heap<Counted>) -> I) {
    let _alone = Turn::take();
    let mut over = Vec::new();
    println!("lines/operation     insert      get   absent  forward  reverse     aged   remove boundary");
    for shape in SHAPES {
        let keys = (shape.keys)();
        let mut random = Random::new(1);
        let alike: Vec<Vec<u8>> = keys.iter().map(|key| random.bytes(key.len())).collect();
        let plain = Bed::new(&make).measure(&alike, &mut over, "random keys");
        plain.print(shape.name, "random keys");
        for arrival in Arrival::ALL {
            let keys = arrival.arrange(keys.clone());
            let name = format!("{}, {arrival:?}", shape.name);
            let cost = Bed::new(&make).measure(&keys, &mut over, &name);
            cost.print("", &format!("{arrival:?}"));
            cost.judge(&plain, shape, &name, &keys, &mut over);
        }
    }
    assert!(over.is_empty(), "cliffs:\n{}", over.join("\n"));
}

impl Cost {
    fn print(&self, shape: &str, arrival: &str) {
        let Cost {
            insert,
            get,
            absent,
            forward,
            reverse,
            aged_get,
            remove,
            boundary,
            ..
        } = self;
        if !shape.is_empty() {
            println!("{shape}");
        }
        println!(
            "  {arrival:<13} {insert:>10.0} {get:>8.0} {absent:>8.0} {forward:>8.0} {reverse:>8.0} {aged_get:>8.0} \
             {remove:>8.0} {boundary:>8.0}"
        );
    }

    /// Records operations that exceed their bounds.
    fn judge(&self, plain: &Cost, shape: &Shape, name: &str, keys: &[Vec<u8>], over: &mut Vec<String>) {
        let bytes = keys.iter().map(Vec::len).sum::<usize>() as f64 / keys.len() as f64;
        let comparisons = (keys.len() as f64).log2() * (bytes / LINE as f64 + 1.0);
        let way = MAX_FACTOR * plain.get + LINES_A_BYTE * bytes * shape.branching + comparisons;
        let mut hold = |what: &str, lines: f64, max: f64| {
            if lines > max {
                over.push(format!("{name}: {what}: {lines:.0} lines, at most {max:.0}"));
            }
        };
        hold("get", self.get, way);
        let max = |plain: f64| MAX_FACTOR * (plain + self.get);
        hold("get of an absent key", self.absent, max(plain.absent));
        hold("insert", self.insert, max(plain.insert));
        hold("remove", self.remove, max(plain.remove));
        hold("scan", self.forward, max(plain.forward));
        hold("scan in reverse", self.reverse, max(plain.reverse));
        hold("get after ageing", self.aged_get, 2.0 * self.get);
        hold(
            "insert and remove at a boundary",
            self.boundary,
            MAX_FACTOR * (plain.boundary + self.longest) + NODE,
        );
    }
}

impl<I: crate::OnHeap<Media = Counted>> Bed<I> {
    fn new(make: &impl Fn(&Heap<Counted>) -> I) -> Bed<I> {
        let options = PoolOptions {
            max_size: 1 << 32,
            page_size: 64 << 10,
            ..PoolOptions::default()
        };
        let pool = Pool::anonymous(&options, Counted::machine(Lines)).expect("a pool");
        let heap = Heap::new(pool).expect("a heap");
        let index = make(&heap);
        Bed { index, heap }
    }

    /// Bytes in use, after everything retired was freed.
    fn used(&self) -> u64 {
        for _ in 0..8 {
            heap::pin().flush();
        }
        self.heap.stats().used
    }

    /// The whole life of an index: filled, read, aged, emptied; and filled again, measuring at each boundary.
    fn measure(&self, keys: &[Vec<u8>], over: &mut Vec<String>, name: &str) -> Cost {
        let mut cost = Cost {
            insert: mean(keys, |key| self.insert(key)),
            ..Cost::default()
        };
        self.index.settle().expect("room");
        let fresh = self.used();
        let mut longest = 0;
        cost.get = mean(keys, |key| {
            let lines = self.get(key, true);
            longest = longest.max(lines);
            lines
        });
        cost.longest = longest as f64;
        cost.absent = mean(keys, |key| self.get(&absent(key), false));
        cost.forward = mean(keys, |key| self.scan(key, Direction::Forward));
        cost.reverse = mean(keys, |key| self.scan(key, Direction::Reverse));
        for _ in 0..ROUNDS {
            mean(keys, |key| self.remove(key) + self.insert(key));
        }
        self.index.settle().expect("room");
        cost.aged_get = mean(keys, |key| self.get(key, true));
        let aged = self.used();
        let mut max = 0;
        cost.remove = mean(keys, |key| {
            let lines = self.remove(key);
            max = max.max(self.used());
            lines
        });
        let bound = (fresh as f64 * MAX_GROWTH) as u64 + SLACK;
        for (what, used) in [("after ageing", aged), ("while all is removed", max)] {
            if used > bound {
                over.push(format!("{name}: {used} bytes {what}, at most {bound}"));
            }
        }
        self.index.settle().expect("room");
        for key in keys {
            self.insert(key);
            let twice = (0..2).map(|_| self.remove(key) + self.insert(key));
            cost.boundary = cost.boundary.max(twice.sum::<u64>() as f64 / 2.0);
        }
        cost
    }

    fn insert(&self, key: &[u8]) -> u64 {
        let (lines, done) = lines_of(|| self.index.insert(key, b"a value"));
        assert!(done.expect("room"), "inserted {}", key.escape_ascii());
        lines
    }

    fn remove(&self, key: &[u8]) -> u64 {
        let (lines, done) = lines_of(|| self.index.remove(key));
        assert!(done.expect("room"), "removed {}", key.escape_ascii());
        lines
    }

    fn get(&self, key: &[u8], there: bool) -> u64 {
        let guard = heap::pin();
        let (lines, found) = lines_of(|| self.index.get(key, &guard).map(|found| found.is_some()));
        assert_eq!(found.expect("no error"), there, "get {}", key.escape_ascii());
        lines
    }

    /// Scans a batch behind the key.
    fn scan(&self, key: &[u8], direction: Direction) -> u64 {
        let guard = heap::pin();
        let (lower, upper) = match direction {
            Direction::Forward => (Bound::Excluded(key), Bound::Unbounded),
            Direction::Reverse => (Bound::Unbounded, Bound::Excluded(key)),
        };
        let mut left = BATCH;
        let (lines, done) = lines_of(|| {
            self.index.walk(lower, upper, direction, &guard, &mut |_, _| {
                left -= 1;
                match left {
                    0 => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                }
            })
        });
        done.expect("no error");
        lines
    }
}

/// An absent key: this one with a byte added.
fn absent(key: &[u8]) -> Vec<u8> {
    [key, &[0xfe]].concat()
}

fn mean(keys: &[Vec<u8>], each: impl FnMut(&[u8]) -> u64) -> f64 {
    keys.iter().map(Vec::as_slice).map(each).sum::<u64>() as f64 / keys.len() as f64
}
