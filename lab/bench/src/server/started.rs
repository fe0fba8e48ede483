//! The server processes, all on the servers' core.

use super::words::Protocol;
use crate::{Error, machine};
use serde::Deserialize;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The name of our server in messages and figures.
pub const OURS: &str = "wollemi";

/// The maximum wait until a server listens.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A server process that listens; killed on drop.
pub struct Started {
    child: Child,
    pub name: &'static str,
    /// Its protocols and addresses.
    pub listens: Vec<(Protocol, SocketAddr)>,
    /// Its version.
    pub version: String,
    /// What its answer to a `set` guarantees.
    pub promise: String,
}

impl Drop for Started {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The line that our server prints when it is ready.
#[derive(Deserialize)]
struct Ready {
    level: String,
    memcached: Vec<SocketAddr>,
    redis: Vec<SocketAddr>,
}

/// Starts our server over a new pool in this directory, with additional arguments.
pub fn ours(program: &Path, directory: &Path, more: &[&str], core: usize) -> Result<Started, Error> {
    let mut command = Command::new(program);
    command
        .args(["serve", "--json", "--threads", "1", "--log-level", "error"])
        .args(["--memcached", "127.0.0.1:0", "--redis", "127.0.0.1:0"])
        .arg("--pool")
        .arg(directory.join("pool"))
        .args(more)
        .current_dir(directory)
        .stdout(Stdio::piped());
    let child = spawn(&mut command, core).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::NoServer(program.to_owned()),
        _ => failed(OURS, error),
    })?;
    let mut started = Started {
        child,
        name: OURS,
        listens: Vec::new(),
        version: format!("{OURS} {}", env!("CARGO_PKG_VERSION")),
        promise: String::new(),
    };
    let mut line = String::new();
    if let Some(out) = started.child.stdout.take() {
        let read = BufReader::new(out).read_line(&mut line);
        read.map_err(|error| failed(OURS, error))?;
    }
    let ready: Ready = serde_json::from_str(&line)
        .map_err(|_| failed(OURS, std::io::Error::other("ended before it was ready")))?;
    started.promise = format!("crash-safe at level {}", ready.level);
    let memcached = ready.memcached.into_iter().map(|at| (Protocol::Memcached, at));
    let redis = ready.redis.into_iter().map(|at| (Protocol::Redis, at));
    started.listens = memcached.take(1).chain(redis.take(1)).collect();
    Ok(started)
}

/// Starts memcached with one thread and 8 GiB for items; `None` if it is not installed.
pub fn memcached(program: &OsStr, core: usize) -> Result<Option<Started>, Error> {
    let mut args = vec!["-l", "127.0.0.1", "-t", "1", "-m", "8192"];
    // memcached runs as root only with this flag.
    if rustix::process::geteuid().is_root() {
        args.extend(["-u", "root"]);
    }
    let words = ("-p", "-V", Protocol::Memcached);
    peer("memcached", program, &args, &std::env::temp_dir(), words, core)
}

/// Starts Redis in this directory. It writes nothing to disk unless `log` says so. `None` if it is not installed.
pub fn redis(program: &OsStr, log: &[&str], directory: &Path, core: usize) -> Result<Option<Started>, Error> {
    let mut args = vec!["--bind", "127.0.0.1", "--save", ""];
    args.extend(if log.is_empty() {
        &["--appendonly", "no"]
    } else {
        log
    });
    let words = ("--port", "--version", Protocol::Redis);
    peer("redis", program, &args, directory, words, core)
}

/// Starts a peer. The tuple holds its options for the port and for printing its version, and its protocol.
fn peer(
    name: &'static str,
    program: &OsStr,
    args: &[&str],
    directory: &Path,
    (port, version, protocol): (&str, &str, Protocol),
    core: usize,
) -> Result<Option<Started>, Error> {
    let version = match Command::new(program).arg(version).output() {
        Ok(output) => first_words(&output.stdout),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(name, error)),
    };
    let address = free_address().map_err(|error| failed(name, error))?;
    let mut command = Command::new(program);
    command
        .args(args)
        .args([port, &address.port().to_string()])
        .current_dir(directory)
        .stdout(Stdio::null());
    let child = spawn(&mut command, core).map_err(|error| failed(name, error))?;
    let mut started = Started {
        child,
        name,
        listens: vec![(protocol, address)],
        version,
        promise: "volatile".to_owned(),
    };
    let begin = Instant::now();
    while TcpStream::connect(address).is_err() {
        let ended = !matches!(started.child.try_wait(), Ok(None));
        if ended || begin.elapsed() > TIMEOUT {
            return Err(failed(name, std::io::Error::other("the server does not listen")));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(Some(started))
}

/// Starts a process pinned to this core: it inherits the affinity of the thread that starts it.
fn spawn(command: &mut Command, core: usize) -> std::io::Result<Child> {
    let started = std::thread::scope(|scope| {
        let starts = scope.spawn(|| {
            machine::pin_thread(core);
            command.stdin(Stdio::null()).stderr(Stdio::null()).spawn()
        });
        starts.join()
    });
    started.unwrap_or_else(|_| Err(std::io::Error::other("the server could not be started")))
}

/// Returns a loopback address with a port that was free.
fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// Returns the first three words of a version such as `Redis server v=7.0.15 sha=…`.
fn first_words(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let words: Vec<&str> = text.split_whitespace().take(3).collect();
    words.join(" ")
}

fn failed(server: &'static str, error: std::io::Error) -> Error {
    Error::Peer {
        peer: server,
        what: error.to_string(),
    }
}
