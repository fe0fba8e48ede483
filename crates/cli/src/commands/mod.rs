//! The commands, one module each.

mod check;
mod completions;
mod point;
mod scan;
mod serve;
mod stats;
mod transfer;

use crate::context::InPool;
use crate::exit::{Failure, Outcome};
use clap::Subcommand;
use std::io::{self, BufWriter, StdoutLock};

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the pool to memcached clients until SIGTERM or SIGINT
    Serve(InPool<serve::Args>),
    /// Write the value of a key to the standard output, exactly as it is
    Get(InPool<point::Get>),
    /// Give a key a value, from the command line or the standard input
    Put(InPool<point::Put>),
    /// Remove keys
    Del(InPool<point::Del>),
    /// List entries in key order
    Scan(InPool<scan::Args>),
    /// Put the entries of a file
    Import(InPool<transfer::Import>),
    /// Write all entries to a file
    Export(InPool<transfer::Export>),
    /// Say what is in the pool
    Stats(InPool<stats::Args>),
    /// Walk everything and report damage
    Check(InPool<check::Args>),
    /// Measure the indexes: speed, persists, space, and how soon a pool is open
    Bench(bench::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
}

impl Command {
    /// Carries the command out.
    pub fn run(self) -> Result<Outcome, Failure> {
        match self {
            Command::Serve(InPool { args, context }) => args.run(&context),
            Command::Get(InPool { args, context }) => args.run(&context),
            Command::Put(InPool { args, context }) => args.run(&context),
            Command::Del(InPool { args, context }) => args.run(&context),
            Command::Scan(InPool { args, context }) => args.run(&context),
            Command::Import(InPool { args, context }) => args.run(&context),
            Command::Export(InPool { args, context }) => args.run(&context),
            Command::Stats(InPool { args, context }) => args.run(&context),
            Command::Check(InPool { args, context }) => args.run(&context),
            Command::Bench(args) => Ok(bench::run(&args).map(|()| Outcome::Done)?),
            Command::Completions(args) => args.run(),
        }
    }
}

/// The standard output, buffered. Flush it: an error on dropping would go unseen.
fn output() -> BufWriter<StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}
