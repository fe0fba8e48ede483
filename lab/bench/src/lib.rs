//! Benchmarks: throughput, latency, persist counts and space of the indexes, compared with their peers.
//!
//! A measurement is a `pass` over a `script` of steps, made beforehand from a `workload`, against an `engine`: one of
//! the indexes in the list (`wollemi::indexes`), or a peer. `bench run` measures one index, `bench open` the time to
//! open a pool, `bench build` bulk building from sorted pairs, `bench alloc` the allocator, and `bench server` the
//! server beside others; `bench about` lists the measurements for scripts. With the Cargo feature `peers`, `bench
//! compare` measures all engines in turn, in one process and the same loop; `bench transactions` measures the database
//! beside others that have transactions, `bench durable` level `disk` beside others that sync each commit, and `bench
//! restart` the first answer after a kill.
//!
//! Run as `wollemi-lab bench`.

mod about;
mod alloc;
mod build;
mod bulk;
mod child;
#[cfg(feature = "peers")]
mod compare;
mod counters;
mod distribution;
#[cfg(feature = "peers")]
mod durable;
mod engine;
mod error;
mod keys;
mod latency;
mod limit;
mod machine;
mod media;
mod open;
mod pass;
#[cfg(feature = "peers")]
mod peers;
mod progress;
mod random;
mod records;
#[cfg(feature = "peers")]
mod restart;
mod run;
mod script;
mod server;
mod store;
mod summary;
#[cfg(feature = "peers")]
mod transactions;
mod turns;
mod workload;

pub use error::Error;

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::io::Write;
use wollemi::indexes::IndexKind;

/// The command line of `wollemi-lab bench`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Measure workloads on one index
    Run(run::RunArgs),
    /// Measure the time from opening a pool to its first answer
    Open(open::OpenArgs),
    /// Measure building indexes from sorted pairs, beside inserts one by one
    Build(bulk::BulkArgs),
    /// Measure the allocator alone, beside malloc and libpmemobj
    Alloc(alloc::AllocArgs),
    /// Print the available measurements and the machine, as JSON for scripts
    About,
    /// Measure the server beside memcached and Redis, if they are installed
    Server(server::ServerArgs),
    /// Measure the index and its peers in turn, and report which targets it reaches
    #[cfg(feature = "peers")]
    Compare(compare::CompareArgs),
    /// Measure the time from a process's start to its first answer after a kill, for ours and peers
    #[cfg(feature = "peers")]
    Restart(restart::RestartArgs),
    /// Measure writes to a disk that survive power loss, ours beside the raw loop and peers
    #[cfg(feature = "peers")]
    Durable(durable::DurableArgs),
    /// Measure transactions over two maps, ours beside peers, and count the conflicts
    #[cfg(feature = "peers")]
    Transactions(transactions::TransactionsArgs),
}

/// Runs the requested measurement and prints its results to standard output.
///
/// # Errors
///
/// The first error of the measurement or of its output; [`Error::Wrong`] if an engine returned a wrong result.
pub fn run(args: &Args) -> Result<(), Error> {
    match &args.command {
        Command::Run(args) => run::run(args),
        Command::Open(args) => open::run(args),
        Command::Build(args) => bulk::run(args),
        Command::Alloc(args) => alloc::run(args),
        Command::About => about::run(),
        Command::Server(args) => server::run(args),
        #[cfg(feature = "peers")]
        Command::Compare(args) => compare::run(args),
        #[cfg(feature = "peers")]
        Command::Restart(args) => restart::run(args),
        #[cfg(feature = "peers")]
        Command::Durable(args) => durable::run(args),
        #[cfg(feature = "peers")]
        Command::Transactions(args) => transactions::run(args),
    }
}

/// Writes a line, or a table, to standard output.
fn print(text: &str) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", text.trim_end())
        .and_then(|()| out.flush())
        .map_err(Error::Output)
}

/// Creates a temporary directory, removed when it is dropped.
fn directory(parent: Option<&std::path::Path>) -> Result<tempfile::TempDir, Error> {
    let made = match parent {
        Some(parent) => tempfile::tempdir_in(parent),
        None => tempfile::tempdir(),
    };
    made.map_err(Error::Directory)
}

/// Returns the name of a choice on the command line.
fn name(choice: impl ValueEnum) -> String {
    choice
        .to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Parses a count of at least one; `_` between digits and a suffix `k` or `M` are allowed.
fn count(text: &str) -> Result<usize, String> {
    let digits = text.replace('_', "");
    let (digits, unit) = match digits.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => digits
            .strip_suffix(['m', 'M'])
            .map_or((digits.as_str(), 1), |digits| (digits, 1_000_000)),
    };
    let count = digits
        .parse::<usize>()
        .ok()
        .and_then(|count| count.checked_mul(unit));
    match count {
        Some(count) if (1..=u32::MAX as usize).contains(&count) => Ok(count),
        _ => Err(format!("not a count from 1 to {}", u32::MAX)),
    }
}

/// Parses the name of an index, ablations included.
fn index() -> impl TypedValueParser<Value = IndexKind> {
    let names = IndexKind::ALL
        .iter()
        .map(|kind| PossibleValue::new(kind.name()).help(kind.about()));
    PossibleValuesParser::new(names).try_map(|name| name.parse())
}

/// Parses a count that may be zero.
fn count_or_zero(text: &str) -> Result<usize, String> {
    if text == "0" { Ok(0) } else { count(text) }
}

/// Parses a number of threads.
fn threads(text: &str) -> Result<usize, String> {
    const MAX: usize = 1024;
    match count(text) {
        Ok(threads) if threads <= MAX => Ok(threads),
        _ => Err(format!("not a number of threads from 1 to {MAX}")),
    }
}

/// Parses a time in seconds.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 3600.0 => Ok(seconds),
        _ => Err("not a number of seconds up to 3600".into()),
    }
}

#[cfg(test)]
mod tests {
    /// Counts are parsed with separators and suffixes; zero, nonsense and overflow are rejected.
    #[test]
    fn counts() {
        for (text, count) in [("1", 1), ("10k", 10_000), ("1_000", 1000), ("10M", 10_000_000)] {
            assert_eq!(super::count(text), Ok(count));
        }
        for text in [
            "",
            "0",
            "k",
            "-1",
            "1G",
            "99999999999999999999",
            "18446744073709551615M",
        ] {
            assert!(super::count(text).is_err(), "{text}");
        }
        assert_eq!(super::threads("1_024"), Ok(1024));
        for text in ["0", "1025", "4G"] {
            assert!(super::threads(text).is_err(), "{text}");
        }
    }
}
