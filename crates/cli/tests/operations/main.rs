//! Operating a server: its settings and how they change while it runs, what it tells.

#[path = "../common/mod.rs"]
mod common;

mod logs;
mod metrics;
mod service;
mod settings;

use common::Pool;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a test waits before it fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running server, whose events go to the file `log`. It serves both protocols on free ports.
struct Server {
    child: Child,
    /// Its first line.
    ready: serde_json::Value,
}

impl Server {
    fn start(pool: &Pool, args: &[&str]) -> Server {
        Server::run(pool.command(["serve", "--json"]).args(args), pool)
    }

    fn run(command: &mut Command, pool: &Pool) -> Server {
        let mut child = command
            .args(["--memcached", "127.0.0.1:0", "--redis", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(File::create(pool.file("log")).expect("a file"))
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped"))
            .read_line(&mut line)
            .expect("a first line");
        let log = || std::fs::read_to_string(pool.file("log")).expect("the log");
        let ready = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not ready: {}", log()));
        Server { child, ready }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let kill = Command::new("kill").args(["-s", name, &id]).status();
        assert!(kill.expect("kill runs").success());
    }

    fn stop(mut self) -> Option<i32> {
        self.signal("TERM");
        self.child.wait().expect("ends").code()
    }

    /// One of its addresses.
    fn address(&self, of: &str) -> &str {
        let address = self.ready[of].as_str().or(self.ready[of][0].as_str());
        address.expect("an address")
    }

    fn connect(&self, of: &str) -> BufReader<TcpStream> {
        let stream = TcpStream::connect(self.address(of)).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        BufReader::new(stream)
    }

    /// The value of a parameter, as `CONFIG GET` tells it.
    fn parameter(&self, name: &str) -> String {
        let mut client = self.connect("redis");
        write!(client.get_mut(), "config get {name}\r\n").expect("the server reads");
        let mut lines = client.lines();
        // The array's head, the name's, the name, the value's head.
        lines.nth(4).expect("an answer").expect("a line")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is this test's own; where it has ended already, there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until this is so.
#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "{what} has not come to be");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn log(pool: &Pool) -> String {
    std::fs::read_to_string(pool.file("log")).expect("the log")
}
