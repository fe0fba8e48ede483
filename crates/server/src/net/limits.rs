//! The limits that may change while the server runs: `CONFIG SET` changes some, a reload all.

use crate::net::files;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The limits as they are now.
#[derive(Debug, Default)]
pub struct Limits {
    connections: AtomicUsize,
    /// The number of files that the server needs beside its connections.
    other_files: u64,
    /// Milliseconds; 0: no limit.
    idle: AtomicU64,
    bulk: AtomicUsize,
    /// Shared with the stores of items.
    value: Arc<AtomicUsize>,
}

impl Limits {
    /// Creates the limits of a server with this many workers and addresses.
    pub fn new(workers: usize, addresses: usize) -> Limits {
        Limits {
            other_files: files::beside_connections(workers, addresses),
            ..Limits::default()
        }
    }

    /// Returns the maximum number of connections.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Changes the maximum number of connections, and raises the process's limit on files. Open connections stay.
    pub fn set_connections(&self, max: usize) {
        files::allow(max, self.other_files);
        self.connections.store(max, Ordering::Relaxed);
    }

    /// Returns how long a connection may neither send nor receive anything.
    pub fn idle(&self) -> Option<Duration> {
        let idle = self.idle.load(Ordering::Relaxed);
        (idle > 0).then(|| Duration::from_millis(idle))
    }

    /// Changes how long a connection may be idle. Each connection sees the new limit when it is polled next.
    pub fn set_idle(&self, idle: Option<Duration>) {
        let idle = idle.map_or(0, |idle| {
            u64::try_from(idle.as_millis()).unwrap_or(u64::MAX).max(1)
        });
        self.idle.store(idle, Ordering::Relaxed);
    }

    /// Returns the longest value that a Redis client may store, in bytes.
    pub fn bulk(&self) -> usize {
        self.bulk.load(Ordering::Relaxed)
    }

    /// Changes the longest value that a Redis client may store.
    pub fn set_bulk(&self, max: usize) {
        self.bulk.store(max, Ordering::Relaxed);
    }

    /// Returns the largest value that a memcached client may store, in bytes.
    pub fn value(&self) -> usize {
        self.value.load(Ordering::Relaxed)
    }

    /// Changes the largest value that a memcached client may store.
    pub fn set_value(&self, max: usize) {
        self.value.store(max, Ordering::Relaxed);
    }

    /// Returns the variable behind [`value`](Limits::value).
    pub fn value_kept(&self) -> Arc<AtomicUsize> {
        self.value.clone()
    }
}
