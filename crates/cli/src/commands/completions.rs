//! `completions`: scripts for shells.

use crate::exit::{Failure, Outcome};
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::{self, Write};

/// The arguments of `completions`.
#[derive(Debug, clap::Args)]
pub struct Args {
    shell: Shell,
}

impl Args {
    /// Writes the script.
    pub fn run(self) -> Result<Outcome, Failure> {
        // The generator panics if it cannot write, so it writes to memory.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::Cli::command(), "wollemi", &mut script);
        io::stdout().write_all(&script)?;
        Ok(Outcome::Done)
    }
}
