//! Crashes at any fence of a history, those of merges and of recoveries among them: what was acknowledged is there, what was
//! under way is there or not, and nothing is lost or leaked.
//!
//! The history runs on one thread, which merges itself, through a media that keeps what is durable for certain: the lines
//! written back before the last fence. At a fence, a crash may leave that alone, or everything, or for each line that
//! differs the one or the other. Each such image is opened, compared, checked, written to, and may crash again.

mod shadow;

use heap::{Heap, State};
use index::Index;
use index::conformance::Random;
use pmem::{Pool, PoolOptions};
use shadow::{Shadow, Site};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::ops::Bound;
use std::path::Path;
use tempfile::TempDir;
use wollemi_dptree::{DpTree, KIND, Options, tracer};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> Options {
    Options {
        merge_floor: 50,
        leaf_capacity: 64,
        partitions: 3,
        log_page: 320,
        workers: 0,
        merge_partition: 3,
        ..Options::default()
    }
}

fn pool_options() -> PoolOptions {
    PoolOptions {
        max_size: 64 << 20,
        page_size: 64 << 10,
        ..PoolOptions::default()
    }
}

fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a folder")
}

fn open(path: &Path, media: Shadow) -> (DpTree<Shadow>, Heap<Shadow>) {
    let pool = Pool::open(path, &pool_options(), media).expect("the pool");
    let heap = Heap::new(pool).expect("the heap");
    let index = DpTree::open_with(&heap, b"test", options()).expect("the index");
    (index.expect("the root"), heap)
}

fn recover(heap: &Heap<Shadow>) {
    heap.recover(vec![(KIND, tracer())], 1).expect("recovery");
    assert_eq!(heap.wait_recovered(), State::Done);
}

/// An operation: the key, and its new value if it gets one.
type Operation = (Vec<u8>, Option<Vec<u8>>);

