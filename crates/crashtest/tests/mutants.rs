//! The kit sees: without a persist that ROART needs, some explored image is wrong.

mod common;

use common::{Full, subject};
use wollemi_crashtest::{Explorer, Settings, history};

#[test]
fn persists_are_needed() {
    let subject = subject::<Full>("roart");
    let settings = Settings {
        again_share: 0,
        deep_share: 0,
        ..Settings::default()
    };
    let mut explorer = Explorer::new(subject, settings).expect("memory");
    for seed in 0..20 {
        explorer
            .explore(&history::of_map(seed, 100, 1))
            .expect("no failure");
    }
    println!("{}", explorer.report());
    for (mutant, count) in explorer
        .report()
        .mutants()
        .into_iter()
        .zip(explorer.report().sites.values().map(|v| v.1).collect::<Vec<_>>())
    {
        explorer.set_mutant(Some(mutant));
        let start = std::time::Instant::now();
        let found = (0..20).find_map(|seed| {
            explorer
                .explore(&history::of_map(seed, 100, 1))
                .err()
                .map(|e| (seed, e))
        });
        match found {
            Some((seed, failure)) => println!(
                "killed   {mutant} ({count}x) by seed {seed} {:?}: {}",
                start.elapsed(),
                failure.message.chars().take(80).collect::<String>()
            ),
            None => println!("SURVIVED {mutant} ({count}x) {:?}", start.elapsed()),
        }
    }
}
