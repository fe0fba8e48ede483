//! `accept-loss`: ends the suspicion of a pool that was open when the machine stopped.

use super::backup::log_of;
use super::check::report;
use super::place::failed;
use crate::context::Context;
use crate::exit::{Failure, Outcome};
use pmem::pool::behind_links;
use std::io::{self, Write};
use wollemi::{AfterPowerLoss, Level};

/// The arguments of `accept-loss`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "For a pool of level `process` that was open when the machine stopped. What its page cache had not \
                  written then is lost, later writes before earlier ones, so what is left may be of different moments. \
                  Such a pool is refused by all commands until its loss is accepted; with --after-power-loss, those that \
                  only read it show what is left, and change nothing.\n\n\
                  This command checks the pool, without changing it. If the check is clean, it notes in the pool's \
                  header that what there is, is the pool's content from now on. A clean check says that the structures \
                  are whole, not that the latest writes are there. If it finds damage, the exit code is 4, and nothing \
                  is changed unless --damaged is given."
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
                tell("there is no loss to accept: the pool can be opened as it is");
                return Ok(Outcome::Done);
            }
            let log = log_of(&behind_links(&path).map_err(failed(&path))?);
            if db.level() == Level::Disk && log.join("manifest").exists() {
                tell(
                    "there is no loss to accept: the next command that writes rebuilds the pool from its log",
                );
                return Ok(Outcome::Done);
            }
            let check = db.check()?;
            report(&check, context.json)?;
            if !check.is_clean() && !self.damaged {
                return Err(Failure::Damaged(path));
            }
        }
        let accept = options.create(false).recovery_threads(0);
        let db = accept.after_power_loss(AfterPowerLoss::Accept).open(&path)?;
        db.close()?;
        tell("accepted: what is left is the pool's content from now on");
        Ok(Outcome::Done)
    }
}

/// Tells a person on the error stream; what is done is done, whether or not it is heard.
fn tell(what: &str) {
    let _ = writeln!(io::stderr(), "{what}");
}
