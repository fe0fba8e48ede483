//! State that all workers share, and each worker's own.

use crate::Error;
use crate::counters::{Counter, Counters};
use crate::items::access::Access;
use crate::items::cursors::Cursors;
use crate::items::databases::Databases;
use crate::items::memory::MemoryLimit;
use crate::net::connection::Settle;
use crate::net::dialect::Dialect;
use crate::net::lane::{Lane, Net};
use crate::net::limits::Limits;
use crate::net::tls::Encryption;
use crate::ops::backup::Backups;
use crate::ops::config::{Config, LARGEST_VALUE};
use crate::ops::latency::{Command, Latencies};
use crate::ops::passwords::Passwords;
use crate::ops::slow::SlowLog;
use crate::ops::sync::Syncing;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wollemi::{Db, PausedTurn};

/// The state that all workers share.
#[derive(Debug)]
pub struct Shared {
    pub databases: Arc<Databases>,
    pub net: Arc<Net>,
    /// The protocols, in the order of their places.
    pub dialects: &'static [&'static Dialect],
    pub passwords: Passwords,
    pub cursors: Cursors,
    pub access: Access,
    pub backups: Arc<Backups>,
    pub syncing: Syncing,
    pub config: Config,
    /// The durations of commands, for each worker.
    pub latencies: Vec<Latencies>,
    pub slow: SlowLog,
    pub swept: AtomicU64,
    pub started: Instant,
}

/// One worker: a thread that serves connections.
#[derive(Debug)]
pub struct Worker {
    pub shared: Arc<Shared>,
    lane: Lane,
    db: Db,
    /// A buffer for values to be stored.
    pub scratch: RefCell<Vec<u8>>,
}

impl Deref for Worker {
    type Target = Lane;
    fn deref(&self) -> &Lane {
        &self.lane
    }
}

impl Settle for Worker {
    /// Runs a connection in a turn of the database of its own. Each poll enters the turn and leaves it again, since the
    /// connections of a worker share its thread.
    async fn unsettled<T>(&self, connection: impl Future<Output = T>) -> T {
        let mut connection = pin!(connection);
        let mut paused = PausedTurn::default();
        poll_fn(|context| {
            let turn = self.db.resume(std::mem::take(&mut paused));
            let polled = connection.as_mut().poll(context);
            paused = turn.pause();
            polled
        })
        .await
    }

    #[inline]
    fn is_settled(&self) -> bool {
        self.db.is_turn_durable()
    }

    fn settle(&self) -> io::Result<()> {
        Ok(self.db.settle_turn()?)
    }
}

impl Worker {
    pub fn new(shared: Arc<Shared>, number: usize) -> Worker {
        Worker {
            lane: Lane::new(shared.net.clone(), number),
            db: shared.databases.db().clone(),
            shared,
            scratch: RefCell::default(),
        }
    }

    /// Records a command that came `times` times, each of which took as long. Returns whether that is slow.
    #[inline]
    pub fn took(&self, command: Command, took: Duration, times: u64) -> bool {
        self.shared.latencies[self.number].note(command, took, times);
        self.shared.slow.is_slow(took)
    }

    /// Counts a key that was looked up.
    pub fn count_get(&self, found: bool) {
        self.add(Counter::Gets, 1);
        self.add(
            match found {
                true => Counter::GetHits,
                false => Counter::GetMisses,
            },
            1,
        );
    }
}

impl Shared {
    /// Creates the state of a server with this configuration, over the items in this database.
    pub fn open(config: Config, db: &Db, dialects: &'static [&'static Dialect]) -> Result<Shared, Error> {
        let passwords = match &config.passwords {
            Some(path) => Passwords::read(path)?,
            None => Passwords::default(),
        };
        let workers = config.workers();
        let limits = Limits::new(workers, config.memcached.len() + config.redis.len());
        take_limits(&limits, &config);
        let memory = MemoryLimit::new(config.memory_limit.unwrap_or(0), config.evicts);
        let databases = Databases::open(db, &config.map, config.index, memory, limits.value_kept())?;
        let databases = Arc::new(databases);
        let encryption = config.tls.clone().map(Encryption::read).transpose()?;
        let net = Net::new(limits, encryption, workers, config.drain_timeout);
        let backups = Backups::new(databases.clone(), config.host.clone(), config.backup_to.clone());
        let syncing = Syncing::new(db);
        if let Some(sync) = config.sync {
            syncing.set(sync)?;
        }
        Ok(Shared {
            databases,
            syncing,
            net: Arc::new(net),
            dialects,
            slow: SlowLog::new(&config),
            latencies: (0..workers).map(|_| Latencies::new(dialects)).collect(),
            passwords,
            cursors: Cursors::default(),
            access: Access::default(),
            backups: Arc::new(backups),
            config,
            swept: AtomicU64::new(0),
            started: Instant::now(),
        })
    }

    /// Takes over the part of a configuration that may change while the server runs.
    pub fn take(&self, config: &Config) {
        take_limits(&self.net.limits, config);
        self.net.clients.look_again();
        self.slow.take(config);
        let memory = self.databases.memory();
        memory.take_over(config.memory_limit.unwrap_or(0), config.evicts);
        self.backups.take(config.backup_to.clone());
        // Without a setting the policy stays as it is.
        match config.sync.map(|sync| self.syncing.set(sync)) {
            Some(Err(why @ Error::Log(_))) => {
                tracing::error!(%why, "sync is changed, but earlier writes may not survive a loss of power");
            }
            Some(Err(why)) => tracing::error!(%why, "sync stays what it was"),
            Some(Ok(())) | None => {}
        }
    }

    /// Sets the workers' counts, the durations, and the numbers of rejected connections, evicted items and refused
    /// writes to zero.
    pub fn reset_counts(&self) {
        self.net.counters.iter().for_each(Counters::reset);
        self.latencies.iter().for_each(Latencies::reset);
        self.net.rejected.store(0, Ordering::Relaxed);
        self.databases.memory().reset_counts();
    }
}

/// Takes over the limits of a configuration. They apply to open connections from their next turn on; the idle time,
/// once they look again.
fn take_limits(limits: &Limits, config: &Config) {
    limits.set_connections(config.max_connections);
    limits.set_idle(config.idle_timeout);
    limits.set_bulk(config.max_bulk.min(LARGEST_VALUE));
    limits.set_value(config.max_value.min(LARGEST_VALUE));
}
