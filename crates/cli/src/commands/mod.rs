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

/// The command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the pool to memcached and Redis clients until SIGTERM or SIGINT
    Serve(Box<InPool<serve::Args>>),
    /// Write the value of a key to the standard output, unchanged (with a newline on a terminal)
    Get(InPool<point::Get>),
    /// Set the value of a key, from the command line or the standard input
    Put(InPool<point::Put>),
    /// Remove keys
    Del(InPool<point::Del>),
    /// List entries in key order
    Scan(InPool<scan::Args>),
    /// Put the entries of a file into a map
    Import(InPool<transfer::Import>),
    /// Write all entries of a map to a file
    Export(InPool<transfer::Export>),
    /// Write all maps, as of one moment, to a file
    Backup(InPool<backup::Backup>),
    /// Create a pool from a backup
    Restore(InPool<backup::Restore>),
    /// Rewrite the pool into the smallest possible file
    Compact(InPool<backup::Compact>),
    /// Show the pool's statistics
    Stats(InPool<stats::Args>),
    /// Walk the whole pool and report damage
    Check(InPool<check::Args>),
    /// Check a pool that was open when the machine stopped, and allow writing to it again
    AcceptLoss(InPool<accept_loss::Args>),
    /// Show the pool's durability level, or change it
    Level(InPool<level::Args>),
    /// Take a checkpoint of a pool of level `disk`
    Checkpoint(InPool<level::Checkpoint>),
    /// Watch a running server: commands, latency, hit rate, memory, recovery
    Top(top::Args),
    /// Write manual pages, one per command
    Man(man::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
}

impl Command {
    /// Runs the command, with the options given before its name.
    pub fn run(self, before: Context) -> Result<Outcome, Failure> {
        match self {
            Command::Top(_) | Command::Man(_) | Command::Completions(_) if before != Context::default() => {
                Err(Failure::Usage(
                    "options before the command's name apply only to commands on a pool".into(),
                ))
            }
            // Parsed again there, together with the other sources of settings.
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

/// Spells out a number of entries.
fn in_words(entries: u64) -> String {
    format!(
        "{} {}",
        HumanCount(entries),
        if entries == 1 { "entry" } else { "entries" }
    )
}

/// Returns a text on one line, with characters that a terminal might interpret escaped as in tab-separated values.
fn on_a_line(text: &str) -> String {
    let mut line = Vec::new();
    // Writing to memory does not fail, and the output is UTF-8.
    let _ = crate::format::tsv::escape(&mut line, text.as_bytes());
    String::from_utf8_lossy(&line).into_owned()
}

/// Writes a report as JSON on one line, after forming all of it.
fn write_json(out: &mut impl Write, report: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()
}

/// Takes a closed output pipe for success: the exit code still tells what the command has done.
fn despite_closed_pipe(printed: io::Result<()>) -> io::Result<()> {
    match printed {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

/// Returns the standard output, buffered. Flush it: an error on drop would go unnoticed.
fn output() -> BufWriter<StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}
