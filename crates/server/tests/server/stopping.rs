//! Stopping the server.

use crate::support::{Client, PATIENCE, Running, SIGNALS, address, config, memory};
use index::Index;
use index::model::ModelIndex;
use rustix::process::{Signal, getpid, kill_process};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wollemi::Snapshot;
use wollemi_server::{Address, BackupTo, Config, Copying, Host, Server, Shutdown};

/// A server that stops answers the requests received so far, then closes; a partial request is not executed.
#[test]
fn stopping_answers_what_has_arrived() {
    let index = Arc::new(ModelIndex::new());
    let server = Running::over(config(), index.clone());
    let mut idle = server.connect();
    let mut half = server.connect();
    idle.ask(
        "version\r\n",
        concat!("VERSION 1.6.18-wollemi-", env!("CARGO_PKG_VERSION"), "\r\n"),
    );
    half.ask("set a 0 0 1\r\nx\r\n", "STORED\r\n");
    half.send(b"set b 0 0 1\r\nx\r\nset c 0 0 5\r\nhal");
    half.expect(b"STORED\r\n");
    server.tell_to_stop();
    half.expect_end();
    idle.expect_end();
    let report = server.stop();
    assert_eq!((report.abandoned, report.sets, report.connections), (0, 2, 2));
    assert_eq!(index.check().expect("no failure").keys, 1 + 2);
}

/// Returns a client that has requested many answers and reads only a few bytes of them.
fn takes_nothing(server: &Running) -> Client {
    let mut client = server.connect();
    client.ask(
        &format!("set k 0 0 1000000\r\n{}\r\n", "x".repeat(1_000_000)),
        "STORED\r\n",
    );
    client.send(&b"get k\r\n".repeat(1000));
    assert_eq!(client.read(5), b"VALUE");
    client
}

/// A client that reads nothing does not keep the server from stopping.
#[test]
fn stopping_does_not_wait_for_ever() {
    let server = Running::over(
        Config {
            drain_timeout: Duration::from_millis(50),
            ..config()
        },
        Arc::new(ModelIndex::new()),
    );
    let _client = takes_nothing(&server);
    assert_eq!(server.stop().abandoned, 1);
}

/// SIGTERM stops a server that listens for signals.
#[test]
fn signals_stop_the_server() {
    let _alone = SIGNALS.lock().unwrap_or_else(PoisonError::into_inner);
    let server = Server::bind(config(), &memory()).expect("the server starts");
    let address = address(&server);
    let thread = std::thread::spawn(move || server.run(&Shutdown::on_signals()));
    // The handlers are in place before the first connection is served.
    let mut socket = std::net::TcpStream::connect(address).expect("the server listens");
    socket.write_all(b"verbosity 1\r\n").expect("the server reads");
    socket.read_exact(&mut [0; 4]).expect("the server answers");
    kill_process(getpid(), Signal::TERM).expect("a signal");
    let report = thread.join().expect("no panic").expect("no failure");
    assert_eq!(report.connections, 1);
}

/// A server told to stop at once does not wait at all.
#[test]
fn stopping_at_once_waits_for_nobody() {
    let patient = Config {
        drain_timeout: Duration::from_secs(3600),
        ..config()
    };
    let server = Running::over(patient, Arc::new(ModelIndex::new()));
    let _client = takes_nothing(&server);
    server.tell_to_stop_at_once();
    assert_eq!(server.stop().abandoned, 1);
}

/// A server that waits for its clients has removed the file of its unix socket: it does not remove that of the next
/// server there.
#[test]
fn a_stopping_server_leaves_the_socket_of_the_next() {
    let directory = tempfile::tempdir().expect("a folder");
    let path = directory.path().join("socket");
    let both = Config {
        memcached: [config().memcached, vec![Address::Unix(path.clone())]].concat(),
        drain_timeout: Duration::from_secs(3600),
        ..config()
    };
    let first = Running::of(Server::bind(both.clone(), &memory()).expect("the server starts"));
    let _client = takes_nothing(&first);
    first.tell_to_stop();
    let begin = Instant::now();
    // A server that finds the file connects to it. The first one would abandon such connections, too.
    while path.exists() {
        assert!(begin.elapsed() < PATIENCE, "the first server listens");
        std::thread::sleep(Duration::from_millis(1));
    }
    let second = Server::bind(both.clone(), &memory()).expect("the second server starts");
    first.tell_to_stop_at_once();
    assert_eq!(first.stop().abandoned, 1);
    UnixStream::connect(&path).expect("the second server listens");
    drop(second);
    assert!(!path.exists());
}

/// A host whose settings cannot be read before the test lets it go on, as if a name were looked up.
struct Slow {
    begins: Sender<()>,
    let_on: Mutex<Receiver<()>>,
}

impl Host for Slow {
    fn reload(&self) -> Result<Config, String> {
        // If the test has failed, its end of both channels is closed.
        let _ = self.begins.send(());
        let _ = self.let_on.lock().map(|let_on| let_on.recv_timeout(PATIENCE));
        Err("the test is over".into())
    }

    fn back_up(&self, _: &Snapshot, _: &BackupTo, _: &Copying) -> Result<(), String> {
        Err("no test makes a backup".into())
    }
}

/// A signal stops a server whose reload takes long.
#[test]
fn a_slow_reload_delays_no_stop() {
    let _alone = SIGNALS.lock().unwrap_or_else(PoisonError::into_inner);
    let ((begins, begun), (go_on, let_on)) = (channel(), channel());
    let config = Config {
        host: Some(Arc::new(Slow {
            begins,
            let_on: Mutex::new(let_on),
        })),
        ..config()
    };
    let mut server = Server::bind(config, &memory()).expect("the server starts");
    let shutdown = Shutdown::on_signals();
    server.hear(&shutdown).expect("signal handlers");
    let (ends, ended) = channel();
    let thread = std::thread::spawn(move || {
        let _ = ends.send(server.run(&shutdown));
    });
    kill_process(getpid(), Signal::HUP).expect("a signal");
    begun.recv_timeout(PATIENCE).expect("a reload");
    kill_process(getpid(), Signal::TERM).expect("a signal");
    let report = ended.recv_timeout(PATIENCE / 2).expect("the server's end");
    report.expect("no failure");
    drop(go_on);
    thread.join().expect("no panic");
}
