//! The heap alone survives every explored crash: its objects are intact, and nothing is lost or handed out twice.

use wollemi_crashkit::blobs::{Blobs, history};
use wollemi_crashkit::{Explorer, MemoryModel, Mode, Settings};

/// Explores crashes in the models `power` and `word`, with one thread and with several, with recovery before, after and
/// beside its use.
#[test]
fn nothing_is_lost_or_handed_out_twice() {
    const { assert!(Blobs::CLAIMS_WORD) };
    for (mode, histories, min_states) in [(Mode::Power, 16, 1000), (Mode::Word, 8, 500)] {
        let settings = Settings {
            model: MemoryModel::from(mode),
            again_share: 100,
            aimed: 1,
            ..Settings::default()
        };
        let mut explorer = Explorer::new(Blobs, settings).expect("memory");
        for seed in 0..histories {
            if let Err(failure) = explorer.explore(&history(seed, 20, 1 + seed as u32 % 4)) {
                panic!("{failure}\n{}", explorer.report());
            }
        }
        let report = explorer.into_report();
        println!("{report}");
        assert!(report.states > min_states, "{report}");
    }
}
