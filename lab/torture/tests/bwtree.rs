//! P-BwTree with nodes of eight entries, so that histories of few keys reach every modification of inner nodes, and
//! exhaust the parents' delta chains in a full pool.

use crashkit::{Crash, Explorer, History, Report, Settings};
use index::{Index, OnHeap};
use recipe::BwTree;
use wollemi_torture::history::{self, SCENES};
use wollemi_torture::map::{OfIndex, Op};

const ROOT: &[u8] = b"tree";

type Small = BwTree<Crash, 8>;

/// The modifications of nodes.
const STEPS: &[&str] = &[
    "consolidation",
    "lower root",
    "merge",
    "new root",
    "removal of a leaf",
    "removal of an inner node",
    "split of a leaf",
    "split of an inner node",
];

/// Returns the steps that no history has reached.
fn missing(report: &Report) -> Vec<&'static str> {
    let is_missing = |step: &&&str| !report.coverage.steps.contains_key(**step);
    STEPS.iter().filter(is_missing).copied().collect()
}

/// Explores histories until `is_enough`, and panics if one fails.
fn explore(
    settings: Settings,
    histories: impl IntoIterator<Item = History<Op>>,
    is_enough: impl Fn(usize, &Report) -> bool,
) -> Report {
    let subject = OfIndex::new(
        "bwtree-small",
        |heap| Ok(Box::new(Small::create(heap, ROOT)?)),
        |heap| Ok(Small::open(heap, ROOT)?.map(|index| Box::new(index) as Box<dyn Index>)),
        vec![Small::tracer()],
    );
    let mut explorer = Explorer::new(subject, settings).expect("memory");
    for (number, history) in histories.into_iter().enumerate() {
        if is_enough(number, explorer.report()) {
            break;
        }
        if let Err(failure) = explorer.explore(&history) {
            panic!("{failure}\n{}", explorer.report());
        }
    }
    let report = explorer.into_report();
    println!("{report}");
    report
}

/// The tree survives crashes during every modification of leaves, inner nodes and roots.
#[test]
fn nodes_of_all_levels_survive_crashes() {
    let settings = Settings {
        again_share: 50,
        kill_share: 30,
        ..Settings::default()
    };
    let histories = (1..=4 * SCENES as u64).map(|seed| history::of_map(seed, 60, 1));
    let report = explore(settings, histories, |number, report| {
        number >= 6 && missing(report).is_empty()
    });
    assert!(report.states > 1000, "{report}");
    let missing = missing(&report);
    assert!(missing.is_empty(), "{missing:?} of {:#?}", report.coverage.steps);
}

/// Threads split and remove nodes in full pools; every crash leaves a tree that accepts keys again once it is emptied.
#[test]
fn full_pools_lock_nothing_up() {
    let settings = Settings {
        deep_share: 40,
        ..Settings::default()
    };
    let others = (0..).map(|seed| history::of_map(seed, 40, 2 + seed as u32 % 3));
    let full = others.filter(|history| history.room < u64::MAX).take(5);
    let report = explore(settings, full.chain([history::of_map(5055, 100, 2)]), |_, _| {
        false
    });
    assert!(report.states > 500, "{report}");
}
