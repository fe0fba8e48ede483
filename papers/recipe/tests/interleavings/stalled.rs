//! A writer that the system stops after any step of a structure modification delays other writers, but does no more.
//! Readers go on, and so do writers if there are no locks. If it is stopped after its first step, the others wait for
//! longer than the tries after which a writer would report damage.
//!
//! (P-ART's modifications are in `part_stalled`.)

use crate::media::{self, Step, Stopping, Stops};
use index::conformance::IndexInFile;
use index::{Index, OnHeap};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use wollemi_recipe::{BwTree, Clht, Hot, Masstree};

/// Turns for which another writer waits before one that is stopped after its first step goes on: more than the 20,000
/// failed tries after which a writer gives up.
const TURNS: u64 = 25_000;

/// The same after each later step, where the others only need to reach their waits.
const LATER_TURNS: u64 = 200;

/// Upper bound on any wait for another thread; beyond it the test counts as hung.
const PATIENCE: Duration = Duration::from_secs(120);

/// In place of a count of turns: the thread has ended.
const ENDED: u64 = u64::MAX;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A write of a history.
#[derive(Clone, Debug)]
enum Write {
    Put(Vec<u8>),
    Remove(Vec<u8>),
}
use Write::{Put, Remove};

impl Write {
    fn key(&self) -> &[u8] {
        match self {
            Put(key) | Remove(key) => key,
        }
    }

    fn run(&self, index: &dyn Index) -> Result<(), index::Error> {
        match self {
            Put(key) => index.upsert(key, b"8 bytes!"),
            Remove(key) => index.remove(key).map(drop),
        }
    }

    fn note(&self, model: &mut Model) {
        match self {
            Put(key) => _ = model.insert(key.clone(), b"8 bytes!".to_vec()),
            Remove(key) => _ = model.remove(key),
        }
    }
}

/// Records that a thread has ended, even in a panic.
struct Ends(Arc<AtomicU64>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.store(ENDED, SeqCst);
    }
}

/// An index after these writes.
fn after<I: OnHeap<Media = Stopping>>(writes: &[Write]) -> IndexInFile<I> {
    let store = IndexInFile::<I>::create_on(Stopping::machine(Stops));
    for write in writes {
        write.run(store.index()).expect("no error");
    }
    store
}

/// Writes of keys near that of the stopped write: a new key beside it, another value of a key before it, and the
/// removal of a key behind it.
fn beside(write: &Write, model: &Model) -> Vec<Write> {
    let key = write.key();
    let mut others = vec![Put([key, &[7]].concat())];
    let mut before = model.range(..key.to_vec()).map(|(before, _)| before);
    others.extend(before.next_back().cloned().map(Put));
    let mut behind = model.range(key.to_vec()..).map(|(behind, _)| behind);
    others.extend(behind.find(|behind| *behind != key).cloned().map(Remove));
    others
}

/// Stops the last write of a history after its `nth` step, while other threads write nearby keys and one reads;
/// returns `false` if it has fewer steps. Records in `waited` that another writer has waited for one that is stopped
/// after its first step.
fn stop_at<I: OnHeap<Media = Stopping>>(history: &[Write], nth: usize, waited: &AtomicBool) -> bool {
    let (write, earlier) = history.split_last().expect("a write");
    let mut model = Model::new();
    earlier.iter().for_each(|write| write.note(&mut model));
    let others = beside(write, &model);
    let store = after::<I>(earlier);
    let index = store.index();
    let turns: Vec<_> = (0..=others.len()).map(|_| Arc::<AtomicU64>::default()).collect();
    let counts = turns.clone();
    let least = if nth == 1 { TURNS } else { LATER_TURNS };
    let (stopped, is_stopped) = channel();
    let (ended, had_ended) = channel();
    let ends: Option<Vec<_>> = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let step = if I::IS_LOCK_FREE { Step::Store } else { Step::Fence };
            media::at(step, nth, move || {
                stopped.send(()).expect("the test waits");
                let counts = || counts.iter().map(|count| count.load(SeqCst));
                let begin = Instant::now();
                while counts().any(|count| count < least) {
                    assert!(
                        begin.elapsed() < PATIENCE,
                        "a thread neither ends nor waits for the media"
                    );
                    std::thread::sleep(Duration::from_millis(1));
                }
                let all: Vec<bool> = counts().map(|count| count == ENDED).collect();
                ended.send(all).expect("the test waits");
            });
            let written = write.run(index);
            media::forget();
            written
        });
        if is_stopped.recv().is_err() {
            writer.join().expect("no panic").expect("no error");
            return None;
        }
        let counted = |turns: &Arc<AtomicU64>| {
            media::count_turns(Arc::clone(turns));
            Ends(Arc::clone(turns))
        };
        let mut threads: Vec<_> = others
            .iter()
            .zip(&turns)
            .map(|(write, turns)| {
                scope.spawn(move || {
                    let _ends = counted(turns);
                    write.run(index)
                })
            })
            .collect();
        let reads = &turns[others.len()];
        threads.push(scope.spawn(move || {
            let _ends = counted(reads);
            index.get(write.key(), &heap::pin()).map(drop)
        }));
        threads.push(writer);
        let ends = threads.into_iter().map(|thread| thread.join().expect("no panic"));
        Some(ends.collect())
    });
    let Some(ends) = ends else {
        return false;
    };
    let errors = ends.into_iter().filter_map(Result::err);
    assert_eq!(errors.map(|error| error.to_string()).collect::<Vec<_>>(), [""; 0]);
    let had_ended = had_ended.recv().expect("the writer was stopped");
    assert_eq!(
        had_ended.last(),
        Some(&true),
        "the reader waits for the stopped writer"
    );
    if I::IS_LOCK_FREE {
        assert!(
            !had_ended.contains(&false),
            "a writer waits for the stopped one: {had_ended:?}"
        );
    }
    if nth == 1 && had_ended.contains(&false) {
        waited.store(true, SeqCst);
    }
    history
        .iter()
        .chain(&others)
        .for_each(|write| write.note(&mut model));
    store.compare(&model);
    true
}

