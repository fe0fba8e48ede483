//! The limits that may change while the server runs: a `CONFIG SET` changes one, a reload all of them.

use crate::net::files;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The limits as they are now.
#[derive(Debug, Default)]
pub struct Limits {
    connections: AtomicUsize,
    /// Milliseconds; 0: no limit.
    idle: AtomicU64,
    bulk: AtomicUsize,
    /// The items' store looks here, too.
    value: Arc<AtomicUsize>,
}

impl Limits {
    /// Maximum number of connections at once.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Changes the most connections at once, and lets the process have files for them. Those that are open stay.
    pub fn set_connections(&self, max: usize) {
        files::allow(max);
        self.connections.store(max, Ordering::Relaxed);
    }

    /// How long a connection may neither send nor take anything.
    pub fn idle(&self) -> Option<Duration> {
        let idle = self.idle.load(Ordering::Relaxed);
        (idle > 0).then(|| Duration::from_millis(idle))
    }

    /// Changes how long a connection may be idle: each sees it when it is polled next.
    pub fn set_idle(&self, idle: Option<Duration>) {
        let idle = idle.map_or(0, |idle| {
            u64::try_from(idle.as_millis()).unwrap_or(u64::MAX).max(1)
        });
        self.idle.store(idle, Ordering::Relaxed);
    }

    /// The longest value that a Redis client may store, in bytes.
    pub fn bulk(&self) -> usize {
        self.bulk.load(Ordering::Relaxed)
    }

    /// Changes the longest value that a Redis client may store.
    pub fn set_bulk(&self, max: usize) {
        self.bulk.store(max, Ordering::Relaxed);
    }

    /// The largest value that a memcached client may make, in bytes.
    pub fn value(&self) -> usize {
        self.value.load(Ordering::Relaxed)
    }

    /// Changes the largest value that a memcached client may make.
    pub fn set_value(&self, max: usize) {
        self.value.store(max, Ordering::Relaxed);
    }

    /// Where [`value`](Limits::value) is kept.
    pub fn value_kept(&self) -> Arc<AtomicUsize> {
        self.value.clone()
    }
}
