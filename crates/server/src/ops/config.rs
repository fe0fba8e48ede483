//! The server's configuration.

use crate::Error;
use crate::items::store::{BATCH, ENOUGH};
use crate::net::listen::Address;
use crate::net::tls::Tls;
use crate::ops::copying::BackupTo;
use crate::ops::host::Host;
use crate::ops::sync::Sync;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use wollemi::IndexKind;

/// The largest value, in bytes, that the index can hold with an item's header.
pub const LARGEST_VALUE: usize = index::MAX_VALUE - crate::items::item::HEADER;

/// Maximum number of threads that serve connections.
pub const MAX_THREADS: usize = 1024;

// Each may take this many uniques while another reserves the next.
const _: () = assert!(ENOUGH >= 2 * (MAX_THREADS * BATCH) as u64);

/// How the server is set up. The default listens on the loopback address, port 11211.
#[derive(Clone)]
pub struct Config {
    /// Where to listen for memcached clients; port 0 takes any free port.
    pub memcached: Vec<Address>,
    /// Where to listen for Redis clients.
    pub redis: Vec<Address>,
    /// The map of database 0; that of database N has this name with `-N` behind it.
    pub map: String,
    /// The index that is to hold maps that are made; `None`: the database's own choice.
    pub index: Option<IndexKind>,
    /// The program around the server. Without it there are no backups, and SIGHUP is not heard.
    pub host: Option<Arc<dyn Host>>,
    /// Where backups go; without it there are none either. A reload may change it.
    pub backup_to: Option<BackupTo>,
    /// When writes are durable, in a pool of level `disk`; `None`: what the pool's level amounts to. A reload may
    /// change it.
    pub sync: Option<Sync>,
    /// A file of `user:password` lines. With it, clients must say who they are.
    pub passwords: Option<PathBuf>,
    /// With it, connections from the internet are encrypted; unix sockets and metrics are not.
    pub tls: Option<Tls>,
    /// Whether addresses that other machines can reach are allowed without passwords.
    pub allow_remote: bool,
    /// Threads that serve connections; 0: as many as there are processors. More than [`MAX_THREADS`] count as that.
    pub threads: usize,
    /// Maximum number of connections. Further ones get an error and are closed.
    pub max_connections: usize,
    /// The largest value of memcached's clients, in bytes: at most [`index::MAX_VALUE`] less an item's header.
    pub max_value: usize,
    /// The largest argument of a Redis client's command, in bytes: at most as much.
    pub max_bulk: usize,
    /// Maximum number of bytes that the items of all databases may take; `None`: as many as the pool has room for.
    pub memory_limit: Option<u64>,
    /// Whether items that are asked for least go when there is no room for another within the limit; or else it is
    /// refused.
    pub evicts: bool,
    /// The longest `get` or `gets` line, in bytes.
    pub max_get_line: usize,
    /// How long a connection may neither send nor take anything before it is closed; `None`: for ever.
    pub idle_timeout: Option<Duration>,
    /// How long a stopping server waits for clients to take their last answers.
    pub drain_timeout: Duration,
    /// The pause between two steps of the sweep that removes dead items; `None`: they go only when met.
    pub sweep_pause: Option<Duration>,
    /// Where to serve metrics for Prometheus, by HTTP, at `/metrics`.
    pub metrics: Option<SocketAddr>,
    /// The microseconds from which on a command is noted in the slow log; below zero: none is.
    pub slow_threshold: i64,
    /// Maximum number of commands that the slow log keeps.
    pub slow_length: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            memcached: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 11211)).into()],
            redis: Vec::new(),
            map: "memcached".to_owned(),
            index: None,
            host: None,
            backup_to: None,
            sync: None,
            passwords: None,
            tls: None,
            allow_remote: false,
            threads: 0,
            max_connections: 1024,
            max_value: 1 << 20,
            max_bulk: LARGEST_VALUE,
            memory_limit: None,
            evicts: true,
            max_get_line: 1 << 20,
            idle_timeout: None,
            drain_timeout: Duration::from_secs(5),
            sweep_pause: Some(Duration::from_millis(50)),
            metrics: None,
            slow_threshold: 10_000,
            slow_length: 128,
        }
    }
}

impl Config {
    /// Refuses what cannot be, and what only an explicit word allows.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let mut addresses = self.memcached.iter().chain(&self.redis).peekable();
        if addresses.peek().is_none() {
            return Err(Error::NoAddress);
        }
        let remote = addresses.find_map(Address::remote);
        // The metrics endpoint asks for no password.
        let open = self.metrics.and_then(|address| Address::Tcp(address).remote());
        match (remote, open) {
            _ if self.allow_remote => Ok(()),
            (Some(address), _) if self.passwords.is_none() => Err(Error::NotLoopback(address)),
            (_, Some(address)) => Err(Error::MetricsNotLoopback(address)),
            _ => Ok(()),
        }
    }

    /// The number of threads that serve connections.
    pub(crate) fn workers(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads.min(MAX_THREADS),
        }
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("memcached", &self.memcached)
            .field("redis", &self.redis)
            .field("backup_to", &self.backup_to)
            .field("sync", &self.sync)
            .field("passwords", &self.passwords)
            .field("tls", &self.tls)
            .field("allow_remote", &self.allow_remote)
            .field("threads", &self.threads)
            .field("max_connections", &self.max_connections)
            .field("max_value", &self.max_value)
            .field("max_bulk", &self.max_bulk)
            .field("memory_limit", &self.memory_limit)
            .field("evicts", &self.evicts)
            .field("max_get_line", &self.max_get_line)
            .field("idle_timeout", &self.idle_timeout)
            .field("drain_timeout", &self.drain_timeout)
            .field("metrics", &self.metrics)
            .field("sweep_pause", &self.sweep_pause)
            .finish_non_exhaustive()
    }
}
