//! State that connections share: all of them, and those of one worker.

use crate::counters::{Counter, Counters};
use crate::net::clients::Clients;
use crate::net::limits::Limits;
use crate::net::listen::Address;
use crate::net::tls::Encryption;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use wollemi::{Db, PausedTurn};

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
    db: Db,
    /// The instant from which the next command's duration counts.
    mark: Cell<Instant>,
    /// Turns of connections so far.
    turns: Cell<u64>,
}

impl Lane {
    pub fn new(net: Arc<Net>, number: usize, db: Db) -> Lane {
        Lane {
            net,
            number,
            db,
            mark: Cell::new(Instant::now()),
            turns: Cell::new(0),
        }
    }

    /// Runs a connection in a turn of the database of its own. Each poll enters the turn and leaves it again, since the
    /// connections of a worker share its thread. Until the connection [settles](Lane::settle), it does not wait for its
    /// writes, or for what it has read, to become durable.
    pub async fn unsettled<T>(&self, connection: impl Future<Output = T>) -> T {
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

    /// Returns whether all that the connection has written and read so far is durable.
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.db.is_turn_durable()
    }

    /// Waits until all that the connection has written and read so far is durable. First the worker serves its other
    /// connections that have input, so that one sync of the disk covers all of them. The sync blocks the worker.
    ///
    /// # Errors
    ///
    /// The disk has failed, and it is unknown what is durable.
    pub async fn settle(&self) -> Result<(), wollemi::Error> {
        if self.is_settled() {
            return Ok(());
        }
        tokio::task::yield_now().await;
        self.db.settle_turn()
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
