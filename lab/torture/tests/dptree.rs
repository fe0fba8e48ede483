//! DPTree survives crashes in every phase of its merges: pairs, metadata, flip, collection, and the recovery after
//! each.
//!
//! On the kit's media a DPTree is as [small](Options::SMALL) as it can be and merges inline, so that most of these
//! histories' crash points lie inside merges.

mod common;

use common::modifications;
use crashkit::{Explorer, History, Random, Report, Settings};
use dptree::{DpTree, Options, tracer};
use index::Index;
use wollemi_torture::history;
use wollemi_torture::history::SCENES;
use wollemi_torture::map::{Bytes, OfIndex, Op};

const ROOT: &[u8] = b"tree";

fn subject() -> OfIndex {
    let boxed = |index| Box::new(index) as Box<dyn Index>;
    OfIndex::new(
        "dptree",
        move |heap| DpTree::create_with(heap, ROOT, Options::SMALL).map(boxed),
        move |heap| Ok(DpTree::open_with(heap, ROOT, Options::SMALL)?.map(boxed)),
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

/// Images of one mutant judged in one history, at most.
const IMAGES: u64 = 2000;

/// A history that begins with leaves nearly full, or nearly empty, so that its merges split or consolidate them.
fn of_leaves(seed: u64, ops: usize, threads: u32) -> History<Op> {
    let mut random = Random(seed);
    let splits = seed.is_multiple_of(2);
    let mut all: Vec<Op> = (0..130).map(|i| Op::Insert(key(i), value(&mut random))).collect();
    // Of consecutive keys, so that one leaf has room and the next one has not.
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

/// The first seed: 1, or another that is given (`SEED`).
fn seed() -> u64 {
    std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(1)
}

/// Crashes in merges that split and consolidate leaves, in what recovery does after them, and in that again.
#[test]
fn merges_survive_crashes() {
    let settings = Settings {
        seed: seed(),
        again_share: 40,
        kill_share: 20,
        ..Settings::default()
    };
    // And of others: of few keys, and of many that become few, so that leaves are left without any, or with few.
    let others = [2, 9, 17, 25, 17 + SCENES as u64].map(|seed| history::of_map(seed, 60, 1));
    let leaves = (0..6).map(|i| of_leaves(seed() + i, 40, 1));
    let report = explore(settings, leaves.chain(others));
    assert!(report.states > 1000 && report.again > 20, "{report}");
    let missing = modifications::missing(modifications::DPTREE, &report.coverage);
    assert!(missing.is_empty(), "{missing:?} of {:#?}", report.coverage.steps);
}

/// The same with others at work beside the merge.
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

/// Each persist that such histories come to is needed, or a table says why it stays.
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

/// What a killed process has written and not fenced, a log record, a link to a page, a value or a removal in place, the
/// flip of a merge, is durable before the next one shows it or acts on it. (Recovery once replayed log records that
/// were not written back: after a loss of power, what had been read was gone. And a merge once left a word of a leaf as
/// a killed one had stored it.)
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
