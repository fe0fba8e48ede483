//! What all workers share, and what each has to itself.

use crate::Error;
use crate::access::Access;
use crate::backup::Backups;
use crate::clients::Clients;
use crate::config::Config;
use crate::counters::{Counter, Counters};
use crate::databases::Databases;
use crate::latency::{Command, Latencies};
use crate::limits::Limits;
use crate::passwords::Passwords;
use crate::redis::Cursors;
use crate::slow::SlowLog;
use crate::tls::Encryption;
use index::Index;
use std::cell::{Cell, RefCell};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The millisecond since 1970.
pub fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// What all workers share.
#[derive(Debug)]
pub struct Shared {
    pub databases: Databases,
    pub limits: Limits,
    pub passwords: Passwords,
    pub encryption: Option<Encryption>,
    pub cursors: Cursors,
    pub access: Access,
    pub backups: Backups,
    pub config: Config,
    pub workers: Vec<Counters>,
    /// How long commands took, for each worker.
    pub latencies: Vec<Latencies>,
    pub slow: SlowLog,
    pub clients: Arc<Clients>,
    /// The addresses that are listened on, once they are.
    pub listening: OnceLock<Vec<String>>,
    pub rejected: AtomicU64,
    pub swept: AtomicU64,
    pub started: Instant,
}

/// One worker: a thread that serves connections.
#[derive(Debug)]
pub struct Worker {
    pub shared: Arc<Shared>,
    pub number: usize,
    /// Where values to put are made.
    pub scratch: RefCell<Vec<u8>>,
    /// Since when the command that comes next is counted to take time.
    mark: Cell<Instant>,
    /// Turns of connections so far.
    turns: Cell<u64>,
}

impl Worker {
    pub fn new(shared: Arc<Shared>, number: usize) -> Worker {
        Worker {
            shared,
            number,
            scratch: RefCell::default(),
            mark: Cell::new(Instant::now()),
            turns: Cell::new(0),
        }
    }

    /// A connection's turn begins; the number of it.
    pub fn turn(&self) -> u64 {
        self.turns.replace(self.turns.get() + 1)
    }

    /// What passed until now is no command's time. Called after each wait.
    pub fn begin(&self) {
        self.mark.set(Instant::now());
    }

    /// The time since the last command was done, or since this worker has waited.
    #[inline]
    pub fn lap(&self) -> Duration {
        let now = Instant::now();
        now.duration_since(self.mark.replace(now))
    }

    /// Notes that a command came `times` times, and how long each took; whether that is slow.
    #[inline]
    pub fn took(&self, command: Command, took: Duration, times: u64) -> bool {
        self.shared.latencies[self.number].note(command, took, times);
        self.shared.slow.is_slow(took)
    }

    /// Counts for this worker.
    #[inline]
    pub fn add(&self, counter: Counter, by: u64) {
        self.shared.workers[self.number].add(counter, by);
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
    /// What a server of this configuration has, over the items in `index`.
    pub fn open(config: Config, index: Arc<dyn Index>) -> Result<Shared, Error> {
        let passwords = match &config.passwords {
            Some(path) => Passwords::read(path)?,
            None => Passwords::default(),
        };
        let limits = Limits::new(&config);
        let workers = config.workers();
        Ok(Shared {
            databases: Databases::open(index, &config, limits.value_kept())?,
            limits,
            slow: SlowLog::new(&config),
            latencies: (0..workers).map(|_| Latencies::default()).collect(),
            passwords,
            encryption: config.tls.clone().map(Encryption::read).transpose()?,
            cursors: Cursors::default(),
            access: Access::default(),
            backups: Backups::new(config.backup_to.clone()),
            config,
            workers: (0..workers).map(|_| Counters::default()).collect(),
            clients: Arc::new(Clients::default()),
            listening: OnceLock::new(),
            rejected: AtomicU64::new(0),
            swept: AtomicU64::new(0),
            started: Instant::now(),
        })
    }

    /// Takes over what of a configuration may change while the server runs.
    pub fn take(&self, config: &Config) {
        self.limits.take(config);
        self.slow.take(config);
        self.databases.memory().take_over(config);
        self.backups.take(config.backup_to.clone());
    }

    /// Begins to count anew.
    pub fn reset_counts(&self) {
        self.workers.iter().for_each(Counters::reset);
        self.latencies.iter().for_each(Latencies::reset);
    }
}
