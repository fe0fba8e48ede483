//! `level`: what the pool's acknowledged writes survive, and another level for it. `checkpoint`: for level `disk`.

use super::{output, write_json};
use crate::context::{Context, LevelArg};
use crate::exit::{Failure, Outcome};
use crate::stop;
use indicatif::{BinaryBytes, HumanCount};
use std::io::Write;
use wollemi::Level;

/// The arguments of `level`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "To level `disk`, a log and a checkpoint of all that the pool holds are made beside it, in a directory \
                  called as the pool, with `.disk` behind it. From then on the pool keeps its log, whatever --level it \
                  is opened with, and can be rebuilt after a loss of power. To level `process`, both are removed. Level \
                  `power` is the file system's: it needs no log."
)]
pub struct Args {
    /// The level to move the pool to
    #[arg(long, value_name = "LEVEL", value_enum)]
    to: Option<LevelArg>,
}

impl Args {
    /// Says which level the pool has, or gives it another.
    pub fn run(self, context: &Context) -> Result<Outcome, Failure> {
        context.refuse_map()?;
        let path = context.pool();
        let level = match self.to.map(Level::from) {
            None => context.open_to_read()?.level(),
            Some(Level::Process) => {
                context.open_to_write(false)?.end_log()?;
                context.open_to_read()?.level()
            }
            Some(level) => {
                stop::on_signals();
                refuse_damaged(context, level)?;
                let db = context.to_write()?.create(false).level(level).open(&path)?;
                let level = db.level();
                db.close()?;
                level
            }
        };
        let mut out = output();
        match context.json {
            true => write_json(
                &mut out,
                &serde_json::json!({ "pool": path.to_string_lossy(), "level": level.name() }),
            )?,
            false => writeln!(out, "{level}")?,
        }
        out.flush()?;
        Ok(Outcome::Done)
    }
}

/// Refuses to make a checkpoint of a damaged pool: that would give changed bytes new checksums.
fn refuse_damaged(context: &Context, level: Level) -> Result<(), Failure> {
    if level != Level::Disk {
        return Ok(());
    }
    let pool = context.pool();
    let db = context.open_to_look()?;
    if db.level() == Level::Disk || db.check()?.is_clean() {
        return Ok(());
    }
    Err(Failure::DamagedSource {
        pool,
        is_overridable: false,
    })
}

/// The arguments of `checkpoint`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A checkpoint is what a pool of level `disk` is rebuilt from after a loss of power, with the log behind \
                  it. A database takes them by itself when its log has grown; this makes the next rebuild as short as it \
                  can be."
)]
pub struct Checkpoint {
    /// Write all entries, even if writing the changes since the last checkpoint would do
    #[arg(long)]
    full: bool,
}

impl Checkpoint {
    /// Takes a checkpoint.
    pub fn run(self, context: &Context) -> Result<Outcome, Failure> {
        context.refuse_map()?;
        let db = context.open_to_write(false)?;
        let Some(done) = db.checkpoint(self.full)? else {
            return Err(Failure::Usage(format!(
                "the pool is of level {}: only level disk has checkpoints (`wollemi level --to disk`)",
                db.level()
            )));
        };
        db.close()?;
        let mut out = output();
        match context.json {
            true => writeln!(out, "{}", serde_json::json!(done))?,
            false => writeln!(
                out,
                "{}: {} entries, {}",
                if done.full { "all" } else { "what has changed" },
                HumanCount(done.entries),
                BinaryBytes(done.bytes)
            )?,
        }
        out.flush()?;
        Ok(Outcome::Done)
    }
}
