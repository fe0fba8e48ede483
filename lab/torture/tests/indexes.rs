//! Every listed index survives every explored crash.

mod common;

use common::{IndexKind, claimed, explore, modifications, whole, whole_and_variants};
use crashkit::{Explorer, MemoryModel, Mode, Report, Settings};
use wollemi_torture::history::{self, SCENES};
use wollemi_torture::map::OfIndex;

/// Checks an index in a model: explores this many histories, and then more until crashes have met all these
/// modifications, up to four times the number of scenes. The variable `SEED` sets the first seed.
fn property(kind: IndexKind, mode: Mode, histories: usize, all: &[&str]) {
    let seed = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(1);
    let settings = Settings {
        seed,
        model: MemoryModel::from(mode),
        again_share: 50,
        kill_share: 30,
        ..Settings::default()
    };
    let mut explorer = Explorer::new(OfIndex::listed(kind), settings).expect("memory");
    let missing = |report: &Report| modifications::missing(all, &report.coverage);
    for (number, seed) in (seed..).enumerate().take(4 * SCENES) {
        if number >= histories && missing(explorer.report()).is_empty() {
            break;
        }
        if let Err(failure) = explorer.explore(&history::of_map(seed, 60, 1)) {
            panic!("{failure}\n{}", explorer.report());
        }
    }
    let report = explorer.into_report();
    println!("{report}");
    let least = if mode == Mode::Process { 500 } else { 2000 };
    assert!(report.states > least, "{report}");
    let missing = missing(&report);
    assert!(
        missing.is_empty(),
        "{kind} has not reached {missing:#?}, but {:#?}",
        report.coverage
    );
}

/// After any crash, every index and ablation holds what was acknowledged, holds each operation in flight entirely or
/// not at all, and continues to work. Crashes meet every structure modification that it has. (The tests `dptree` and
/// `bwtree` count those of DPTree and of P-BwTree.)
#[test]
fn what_was_acknowledged_is_there() {
    for &kind in IndexKind::ALL {
        let histories = match kind {
            _ if kind.is_radix() && !kind.is_ablation() => SCENES,
            // Most of DPTree's crash points have many images, and its ablations write the same.
            _ if !kind.is_radix() && kind.is_ablation() => 2,
            _ => 12,
        };
        property(kind, Mode::Power, histories, &modifications::of(kind));
    }
}

/// The same in the models where the stores to a line become durable in any order (`word`), and where the memory
/// outlives the process (`process`).
#[test]
fn what_was_acknowledged_is_there_in_other_models() {
    for kind in whole().chain([IndexKind::RoartStreaming]) {
        property(claimed(kind, Mode::Word), Mode::Word, 8, &[]);
        property(kind, Mode::Process, 8, &[]);
    }
}

/// The next process sees the stores that a killed one had not persisted. A thread that acts on one must persist it
/// first, or a loss of power may undo it. (Values stored in place, and the end of the allocated pages, were once lost
/// that way.)
#[test]
fn what_was_seen_after_a_kill_is_there() {
    for kind in whole_and_variants() {
        let settings = Settings {
            kill_share: 10,
            again_share: 0,
            deep_share: 0,
            ..Settings::default()
        };
        let report = explore(kind, settings, (1..7).map(|seed| history::of_map(seed, 60, 1)));
        assert!(report.again > 100, "{report}");
    }
}
