//! What every command on a pool takes, and the ways to open the pool.

use crate::exit::Failure;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wollemi::{Db, Level, Map, Options, RecoveryState};

/// How long a command that writes a little lets recovery find space to reuse before it goes on without.
const PATIENCE: Duration = Duration::from_millis(100);

/// A command on a pool: what it takes itself, and what all of them take.
#[derive(Debug, Args)]
pub struct InPool<A: Args> {
    #[command(flatten)]
    pub args: A,
    #[command(flatten)]
    pub context: Context,
}

/// The options that every command on a pool takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Context {
    /// The pool's file
    #[arg(
        long,
        value_name = "PATH",
        env = "WOLLEMI_POOL",
        default_value = "./wollemi.pool"
    )]
    pub pool: PathBuf,
    /// The map in the pool [default: `memcached` for serve, else `default`]
    #[arg(long, value_name = "NAME")]
    map: Option<String>,
    /// Report as JSON, one object a line
    #[arg(long)]
    pub json: bool,
    /// The least durability that will do
    #[arg(long, value_enum, default_value = "process")]
    pub level: LevelArg,
    /// The size to which the pool may grow: a number of bytes, or with K, M, G or T after it [default: 1T]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_size: Option<u64>,
    /// Open a pool of level `process` even though the machine has crashed since it was last closed: what was not
    /// yet on the device is lost, and the rest may be damaged. Run `check` first
    #[arg(long)]
    pub after_power_loss: bool,
}

/// A durability level on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LevelArg {
    /// Survives the death of the process
    Process,
    /// Survives the loss of power; needs a DAX file system
    Power,
}

impl Context {
    /// How a command wants the pool opened, before it says more.
    pub fn options(&self) -> Options {
        let level = match self.level {
            LevelArg::Process => Level::Process,
            LevelArg::Power => Level::Power,
        };
        let options = Options::new()
            .level(level)
            .after_power_loss(self.after_power_loss);
        match self.max_size {
            Some(bytes) => options.max_size(bytes),
            None => options,
        }
    }

    /// Opens an existing pool to read some of it. Readers need no recovery, so none is started.
    pub fn open_to_read(&self) -> Result<Db, Failure> {
        Ok(self
            .options()
            .create(false)
            .recovery_threads(0)
            .open(&self.pool)?)
    }

    /// Opens the pool to write a little. Recovery gets a moment first: in a pool of modest size that is enough
    /// to reuse old space, and a large one is not waited for.
    pub fn open_to_write(&self, create: bool) -> Result<Db, Failure> {
        let db = self.options().create(create).open(&self.pool)?;
        let started = Instant::now();
        while db.recovery_progress().state == RecoveryState::Running && started.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(db)
    }

    /// The map; it is created if it is not there.
    pub fn map(&self, db: &Db) -> Result<Map, Failure> {
        Ok(db.map(self.map_or("default"))?)
    }

    /// The map, which must be there.
    pub fn find_map(&self, db: &Db) -> Result<Map, Failure> {
        let name = self.map_or("default");
        db.find_map(name)?.ok_or_else(|| Failure::NoMap(name.to_owned()))
    }

    /// The map's name, for a command that has its own default.
    pub fn map_or<'a>(&'a self, default: &'a str) -> &'a str {
        self.map.as_deref().unwrap_or(default)
    }
}

/// Bytes, perhaps in binary multiples.
fn size(text: &str) -> Result<u64, String> {
    let (number, shift) = match text.as_bytes().last().map(u8::to_ascii_uppercase) {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        Some(b'T') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let number: u64 = number
        .parse()
        .map_err(|_| "not a number of bytes, such as 500M".to_owned())?;
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| "too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_read() {
        assert_eq!(size("123"), Ok(123));
        assert_eq!(size("64k"), Ok(64 << 10));
        assert_eq!(size("3T"), Ok(3 << 40));
        for text in ["", "K", "x", "1.5G", "-1", "99999999T", "1GG", "1\u{e9}"] {
            size(text).expect_err(text);
        }
    }
}
