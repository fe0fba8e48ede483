//! `serve`: serves the pool to memcached and Redis clients.

mod allocator;
mod notify;
mod program;
mod ready;
mod recovery;
mod settings;

use super::output;
use crate::context::{Context, NewMap, size};
use crate::exit::{Failure, Outcome};
use crate::log;
use clap::builder::RangedU64ValueParser;
use program::Program;
use ready::{Ready, announce, count, log_output_error, say_goodbye};
use server::{Address, BackupTo, Config, Protocol, Server, Shutdown, Sync, Tls};
use settings::Settings;
use std::ffi::OsString;
use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use wollemi::Level;

/// The arguments of `serve`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Items are in the map `memcached`: the client's value after a header of 24 bytes. \
Redis's database 0 is that map, database N the map `memcached-N`. \
SIGTERM and SIGINT stop the server once it has answered the requests received so far; a second signal stops it at once. \
SIGHUP rereads the settings and applies these: --max-connections, --max-value, --max-bulk, --idle-timeout, \
--slow-log, --slow-log-length, --memory-limit, --no-evict, --sync, --backup and --backup-memory. It also rereads the \
files of --passwords, --tls-cert and --tls-key.

Every option but --config, --print-config and --after-power-loss can also be set in the environment, \
as WOLLEMI_MAX_CONNECTIONS=5000 (lists with commas, switches with true or false), and in the file of --config, as \
max-connections = 5000. Flags override the environment; the environment overrides the file."
)]
pub struct Args {
    /// Address for memcached clients, by IP or name; may be given more than once
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:11211", value_parser = listen_on)]
    memcached: Vec<Addresses>,
    /// Address for Redis clients, by IP or name; may be given more than once
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6379", value_parser = listen_on)]
    redis: Vec<Addresses>,
    /// Do not serve Redis clients
    #[arg(long, conflicts_with_all = ["redis", "redis_unix"])]
    no_redis: bool,
    /// Also serve Redis clients on a unix socket that only its owner can use
    #[arg(long, value_name = "PATH")]
    redis_unix: Vec<PathBuf>,
    /// A file of `user:password` lines; clients must then log in
    #[arg(long, value_name = "FILE")]
    passwords: Option<PathBuf>,
    /// A PEM file with a certificate and its chain. TCP connections of both protocols then use TLS; unix sockets do not
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// A PEM file with the certificate's private key
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Maximum number of connections
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = from_one_to(u32::MAX as usize))]
    max_connections: usize,
    /// Maximum size of a memcached client's value, in bytes or with K or M after the number; at most 64 MiB less 24
    /// bytes
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = size)]
    max_value: u64,
    /// Maximum size of an argument of a Redis command, in the same form; at most 64 MiB less 24 bytes
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = size)]
    max_bulk: u64,
    /// When writes survive a power loss, in a pool of level disk. Answered writes always survive the end of the process
    /// [default: always at the levels disk and power, no at the level process]
    #[arg(long, value_name = "WHEN", value_enum)]
    sync: Option<SyncArg>,
    /// Close connections that are idle for this many seconds; 0: never
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    idle_timeout: u64,
    /// Maximum memory for the items, in bytes or with K, M, G or T after the number [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory_limit: Option<u64>,
    /// Refuse writes at the memory limit, instead of evicting items
    #[arg(short = 'M', long)]
    no_evict: bool,
    /// The file to which Redis's BGSAVE and SAVE write a backup of all databases, for `wollemi restore`. A new backup
    /// replaces the file once it is complete
    #[arg(long, value_name = "FILE")]
    backup: Option<PathBuf>,
    /// Maximum memory that a backup may take for clients' changes while it is written; a backup that needs more is
    /// aborted
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    backup_memory: u64,
    /// Also serve memcached clients on a unix socket that only its owner can use
    #[arg(long, value_name = "PATH")]
    unix: Vec<PathBuf>,
    /// Allow addresses that other machines can reach, without passwords
    #[arg(long)]
    allow_remote: bool,
    /// Threads that serve connections [default: one per processor]
    #[arg(long, value_name = "N", value_parser = from_one_to(server::MAX_THREADS))]
    threads: Option<usize>,
    /// Background threads that search for unused space after the start
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = from_one_to(256))]
    recovery_threads: usize,
    /// Serve metrics for Prometheus and `wollemi top` at this address
    #[arg(long, value_name = "HOST:PORT", value_parser = listen_on)]
    metrics: Option<Addresses>,
    /// Record commands that take at least this many microseconds in the slow log; -1: none
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 10_000, allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(-1..))]
    slow_log: i64,
    /// Maximum number of commands in the slow log
    #[arg(long, value_name = "N", default_value_t = 128)]
    slow_log_length: usize,
    /// Format of the server's log on the standard error stream
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = log::Format::Text)]
    log: log::Format,
    /// Minimum level of the events logged
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = log::Level::Info)]
    log_level: log::Level,
    /// A file of settings, in TOML [env: WOLLEMI_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the effective settings and their sources, as a file of settings, and exit
    #[arg(long)]
    print_config: bool,
    #[command(flatten)]
    new: NewMap,
}

/// The choices of `--sync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum SyncArg {
    /// Before they are answered: the answers of one turn wait for one disk sync
    Always,
    /// Within a second: a power loss loses at most the answered writes of the last second
    Everysec,
    /// When the operating system writes them: a power loss may lose the writes of the last half minute or more
    No,
}

