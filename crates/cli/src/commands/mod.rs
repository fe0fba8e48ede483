//! The commands, one module each.

mod accept_loss;
mod backup;
mod check;
mod completions;
mod level;
mod man;
mod place;
mod point;
mod scan;
pub mod serve;
mod stats;
mod top;
mod transfer;

use crate::context::{Context, InPool};
use crate::exit::{Failure, Outcome};
use clap::Subcommand;
use indicatif::HumanCount;
use serde::Serialize;
use std::io::{self, BufWriter, StdoutLock, Write};

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the pool to memcached and Redis clients until SIGTERM or SIGINT
    Serve(Box<InPool<serve::Args>>),
    /// Write the value of a key to the standard output, exactly as it is (with a newline on a terminal)
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
    /// Write all maps to a file, as of one moment
    Backup(InPool<backup::Backup>),
    /// Make a pool from a backup
    Restore(InPool<backup::Restore>),
    /// Rewrite the pool into the smallest file that it fits in
    Compact(InPool<backup::Compact>),
    /// Say what is in the pool
    Stats(InPool<stats::Args>),
    /// Walk everything and report damage
    Check(InPool<check::Args>),
    /// Check a pool that was open when the machine stopped, and allow writing to it again
    AcceptLoss(InPool<accept_loss::Args>),
    /// Say what the pool's acknowledged writes survive, or move it to another level
    Level(InPool<level::Args>),
    /// Take a checkpoint, of a pool of level `disk`
    Checkpoint(InPool<level::Checkpoint>),
    /// Watch a running server: commands, latency, hit rate, memory, recovery
    Top(top::Args),
    /// Write manual pages, one per command
    Man(man::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
}

impl Command {
    /// Carries the command out, with the options that were given before its name.
    pub fn run(self, before: Context) -> Result<Outcome, Failure> {
        match self {
            Command::Top(_) | Command::Man(_) | Command::Completions(_) if before != Context::default() => {
                Err(Failure::Usage(
                    "options before the command's name are for commands on a pool".into(),
                ))
            }
            // The arguments are parsed again there, together with the other sources of settings.
            Command::Serve(_) => serve::run(),
            Command::Get(InPool { args, context }) => args.run(&context.after(before)),
            Command::Put(InPool { args, context }) => args.run(&context.after(before)),
            Command::Del(InPool { args, context }) => args.run(&context.after(before)),
            Command::Scan(InPool { args, context }) => args.run(&context.after(before)),
            Command::Import(InPool { args, context }) => args.run(&context.after(before)),
            Command::Export(InPool { args, context }) => args.run(&context.after(before)),
            Command::Backup(InPool { args, context }) => args.run(&context.after(before)),
            Command::Restore(InPool { args, context }) => args.run(&context.after(before)),
            Command::Compact(InPool { args, context }) => args.run(&context.after(before)),
            Command::Stats(InPool { args, context }) => args.run(&context.after(before)),
            Command::Check(InPool { args, context }) => args.run(&context.after(before)),
            Command::AcceptLoss(InPool { args, context }) => args.run(&context.after(before)),
            Command::Level(InPool { args, context }) => args.run(&context.after(before)),
            Command::Checkpoint(InPool { args, context }) => args.run(&context.after(before)),
            Command::Top(args) => args.run(),
            Command::Man(args) => args.run(),
            Command::Completions(args) => args.run(),
        }
    }
}

/// A number of entries in words.
fn in_words(entries: u64) -> String {
    format!(
        "{} {}",
        HumanCount(entries),
        if entries == 1 { "entry" } else { "entries" }
    )
}

/// A text on one line, with what a terminal might act on escaped as in tab-separated values.
fn on_a_line(text: &str) -> String {
    let mut line = Vec::new();
    // Writing to memory does not fail, and what is written is UTF-8.
    let _ = crate::format::tsv::escape(&mut line, text.as_bytes());
    String::from_utf8_lossy(&line).into_owned()
}

/// Writes a report as JSON, on a line, once all of it could be formed.
fn write_json(out: &mut impl Write, report: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()
}

/// The standard output, buffered. Flush it: an error on dropping would go unseen.
fn output() -> BufWriter<StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}
