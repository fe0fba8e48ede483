//! ROART survives every crash that is looked at.

mod common;

use common::{Full, Raw, Streaming, Variant, WithoutEc, WithoutLc, WithoutMo, WithoutSmp, subject};
use wollemi_crashtest::map::OfIndex;
use wollemi_crashtest::{Explorer, Mode, Model, Report, Settings, history};

fn explore(subject: OfIndex, settings: Settings, histories: u64, ops: usize) -> Report {
    let seed = settings.seed;
    let mut explorer = Explorer::new(subject, settings).expect("memory");
    for number in 0..histories {
        if let Err(failure) = explorer.explore(&history::of_map(seed + number, ops, 1)) {
            panic!("{failure}\n{}", explorer.report());
        }
    }
    explorer.into_report()
}

/// Runs the property for a variant and a model, with a seed that can be given (`SEED`).
fn property<V: Variant>(mode: Mode) {
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
    let name = std::any::type_name::<V>();
    let report = explore(subject::<V>(name), settings, 12, 60);
    let least = if mode == Mode::Process { 500 } else { 2000 };
    assert!(report.states > least, "{report}");
}

/// Whatever a crash leaves of it, what was acknowledged is there, what was in flight is there or not, and it works on:
/// with each of its techniques off, in each model.
#[test]
fn what_was_acknowledged_is_there() {
    for mode in [Mode::Power, Mode::Word, Mode::Process] {
        property::<Full>(mode);
        property::<Streaming>(mode);
    }
    property::<WithoutEc>(Mode::Power);
    property::<WithoutSmp>(Mode::Power);
    property::<WithoutMo>(Mode::Power);
    property::<WithoutLc>(Mode::Power);
    property::<Raw>(Mode::Power);
}

/// What a killed process had stored and not persisted is seen after it, and acted upon: whoever does so persists it, or
/// a loss of power takes it away. (Of values stored in place, and of the end of the allocated pages, it once did.)
#[test]
fn what_was_seen_after_a_kill_is_there() {
    let settings = Settings {
        kill_share: 10,
        again_share: 0,
        deep_share: 0,
        ..Settings::default()
    };
    let report = explore(subject::<Full>("roart"), settings, 6, 60);
    assert!(report.again > 100, "{report}");
}
