//! `level`: shows or changes the pool's durability level. `checkpoint`: takes a checkpoint at level `disk`.

use super::{in_words, output, write_json};
use crate::context::{Context, LevelArg};
use crate::exit::{Failure, Outcome};
use crate::stop;
use indicatif::BinaryBytes;
use std::io::Write;
use wollemi::{Error, FilesError, Level};

/// The arguments of `level`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "`--to disk` creates a log and a checkpoint of the pool in the directory POOL.disk. From then on, \
                  whatever --level says, the pool is opened with its log and can be rebuilt after a power loss. \
                  `--to process` removes log and checkpoint. `--to power` needs a DAX file system and no log; an \
                  existing log stays."
)]
pub struct Args {
    /// The level to move the pool to
    #[arg(long, value_name = "LEVEL", value_enum)]
    to: Option<LevelArg>,
}

impl Args {
    /// Shows the pool's level, or changes it.
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
                if level == Level::Disk && begins_log(context)? {
                    // The opening takes the first checkpoint.
                    stop::on_signals();
                }
                let options = stop::ends_checkpoints(context.to_write()?);
                let db = options.create(false).level(level).open(&path)?;
                stop::on_signals();
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

/// Returns whether the pool has no log yet: an opening at level `disk` then takes a checkpoint, which would give
/// damaged bytes new checksums, so a damaged pool is refused. A pool that such an opening rebuilds has a log.
fn begins_log(context: &Context) -> Result<bool, Failure> {
    let pool = context.pool();
    let db = match context.open_to_check() {
        Err(Failure::Database(Error::Files(FilesError::NeedsRebuild(_) | FilesError::PoolMissing(_)))) => {
            return Ok(false);
        }
        opened => opened?,
    };
    if db.level() == Level::Disk {
        return Ok(false);
    }
    match db.check()?.is_clean() {
        true => Ok(true),
        false => Err(Failure::DamagedSource {
            pool,
            is_overridable: false,
        }),
    }
}

/// The arguments of `checkpoint`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "After a power loss the pool is rebuilt from the last checkpoint and the log records after it. A \
                  database takes checkpoints by itself as its log grows; this command makes the next rebuild as short \
                  as possible."
)]
pub struct Checkpoint {
    /// Write all entries, even if the changes since the last checkpoint would suffice
    #[arg(long)]
    full: bool,
}

impl Checkpoint {
    /// Takes a checkpoint.
    pub fn run(self, context: &Context) -> Result<Outcome, Failure> {
        context.refuse_map()?;
        let options = stop::ends_checkpoints(context.to_write()?);
        let db = options.create(false).open(context.pool())?;
        stop::on_signals();
        let Some(done) = db.checkpoint(self.full)? else {
            return Err(Failure::Usage(format!(
                "the pool has level {}; only a pool of level disk has checkpoints: run `wollemi level --to disk` first",
                db.level()
            )));
        };
        db.close()?;
        let mut out = output();
        match context.json {
            true => writeln!(out, "{}", serde_json::json!(done))?,
            false => writeln!(
                out,
                "{} checkpoint: {}, {}",
                if done.full { "full" } else { "incremental" },
                in_words(done.entries),
                BinaryBytes(done.bytes)
            )?,
        }
        out.flush()?;
        Ok(Outcome::Done)
    }
}
