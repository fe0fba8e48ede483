//! Pipelined sets of present keys over both protocols, at levels `process` and `disk`, to count their instructions
//! (`docs/server.md`).
//!
//! ```text
//! cargo build --profile profiling -p wollemi-server --example set_steps
//! valgrind --tool=callgrind --callgrind-out-file=set_steps.out --zero-before='set_steps::set_all' \
//!     --toggle-collect='wollemi_server::net::worker::Connection<P>::begin::{{closure}}' \
//!     target/profiling/examples/set_steps redis process 16 DIRECTORY
//! callgrind_annotate --inclusive=yes set_steps.out
//! ```
//!
//! `set_all` begins twice, to load the keys and to set some of them again; only the latter is counted. `begin` runs a
//! connection: parsing, carrying out, answering, and its part of the sockets. (`serve`, which it calls, is inlined into
//! it in some builds.)
//!
//! The pool is in memory, because pools in files do not work under valgrind. The log is in the directory, on a disk; sets
//! do not wait for its syncs. The program prints how long they took.

use log::Directory;
use pmem::{Hardware, Pool, PoolOptions};
use std::error::Error;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use wollemi::{Db, Durability, OnDisk, Options};
use wollemi_server::{Address, Config, Server, Shutdown};

const KEYS: u64 = 300_000;
const SETS: u64 = 100_000;
const VALUE: &str = "a value of thirty-two characters";

/// Keys per pipeline while they are loaded.
const LOADED: u64 = 64;

type Outcome<T> = Result<T, Box<dyn Error>>;

#[derive(Clone, Copy)]
enum Protocol {
    Redis,
    Memcached,
}

impl Protocol {
    fn request(self, number: u64) -> String {
        let len = VALUE.len();
        match self {
            Protocol::Redis => {
                format!("*3\r\n$3\r\nSET\r\n$16\r\nkey:{number:012}\r\n${len}\r\n{VALUE}\r\n")
            }
            Protocol::Memcached => format!("set key:{number:012} 0 0 {len}\r\n{VALUE}\r\n"),
        }
    }

    fn answer(self) -> &'static str {
        match self {
            Protocol::Redis => "+OK\r\n",
            Protocol::Memcached => "STORED\r\n",
        }
    }
}

/// Returns distinct numbers in no order.
fn scrambled(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// Sends sets of these keys in pipelines, and waits for the answers to each.
#[inline(never)]
fn set_all(protocol: Protocol, keys: &[u64], pipeline: u64, at: &Path) -> Outcome<()> {
    let mut socket = UnixStream::connect(at)?;
    for keys in keys.chunks(pipeline as usize) {
        let requests: String = keys.iter().map(|&key| protocol.request(key)).collect();
        socket.write_all(requests.as_bytes())?;
        let expected = protocol.answer().repeat(keys.len());
        let mut answers = vec![0; expected.len()];
        socket.read_exact(&mut answers)?;
        if answers != expected.as_bytes() {
            return Err(String::from_utf8_lossy(&answers).into());
        }
    }
    Ok(())
}

fn open(level: &str, directory: &Path) -> Outcome<Db> {
    let options = PoolOptions {
        max_size: 1 << 30,
        ..PoolOptions::default()
    };
    let pool = Pool::anonymous(&options, Hardware::detect())?;
    let options = Options::new().durability(Durability::Eventual);
    match level {
        "process" => Ok(options.open_pool(pool)?),
        "disk" => {
            let disk = Arc::new(Directory::open(directory.join("log"))?);
            Ok(OnDisk::new(options).open(pool, disk)?)
        }
        _ => Err(USAGE.into()),
    }
}

/// Loads the keys, then sets some of them again.
fn measure(protocol: Protocol, pipeline: u64, at: &Path) -> Outcome<()> {
    let all: Vec<_> = (0..KEYS).collect();
    let some: Vec<_> = (0..SETS).map(|number| scrambled(number) % KEYS).collect();
    set_all(protocol, &all, LOADED, at)?;
    let begin = Instant::now();
    set_all(protocol, &some, pipeline, at)?;
    let nanos = begin.elapsed().as_nanos() as u64 / SETS;
    println!("{SETS} sets over {KEYS} keys, {pipeline} at a time: {nanos} ns each");
    Ok(())
}

const USAGE: &str = "usage: set_steps redis|memcached process|disk PIPELINE DIRECTORY";

fn main() -> Outcome<()> {
    let [protocol, level, pipeline, place] = &std::env::args().skip(1).collect::<Vec<_>>()[..] else {
        return Err(USAGE.into());
    };
    let protocol = match protocol.as_str() {
        "redis" => Protocol::Redis,
        "memcached" => Protocol::Memcached,
        _ => return Err(USAGE.into()),
    };
    let pipeline = pipeline.parse()?;
    let directory = tempfile::tempdir_in(place)?;
    let db = open(level, directory.path())?;
    let sockets = ["redis", "memcached"].map(|name| directory.path().join(name));
    let config = Config {
        redis: vec![Address::Unix(sockets[0].clone())],
        memcached: vec![Address::Unix(sockets[1].clone())],
        threads: 1,
        sweep_pause: None,
        ..Config::default()
    };
    let server = Server::bind(config, &db)?;
    let shutdown = Shutdown::new();
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| server.run(&shutdown));
        let at = match protocol {
            Protocol::Redis => &sockets[0],
            Protocol::Memcached => &sockets[1],
        };
        let measured = measure(protocol, pipeline, at);
        shutdown.stop();
        serving.join().map_err(|_| "the server has panicked")??;
        measured
    })
}
