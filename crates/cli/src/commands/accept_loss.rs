//! `accept-loss`: accepts the loss of a pool that was open when the machine stopped.

use super::backup::log_of;
use super::check::report;
use super::despite_closed_pipe;
use super::place::failed;
use crate::context::Context;
use crate::exit::{Failure, Outcome};
use pmem::pool::behind_links;
use std::io::{self, Write};
use wollemi::{AfterPowerLoss, Level};

/// The arguments of `accept-loss`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "For a pool of level `process` that was open when the machine stopped. Writes that were still in the page \
                  cache are lost. Later writes may have survived while earlier ones were lost. All commands refuse such a \
                  pool until its loss is accepted; with --after-power-loss, those that only read it show what is left, \
                  and change nothing.\n\n\
                  This command checks the pool, without changing it. If the check is clean, it records in the header \
                  that the present content is accepted. A clean check means that the structures are intact, not that the \
                  latest writes are present. If it finds damage, the exit code is 4, and nothing is changed unless \
                  --damaged is given."
)]
pub struct Args {
    /// Accept the pool even if the check finds damage: reads may then fail or miss keys
    #[arg(long)]
    damaged: bool,
}

impl Args {
    /// Checks the pool, and accepts what is left.
    pub fn run(self, context: &Context) -> Result<Outcome, Failure> {
        context.refuse_map()?;
        let path = context.pool();
        let options = context.to_write()?;
        let look = options
            .clone()
            .read_only(true)
            .after_power_loss(AfterPowerLoss::Look);
        {
            let db = look.open(&path)?;
            if !db.stats()?.suspect {
                inform("there is no loss to accept: the pool can be opened as it is");
                return Ok(Outcome::Done);
            }
            let log = log_of(&behind_links(&path).map_err(failed(&path))?);
            if db.level() == Level::Disk && log.join("manifest").exists() {
                inform(
                    "there is no loss to accept: the next command that writes rebuilds the pool from its log",
                );
                return Ok(Outcome::Done);
            }
            let check = db.check()?;
            despite_closed_pipe(report(&check, context.json))?;
            if !check.is_clean() && !self.damaged {
                return Err(Failure::Damaged(path));
            }
        }
        let accept = options.create(false).recovery_threads(0);
        let db = accept.after_power_loss(AfterPowerLoss::Accept).open(&path)?;
        db.close()?;
        inform("accepted: the pool can be written again, with its present content");
        Ok(Outcome::Done)
    }
}

/// Prints a message for the user on the error stream, ignoring errors: the work is already done.
fn inform(what: &str) {
    let _ = writeln!(io::stderr(), "{what}");
}
