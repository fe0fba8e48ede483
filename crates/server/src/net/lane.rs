//! State that connections share: all of them, and those of one worker.

use crate::counters::{Counter, Counters};
use crate::net::clients::Clients;
use crate::net::limits::Limits;
use crate::net::listen::Address;
use crate::net::tls::Encryption;
use std::cell::Cell;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// State that all connections share.
#[derive(Debug)]
pub struct Net {
    pub limits: Limits,
    pub encryption: Option<Encryption>,
    /// How long a stopping server waits for clients to read their last answers.
    pub drain_timeout: Duration,
    /// The counts of each worker.
    pub counters: Vec<Counters>,
    pub clients: Arc<Clients>,
    /// The addresses that are listened on, once they are: those for memcached's clients, then those for Redis's.
    pub listening: OnceLock<Vec<Address>>,
    /// Connections turned away because there were too many.
    pub rejected: AtomicU64,
}

impl Net {
    pub fn new(
        limits: Limits,
        encryption: Option<Encryption>,
        workers: usize,
        drain_timeout: Duration,
    ) -> Net {
        Net {
            limits,
            encryption,
            drain_timeout,
            counters: (0..workers).map(|_| Counters::default()).collect(),
            clients: Arc::default(),
            listening: OnceLock::new(),
            rejected: AtomicU64::new(0),
        }
    }

    /// Changes how long a connection may be idle, also for those that are idle now.
    pub fn set_idle(&self, idle: Option<Duration>) {
        self.limits.set_idle(idle);
        self.clients.look_again();
    }

    /// Returns the number of threads that serve connections.
    pub fn workers(&self) -> usize {
        self.counters.len()
    }
}

/// State that the connections of one worker share.
#[derive(Debug)]
pub struct Lane {
    pub net: Arc<Net>,
    /// The worker's number.
    pub number: usize,
    /// The instant from which the next command's duration counts.
    mark: Cell<Instant>,
    /// Turns of connections so far.
    turns: Cell<u64>,
}

impl Lane {
    pub fn new(net: Arc<Net>, number: usize) -> Lane {
        Lane {
            net,
            number,
            mark: Cell::new(Instant::now()),
            turns: Cell::new(0),
        }
    }

    /// Begins a connection's turn. Returns its number.
    pub fn turn(&self) -> u64 {
        self.turns.replace(self.turns.get() + 1)
    }

    /// Excludes the time until now from the durations of commands. Called after each wait.
    pub fn begin(&self) {
        self.mark.set(Instant::now());
    }

    /// Returns the time since the last command was done, or since this worker last waited.
    #[inline]
    pub fn lap(&self) -> Duration {
        let now = Instant::now();
        now.duration_since(self.mark.replace(now))
    }

    /// Adds to a counter of this worker.
    #[inline]
    pub fn add(&self, counter: Counter, by: u64) {
        self.net.counters[self.number].add(counter, by);
    }
}