fn operation(random: &mut Random) -> Operation {
    let key = match random.below(4) {
        0 => format!("key {}", random.below(40)).into_bytes(),
        _ => (random.below(150) as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .to_be_bytes()
            .to_vec(),
    };
    let value = match random.below(8) {
        0..2 => None,
        2 => {
            let len = random.below(200);
            Some(random.bytes(len))
        }
        _ => Some(random.bytes(8)),
    };
    (key, value)
}

fn apply(model: &mut Model, (key, value): &Operation) {
    match value {
        Some(value) => drop(model.insert(key.clone(), value.clone())),
        None => drop(model.remove(key)),
    }
}

fn run(index: &DpTree<Shadow>, (key, value): &Operation) {
    match value {
        Some(value) => index.upsert(key, value).expect("room"),
        None => drop(index.remove(key).expect("room")),
    }
}

/// The index holds what the model does; or, with an operation under way, what it does after that. Says which.
fn compare(index: &DpTree<Shadow>, model: &mut Model, under_way: Option<&Operation>, why: &str) {
    let guard = heap::pin();
    if let Some(operation) = under_way {
        let found = index
            .get(&operation.0, &guard)
            .expect("sound")
            .map(|value| value.to_vec());
        if found != model.get(&operation.0).cloned() {
            apply(model, operation);
        }
    }
    let all = index.range(Bound::Unbounded, Bound::Unbounded, &guard);
    let all: Model = all
        .map(|entry| {
            entry
                .map(|(key, value)| (key.to_vec(), value.to_vec()))
                .expect("sound")
        })
        .collect();
    assert!(all == *model, "{why}: {} keys, not {}", all.len(), model.len());
    for (key, value) in &*model {
        let found = index.get(key, &guard).expect("sound");
        assert_eq!(
            found.as_deref(),
            Some(&value[..]),
            "{why}: get {}",
            key.escape_ascii()
        );
    }
    drop(guard);
    let faults = index.check().expect("sound");
    assert_eq!(faults.found, [""; 0], "{why}");
    assert_eq!(faults.keys, model.len() as u64, "{why}");
}

fn audit(heap: &Heap<Shadow>, why: &str) {
    let audit = heap.audit(&vec![(KIND, tracer())], 1).expect("an audit");
    assert!(audit.is_clean(), "{why}: {audit:?}");
}

/// Opens an image, judges it, goes on with some operations, and judges it again; returns images of crashes meanwhile, each
/// with the operations before it and whether the one after them may have been under way.
fn judge(
    image: &[u8],
    mut model: Model,
    under_way: Option<&Operation>,
    random: &mut Random,
    depth: usize,
    why: &str,
) -> usize {
    let folder = folder();
    let path = folder.path().join("pool");
    std::fs::write(&path, image).expect("a file");
    let media = Shadow::new();
    // Before anything is known of the pool's place, what the opening itself stores counts as durable at once.
    let (index, heap) = open(&path, media.clone());
    media.begin(&heap, random.split(), if depth > 0 { 60 } else { usize::MAX });
    compare(&index, &mut model, under_way, why);
    if random.one_in(2) {
        recover(&heap);
    }
    let before = model.clone();
    let operations: Vec<Operation> = (0..60).map(|_| operation(random)).collect();
    for (i, operation) in operations.iter().enumerate() {
        run(&index, operation);
        apply(&mut model, operation);
        media.durable().acknowledged = i + 1;
    }
    recover(&heap);
    if random.one_in(2) {
        index.settle().expect("room");
    }
    let images = media.end();
    compare(&index, &mut model, None, why);
    audit(&heap, why);
    drop((index, heap));
    let mut judged = 1;
    for (i, (acknowledged, image)) in images.iter().enumerate() {
        let mut model = before.clone();
        operations[..*acknowledged]
            .iter()
            .for_each(|operation| apply(&mut model, operation));
        let why = format!("{why}, then image {i} after {acknowledged}");
        judged += judge(
            image,
            model,
            operations.get(*acknowledged),
            random,
            depth - 1,
            &why,
        );
    }
    judged
}

fn seed() -> u64 {
    let seed = std::env::var("CRASH_SEED").map_or_else(
        |_| RandomState::new().hash_one(0),
        |seed| seed.parse().expect("a number"),
    );
    eprintln!("CRASH_SEED={seed}");
    seed
}

/// One history, with an image once in `one_in` fences, each of which is judged, and the crashes after it to a depth.
fn history(
    random: &mut Random,
    count: usize,
    one_in: usize,
    depth: usize,
    mutant: Option<Site>,
) -> (usize, BTreeSet<Site>) {
    let folder = folder();
    let path = folder.path().join("pool");
    let media = Shadow::new();
    let pool = Pool::create(&path, &pool_options(), media.clone()).expect("a pool");
    let heap = Heap::new(pool).expect("a heap");
    let index = DpTree::create_with(&heap, b"test", options()).expect("an index");
    media.durable().mutant = mutant;
    media.begin(&heap, random.split(), one_in);
    let operations: Vec<Operation> = (0..count).map(|_| operation(random)).collect();
    for (i, operation) in operations.iter().enumerate() {
        run(&index, operation);
        media.durable().acknowledged = i + 1;
    }
    let images = media.end();
    assert!(index.stats().merges > count / 200);
    let sites = media.durable().sites.clone();
    drop((index, heap));
    let mut judged = 0;
    for (i, (acknowledged, image)) in images.iter().enumerate() {
        let mut model = Model::new();
        operations[..*acknowledged]
            .iter()
            .for_each(|operation| apply(&mut model, operation));
        let why = format!("image {i} after {acknowledged}");
        judged += judge(image, model, operations.get(*acknowledged), random, depth, &why);
    }
    (judged, sites)
}

/// The property of the module.
#[test]
fn crashes_lose_nothing() {
    let mut random = Random::new(seed());
    let rounds = std::env::var("CRASH_ROUNDS").map_or(1, |rounds| rounds.parse().expect("a number"));
    let judged: usize = (0..rounds)
        .map(|_| history(&mut random, 1500, 25, 2, None).0)
        .sum();
    println!("{judged} images");
    assert!(judged > 50 * rounds);
}

/// Leaving out what the index writes back before any one of its fences is noticed. (That a fence is left out mostly is
/// not, by one thread: its next one makes up for it.)
#[test]
fn each_write_back_is_needed() {
    let seed = seed();
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !SILENT.get() {
            print(info);
        }
    }));
    let (_, sites) = history(&mut Random::new(seed), 600, 20, 0, None);
    assert!(sites.len() > 8, "{sites:?}");
    let is_noticed = |site| {
        (0..20).any(|round| {
            let mut random = Random::new(seed + round);
            SILENT.set(true);
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                history(&mut random, 300, 4, 0, Some(site))
            }));
            SILENT.set(false);
            ended.is_err()
        })
    };
    let survivors: Vec<Site> = sites.into_iter().filter(|&site| !is_noticed(site)).collect();
    assert!(survivors.is_empty(), "{survivors:#?}");
}

thread_local! {
    static SILENT: Cell<bool> = const { Cell::new(false) };
}
