//! The kit sees: without a persist that ROART needs, some explored image is wrong.

mod common;

use common::{IndexKind, subject};
use wollemi_crashtest::{Bounds, Explorer, Fate, Hunted, Settings, history};

/// Of the persists that make ROART's new objects durable and publish them, not one can be left out. (What is not
/// asserted here: persists by which a reader helps a publication that is still under way, since here nothing else is.)
#[test]
fn persists_are_needed() {
    let subject = subject(IndexKind::Roart);
    let settings = Settings {
        deep_share: 0,
        ..Settings::default()
    };
    let mut explorer = Explorer::new(subject, settings).expect("memory");
    let hunted = explorer
        .hunt(
            (0..14).map(|seed| history::of_map(seed, 60, 1)),
            Bounds::default(),
            |_| true,
        )
        .expect("no failure");
    for one in &hunted {
        println!("{one}");
    }
    let of = |file: &str| {
        let file = format!("roart/src/{file}.rs");
        hunted
            .iter()
            .filter(move |one| one.mutant.site.file().ends_with(&file))
    };
    // What a reader of a marked entry persists has no moment here.
    let by_writers = |one: &&Hunted| !matches!(one.fate, Fate::Untried);
    for one in of("write")
        .chain(of("grow"))
        .chain(of("shrink"))
        .chain(of("group"))
        .chain(of("inline").filter(by_writers))
        .chain(of("inline/build"))
        .chain(of("inline/edit"))
        .chain(of("node/build"))
    {
        assert!(matches!(one.fate, Fate::Killed(_)), "{one}");
    }
    assert!(
        of("inline").filter(by_writers).count() >= 7,
        "{}",
        explorer.report()
    );
    assert!(of("write").count() >= 8, "{}", explorer.report());
    assert!(
        of("grow").count() + of("shrink").count() + of("group").count() >= 10,
        "{}",
        explorer.report()
    );
}
