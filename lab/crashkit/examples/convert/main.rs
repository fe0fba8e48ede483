//! The worked example of `docs/convert.md`: a B-link tree in DRAM, converted step by step under the kit.
//!
//! `cargo run -p wollemi-crashkit --example convert -- STEP` prints the kit's report on a step: `dram`, `persisted`,
//! `marked`, `mended`, `whole`, or one of the wrong ways `lock-means-crash`, `lock-means-help`, `root-not-persisted`.

mod added;
mod node;
mod step;
mod subject;
mod tree;

use std::process::ExitCode;
use step::{Dram, LockMeansCrash, LockMeansHelp, Marked, Mended, Persisted, RootNotPersisted, Whole};
use subject::{FEW_KEYS, KEYS, accounted, try_step, unaccounted};
use wollemi_crashkit::silence_findings;

fn main() -> ExitCode {
    silence_findings();
    let step = std::env::args().nth(1).unwrap_or_default();
    let run = match step.as_str() {
        "dram" => try_step(unaccounted::<Dram>(), 1, KEYS),
        "persisted" => try_step(unaccounted::<Persisted>(), 2, FEW_KEYS),
        "marked" => try_step(unaccounted::<Marked>(), 1, KEYS),
        "mended" => try_step(accounted::<Mended>(), 1, KEYS),
        "whole" => try_step(accounted::<Whole>(), 2, KEYS),
        "lock-means-crash" => try_step(unaccounted::<LockMeansCrash>(), 2, KEYS),
        "lock-means-help" => try_step(unaccounted::<LockMeansHelp>(), 2, KEYS),
        "root-not-persisted" => try_step(accounted::<RootNotPersisted>(), 1, KEYS),
        _ => {
            eprintln!("unknown step '{step}'");
            return ExitCode::from(2);
        }
    };
    match run {
        Ok(report) => println!("{report}"),
        Err(failure) => print!("{failure}"),
    }
    ExitCode::SUCCESS
}
