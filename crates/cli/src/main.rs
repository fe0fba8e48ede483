//! `wollemi`: the store on the command line.
//!
//! `commands` has one module per command, `format` the text forms of entries, and `exit` the exit codes. `context`
//! holds the options common to all commands on a pool, `commands::serve::settings` the sources of those of `serve`.
//! `log` is the server's log, `stop` handles signals, and `rebuild` shows the progress of a rebuild after a loss of
//! power.

mod commands;
mod context;
mod exit;
mod format;
mod log;
mod rebuild;
mod stop;

use clap::Parser;
use std::process::ExitCode;

/// An ordered, persistent key-value store that is up again the instant it is reopened.
#[derive(Debug, Parser)]
#[command(name = "wollemi", version, after_help = exit::CODES, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    before: context::Context,
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    let Cli { before, command } = Cli::parse();
    exit::report(command.run(before))
}