impl From<SyncArg> for Sync {
    fn from(sync: SyncArg) -> Sync {
        match sync {
            SyncArg::Always => Sync::Always,
            SyncArg::Everysec => Sync::EverySecond,
            SyncArg::No => Sync::No,
        }
    }
}

/// The addresses that one name resolves to.
type Addresses = Box<[SocketAddr]>;

/// Resolves an address or a name. Drops addresses that this machine cannot bind, such as those of a family that it
/// lacks: `localhost` often resolves to `::1` even there.
fn listen_on(text: &str) -> Result<Addresses, String> {
    let all: Addresses = text
        .to_socket_addrs()
        .map_err(|error| error.to_string())?
        .collect();
    // A TCP socket would take a port of those that servers and clients get, and listen there.
    let usable = |address: &&SocketAddr| UdpSocket::bind((address.ip(), 0)).is_ok();
    let some: Addresses = all.iter().filter(usable).copied().collect();
    // If none is left, the server reports the error of the first.
    Ok(if some.is_empty() { all } else { some })
}

/// Returns a parser of numbers from 1 to `max`.
fn from_one_to(max: usize) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=max as u64)
}

/// Serves, or prints the settings, according to the command line, the environment and the settings file.
pub fn run() -> Result<Outcome, Failure> {
    let Settings { args, context, all } = gather()?;
    if args.print_config {
        let mut out = output();
        settings::show(&mut out, &all, context.json)?;
        out.flush()?;
        return Ok(Outcome::Done);
    }
    args.serve(&context)
}

/// Gathers the current settings.
fn gather() -> Result<Settings, Failure> {
    let argv: Vec<OsString> = std::env::args_os().collect();
    Settings::gather(argv, |name| std::env::var_os(name))
}

impl Args {
    /// Applies the arguments that a reload can change to the configuration.
    fn limits(&self, config: Config) -> Config {
        let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
        Config {
            max_connections: self.max_connections,
            max_value: bytes(self.max_value),
            max_bulk: bytes(self.max_bulk),
            idle_timeout: (self.idle_timeout > 0).then(|| Duration::from_secs(self.idle_timeout)),
            slow_threshold: self.slow_log,
            slow_length: self.slow_log_length,
            memory_limit: self.memory_limit,
            evicts: !self.no_evict,
            sync: self.sync.map(Sync::from),
            backup_to: self.backup.clone().map(|file| BackupTo {
                file,
                memory: self.backup_memory,
            }),
            ..config
        }
    }

    /// Serves until a signal stops the server.
    fn serve(self, context: &Context) -> Result<Outcome, Failure> {
        let _log = log::start(self.log, self.log_level).map_err(server::Error::Threads)?;
        let tls = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Some(Tls {
                certificate: certificate.clone(),
                key: key.clone(),
            }),
            (None, None) => None,
            _ => return Err(Failure::Usage("--tls-cert and --tls-key go together".into())),
        };
        let path = context.pool();
        let db = context
            .to_write()?
            .recovery_threads(self.recovery_threads)
            .open(&path)?;
        let name = context.map_or("memcached");
        let map = self.new.open(&db, name)?;
        let config = self.limits(Config::default());
        let config = Config {
            memcached: addresses(&self.memcached, self.unix),
            redis: match self.no_redis {
                true => Vec::new(),
                false => addresses(&self.redis, self.redis_unix),
            },
            map: name.to_owned(),
            index: self.new.index,
            host: Some(Arc::new(Program { pool: path.clone() })),
            passwords: self.passwords,
            tls,
            allow_remote: self.allow_remote,
            // Without a number, the server has one thread per processor.
            threads: self.threads.unwrap_or(0),
            metrics: self.metrics.and_then(|addresses| addresses.first().copied()),
            ..config
        };
        allocator::set_up();
        let mut server = Server::bind(config, &db)?;
        let stats = db.stats()?;
        let (entries, entries_exact) = count(&map)?;
        let ready = Ready {
            pool: &path,
            sync: (db.level() == Level::Disk).then(|| server.sync().name()),
            level: stats.level,
            map: name,
            index: map.index_kind().name(),
            entries,
            entries_exact,
            opened_in: stats.opened_in,
            recovery: stats.recovery.state,
            memcached: in_text(&server.addresses(Protocol::Memcached)),
            redis: in_text(&server.addresses(Protocol::Redis)),
            metrics: server.metrics_address(),
        };
        // The signals are handled before the line is printed: a program that reads the line may send one at once.
        let shutdown = Shutdown::on_signals();
        server.hear(&shutdown)?;
        log_output_error(announce(&ready, context.json));
        notify::ready();
        let watching = recovery::watch(&db);
        let report = server.run(&shutdown)?;
        drop((watching, map));
        match db.close() {
            // A second signal has ended the server before its threads: the last of them closes the pool.
            Err(wollemi::Error::InUse) => {}
            closed => closed?,
        }
        if !context.json {
            log_output_error(say_goodbye(&report));
        }
        Ok(Outcome::Done)
    }
}

/// Returns all addresses of a protocol.
fn addresses(hosts: &[Addresses], files: Vec<PathBuf>) -> Vec<Address> {
    let hosts = hosts.iter().flatten().copied().map(Address::Tcp);
    hosts.chain(files.into_iter().map(Address::Unix)).collect()
}

fn in_text(addresses: &[Address]) -> Vec<String> {
    addresses.iter().map(Address::to_string).collect()
}
