//! The end of a command: its exit code, and its message on the standard error stream.

use crate::stop;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use wollemi::{Error, IndexError, PoolErrorKind};

/// The exit codes, as `--help` lists them.
pub const CODES: &str = "Exit codes:
  0  done
  1  no such key or map, or the condition of a put was not met
  2  wrong usage
  3  the pool could not be opened or used
  4  damage was found
  5  input that cannot be read or understood, or output that cannot be written
  6  the server could not listen, or not start its threads
130  stopped by SIGINT; earlier writes are in the pool, and an incomplete file was removed
143  stopped by SIGTERM, likewise";

/// The outcome of a command that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The command succeeded.
    Done,
    /// The key is missing, or the condition was not met. Only the exit code says so.
    NotFound,
    /// `check` has found and reported faults.
    Damaged,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Database(#[from] Error),
    #[error("{place}: {error}")]
    At { place: String, error: Error },
    #[error("no map '{0}' in this pool")]
    NoMap(String),
    #[error("{0}")]
    Usage(String),
    #[error("{what}: {why}")]
    Input { what: String, why: String },
    #[error("standard output: {0}")]
    Output(#[from] io::Error),
    #[error(transparent)]
    Server(#[from] server::Error),
    #[error("'{}': the check found damage, so its loss is not accepted (--damaged)", .0.display())]
    Damaged(PathBuf),
    #[error("'{}': the check found damage (`wollemi check`), which would get new checksums; nothing was changed", pool.display())]
    DamagedSource { pool: PathBuf, is_overridable: bool },
}

impl Failure {
    /// Returns the failure of an input `what` that cannot be read or parsed.
    pub fn input(what: impl Into<String>, why: impl ToString) -> Failure {
        Failure::Input {
            what: what.into(),
            why: why.to_string(),
        }
    }

    fn code(&self) -> u8 {
        match self {
            Failure::NoMap(_) => 1,
            Failure::Database(error) | Failure::At { error, .. } => database_code(error),
            Failure::Usage(_) => 2,
            Failure::Server(
                server::Error::NoAddress
                | server::Error::NotLoopback(_)
                | server::Error::MetricsNotLoopback(_)
                | server::Error::Sync { .. },
            ) => 2,
            Failure::Server(server::Error::Listen { .. } | server::Error::Threads(_)) => 6,
            Failure::Server(_) => 3,
            Failure::Damaged(_) | Failure::DamagedSource { .. } => 4,
            Failure::Input { .. } | Failure::Output(_) => 5,
        }
    }
}

fn database_code(error: &Error) -> u8 {
    match error {
        Error::MapName(_) | Error::OtherIndex { .. } | Error::Index(IndexError::Unordered) => 2,
        Error::Index(IndexError::KeyTooLong(_) | IndexError::ValueTooLong(_))
        | Error::Backup(_)
        | Error::NotBackup(_) => 5,
        _ => 3,
    }
}

/// Returns a hint at the option that helps, if there is one.
fn hint(failure: &Failure) -> &'static str {
    match failure {
        Failure::Database(Error::Pool(error)) => match error.kind {
            PoolErrorKind::Lost => " (--after-power-loss to read it, `wollemi accept-loss`)",
            PoolErrorKind::Busy { .. } => " (--lock-wait)",
            PoolErrorKind::NotPower => " (--level process)",
            _ => "",
        },
        Failure::DamagedSource {
            is_overridable: true, ..
        } => " (--damaged)",
        Failure::Server(server::Error::NotLoopback(_)) => " (--passwords, --allow-remote)",
        Failure::Server(server::Error::MetricsNotLoopback(_)) => " (--allow-remote)",
        Failure::Server(server::Error::Sync { .. }) => " (--level, --sync)",
        Failure::Server(server::Error::Listen { .. }) => " (--memcached, --redis, --no-redis, --metrics)",
        _ => "",
    }
}

/// Writes the message of a failed command to the error stream, and returns the exit code. A closed output pipe is not a
/// failure.
pub fn report(end: Result<Outcome, Failure>) -> ExitCode {
    let code = match end {
        Ok(Outcome::Done) => 0,
        Ok(Outcome::NotFound) => 1,
        Ok(Outcome::Damaged) => 4,
        Err(Failure::Output(error)) if error.kind() == ErrorKind::BrokenPipe => 0,
        Err(failure) if stop::signal().is_some() => {
            let _ = writeln!(io::stderr(), "wollemi: {failure}");
            stop::signal().map_or(failure.code(), |signal| 128 + signal as u8)
        }
        Err(failure) => {
            // If the error stream is closed, the message is lost.
            let _ = writeln!(io::stderr(), "wollemi: {failure}{}", hint(&failure));
            failure.code()
        }
    };
    ExitCode::from(code)
}
