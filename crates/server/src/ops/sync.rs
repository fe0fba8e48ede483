//! When writes are durable that were answered: Redis's `appendfsync`, of which a pool of level `disk` has the choice.

use crate::Error;
use crate::ops::shared::Shared;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use wollemi::{Db, Durability, Level};

/// When a write survives the loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// When it is answered.
    Always,
    /// Within a second. It survives the end of the process when it is answered.
    EverySecond,
    /// When the operating system has written it. It survives the end of the process when it is answered.
    No,
}

impl Sync {
    /// All of them.
    pub const ALL: [Sync; 3] = [Sync::Always, Sync::EverySecond, Sync::No];

    /// What Redis calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Sync::Always => "always",
            Sync::EverySecond => "everysec",
            Sync::No => "no",
        }
    }
}

impl fmt::Display for Sync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Nothing of this name is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}': there are always, everysec and no")]
pub struct UnknownSync(pub String);

impl FromStr for Sync {
    type Err = UnknownSync;
    fn from_str(name: &str) -> Result<Sync, UnknownSync> {
        let is = |sync: &Sync| sync.name().eq_ignore_ascii_case(name);
        let found = Sync::ALL.into_iter().find(is);
        found.ok_or_else(|| UnknownSync(name.to_owned()))
    }
}

/// The bound of [`Sync::EverySecond`].
const SECOND: Duration = Duration::from_secs(1);

/// How often the log is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// When the writes of a database are durable. It may change.
#[derive(Debug)]
pub struct Syncing {
    db: Db,
    /// Its place among [all](Sync::ALL).
    sync: AtomicUsize,
}

impl Syncing {
    /// What the database's level amounts to.
    pub fn new(db: &Db) -> Syncing {
        Syncing {
            db: db.clone(),
            sync: AtomicUsize::new(of_level(db.level()) as usize),
        }
    }

    /// What applies.
    pub fn get(&self) -> Sync {
        Sync::ALL[self.sync.load(Relaxed)]
    }

    /// Refuses what the pool's level does not give.
    pub fn check(&self, sync: Sync) -> Result<(), Error> {
        let level = self.db.level();
        let given = of_level(level);
        match level == Level::Disk || sync == given {
            true => Ok(()),
            false => Err(Error::Sync {
                sync: sync.name(),
                level,
                given: given.name(),
            }),
        }
    }

    /// Has writes be durable so from now on. Those that were answered before are durable when `Always` is
    /// [settled](wollemi::Db::settle_turn), in a turn, or when this returns.
    ///
    /// # Errors
    ///
    /// The pool's level gives something else, or the disk has failed.
    pub fn set(&self, sync: Sync) -> Result<(), Error> {
        self.check(sync)?;
        self.db.set_sync_within((sync != Sync::No).then_some(SECOND));
        self.db.set_durability(match sync {
            Sync::Always => Durability::Immediate,
            Sync::EverySecond | Sync::No => Durability::Eventual,
        });
        self.sync.store(sync as usize, Relaxed);
        match sync {
            // Reads do not wait for what was not waited for when it was written.
            Sync::Always => self.db.sync().map_err(|error| Error::Log(error.to_string())),
            Sync::EverySecond | Sync::No => Ok(()),
        }
    }
}

/// What a level amounts to, where nothing is said.
fn of_level(level: Level) -> Sync {
    match level {
        // Nothing is synced, and what the operating system has written does not make up a pool.
        Level::Process => Sync::No,
        Level::Disk | Level::Power => Sync::Always,
    }
}

/// Tells when the log has failed.
pub async fn watch(shared: Arc<Shared>) {
    let db = shared.databases.db();
    if db.level() != Level::Disk {
        return;
    }
    loop {
        if let Some(why) = db.failure() {
            tracing::error!(%why, "the log has failed: nothing can be written until the server is started again");
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}
