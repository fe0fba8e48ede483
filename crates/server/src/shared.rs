//! What all workers share, and what each has to itself.

use crate::access::Access;
use crate::clients::Clients;
use crate::config::Config;
use crate::counters::{Counter, Counters};
use crate::databases::Databases;
use crate::limits::Limits;
use crate::passwords::Passwords;
use crate::redis::Cursors;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

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
    pub cursors: Cursors,
    pub access: Access,
    pub config: Config,
    pub workers: Vec<Counters>,
    pub clients: Arc<Clients>,
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
}

impl Worker {
    /// Counts for this worker.
    #[inline]
    pub fn add(&self, counter: Counter, by: u64) {
        self.shared.workers[self.number].add(counter, by);
    }
}
