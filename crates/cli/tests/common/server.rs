//! A server as a process of its own, and a client of lines.

use super::Pool;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A running server.
pub struct Server {
    pub child: Child,
    pub address: String,
    pub redis: String,
    /// Its first line.
    pub ready: serde_json::Value,
}

impl Server {
    pub fn start(pool: &Pool) -> Server {
        Server::start_on(pool, "127.0.0.1:0")
    }

    pub fn start_on(pool: &Pool, address: &str) -> Server {
        let mut child = pool
            .command([
                "serve",
                "--memcached",
                address,
                "--redis",
                "127.0.0.1:0",
                "--json",
            ])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped"))
            .read_line(&mut line)
            .expect("a first line");
        let ready: serde_json::Value = serde_json::from_str(&line).expect("one JSON object");
        let address = ready["memcached"][0].as_str().expect("an address").to_owned();
        let redis = ready["redis"][0].as_str().expect("an address").to_owned();
        Server {
            child,
            address,
            redis,
            ready,
        }
    }

    pub fn client(&self) -> Client {
        let stream = TcpStream::connect(&self.address).expect("the server listens");
        Client {
            lines: BufReader::new(stream),
        }
    }

    pub fn redis_client(&self) -> Client {
        let stream = TcpStream::connect(&self.redis).expect("the server listens");
        Client {
            lines: BufReader::new(stream),
        }
    }

    /// Ends it by `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().expect("SIGKILL");
        self.child.wait().expect("ends");
    }

    pub fn terminate(mut self) -> Option<i32> {
        let kill = Command::new("kill").arg(self.child.id().to_string()).status();
        assert!(kill.expect("kill runs").success());
        self.child.wait().expect("ends").code()
    }
}

pub struct Client {
    pub lines: BufReader<TcpStream>,
}

impl Client {
    /// Sends a request, and reads one line of the answer; `None` if the server is gone.
    pub fn ask(&mut self, request: &str) -> Option<String> {
        self.lines.get_mut().write_all(request.as_bytes()).ok()?;
        self.line()
    }

    pub fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.lines.read_line(&mut line);
        (read.is_ok() && line.ends_with("\r\n")).then(|| line.trim_end().to_owned())
    }

    pub fn get(&mut self, key: &str) -> Option<String> {
        let head = self.ask(&format!("get {key}\r\n")).expect("an answer");
        if head == "END" {
            return None;
        }
        let value = self.line().expect("a value");
        assert_eq!(self.line().as_deref(), Some("END"));
        Some(value)
    }
}
