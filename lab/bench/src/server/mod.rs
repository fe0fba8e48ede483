//! `bench server`: our server beside memcached and Redis, each in its own protocol.
//!
//! I1 One client on its own core sends the same requests to all servers, in the same order and loop, over the same
//!    number of connections. The servers share one other core, and only one of them gets requests at a time.
//! I2 Each round measures all servers in turn, and the servers take turns in going first. Ratios are formed within a
//!    round; their median and extremes over the rounds are reported.
//! I3 Every answer is compared with the expected one.
//! I4 Cache-miss time is measured before and after each round, on the client's core, and a round in which it changed is
//!    marked.
//!
//! Not here: the requests (`words`), the loop (`client`), the processes (`started`), the output (`report`).

pub mod client;
pub mod report;
pub mod started;
pub mod words;

use crate::Error;
use crate::limit::Calibrator;
use crate::machine::{self, Machine};
use crate::progress::Progress;
use crate::random::Random;
use crate::store::Place;
use client::{Client, Plan};
use report::{Figure, Figures};
use started::Started;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use words::Operation;

/// Measures the server beside memcached and Redis.
#[derive(Debug, clap::Args)]
pub struct ServerArgs {
    /// Number of keys
    #[arg(long, default_value = "1M", value_parser = crate::count)]
    keys: usize,
    /// Bytes per value
    #[arg(long, default_value_t = 32, value_parser = length)]
    value: usize,
    /// Connections
    #[arg(long, default_value_t = 8, value_parser = crate::threads)]
    connections: usize,
    /// Requests that a connection sends before it waits for their answers
    #[arg(long, value_delimiter = ',', default_value = "1,16,64", value_parser = crate::count)]
    pipelines: Vec<usize>,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 2.0, value_parser = crate::seconds)]
    seconds: f64,
    /// Rounds
    #[arg(long, default_value_t = 5, value_parser = crate::count)]
    rounds: usize,
    /// The core of the servers, as an index among the cores that this process may use
    #[arg(long, default_value_t = 0)]
    server_core: usize,
    /// The core of the client
    #[arg(long, default_value_t = 1)]
    client_core: usize,
    /// Directory for our server's pool, in a folder that is removed afterwards [default: the system's temporary
    /// directory]
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
    /// Wollemi's server program [default: the `wollemi` beside this program]
    #[arg(long, value_name = "PROGRAM")]
    wollemi: Option<PathBuf>,
    /// memcached's server program
    #[arg(long, value_name = "PROGRAM", default_value = "memcached")]
    memcached: OsString,
    /// Redis's server program
    #[arg(long, value_name = "PROGRAM", default_value = "redis-server")]
    redis: OsString,
    /// The seed of the keys' order
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print lines of JSON
    #[arg(long)]
    json: bool,
}

/// Requests per turn while loading.
const LOAD_PIPELINE: usize = 64;

/// Parses a value's length.
fn length(text: &str) -> Result<usize, String> {
    const MAX: usize = 1 << 20;
    match crate::count(text) {
        Ok(length) if length <= MAX => Ok(length),
        _ => Err(format!("not a length from 1 to {MAX}")),
    }
}

/// Runs the rounds and prints their results.
pub fn run(args: &ServerArgs) -> Result<(), Error> {
    let progress = Progress::new();
    let directory = crate::directory(args.dir.as_deref())?;
    let program = match &args.wollemi {
        Some(program) => program.clone(),
        None => std::env::current_exe()
            .map_err(Error::Filler)?
            .with_file_name("wollemi"),
    };
    let mut servers = vec![started::ours(&program, directory.path(), &[], args.server_core)?];
    for (name, peer) in [
        (
            "memcached",
            started::memcached(&args.memcached, args.server_core)?,
        ),
        (
            "redis",
            started::redis(&args.redis, &[], &std::env::temp_dir(), args.server_core)?,
        ),
    ] {
        match peer {
            Some(peer) => servers.push(peer),
            None => {
                progress.clear();
                eprintln!("{name}: no such program, left out");
            }
        }
    }
    // Before this thread is pinned, so that all cores are counted.
    let machine = Machine::detect();
    machine::pin_thread(args.client_core);
    let mut clients = connect(args, &servers)?;
    for (endpoint, client) in &mut clients {
        progress.say(format_args!("storing {} keys in {}", args.keys, endpoint.0));
        load(args.keys, args.value, client)?;
    }
    let mut calibrator = Calibrator::for_keys(args.keys, &Place::Anonymous, true)?.on_core(args.client_core);
    let mut misses = calibrator.misses()?;
    let mut figures = Figures::default();
    for round in 0..args.rounds {
        progress.say(format_args!("round {} of {}", round + 1, args.rounds));
        for (i, &pipeline) in args.pipelines.iter().enumerate() {
            for operation in [Operation::Get, Operation::Set] {
                for turn in 0..clients.len() {
                    let place = (round + i + turn) % clients.len();
                    let (endpoint, client) = &mut clients[place];
                    let plan = Plan {
                        operation,
                        pipeline,
                        length: args.value,
                    };
                    let time = Duration::from_secs_f64(args.seconds);
                    let seed = args.seed.wrapping_add(round as u64);
                    let figure = measure(plan, args.keys, time, seed, client)?;
                    figures.note(*endpoint, operation, pipeline, figure);
                }
            }
        }
        let pace = calibrator.since(misses)?;
        misses = pace.after;
        figures.paces.push(pace);
    }
    progress.clear();
    report::print(args, &servers, &figures, &machine)
}

/// A server's name and a protocol.
type Endpoint = (&'static str, words::Protocol);

/// Connects a client to each server and protocol.
fn connect(args: &ServerArgs, servers: &[Started]) -> Result<Vec<(Endpoint, Client)>, Error> {
    let all = servers.iter().flat_map(|server| {
        let listens = server.listens.iter();
        listens.map(|&(protocol, address)| (server.name, protocol, address))
    });
    all.map(|(name, protocol, address)| {
        let client = Client::connect(name, protocol, address, args.connections)?;
        Ok(((name, protocol), client))
    })
    .collect()
}

/// Stores all keys.
pub fn load(keys: usize, length: usize, client: &mut Client) -> Result<(), Error> {
    let plan = Plan {
        operation: Operation::Set,
        pipeline: LOAD_PIPELINE,
        length,
    };
    let (mut next, mut turns) = (0, keys.div_ceil(LOAD_PIPELINE));
    let number = || {
        next += 1;
        (next - 1) % keys as u64
    };
    let more = |_| {
        let any = turns > 0;
        turns = turns.saturating_sub(1);
        any
    };
    client.ask(plan, number, more).map(drop)
}

/// Sends requests for random keys below `keys` for this time.
pub fn measure(
    plan: Plan,
    keys: usize,
    time: Duration,
    seed: u64,
    client: &mut Client,
) -> Result<Figure, Error> {
    let (mut random, mut begin) = (Random::new(seed), None);
    let outcome = client.ask(
        plan,
        || random.below(keys as u64),
        |now| now - *begin.get_or_insert(now) < time,
    )?;
    Ok(Figure {
        kops: outcome.ops as f64 / outcome.elapsed.as_secs_f64() / 1e3,
        p50_us: outcome.latencies.quantile(0.5) as f64 / 1e3,
        p99_us: outcome.latencies.quantile(0.99) as f64 / 1e3,
    })
}
