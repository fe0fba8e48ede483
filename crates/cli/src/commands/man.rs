//! `man`: manual pages.

use crate::exit::{Failure, Outcome};
use clap::CommandFactory;
use std::path::PathBuf;

/// The arguments of `man`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "For a user: wollemi man ~/.local/share/man/man1. For all: /usr/local/share/man/man1."
)]
pub struct Args {
    /// The directory for the pages, created if missing
    directory: PathBuf,
}

impl Args {
    /// Writes a page for the program and one for each command.
    pub fn run(self) -> Result<Outcome, Failure> {
        let unwritable = |error: std::io::Error| Failure::input(self.directory.display().to_string(), error);
        std::fs::create_dir_all(&self.directory).map_err(unwritable)?;
        clap_mangen::generate_to(crate::Cli::command(), &self.directory).map_err(unwritable)?;
        Ok(Outcome::Done)
    }
}
