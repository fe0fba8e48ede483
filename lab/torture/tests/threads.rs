//! Every index survives every explored crash under several threads, and shows only durable data.

mod common;

use common::{IndexKind, claimed, explore, whole, whole_and_variants};
use crashkit::{History, MemoryModel, Mode, Settings};
use wollemi_torture::history;
use wollemi_torture::map::Op;

/// After any crash everything acknowledged is present, and no answer shows data that a crash may undo.
#[test]
fn what_threads_were_told_is_there() {
    for kind in whole_and_variants() {
        for (mode, histories) in [(Mode::Power, 24), (Mode::Word, 6), (Mode::Process, 6)] {
            let settings = Settings {
                model: MemoryModel::from(mode),
                ..Settings::default()
            };
            let histories = (0..histories).map(|seed| history::of_map(seed, 40, 2 + seed as u32 % 3));
            let report = explore(claimed(kind, mode), settings, histories);
            assert!(report.states > 200, "{report}");
        }
    }
}

/// The same for ROART without each of its techniques.
#[test]
fn ablations_in_the_hands_of_threads() {
    for &kind in IndexKind::ALL {
        if !kind.is_ablation() || whole_and_variants().any(|other| other == kind) {
            continue;
        }
        let histories = (0..16).map(|seed| history::of_map(seed, 40, 2 + seed as u32 % 3));
        // Without entry compression a node's level, which never changes, shares a word with key bytes, which do. A read
        // of the level beside a store to the key bytes would count as a dirty read.
        let settings = Settings {
            aimed: 0,
            ..Settings::default()
        };
        let report = explore(kind, settings, histories);
        assert!(report.states > 200, "{report}");
    }
}

/// A reader of another key that meets a leaf with a value in flight depends on the leaf's key alone. (The kit once took
/// the mark beside the value for data that a crash must not undo.)
#[test]
fn keys_are_what_they_are_while_values_change() {
    let changes = (0..20u64).flat_map(|value| {
        let change = Op::Update(b"aa"[..].into(), value.to_le_bytes()[..].into());
        [change, Op::Get(b"ab"[..].into())]
    });
    let first = Op::Insert(b"aa"[..].into(), [7; 8][..].into());
    let ops: Vec<Op> = std::iter::once(first).chain(changes).collect();
    for kind in whole() {
        let histories = (0..6).map(|seed| History {
            seed,
            ops: ops.clone(),
            prepared: 1,
            threads: 2,
            ..History::default()
        });
        explore(kind, Settings::default(), histories);
    }
}
