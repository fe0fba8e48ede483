//! The end of a command: its exit code, and its message on the standard error stream.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

/// The exit codes, as `--help` lists them. They mean what those of `wollemi` mean.
pub const CODES: &str = "Exit codes:
  0  done
  1  torture or exercise has found something
  2  wrong usage
  3  the measurement or the search could not begin
  4  an index gave a wrong answer while it was measured
  5  output that cannot be written";

/// A command that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As asked.
    Done,
    /// `torture` or `exercise` has found something and has reported it.
    Found,
}

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{0}")]
    Usage(String),
    #[error("standard output: {0}")]
    Output(#[from] io::Error),
    #[error(transparent)]
    Bench(#[from] bench::Error),
    #[error("torture cannot begin: {0}")]
    Torture(String),
    #[error("exercise cannot begin: {0}")]
    Exercise(String),
}

impl Failure {
    fn code(&self) -> u8 {
        match self {
            Failure::Usage(_) | Failure::Bench(bench::Error::Exists(_) | bench::Error::Options(_)) => 2,
            Failure::Bench(bench::Error::Wrong(_)) => 4,
            Failure::Output(_) | Failure::Bench(bench::Error::Output(_) | bench::Error::Json(_)) => 5,
            Failure::Bench(_) | Failure::Torture(_) | Failure::Exercise(_) => 3,
        }
    }
}

/// Turns the end of a command into an exit code. A closed pipe on the output is no failure.
pub fn report(end: Result<Outcome, Failure>) -> ExitCode {
    let code = match end {
        Ok(Outcome::Done) => 0,
        Ok(Outcome::Found) => 1,
        Err(Failure::Output(error) | Failure::Bench(bench::Error::Output(error)))
            if error.kind() == ErrorKind::BrokenPipe =>
        {
            0
        }
        Err(failure) => {
            // Nowhere is left to say that the error stream is gone.
            let _ = writeln!(io::stderr(), "wollemi-lab: {failure}");
            failure.code()
        }
    };
    ExitCode::from(code)
}
