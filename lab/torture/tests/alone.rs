//! The exploration of a history does not depend on earlier ones.

use crashkit::{Explorer, Settings};
use index::Index;
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use wollemi::indexes::{IndexKind, WithIndex};
use wollemi_torture::history;
use wollemi_torture::map::OfIndex;

struct Boxed;

impl WithIndex for Boxed {
    type Out = Box<dyn Index>;
    fn with<I: Index + 'static>(self, index: I) -> Box<dyn Index> {
        Box::new(index)
    }
}

type Threads = Arc<Mutex<HashSet<ThreadId>>>;

/// Returns an index that records which threads create it.
fn noting(threads: &Threads) -> OfIndex {
    const ROOT: &[u8] = b"noted";
    let kind = IndexKind::Roart;
    let threads = Arc::clone(threads);
    OfIndex::new(
        "noting",
        move |heap| {
            threads.lock().expect("no panic").insert(thread::current().id());
            kind.create(heap, ROOT, Boxed)
        },
        move |heap| kind.open(heap, ROOT, Boxed),
        IndexKind::tracers(),
    )
}

/// Every history of an exploration or a hunt runs on a thread of its own. So it does not see what an earlier one left
/// in its thread, such as the count of guards by which epochs advance and memory is reused.
#[test]
fn no_thread_explores_two_histories() {
    let threads = Threads::default();
    let mut explorer = Explorer::new(noting(&threads), Settings::default()).expect("memory");
    let mut known = HashSet::from([thread::current().id()]);
    let mut are_new = |what: &str| {
        for thread in threads.lock().expect("no panic").drain() {
            assert!(known.insert(thread), "{what}");
        }
    };
    for seed in 1..4 {
        let explored = explorer.explore(&history::of_map(seed, 2, 1 + seed as u32 % 2));
        explored.unwrap_or_else(|failure| panic!("{failure}"));
        are_new("an exploration");
    }
    for seed in 4..6 {
        let hunted = explorer.hunt([history::of_map(seed, 2, 1)], 10, |_| true);
        assert!(!hunted.expect("no failure").is_empty());
        are_new("a hunt");
    }
}