/// Stops a write that reaches a structure modification, after each of its steps: for each of these modifications, the
/// first write of the history that reaches it.
fn stop_at_each<I: OnHeap<Media = Stopping>>(history: &[Write], modifications: &[&str]) {
    let mut missing: Vec<&str> = modifications.to_vec();
    let store = after::<I>(&[]);
    let mut stopped = Vec::new();
    for (i, write) in history.iter().enumerate() {
        media::reached();
        write.run(store.index()).expect("no error");
        let reached = media::reached();
        let before = missing.len();
        missing.retain(|modification| !reached.contains(modification));
        if missing.len() < before {
            stopped.push((i, reached));
        }
    }
    assert_eq!(missing, [""; 0], "the history does not come to these");
    let waited = AtomicBool::new(false);
    for (i, reached) in stopped {
        let steps = (1..).take_while(|&nth| {
            println!("{:?}: stopped after step {nth} of {reached:?}", history[i]);
            stop_at::<I>(&history[..=i], nth, &waited)
        });
        assert!(steps.count() > 0);
    }
    let waited = waited.into_inner();
    assert!(waited != I::IS_LOCK_FREE, "another writer has waited: {waited}");
}

/// Inserts the keys from 0 to `keys`, in steps of `step` modulo `keys`, then removes them in ascending order.
fn come_and_go(keys: u64, step: u64) -> Vec<Write> {
    let key = |number: u64| number.to_be_bytes().to_vec();
    let puts = (0..keys).map(|number| Put(key(number * step % keys)));
    puts.chain((0..keys).map(|number| Remove(key(number)))).collect()
}

#[test]
fn hot() {
    stop_at_each::<Hot<Stopping>>(
        &come_and_go(400, 149),
        &[
            "normal insert",
            "leaf-node pushdown",
            "parent pull-up",
            "intermediate node",
            "remove: copy",
            "remove: entries drawn into the node above",
            "remove: last entry takes the node's place",
            "remove: the last key",
        ],
    );
}

#[test]
fn masstree() {
    // Keys that share their first slice, for a further layer, and continue after the second.
    let longer = |number: u64| [&[0; 8][..], &number.to_be_bytes(), b"+"].concat();
    let mut history = come_and_go(400, 1);
    history.extend((0..20).map(|number| Put(longer(number))));
    history.extend((0..20).rev().map(|number| Remove(longer(number))));
    stop_at_each::<Masstree<Stopping>>(
        &history,
        &[
            "split of a border",
            "split of an inner node",
            "new root of a layer",
            "new layer",
            "removal of a node",
            "lower root of a layer",
            "layer becomes a leaf",
        ],
    );
}

#[test]
fn bwtree() {
    stop_at_each::<BwTree<Stopping, 8>>(
        &come_and_go(200, 1),
        &[
            "consolidation",
            "split of a leaf",
            "split of an inner node",
            "new root",
            "removal of a leaf",
            "removal of an inner node",
            "merge",
            "lower root",
        ],
    );
}

#[test]
fn clht() {
    stop_at_each::<Clht<Stopping>>(
        &come_and_go(200, 1),
        &["clht: first table", "clht: overflow bucket", "clht: larger table"],
    );
}
