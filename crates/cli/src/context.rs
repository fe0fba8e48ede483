//! Options of every command on a pool, and functions that open the pool.

use crate::exit::Failure;
use crate::rebuild;
use crate::stop;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wollemi::{AfterPowerLoss, Db, IndexKind, Level, Map, Options, RecoveryState};

/// Maximum time that a command with few writes, or a report, waits for recovery to find reusable space.
const RECOVERY_WAIT: Duration = Duration::from_millis(100);

/// A command on a pool: its own arguments, and those common to all.
#[derive(Debug, Args)]
pub struct InPool<A: Args> {
    #[command(flatten)]
    pub args: A,
    #[command(flatten)]
    pub context: Context,
}

/// The options common to all commands on a pool, given before or after the command's name.
#[derive(Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Options of every command on a pool")]
pub struct Context {
    /// The pool's file [env: WOLLEMI_POOL] [default: ./wollemi.pool]
    #[arg(long, value_name = "PATH")]
    pool: Option<PathBuf>,
    /// The map in the pool [default: `memcached` for serve, else `default`]
    #[arg(long, value_name = "NAME")]
    map: Option<String>,
    /// Report as JSON, one object per line
    #[arg(long)]
    pub json: bool,
    /// The minimum durability level [default: process]
    #[arg(long, value_enum)]
    level: Option<LevelArg>,
    /// The maximum size of the pool: a number of bytes, or with K, M, G or T after it [default: 1T]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_size: Option<u64>,
    /// Read a pool of level `process` that was open when the machine stopped: data not yet on the device is lost, and
    /// the rest may be damaged. Only for commands that read; `accept-loss` allows writing again
    #[arg(long)]
    after_power_loss: bool,
    /// Seconds to wait for another process that has the pool open, such as one that was just killed [default: 2]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    lock_wait: Option<Duration>,
}

/// Options for creating a missing map.
#[derive(Debug, Clone, Copy, Args)]
pub struct NewMap {
    /// Index for a newly created map; an existing map must already use it [default: roart]
    #[arg(long, value_name = "NAME", value_parser = index())]
    pub index: Option<IndexKind>,
}

impl NewMap {
    /// Returns the map, and creates it if it is missing.
    pub fn open(self, db: &Db, name: &str) -> Result<Map, Failure> {
        Ok(match self.index {
            Some(index) => db.map_with(name, index)?,
            None => db.map(name)?,
        })
    }
}

/// Parses the name of an index. Rejects ablations: even builds that include them create no map with one.
fn index() -> impl TypedValueParser<Value = IndexKind> {
    let value = |kind: &IndexKind| PossibleValue::new(kind.name()).help(kind.about());
    let values = IndexKind::ALL
        .iter()
        .filter(|kind| !kind.is_ablation())
        .map(value);
    PossibleValuesParser::new(values).try_map(|name| name.parse())
}

/// A durability level on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LevelArg {
    /// Survives the death of the process
    Process,
    /// Survives a power loss, with a log on any disk
    Disk,
    /// Survives a power loss; needs a DAX file system
    Power,
}

impl From<LevelArg> for Level {
    fn from(level: LevelArg) -> Level {
        match level {
            LevelArg::Process => Level::Process,
            LevelArg::Disk => Level::Disk,
            LevelArg::Power => Level::Power,
        }
    }
}

impl Context {
    /// Completes these options with those given before the command's name.
    pub fn after(self, before: Context) -> Context {
        Context {
            pool: self.pool.or(before.pool),
            map: self.map.or(before.map),
            json: self.json || before.json,
            level: self.level.or(before.level),
            max_size: self.max_size.or(before.max_size),
            after_power_loss: self.after_power_loss || before.after_power_loss,
            lock_wait: self.lock_wait.or(before.lock_wait),
        }
    }

