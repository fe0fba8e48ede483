//! A server in a separate process, and a line-based client.

use super::Pool;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Upper bound on any wait of a test.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A running server of both protocols, on free ports.
pub struct Server {
    pub child: Child,
    /// Its first line of output.
    pub ready: serde_json::Value,
}

impl Server {
    pub fn start(pool: &Pool) -> Server {
        Server::start_with(pool, &[])
    }

    pub fn start_with(pool: &Pool, args: &[&str]) -> Server {
        Server::run(pool.command(["serve", "--json"]).args(args), pool)
    }

    /// Starts it with its log in the file `log`.
    pub fn run(command: &mut Command, pool: &Pool) -> Server {
        let log = File::create(pool.file("log")).expect("a file");
        Server::with_log_to(command, log.into())
    }

    /// Starts it with its log going to `to`.
    pub fn with_log_to(command: &mut Command, to: Stdio) -> Server {
        if command.get_args().all(|arg| arg != "--memcached") {
            command.args(["--memcached", "127.0.0.1:0"]);
        }
        let mut child = command
            .args(["--redis", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(to)
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped"))
            .read_line(&mut line)
            .expect("a first line");
        let ready = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not ready: {line}"));
        Server { child, ready }
    }

    /// Returns one of its addresses.
    pub fn address(&self, of: &str) -> &str {
        let address = self.ready[of].as_str().or(self.ready[of][0].as_str());
        address.expect("an address")
    }

    fn connect(&self, of: &str) -> Client {
        let stream = TcpStream::connect(self.address(of)).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Client {
            lines: BufReader::new(stream),
        }
    }

    pub fn client(&self) -> Client {
        self.connect("memcached")
    }

    pub fn redis_client(&self) -> Client {
        self.connect("redis")
    }

    /// Returns the value of a parameter, from `CONFIG GET`.
    pub fn parameter(&self, name: &str) -> String {
        self.redis_client().parameter(name)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the process has not been waited for");
    }

    /// Kills it by `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().expect("SIGKILL");
        self.child.wait().expect("ends");
    }

    /// Stops it in an orderly way; returns its exit code.
    pub fn terminate(mut self) -> Option<i32> {
        self.signal(Signal::TERM);
        self.child.wait().expect("ends").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Errors mean that the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub struct Client {
    pub lines: BufReader<TcpStream>,
}

impl Client {
    /// Sends a request, and reads one line of the answer; returns `None` if the server is gone.
    pub fn ask(&mut self, request: &str) -> Option<String> {
        self.lines.get_mut().write_all(request.as_bytes()).ok()?;
        self.line()
    }

    pub fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.lines.read_line(&mut line);
        (read.is_ok() && line.ends_with("\r\n")).then(|| line.trim_end().to_owned())
    }

    /// Returns the value of a parameter, from `CONFIG GET`.
    pub fn parameter(&mut self, name: &str) -> String {
        self.ask(&format!("config get {name}\r\n")).expect("an array");
        // The name's header, the name, the value's header, the value.
        (0..4).map(|_| self.line().expect("a line")).last().expect("four")
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
