//! What connections have in common: all of them, and those of one worker.

use crate::counters::{Counter, Counters};
use crate::net::clients::Clients;
use crate::net::limits::Limits;
use crate::net::tls::Encryption;
use std::cell::Cell;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// What all connections share.
#[derive(Debug)]
pub struct Net {
    pub limits: Limits,
    pub encryption: Option<Encryption>,
    /// How long a stopping server waits for clients to take their last answers.
    pub drain_timeout: Duration,
    /// What each worker counts.
    pub counters: Vec<Counters>,
    pub clients: Arc<Clients>,
    /// The addresses that are listened on, once they are.
    pub listening: OnceLock<Vec<String>>,
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

    /// How many threads serve connections.
    pub fn workers(&self) -> usize {
        self.counters.len()
    }
}

/// What the connections of one worker share.
#[derive(Debug)]
pub struct Lane {
    pub net: Arc<Net>,
    /// The worker's.
    pub number: usize,
    /// Since when the command that comes next is counted to take time.
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

    /// Counts for this worker.
    #[inline]
    pub fn add(&self, counter: Counter, by: u64) {
        self.net.counters[self.number].add(counter, by);
    }
}
