//! When an answered write is durable: Redis's `appendfsync`. A pool of level `disk` offers the choice; each other level
//! has one policy.

use crate::Error;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use wollemi::{Db, Durability, Level};

/// When a write survives the loss of power. Whatever the policy, an answered write survives the end of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// When it is answered.
    Always,
    /// Within a second, and the duration of a sync, after it was answered.
    EverySecond,
    /// When the operating system has written it.
    No,
}

impl Sync {
    /// All of them.
    pub const ALL: [Sync; 3] = [Sync::Always, Sync::EverySecond, Sync::No];

    /// Returns Redis's name for it.
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

/// No sync policy has this name.
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

/// How often the server checks whether the log has failed.
const LOOK: Duration = Duration::from_millis(250);

/// The sync policy of a database, which may change.
#[derive(Debug)]
pub struct Syncing {
    db: Db,
    /// The policy, by its place in [`Sync::ALL`].
    sync: AtomicUsize,
    /// Held during a change, so that concurrent changes leave the database with the policy that is shown.
    changing: Mutex<()>,
}

impl Syncing {
    /// Creates the policy that the database's level amounts to.
    pub fn new(db: &Db) -> Syncing {
        Syncing {
            db: db.clone(),
            sync: AtomicUsize::new(of_level(db.level()) as usize),
            changing: Mutex::default(),
        }
    }

    /// Returns the current policy.
    pub fn get(&self) -> Sync {
        Sync::ALL[self.sync.load(Relaxed)]
    }

    /// Refuses a policy that the pool's level does not offer.
    ///
    /// # Errors
    ///
    /// [`Error::Sync`]
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

    /// Changes the policy for the writes that follow. A change to `Always` also makes the earlier writes durable: when
    /// the thread's turn is [settled](wollemi::Db::settle_turn) or, outside of a turn, when this returns.
    ///
    /// # Errors
    ///
    /// [`Error::Sync`] if the pool's level does not offer the policy. [`Error::Log`] if the disk has failed; the policy
    /// is changed all the same.
    pub fn set(&self, sync: Sync) -> Result<(), Error> {
        self.check(sync)?;
        let changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.db.set_sync_within((sync != Sync::No).then_some(SECOND));
        self.db.set_durability(match sync {
            Sync::Always => Durability::Immediate,
            Sync::EverySecond | Sync::No => Durability::Eventual,
        });
        self.sync.store(sync as usize, Relaxed);
        drop(changing);
        match sync {
            // Reads do not wait for eventual writes, so these become durable now.
            Sync::Always => self.db.sync().map_err(|error| Error::Log(error.to_string())),
            Sync::EverySecond | Sync::No => Ok(()),
        }
    }
}

/// Returns the policy that a level amounts to.
fn of_level(level: Level) -> Sync {
    match level {
        // Nothing is synced.
        Level::Process => Sync::No,
        Level::Disk | Level::Power => Sync::Always,
    }
}

/// Waits until the log of a database fails, and reports it.
pub async fn watch(db: Db) {
    if db.level() != Level::Disk {
        return;
    }
    loop {
        if let Some(why) = db.failure() {
            tracing::error!(%why, "the log has failed: all writes fail until the server is restarted");
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread;
    use wollemi::Options;

    /// Of two concurrent changes one wins whole: the policy that is shown is the one that writes have.
    #[test]
    fn concurrent_changes_agree() {
        let dir = tempfile::tempdir().expect("a directory");
        let options = Options::new().level(Level::Disk);
        let db = options.open(dir.path().join("a.pool")).expect("a pool");
        let map = db.map("m").expect("a map");
        let syncing = Syncing::new(&db);
        syncing.set(Sync::EverySecond).expect("level disk");
        let (writes, is_writing) = channel();
        let (release, released) = channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                let edited = map.edit_with("k", |_| {
                    writes.send(()).expect("the test waits");
                    released.recv().expect("released once");
                    Some(b"v".to_vec())
                });
                edited.expect("written");
            });
            is_writing.recv().expect("the write is in progress");
            // Sets the default, and then waits for the write.
            let always = scope.spawn(|| syncing.set(Sync::Always));
            while db.durability() != Durability::Immediate {
                thread::yield_now();
            }
            let no = scope.spawn(|| syncing.set(Sync::No));
            // Without the lock the second change would now pass the first.
            thread::sleep(Duration::from_millis(100));
            release.send(()).expect("the write waits");
            always.join().expect("no panic").expect("level disk");
            no.join().expect("no panic").expect("level disk");
        });
        let is_immediate = db.durability() == Durability::Immediate;
        assert_eq!(syncing.get() == Sync::Always, is_immediate, "{:?}", syncing.get());
    }
}
