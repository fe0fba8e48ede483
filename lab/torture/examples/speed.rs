//! Measures how many crash states per second the crash kit judges, in histories of a hundred operations by one thread
//! on an index: `speed [histories] [first seed] [index]`. The report's time is wall-clock time. Exit code 0 if no
//! history failed, 1 if one did, 2 if the arguments are wrong.

use crashkit::{Explorer, Settings};
use std::fmt::Display;
use std::process::ExitCode;
use std::str::FromStr;
use wollemi::indexes::IndexKind;
use wollemi_torture::history;
use wollemi_torture::map::OfIndex;

struct Args {
    histories: u64,
    seed: u64,
    kind: IndexKind,
}

impl Args {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Args, String> {
        let args = Args {
            histories: value(&mut words, 50)?,
            seed: value(&mut words, 1)?,
            kind: value(&mut words, IndexKind::default())?,
        };
        match words.next() {
            Some(word) => Err(format!("unknown argument {word}")),
            None => Ok(args),
        }
    }
}

/// Returns the value of the next word, or `default` if there is none.
fn value<T: FromStr>(words: &mut impl Iterator<Item = String>, default: T) -> Result<T, String>
where
    T::Err: Display,
{
    match words.next() {
        Some(word) => word.parse().map_err(|error| format!("{word}: {error}")),
        None => Ok(default),
    }
}

/// Explores the histories, and prints each failure and a report. Returns whether one failed.
fn run(args: &Args) -> Result<bool, String> {
    let settings = Settings {
        seed: args.seed,
        ..Settings::default()
    };
    let mut explorer = Explorer::new(OfIndex::listed(args.kind), settings)?;
    let mut failed = false;
    for number in 0..args.histories {
        if let Err(failure) = explorer.explore(&history::of_map(args.seed.wrapping_add(number), 100, 1)) {
            eprintln!("{failure}");
            failed = true;
        }
    }
    println!("{}", explorer.report());
    Ok(failed)
}

fn main() -> ExitCode {
    match Args::parse(std::env::args().skip(1)).and_then(|args| run(&args)) {
        Ok(failed) => ExitCode::from(u8::from(failed)),
        Err(error) => {
            eprintln!("speed: {error}");
            ExitCode::from(2)
        }
    }
}
