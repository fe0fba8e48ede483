//! The kit sees: without a persist that ROART needs, some explored image is wrong.

mod common;

use common::{Full, subject};
use wollemi_crashtest::{Explorer, Settings, history};

#[test]
fn persists_are_needed() {
    let subject = subject::<Full>("roart");
    let settings = Settings {
        again_share: 20,
        deep_share: 0,
        ..Settings::default()
    };
    let mut explorer = Explorer::new(&subject, settings).expect("memory");
    let hunted = explorer
        .hunt((0..30).map(|seed| history::of_map(seed, 60)))
        .expect("no failure");
    for hunted in &hunted {
        println!("{hunted}");
    }
}
