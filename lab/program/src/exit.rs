//! Exit codes of commands, and their messages on standard error.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

/// The exit codes, as `--help` lists them. They agree with those of `wollemi`.
pub const CODES: &str = "Exit codes:
  0  done
  1  torture or exercise found a failure
  2  wrong usage
  3  the measurement or the search could not begin
  4  an index gave a wrong answer while it was measured
  5  the output could not be written";

/// The outcome of a command that ran to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The command succeeded.
    Done,
    /// `torture` or `exercise` found and reported a failure.
    Found,
}

/// The reason why a command could not run to its end.
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

/// Converts the result of a command into an exit code. A closed pipe on the output is not a failure.
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
            // A failure to write to standard error cannot be reported.
            let _ = writeln!(io::stderr(), "wollemi-lab: {failure}");
            failure.code()
        }
    };
    ExitCode::from(code)
}
