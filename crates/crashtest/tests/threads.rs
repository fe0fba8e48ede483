//! Every index in the hands of several threads survives every crash that is looked at, and shows nothing that is not
//! durable.

mod common;

use common::{explore, whole};
use wollemi_crashtest::{Mode, Model, Settings, history};

/// Whatever a crash leaves of it, what was acknowledged is there; nobody answers what a crash may take back.
#[test]
fn what_threads_were_told_is_there() {
    for kind in whole() {
        for (mode, histories) in [(Mode::Power, 24), (Mode::Word, 6), (Mode::Process, 6)] {
            let settings = Settings {
                model: Model::from(mode),
                ..Settings::default()
            };
            let histories = (0..histories).map(|seed| history::of_map(seed, 40, 2 + seed as u32 % 3));
            let report = explore(kind, settings, histories);
            assert!(report.states > 200, "{report}");
        }
    }
}
