//! `wollemi-lab`: what measures Wollemi and what tries to break it, apart from the program that people run.
//!
//! What is measured is `bench`'s. `torture` and `exercise` have a module each for their arguments and their report; how
//! a command ends is in `exit`.

#![forbid(unsafe_code)]

mod exercise;
mod exit;
mod torture;

use clap::{Parser, Subcommand};
use exit::{Failure, Outcome};
use std::io::{self, BufWriter, StdoutLock};
use std::process::ExitCode;

/// Measures Wollemi, and tries to break it.
#[derive(Debug, Parser)]
#[command(name = "wollemi-lab", version, after_help = exit::CODES, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
enum Command {
    /// Measure the indexes: speed, persists, space, and how soon a pool is open
    Bench(bench::Args),
    /// Judge what crashes leave of the indexes: every legal image, during seeded histories
    Torture(torture::Args),
    /// Call every function of the database from several threads, with kills, and check every answer
    Exercise(exercise::Args),
}

impl Command {
    fn run(self) -> Result<Outcome, Failure> {
        match self {
            Command::Bench(args) => Ok(bench::run(&args).map(|()| Outcome::Done)?),
            Command::Torture(args) => args.run(),
            Command::Exercise(args) => args.run(),
        }
    }
}

fn main() -> ExitCode {
    exit::report(Cli::parse().command.run())
}

/// The standard output, buffered. Flush it: an error on dropping would go unseen.
fn output() -> BufWriter<StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}
