//! Shared parts of the indexes' tests.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod modifications;

pub use wollemi::indexes::IndexKind;

use crashkit::{Explorer, History, Mode, Report, Settings};
use wollemi_torture::map::OfIndex;

/// Returns the indexes that are not ablations.
pub fn whole() -> impl Iterator<Item = IndexKind> {
    IndexKind::ALL.iter().copied().filter(|kind| !kind.is_ablation())
}

/// Returns these, and ROART with its other publication policy and without inline leaf arrays, as in the paper.
pub fn whole_and_variants() -> impl Iterator<Item = IndexKind> {
    whole().chain([IndexKind::RoartStreaming, IndexKind::RoartWithoutInline])
}

/// Returns the index to explore in a model. In the model `word`, ROART without inline leaf arrays takes the place of
/// the indexes that do not claim that model (ROART and P-CLHT): they rely on the order in which stores to a line become
/// durable.
pub fn claimed(kind: IndexKind, mode: Mode) -> IndexKind {
    if mode == Mode::Word && !kind.claims_word() {
        return IndexKind::RoartWithoutInline;
    }
    kind
}

/// Explores histories of an index, and panics if one fails.
pub fn explore(
    kind: IndexKind,
    settings: Settings,
    histories: impl IntoIterator<Item = History<wollemi_torture::map::Op>>,
) -> Report {
    let mut explorer = Explorer::new(OfIndex::listed(kind), settings).expect("memory");
    for history in histories {
        if let Err(failure) = explorer.explore(&history) {
            panic!("{failure}\n{}", explorer.report());
        }
    }
    let report = explorer.into_report();
    println!("{report}");
    report
}
