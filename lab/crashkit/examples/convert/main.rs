//! The worked example of `docs/convert.md`: a B-link tree in DRAM, converted step by step under the kit.
//!
//! `cargo run -p wollemi-crashkit --example convert -- STEP` prints what the kit says of a step: `dram`, `persisted`,
//! `marked`, `mended`, `whole`, or one of the wrong ways `lock-means-crash` and `root-not-persisted`.

mod added;
mod node;
mod step;
mod subject;
mod tree;

use std::process::ExitCode;
use step::{Dram, LockMeansCrash, LockMeansHelp, Marked, Mended, Persisted, RootNotPersisted, Whole};
use subject::try_step;
use wollemi_crashkit::silence_findings;
use wollemi_crashkit::words::OfWordMap;

fn main() -> ExitCode {
    silence_findings();
    let step = std::env::args().nth(1).unwrap_or_default();
    let run = match step.as_str() {
        "dram" => try_step(OfWordMap::<tree::BLink<_, Dram>>::without_accounts(), 1),
        "persisted" => try_step(OfWordMap::<tree::BLink<_, Persisted>>::without_accounts(), 2),
        "marked" => try_step(OfWordMap::<tree::BLink<_, Marked>>::without_accounts(), 1),
        "mended" => try_step(OfWordMap::<tree::BLink<_, Mended>>::default(), 1),
        "whole" => try_step(OfWordMap::<tree::BLink<_, Whole>>::default(), 2),
        "lock-means-crash" => try_step(OfWordMap::<tree::BLink<_, LockMeansCrash>>::without_accounts(), 2),
        "lock-means-help" => try_step(OfWordMap::<tree::BLink<_, LockMeansHelp>>::without_accounts(), 2),
        "root-not-persisted" => try_step(OfWordMap::<tree::BLink<_, RootNotPersisted>>::default(), 1),
        _ => {
            eprintln!("no step is called '{step}'");
            return ExitCode::from(2);
        }
    };
    match run {
        Ok(report) => println!("{report}"),
        Err(failure) => print!("{failure}"),
    }
    ExitCode::SUCCESS
}
