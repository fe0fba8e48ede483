//! DPTree survives crashes in every phase of its merges: pairs, metadata, flip, collection, and the recovery after
//! each.
//!
//! Under the kit a DPTree has its [smallest options](DpTreeOptions::SMALL) and merges in the writer's thread, so that
//! most of these histories' crash points lie inside merges.

mod common;

use common::modifications;
use crashkit::{Explorer, History, Random, Report, Settings};
use dptree::{DpTree, DpTreeOptions, tracer};
use index::Index;
use wollemi_torture::history;
use wollemi_torture::history::SCENES;
use wollemi_torture::map::{Bytes, OfIndex, Op};

const ROOT: &[u8] = b"tree";

fn subject() -> OfIndex {
    let boxed = |index| Box::new(index) as Box<dyn Index>;
    OfIndex::new(
        "dptree",
        move |heap| DpTree::create_with(heap, ROOT, DpTreeOptions::SMALL).map(boxed),
        move |heap| Ok(DpTree::open_with(heap, ROOT, DpTreeOptions::SMALL)?.map(boxed)),
        vec![tracer()],
    )
}

fn explore(settings: Settings, histories: impl IntoIterator<Item = History<Op>>) -> Report {
    let mut explorer = Explorer::new(subject(), settings).expect("memory");
    for history in histories {
        if let Err(failure) = explorer.explore(&history) {
            panic!("{failure}\n{}", explorer.report());
        }
    }
    let report = explorer.into_report();
    println!("{report}");
    report
}

fn key(i: u64) -> Bytes {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[..].into()
}

fn value(random: &mut Random) -> Bytes {
    let len = if random.below(6) == 0 {
        random.below(30) as usize
    } else {
        8
    };
    let bytes = [random.next().to_le_bytes(); 4].concat();
    bytes[..len].into()
}

/// The maximum number of images of one mutant judged in one history, before a second crash and again after it.
const IMAGES: u64 = 2000;

/// Returns a history that begins with nearly full or nearly empty leaves, so that its merges split or consolidate them.
fn of_leaves(seed: u64, ops: usize, threads: u32) -> History<Op> {
    let mut random = Random(seed);
    let splits = seed.is_multiple_of(2);
    let mut all: Vec<Op> = (0..130).map(|i| Op::Insert(key(i), value(&mut random))).collect();
    // In key order, so that some leaves have room and their neighbours have none.
    all.sort_by(|a, b| a.key().cmp(&b.key()));
    let keys: Vec<Bytes> = all.iter().filter_map(|op| op.key().cloned()).collect();
    if !splits {
        all.extend(keys[30..100].iter().map(|key| Op::Remove(key.clone())));
    }
    let prepared = all.len() as u32;
    for _ in 0..ops {
        let old = random.pick(&keys).clone();
        all.push(match random.below(8) {
            0 => Op::Update(old, value(&mut random)),
            1 => Op::Upsert(old, value(&mut random)),
            2 => Op::Get(old),
            3..6 if splits => Op::Insert(key(1000 + random.below(400)), value(&mut random)),
            _ => Op::Remove(old),
        });
    }
    History {
        seed,
        ops: all,
        prepared,
        threads,
        ..History::default()
    }
}

/// Returns the first seed: the variable `SEED`, or 1.
fn seed() -> u64 {
    std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(1)
}

/// The tree survives crashes in merges that split and consolidate leaves, in the recovery after them, and in a second
/// recovery.
#[test]
fn merges_survive_crashes() {
    let settings = Settings {
        seed: seed(),
        again_share: 40,
        kill_share: 20,
        ..Settings::default()
    };
    // Other histories have few keys, or many that become few, so that merges leave leaves empty or nearly so.
    let others = [2, 9, 17, 25, 17 + SCENES as u64].map(|seed| history::of_map(seed, 60, 1));
    let leaves = (0..6).map(|i| of_leaves(seed() + i, 40, 1));
    let report = explore(settings, leaves.chain(others));
    assert!(report.states > 1000 && report.again > 20, "{report}");
    let missing = modifications::missing(modifications::DPTREE, &report.coverage);
    assert!(missing.is_empty(), "{missing:?} of {:#?}", report.coverage.steps);
}

/// The same with other threads at work beside the merge.
#[test]
fn merges_beside_writers_survive_crashes() {
    let settings = Settings {
        seed: seed(),
        ..Settings::default()
    };
    let histories = (0..6).map(|i| of_leaves(seed() + i, 30, 2 + i as u32 % 3));
    let report = explore(settings, histories);
    assert!(report.states > 500, "{report}");
    let missing = modifications::missing(modifications::DPTREE_OF_THREADS, &report.coverage);
    assert!(missing.is_empty(), "{missing:?} of {:#?}", report.coverage.steps);
}

/// Each persist that such histories reach is needed, or a table gives the reason why it stays.
#[test]
fn persists_are_needed() {
    let settings = Settings {
        deep_share: 0,
        hunt_forgiven: false,
        ..Settings::default()
    };
    let mut explorer = Explorer::new(subject(), settings).expect("memory");
    let leaves = (0..8).map(|i| of_leaves(i, 40, 1 + i as u32 % 4));
    let others = [3, 11, 12, 17, 25].map(|seed| history::of_map(seed, 60, 1 + seed as u32 % 4));
    let histories = leaves.chain(others);
    let hunted = explorer.hunt(histories, IMAGES, |_| true).expect("no failure");
    let own = hunted
        .iter()
        .filter(|one| one.mutant.site.file().contains("dptree/src"));
    let unexplained: Vec<String> = own
        .clone()
        .filter(|one| one.is_unexplained())
        .map(ToString::to_string)
        .collect();
    assert_eq!(unexplained, [""; 0], "{}", explorer.report());
    assert!(
        own.filter(|one| one.is_killed()).count() > 20,
        "{}",
        explorer.report()
    );
}

/// The next process makes the unfenced stores of a killed one durable before it shows them or acts on them: a log
/// record, a link to a page, a value or a removal in place, the flip of a merge. (Recovery once replayed log records
/// that were not written back, so a loss of power undid data that had been read. And a merge once left a word of a leaf
/// as a killed merge had stored it.)
#[test]
fn what_a_killed_process_left_is_made_durable() {
    let settings = Settings {
        seed: seed(),
        kill_share: 3,
        again_share: 0,
        deep_share: 0,
        exhaustive: 16,
        samples: 4,
        ..Settings::default()
    };
    let leaves = (0..2).map(|i| of_leaves(seed() + i, 25, 1));
    let mixed = (0..4).map(|i| history::of_map(seed() + i, 40, 1));
    let report = explore(settings, leaves.chain(mixed));
    assert!(report.again > 300, "{report}");
}
