//! Redis, which loads its append-only file or its snapshot before it answers.

use super::ours::LOAD_BATCH;
use super::pairs::Shape;
use crate::Error;
use crate::peers::kept::Pair;
use crate::server::started::{self, Started};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

/// Time between two requests while Redis loads.
const PAUSE: Duration = Duration::from_millis(1);

/// How Redis keeps its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// The append-only file, synced before each answer: all that was answered is in it when the process is killed.
    Aof,
    /// A snapshot, saved after the filling.
    Rdb,
}

impl Persistence {
    pub fn name(self) -> &'static str {
        match self {
            Persistence::Aof => "redis, AOF",
            Persistence::Rdb => "redis, RDB",
        }
    }

    fn arguments(self) -> &'static [&'static str] {
        match self {
            Persistence::Aof => &["--appendonly", "yes", "--appendfsync", "always"],
            Persistence::Rdb => &["--appendonly", "no"],
        }
    }
}

/// A Redis server with its data in a directory, and a connection to it. The process is killed on drop.
pub struct Redis {
    socket: BufReader<TcpStream>,
    name: &'static str,
    _server: Started,
}

impl Redis {
    /// Starts the server; `None` if it is not installed.
    pub fn start(persistence: Persistence, program: &OsStr, place: &Path) -> Result<Option<Redis>, Error> {
        let Some(server) = started::redis(program, persistence.arguments(), place, 0)? else {
            return Ok(None);
        };
        let name = persistence.name();
        let socket = TcpStream::connect(server.listens[0].1).map_err(|error| failed(name, error))?;
        Ok(Some(Redis {
            socket: BufReader::new(socket),
            name,
            _server: server,
        }))
    }

    /// Writes all keys. They are in the files when this returns.
    pub fn fill(&mut self, persistence: Persistence, shape: Shape, keys: usize) -> Result<(), Error> {
        shape.all(keys, LOAD_BATCH, |pairs| self.set(pairs))?;
        if persistence == Persistence::Rdb {
            self.send(&command(&[b"SAVE"]))?;
            self.expect_ok()?;
        }
        Ok(())
    }

    fn set(&mut self, pairs: &[Pair<'_>]) -> Result<(), Error> {
        let requests = pairs.iter().map(|(key, value)| command(&[b"SET", key, value]));
        self.send(&requests.collect::<Vec<_>>().concat())?;
        pairs.iter().try_for_each(|_| self.expect_ok())
    }

    /// Looks up a key, again and again while the server loads its data.
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        loop {
            self.send(&command(&[b"GET", key]))?;
            let line = self.line()?;
            if line.starts_with("-LOADING") {
                std::thread::sleep(PAUSE);
                continue;
            }
            return match line.strip_prefix('$').map(str::parse::<usize>) {
                Some(Ok(len)) => {
                    let mut value = vec![0; len + 2];
                    let read = self.socket.read_exact(&mut value);
                    read.map_err(|error| failed(self.name, error))?;
                    value.truncate(len);
                    Ok(Some(value))
                }
                _ if line == "$-1" => Ok(None),
                _ => Err(self.wrong(&line)),
            };
        }
    }

    fn send(&mut self, requests: &[u8]) -> Result<(), Error> {
        let sent = self.socket.get_mut().write_all(requests);
        sent.map_err(|error| failed(self.name, error))
    }

    fn line(&mut self) -> Result<String, Error> {
        let mut line = String::new();
        let read = self.socket.read_line(&mut line);
        read.map_err(|error| failed(self.name, error))?;
        Ok(line.trim_end().to_owned())
    }

    fn expect_ok(&mut self) -> Result<(), Error> {
        let line = self.line()?;
        match &*line {
            "+OK" => Ok(()),
            _ => Err(self.wrong(&line)),
        }
    }

    fn wrong(&self, line: &str) -> Error {
        Error::Wrong(format!("{}: the answer {line:?}", self.name))
    }
}

/// Returns a request in Redis's protocol.
fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).into_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn failed(peer: &'static str, error: std::io::Error) -> Error {
    Error::Peer {
        peer,
        what: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_as_redis_reads_them() {
        assert_eq!(
            command(&[b"GET", b"a\r\n"]),
            b"*2\r\n$3\r\nGET\r\n$3\r\na\r\n\r\n"
        );
    }
}
