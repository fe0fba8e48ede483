//! The server's configuration, and the services of the program around the server (`Host`), which can read the
//! configuration again.

use crate::Error;
use crate::items::store::{BATCH, ENOUGH};
use crate::net::listen::Address;
use crate::net::tls::Tls;
use crate::ops::copying::{BackupTo, Copying};
use crate::ops::sync::Sync;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use wollemi::{IndexKind, Snapshot};

/// The largest data of an item, in bytes: the index's largest value less the item's header.
pub const LARGEST_VALUE: usize = index::MAX_VALUE - crate::items::item::HEADER;

/// Maximum number of threads that serve connections.
pub const MAX_THREADS: usize = 1024;

// Each thread may take two batches of uniques while another thread reserves the next block.
const _: () = assert!(ENOUGH >= 2 * (MAX_THREADS * BATCH) as u64);

/// How the server is set up. The default listens on the loopback address, port 11211.
#[derive(Clone)]
pub struct Config {
    /// Where to listen for memcached clients; port 0 takes any free port.
    pub memcached: Vec<Address>,
    /// Where to listen for Redis clients.
    pub redis: Vec<Address>,
    /// The map of database 0. The map of database N has this name followed by `-N`.
    pub map: String,
    /// The index for maps that the server creates; `None`: the database's default.
    pub index: Option<IndexKind>,
    /// The program around the server. Without it there are no backups, and the server ignores SIGHUP.
    pub host: Option<Arc<dyn Host>>,
    /// Where backups go; without it there are none. A reload may change it.
    pub backup_to: Option<BackupTo>,
    /// When writes are durable, in a pool of level `disk`; `None`: as the pool's level has it by default. A reload may
    /// change it.
    pub sync: Option<Sync>,
    /// A file of `user:password` lines. With it, clients must log in.
    pub passwords: Option<PathBuf>,
    /// With it, TCP connections are encrypted; unix sockets and metrics are not.
    pub tls: Option<Tls>,
    /// Whether addresses that other machines can reach are allowed without passwords.
    pub allow_remote: bool,
    /// Number of threads that serve connections, at most [`MAX_THREADS`]; 0: one per processor.
    pub threads: usize,
    /// Maximum number of connections. The server answers further ones with an error and closes them.
    pub max_connections: usize,
    /// The largest value of memcached's clients, in bytes: at most [`index::MAX_VALUE`] less an item's header.
    pub max_value: usize,
    /// The largest argument of a Redis client's command, in bytes, with the same maximum.
    pub max_bulk: usize,
    /// Maximum number of bytes that the items of all databases may take; `None`: limited by the pool alone.
    pub memory_limit: Option<u64>,
    /// Whether the server evicts the least used items when a write would exceed the limit; otherwise it refuses the
    /// write.
    pub evicts: bool,
    /// The longest `get` or `gets` line, in bytes.
    pub max_get_line: usize,
    /// How long a connection may neither send nor receive anything before it is closed; `None`: for ever.
    pub idle_timeout: Option<Duration>,
    /// How long a stopping server waits for clients to read their last answers.
    pub drain_timeout: Duration,
    /// The pause between two steps of the sweep that removes dead items; `None`: only commands that meet them do.
    pub sweep_pause: Option<Duration>,
    /// Where to serve metrics for Prometheus, by HTTP, at `/metrics`.
    pub metrics: Option<SocketAddr>,
    /// Commands that take this many microseconds or more enter the slow log; negative: none does.
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
    /// Refuses a configuration that cannot work, or that needs an explicit permission.
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

    /// Returns the number of threads that serve connections.
    pub(crate) fn workers(&self) -> usize {
        self.workers_on(std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// Returns the number of threads that serve connections on a machine with this many processors.
    fn workers_on(&self, processors: usize) -> usize {
        let threads = match self.threads {
            0 => processors,
            threads => threads,
        };
        threads.min(MAX_THREADS)
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

/// Services of the program around a server. The server calls them from its own threads.
pub trait Host: Send + std::marker::Sync {
    /// Reads the settings again. Returns the configuration, or why the settings are wrong. The server calls this on
    /// SIGHUP, and applies the limits (connections, sizes of requests, idle time), the slow log, the memory limit and
    /// eviction, `sync` if it is set, and where backups go with their memory limit.
    fn reload(&self) -> Result<Config, String> {
        Err("this program has no settings to read again".into())
    }

    /// Writes a snapshot to the file while clients are served, and reports its progress to `copying`.
    ///
    /// # Errors
    ///
    /// The reason for the failure. The existing file is then unchanged.
    fn back_up(&self, snapshot: &Snapshot, to: &BackupTo, copying: &Copying) -> Result<(), String>;

    /// Returns freed memory that the program's allocator has kept to the operating system. The server calls this at
    /// most once a second.
    fn give_back(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uniques are reserved for [`MAX_THREADS`]: there are no more, not even on a machine with more processors.
    #[test]
    fn threads_are_limited_on_any_machine() {
        let workers = |threads, processors| {
            let config = Config {
                threads,
                ..Config::default()
            };
            config.workers_on(processors)
        };
        assert_eq!([workers(0, 2), workers(0, 2048)], [2, MAX_THREADS]);
        assert_eq!([workers(3, 2), workers(2000, 2048)], [3, MAX_THREADS]);
    }
}
