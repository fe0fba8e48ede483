//! Every index of the list survives every explored crash.

mod common;

use common::{IndexKind, claimed, explore, modifications, whole, whole_and_variants};
use crashkit::{Explorer, Mode, Model, Report, Settings};
use wollemi_torture::history::{self, SCENES};
use wollemi_torture::map::OfIndex;

/// Runs the property for an index and a model, with a seed that can be given (`SEED`): this many histories, and more,
/// up to four times the scenes, until there were crashes during all these modifications.
fn property(kind: IndexKind, mode: Mode, histories: usize, all: &[&str]) {
    let seed = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(1);
    let settings = Settings {
        seed,
        model: Model::from(mode),
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
        "{kind} has not come to {missing:#?}, but to {:#?}",
        report.coverage
    );
}

/// Whatever a crash leaves of it, what was acknowledged is there, what was in flight is there or not, and it works on.
/// There were crashes during every structure modification that it has, ROART without one of its techniques as well
/// (DPTree's are counted in `dptree`).
#[test]
fn what_was_acknowledged_is_there() {
    for &kind in IndexKind::ALL {
        let histories = match kind {
            _ if kind.is_radix() && !kind.is_ablation() => SCENES,
            // Most of a DPTree's crash points have many images; its ablations write the same.
            _ if !kind.is_radix() && kind.is_ablation() => 2,
            _ => 12,
        };
        property(kind, Mode::Power, histories, &modifications::of(kind));
    }
}

/// The same where the stores of a line become durable in any order, and where the memory outlives the process.
#[test]
fn what_was_acknowledged_is_there_in_other_models() {
    for kind in whole().chain([IndexKind::RoartStreaming]) {
        property(claimed(kind, Mode::Word), Mode::Word, 8, &[]);
        property(kind, Mode::Process, 8, &[]);
    }
}

/// What a killed process had stored and not persisted is seen after it, and acted upon: a thread that acts on it must
/// persist it, or a loss of power takes it away. (Of values stored in place, and of the end of the allocated pages, it
/// once did.)
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
