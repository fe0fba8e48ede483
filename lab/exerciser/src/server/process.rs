//! The server as a process of its own.

use super::PATIENCE;
use super::wire::{Connection, Protocol};
use crate::random::Random;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running server.
pub(super) struct Server {
    child: Child,
    memcached: String,
    redis: String,
    directory: PathBuf,
}

/// Names of a server's files in its directory.
pub(super) const LOG: &str = "server.log";
pub(super) const BACKUP: &str = "server.backup";
pub(super) const MEMCACHED_SOCKET: &str = "memcached.socket";
pub(super) const REDIS_SOCKET: &str = "redis.socket";

impl Server {
    /// Starts the program in this directory, over this pool, and waits until it serves.
    pub fn start(
        program: &Path,
        directory: &Path,
        pool: &Path,
        arguments: &[String],
    ) -> Result<Server, String> {
        let failed =
            |error: io::Error| format!("the server cannot be started: {}: {error}", program.display());
        let log = File::create(directory.join(LOG)).map_err(failed)?;
        let mut child = Command::new(program)
            .args([
                "serve",
                "--json",
                "--memcached",
                "127.0.0.1:0",
                "--redis",
                "127.0.0.1:0",
            ])
            .arg("--pool")
            .arg(pool)
            .arg("--unix")
            .arg(directory.join(MEMCACHED_SOCKET))
            .arg("--redis-unix")
            .arg(directory.join(REDIS_SOCKET))
            .arg("--backup")
            .arg(directory.join(BACKUP))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(failed)?;
        let stdout = child.stdout.take();
        let mut server = Server {
            child,
            memcached: String::new(),
            redis: String::new(),
            directory: directory.to_owned(),
        };
        let mut line = String::new();
        if let Some(stdout) = stdout {
            BufReader::new(stdout).read_line(&mut line).map_err(failed)?;
        }
        let ready: serde_json::Value = serde_json::from_str(&line).map_err(|_| {
            let (arguments, log) = (arguments.join(" "), server.log());
            format!(
                "the server does not start with {arguments}: it says '{}'{log}",
                line.trim_end()
            )
        })?;
        let address = |of: &str| ready[of][0].as_str().unwrap_or_default().to_owned();
        server.memcached = address("memcached");
        server.redis = address("redis");
        Ok(server)
    }

    /// Connects over TCP or over a Unix socket.
    pub fn connect(&self, protocol: Protocol, random: &mut Random) -> io::Result<Connection> {
        let (address, socket) = match protocol {
            Protocol::Memcached => (&self.memcached, MEMCACHED_SOCKET),
            Protocol::Redis => (&self.redis, REDIS_SOCKET),
        };
        match random.one_in(2) {
            true => Connection::tcp(protocol, address),
            false => Connection::unix(protocol, &self.directory.join(socket)),
        }
    }

    /// Returns whether the server has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns the last lines of the server's log.
    pub fn log(&self) -> String {
        let log = std::fs::read(self.directory.join(LOG)).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().rev().take(8).collect();
        let lines = lines.into_iter().rev().map(|line| format!("\n    log: {line}"));
        lines.collect()
    }

    /// Kills the server by `kill -9`.
    pub fn kill(mut self) -> Result<(), String> {
        self.child.kill().map_err(|error| error.to_string())?;
        self.child.wait().map_err(|error| error.to_string())?;
        Ok(())
    }

    /// Stops the server by SIGTERM, and waits for its end, which must be a success.
    pub fn stop(mut self) -> Result<(), String> {
        kill_process(Pid::from_child(&self.child), Signal::TERM).map_err(|error| error.to_string())?;
        let started = Instant::now();
        loop {
            match self.child.try_wait().map_err(|error| error.to_string())? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => {
                    return Err(format!(
                        "the server, stopped by SIGTERM, ends with {status}{}",
                        self.log()
                    ));
                }
                None if started.elapsed() > PATIENCE => return Err("the server does not stop".into()),
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail without harm if the server has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
