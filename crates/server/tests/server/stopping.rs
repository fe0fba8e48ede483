//! Stopping the server.

use crate::support::{Client, Running, SIGNALS, address, config, memory};
use index::Index;
use index::model::ModelIndex;
use std::io::{Read, Write};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use wollemi_server::{Config, Server, Shutdown};

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
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM)
        .expect("a signal");
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
