//! `serve`: the pool for memcached and Redis clients.

use super::{in_words, output};
use crate::context::{Context, NewMap};
use crate::exit::{Failure, Outcome};
use clap::builder::RangedU64ValueParser;
use indicatif::HumanCount;
use serde::Serialize;
use server::{Address, Commit, Config, Maps, Protocol, Report, Server, Shutdown};
use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wollemi::{Db, Map, RecoveryState};

/// How long the start may be held up by counting entries.
const COUNTING: Duration = Duration::from_millis(20);

/// The arguments of `serve`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Items are in the map `memcached`: the client's value after a header of 24 bytes. \
Redis's database 0 is that map, database N the map `memcached-N`. \
SIGTERM and SIGINT stop the server when it has answered what has arrived; a second one stops it at once."
)]
pub struct Args {
    /// Where to listen for memcached clients, by address or name; may be given more than once
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:11211", value_parser = listen_on)]
    memcached: Vec<Addresses>,
    /// Where to listen for Redis clients; may be given more than once
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6379", value_parser = listen_on)]
    redis: Vec<Addresses>,
    /// Do not serve Redis clients
    #[arg(long, conflicts_with_all = ["redis", "redis_unix"])]
    no_redis: bool,
    /// Also serve Redis clients on a unix socket, whose file is made for its owner alone
    #[arg(long, value_name = "PATH")]
    redis_unix: Vec<PathBuf>,
    /// A file of `user:password` lines: clients must then say who they are
    #[arg(long, value_name = "FILE")]
    passwords: Option<PathBuf>,
    /// The most connections at once
    #[arg(long, value_name = "N", default_value_t = 1024)]
    max_connections: usize,
    /// Close connections that are idle for so many seconds; 0: never
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    idle_timeout: u64,
    /// The most bytes that the items may take: a number, or with K, M, G or T after it [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = crate::context::size)]
    memory_limit: Option<u64>,
    /// Refuse what there is no room for within the limit, and drop nothing
    #[arg(short = 'M', long, requires = "memory_limit")]
    no_evict: bool,
    /// Also serve memcached clients on a unix socket, whose file is made for its owner alone
    #[arg(long, value_name = "PATH")]
    unix: Vec<PathBuf>,
    /// Allow addresses that other machines can reach, without passwords
    #[arg(long)]
    allow_remote: bool,
    /// Threads that serve connections [default: one a processor]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = up_to(server::MAX_THREADS))]
    threads: usize,
    /// Threads that look for unused space in the background after the start
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = up_to(256))]
    recovery_threads: usize,
    #[command(flatten)]
    new: NewMap,
}

/// The addresses of one name.
type Addresses = Box<[SocketAddr]>;

/// Looks up an address, or a name's addresses, without those of a family that this machine does not have: `localhost`
/// often stands for `::1` even there.
fn listen_on(text: &str) -> Result<Addresses, String> {
    let all: Addresses = text
        .to_socket_addrs()
        .map_err(|error| error.to_string())?
        .collect();
    let usable = |address: &&SocketAddr| TcpListener::bind((address.ip(), 0)).is_ok();
    let some: Addresses = all.iter().filter(usable).copied().collect();
    // With none, the server will say what is wrong with the first.
    Ok(if some.is_empty() { all } else { some })
}

/// Reads a number of threads.
fn up_to(most: usize) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(..=most as u64)
}

/// What the server says when it is ready.
#[derive(Serialize)]
struct Ready<'a> {
    pool: &'a Path,
    level: String,
    map: &'a str,
    index: &'static str,
    entries: u64,
    /// Whether these are all entries, or as many as could be counted without making clients wait.
    entries_exact: bool,
    opened_in: f64,
    recovery: RecoveryState,
    memcached: Vec<String>,
    redis: Vec<String>,
}

impl Args {
    /// Serves until told to stop.
    pub fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let path = context.pool();
        let db = context
            .options()
            .recovery_threads(self.recovery_threads)
            .open(&path)?;
        let name = context.map_or("memcached");
        let map = self.new.open(&db, name)?;
        let config = Config {
            memcached: addresses(&self.memcached, self.unix),
            redis: match self.no_redis {
                true => Vec::new(),
                false => addresses(&self.redis, self.redis_unix),
            },
            maps: Some(maps(&db, name, self.new)),
            commit: Some(commit(&db, name)),
            passwords: self.passwords,
            max_connections: self.max_connections,
            idle_timeout: (self.idle_timeout > 0).then(|| Duration::from_secs(self.idle_timeout)),
            memory_limit: self.memory_limit,
            evicts: !self.no_evict,
            allow_remote: self.allow_remote,
            threads: self.threads,
            more_stats: Some(Arc::new({
                let db = db.clone();
                move || stats_lines(&db)
            })),
            ..Config::default()
        };
        let server = Server::bind(config, map.index())?;
        let stats = db.stats()?;
        let (entries, entries_exact) = count(&map)?;
        let ready = Ready {
            pool: &path,
            level: stats.level,
            map: name,
            index: map.index_kind().name(),
            entries,
            entries_exact,
            opened_in: stats.opened_in,
            recovery: stats.recovery.state,
            memcached: in_text(&server.addresses(Protocol::Memcached)),
            redis: in_text(&server.addresses(Protocol::Redis)),
        };
        heard_or_not(announce(&ready, context.json))?;
        let report = server.run(&Shutdown::on_signals())?;
        if !context.json {
            heard_or_not(say_goodbye(&report))?;
        }
        Ok(Outcome::Done)
    }
}

