//! `wollemi-lab`: benchmarks and tests of Wollemi, apart from the program `wollemi`.
//!
//! The crate `bench` measures. The modules `torture` and `exercise` have the arguments and reports of these commands;
//! `exit` has the exit codes.

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

/// The commands.
#[derive(Debug, Subcommand)]
enum Command {
    /// Measure the indexes: speed, persists, space, and the time to open a pool
    Bench(bench::Args),
    /// Run seeded histories on the indexes, and judge the images that a crash at any point may leave
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

/// Returns buffered standard output. Flush it: dropping it would hide an error.
fn output() -> BufWriter<StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}