    /// Returns the path of the pool's file.
    pub fn pool(&self) -> PathBuf {
        let from_environment = || std::env::var_os("WOLLEMI_POOL").filter(|path| !path.is_empty());
        match &self.pool {
            Some(path) => path.clone(),
            None => from_environment().map_or_else(|| "./wollemi.pool".into(), PathBuf::from),
        }
    }

    /// Base options for opening the pool to write; the command adds its own.
    pub fn to_write(&self) -> Result<Options, Failure> {
        if self.after_power_loss {
            return Err(Failure::Usage(
                "--after-power-loss applies only to commands that read the pool; `wollemi accept-loss` checks it and lets it \
                 be written again"
                    .into(),
            ));
        }
        Ok(self.options())
    }

    /// Base options for opening the pool read-only: no byte of its file changes, and other processes may read it too.
    pub fn to_read(&self) -> Options {
        let known = match self.after_power_loss {
            true => AfterPowerLoss::Look,
            false => AfterPowerLoss::Refuse,
        };
        self.options().read_only(true).after_power_loss(known)
    }

    /// Returns the requested level.
    pub fn level(&self) -> Level {
        self.level.map(Level::from).unwrap_or_default()
    }

    fn options(&self) -> Options {
        let mut options = Options::new().level(self.level()).on_rebuild(rebuild::show());
        if let Some(bytes) = self.max_size {
            options = options.max_size(bytes);
        }
        if let Some(wait) = self.lock_wait {
            options = options.lock_wait(wait);
        }
        options
    }

    /// Opens an existing pool to read from it. Readers need no recovery, so none is started.
    pub fn open_to_read(&self) -> Result<Db, Failure> {
        Ok(self.to_read().recovery_threads(0).open(self.pool())?)
    }

    /// Opens an existing pool read-only to check it before its level is changed, ignoring `--level`.
    pub fn open_to_check(&self) -> Result<Db, Failure> {
        let options = self.to_read().level(Level::Process);
        Ok(options.recovery_threads(0).open(self.pool())?)
    }

    /// Opens an existing pool for a report, after waiting briefly for recovery.
    pub fn open_for_report(&self) -> Result<Db, Failure> {
        let db = self.to_read().open(self.pool())?;
        await_recovery_briefly(&db);
        Ok(db)
    }

    /// Opens the pool for a few writes.
    pub fn open_to_write(&self, create: bool) -> Result<Db, Failure> {
        let db = self.to_write()?.create(create).open(self.pool())?;
        // From here on the pool counts as in use until it is closed.
        stop::on_signals();
        await_recovery_briefly(&db);
        Ok(db)
    }

    /// Returns the map, and creates it if it is missing.
    pub fn map(&self, db: &Db, new: NewMap) -> Result<Map, Failure> {
        new.open(db, self.map_or("default"))
    }

    /// Returns the map, which must exist.
    pub fn find_map(&self, db: &Db) -> Result<Map, Failure> {
        let name = self.map_or("default");
        db.find_map(name)?.ok_or_else(|| Failure::NoMap(name.to_owned()))
    }

    /// Refuses `--map`, for a command that covers all maps.
    pub fn refuse_map(&self) -> Result<(), Failure> {
        match self.map {
            None => Ok(()),
            Some(_) => Err(Failure::Usage(
                "--map does not apply: this command covers all maps of the pool".into(),
            )),
        }
    }

    /// Returns the map's name, for a command with its own default.
    pub fn map_or<'a>(&'a self, default: &'a str) -> &'a str {
        self.map.as_deref().unwrap_or(default)
    }
}

/// Waits at most 0.1 s for recovery. That suffices for small pools.
fn await_recovery_briefly(db: &Db) {
    let started = Instant::now();
    while db.recovery_progress().state == RecoveryState::Running && started.elapsed() < RECOVERY_WAIT {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Parses a number of seconds, possibly fractional.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// Parses a number of bytes, possibly with a binary suffix.
pub fn size(text: &str) -> Result<u64, String> {
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