/// The maps of Redis's databases behind the first.
fn maps(db: &Db, name: &str, new: NewMap) -> Maps {
    let (db, name) = (db.clone(), name.to_owned());
    Arc::new(move |number, create| {
        let name = map_name(&name, number);
        let map = match create {
            true => new
                .open(&db, &name)
                .map(Some)
                .map_err(|error| error.to_string())?,
            false => db.find_map(&name).map_err(|error| error.to_string())?,
        };
        Ok(map.map(|map| map.index()))
    })
}

/// The map of a database above 0.
fn map_name(first: &str, number: usize) -> String {
    format!("{first}-{number}")
}

/// What commits a transaction: a batch over the databases' maps.
fn commit(db: &Db, name: &str) -> Commit {
    let (db, name) = (db.clone(), name.to_owned());
    Arc::new(move |changes| {
        let mut maps: [Option<Map>; server::DATABASES] = Default::default();
        let mut batch = db.batch();
        for change in changes {
            let map = match &mut maps[change.database] {
                Some(map) => map,
                none => {
                    let name = match change.database {
                        0 => name.clone(),
                        number => map_name(&name, number),
                    };
                    let found = db.find_map(&name).map_err(|error| error.to_string())?;
                    none.insert(found.ok_or_else(|| format!("map '{name}' is gone"))?)
                }
            };
            match change.value {
                Some(value) => batch.upsert(map, change.key, value),
                None => batch.remove(map, change.key),
            };
        }
        // Nothing was expected, so it is carried out.
        batch.commit().map(drop).map_err(|error| error.to_string())
    })
}

/// All that a protocol listens on.
fn addresses(hosts: &[Addresses], files: Vec<PathBuf>) -> Vec<Address> {
    let hosts = hosts.iter().flatten().copied().map(Address::Tcp);
    hosts.chain(files.into_iter().map(Address::Unix)).collect()
}

fn in_text(addresses: &[Address]) -> Vec<String> {
    addresses.iter().map(Address::to_string).collect()
}

/// A server serves its clients, whether or not anybody reads what it says.
fn heard_or_not(said: io::Result<()>) -> io::Result<()> {
    match said {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        said => said,
    }
}

fn say_goodbye(report: &Report) -> io::Result<()> {
    let mut out = output();
    writeln!(
        out,
        "stopped after {:.1} s: {} connections, {} gets, {} sets",
        report.elapsed.as_secs_f64(),
        HumanCount(report.connections),
        HumanCount(report.gets),
        HumanCount(report.sets)
    )?;
    out.flush()
}

fn announce(ready: &Ready<'_>, json: bool) -> io::Result<()> {
    let mut out = output();
    if json {
        serde_json::to_writer(&mut out, ready).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        writeln!(
            out,
            "pool {}, level {}, {}{}, opened in {:.1} ms, recovery {}; memcached on {}{}",
            ready.pool.display(),
            ready.level,
            if ready.entries_exact { "" } else { "more than " },
            in_words(ready.entries),
            ready.opened_in * 1e3,
            ready.recovery,
            ready.memcached.join(", "),
            match ready.redis.is_empty() {
                true => String::new(),
                false => format!("; redis on {}", ready.redis.join(", ")),
            }
        )?;
    }
    out.flush()
}

/// Counts items, for a moment: how many, and whether these are all. The server's own record, under the empty key, is
/// none.
fn count(map: &Map) -> Result<(u64, bool), Failure> {
    const STRIDE: u64 = 1024;
    let started = Instant::now();
    let reader = map.reader();
    let (mut entries, mut all) = (0, true);
    reader.visit(.., |key, _| {
        entries += u64::from(!key.is_empty());
        all = entries % STRIDE != 0 || started.elapsed() < COUNTING;
        if all {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    Ok((entries, all))
}

/// What the protocol's `stats` says of the pool.
fn stats_lines(db: &Db) -> Vec<(String, String)> {
    let Ok(stats) = db.stats() else {
        return Vec::new();
    };
    let lines = [
        ("pool_level", stats.level),
        ("pool_generation", stats.generation.to_string()),
        ("pool_bytes", stats.space.reserved.to_string()),
        ("pool_used_bytes", stats.space.used.to_string()),
        ("pool_free_bytes", stats.space.free.to_string()),
        ("pool_given_back_bytes", stats.space.given_back.to_string()),
        ("pool_unswept_bytes", stats.space.unswept.to_string()),
        ("pool_recovery", stats.recovery.state.to_string()),
    ];
    lines.map(|(name, value)| (name.to_owned(), value)).into()
}
