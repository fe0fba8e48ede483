//! How the server is set up.

use crate::Error;
use crate::backup::Copying;
use crate::metrics::MoreMetrics;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Lines that `stats` shows besides the server's own, each a name without blanks and a value.
pub type MoreStats = Arc<dyn Fn() -> Vec<(String, String)> + Send + Sync>;

/// Tells how the server would be set up now, or why that is wrong. Of this the server takes the limits (connections,
/// sizes of requests, idle time, the slow log) and where backups go.
pub type Reload = Arc<dyn Fn() -> Result<Config, String> + Send + Sync>;

/// The map of database `number` above 0, made if it is not there and the second argument says so; or why it cannot be
/// had.
pub type Maps = Arc<dyn Fn(usize, bool) -> Result<Option<Arc<dyn index::Index>>, String> + Send + Sync>;

/// Gives memory that was freed back to the operating system, as far as the program's allocator has kept it. It is
/// called once a second at most.
pub type GiveBack = Arc<dyn Fn() + Send + Sync>;

/// What a key of database `database` shall hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'c> {
    /// The database's number.
    pub database: usize,
    /// The key.
    pub key: &'c [u8],
    /// The value, as the index has it; `None`: the key shall be absent.
    pub value: Option<&'c [u8]>,
}

/// Makes changes, of no key two: all of them, durably, or none, whatever crash comes; or says why it could not.
pub type Commit = Arc<dyn Fn(&[Change<'_>]) -> Result<(), NotMade> + Send + Sync>;

/// Why changes were not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotMade {
    /// None of them is made, nor will be: clients read that the command failed.
    Refused(String),
    /// They are committed, and some of them are not made yet: the next opening of the maps makes them. No map can be
    /// written to before.
    Unfinished(String),
}

impl From<String> for NotMade {
    fn from(why: String) -> NotMade {
        NotMade::Refused(why)
    }
}

/// Where backups go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupTo {
    /// The file. A new one takes its place when it is whole and durable.
    pub file: PathBuf,
    /// The most bytes of memory that a backup may take for what clients change while it is written.
    pub memory: u64,
}

/// Takes hold of what all maps hold at this moment, or says why that cannot be. It is called while no transaction runs,
/// and shall not take long.
pub type Backup = Arc<dyn Fn(&BackupTo) -> Result<Moment, String> + Send + Sync>;

/// Writes what was taken hold of, while clients are served, and lets go of it; or says why it could not, and then has
/// left the file that there was.
pub type Moment = Box<dyn FnOnce(&Copying) -> Result<(), String> + Send>;

/// The largest value, in bytes, that the index can hold with an item's header.
pub const LARGEST_VALUE: usize = index::MAX_VALUE - crate::item::HEADER;

/// What clients speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// memcached's text protocol.
    Memcached,
    /// Redis's protocol, RESP2 or RESP3.
    Redis,
}

impl Protocol {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Memcached => "memcached",
            Protocol::Redis => "redis",
        }
    }

    /// What a client is told that comes when there are too many.
    pub(crate) fn too_many(self) -> &'static [u8] {
        match self {
            Protocol::Memcached => b"ERROR Too many open connections\r\n",
            Protocol::Redis => b"-ERR max number of clients reached\r\n",
        }
    }
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An internet address and a port.
    Tcp(SocketAddr),
    /// The file of a unix socket. It is made, for its owner alone; one that nobody listens on is replaced.
    Unix(PathBuf),
}

impl Address {
    /// The address, if other machines can reach it.
    fn remote(&self) -> Option<SocketAddr> {
        match self {
            Address::Tcp(address) if !address.ip().to_canonical().is_loopback() => Some(*address),
            _ => None,
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        Address::Tcp(address)
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(path) => path.display().fmt(f),
        }
    }
}

/// What a server encrypts its connections with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// A file with its certificate and those that vouch for it, in PEM.
    pub certificate: PathBuf,
    /// A file with the certificate's private key, in PEM.
    pub key: PathBuf,
}

/// The most threads that serve connections.
pub const MAX_THREADS: usize = 1024;

/// How the server is set up. The default listens on the loopback address, port 11211.
#[derive(Clone)]
pub struct Config {
    /// Where to listen for memcached clients; port 0 takes any free port.
    pub memcached: Vec<Address>,
    /// Where to listen for Redis clients.
    pub redis: Vec<Address>,
    /// The maps of the databases behind the first; without them there is but one.
    pub maps: Option<Maps>,
    /// What commits a transaction; without it, a crash may come between two changes of one.
    pub commit: Option<Commit>,
    /// What makes backups; without it there are none.
    pub backup: Option<Backup>,
    /// Where they go; without it there are none either. A reload may change it.
    pub backup_to: Option<BackupTo>,
    /// A file of `user:password` lines. With it, clients must say who they are.
    pub passwords: Option<PathBuf>,
    /// With it, connections from the internet are encrypted; unix sockets and metrics are not.
    pub tls: Option<Tls>,
    /// Whether addresses that other machines can reach are allowed without passwords.
    pub allow_remote: bool,
    /// Threads that serve connections; 0: as many as there are processors. More than [`MAX_THREADS`] count as that.
    pub threads: usize,
    /// The most connections at once. Further ones are told so and closed.
    pub max_connections: usize,
    /// The largest value of memcached's clients, in bytes: at most [`index::MAX_VALUE`] less an item's header.
    pub max_value: usize,
    /// The largest argument of a Redis client's command, in bytes: at most as much.
    pub max_bulk: usize,
    /// The most bytes that the items of all databases may take; `None`: as many as the pool has room for.
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
    /// Further lines of `stats`.
    pub more_stats: Option<MoreStats>,
    /// Where to tell metrics to Prometheus, by HTTP, at `/metrics`.
    pub metrics: Option<SocketAddr>,
    /// Further metrics.
    pub more_metrics: Option<MoreMetrics>,
    /// The microseconds from which on a command is noted in the slow log; below zero: none is.
    pub slow_threshold: i64,
    /// The most commands that the slow log keeps.
    pub slow_length: usize,
    /// What gives freed memory back; without it that is the allocator's business.
    pub give_back: Option<GiveBack>,
    /// What SIGHUP asks for the limits that shall apply from then on.
    pub reload: Option<Reload>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            memcached: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 11211)).into()],
            redis: Vec::new(),
            maps: None,
            commit: None,
            backup: None,
            backup_to: None,
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
            more_stats: None,
            metrics: None,
            more_metrics: None,
            slow_threshold: 10_000,
            slow_length: 128,
            give_back: None,
            reload: None,
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
        // Nobody asks for passwords where metrics are told.
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
