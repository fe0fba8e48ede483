//! Hot keys, over every index: a short run of `exercise --hot`.
//!
//! Started with `be-killed` and the description of a generation, this is the process that the test kills; otherwise it
//! is the test.

mod common;

use common::{child, number, run_as_child};
use std::process::ExitCode;
use std::time::Duration;
use wollemi::IndexKind;
use wollemi_exerciser::{Settings, run};

/// Functions that a run must have called.
const CALLED: [&str; 14] = [
    "Batch::commit",
    "Db::transact",
    "Map::compare_and_swap",
    "Map::edit",
    "Map::get",
    "Map::insert",
    "Map::load",
    "Map::multi_get",
    "Map::range",
    "Map::remove",
    "Map::update",
    "Map::upsert",
    "Reader::get",
    "Reader::visit",
];

fn main() -> ExitCode {
    if let Some(code) = run_as_child() {
        return code;
    }
    // The line of the standard test harness, so that scripts that count tests count this one.
    println!("running 1 test");
    let directory = tempfile::tempdir().expect("a directory for pools");
    let kinds = IndexKind::ALL.iter().copied().filter(|kind| !kind.is_ablation());
    let kinds: Vec<_> = kinds.collect();
    let settings = Settings {
        seed: number("WOLLEMI_SEED", 1),
        threads: number("WOLLEMI_THREADS", 0) as usize,
        budget: Duration::from_secs(number("WOLLEMI_SECONDS", 20)),
        calls: number("WOLLEMI_CALLS", 1_000_000),
        directory: directory.path().to_owned(),
        child: Some(child),
        server: None,
        openings: false,
        hot: true,
        kinds,
    };
    match run(&settings, |_| ()) {
        Ok(report) => {
            println!(
                "seed {}: {} calls, {} pools, {} openings, {} kills in {:.1} s",
                settings.seed, report.calls, report.pools, report.openings, report.kills, report.seconds
            );
            let called: Vec<_> = report.called.iter().map(|(name, _)| name).collect();
            let missing: Vec<_> = CALLED.iter().filter(|name| !called.contains(name)).collect();
            if missing.is_empty() && report.kills > 0 {
                return ExitCode::SUCCESS;
            }
            println!(
                "too little was exercised: {} kills; no call of {missing:?}",
                report.kills
            );
        }
        Err(failure) => {
            println!("{failure}");
            let _kept = directory.keep();
        }
    }
    ExitCode::FAILURE
}
