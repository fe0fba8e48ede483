//! Bounds: on what waits, on idleness, on the number of connections, on who may come.

use crate::support::{Running, config, shown};
use index::model::Model;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wollemi_server::{Config, Error, Server};

/// A client that asks for much and reads nothing holds up nobody else, and gets everything once it reads. What waits for
/// it in the server is bounded: it asks for 4 GiB here.
#[test]
fn slow_readers_wait_alone() {
    let server = Running::over(
        Config {
            threads: 1,
            ..config()
        },
        Arc::new(Model::new()),
    );
    let mut slow = server.connect();
    let large = "x".repeat(1 << 20);
    slow.ask(
        &format!("set large 0 0 {}\r\n{large}\r\n", large.len()),
        "STORED\r\n",
    );
    let request = format!("get{}\r\n", " large".repeat(4096));
    slow.send(request.as_bytes());
    let mut quick = server.connect();
    for _ in 0..100 {
        quick.ask(
            "set k 0 0 1\r\nx\r\nget k\r\n",
            "STORED\r\nVALUE k 0 1\r\nx\r\nEND\r\n",
        );
    }
    let one = format!("VALUE large 0 {}\r\n{large}\r\n", large.len());
    for _ in 0..20 {
        assert!(slow.read(one.len()) == one.as_bytes());
    }
}

/// A client that sends without reading is not read from for ever: what it can send ends where the sockets are full.
#[test]
fn senders_that_do_not_read_are_held_back() {
    let server = Running::start();
    let mut client = server.connect();
    client.ask(
        &format!("set k 0 0 100000\r\n{}\r\n", "x".repeat(100_000)),
        "STORED\r\n",
    );
    client
        .socket
        .set_write_timeout(Some(Duration::from_millis(300)))
        .expect("a timeout");
    let requests = "get k\r\n".repeat(10_000);
    let refused = (0..1000).find_map(|_| client.socket.write_all(requests.as_bytes()).err());
    let kind = refused
        .expect("seventy megabytes of requests are not taken")
        .kind();
    assert!(
        matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut),
        "{kind}"
    );
}

/// Any bytes leave the server alive, and the connection is answered or closed.
#[test]
fn garbage_is_survived() {
    let server = Running::start();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    for _ in 0..100 {
        let mut client = server.connect();
        let mut bytes: Vec<u8> = (0..next() % 5000).map(|_| next() as u8).collect();
        if next() % 2 == 0 {
            let at = bytes.len() / 2;
            bytes.splice(at..at, *b"\r\nset key 0 0 9999\r\n");
        }
        // The server may close before it has read all.
        let _ = client.socket.write_all(&bytes);
        let _ = client.socket.shutdown(std::net::Shutdown::Write);
        let _ = client.socket.read_to_end(&mut Vec::new());
    }
    server.connect().ask("set k 0 0 1\r\nx\r\n", "STORED\r\n");
}

/// Connections that neither send nor take anything are closed, where that is asked for.
#[test]
fn idle_connections_are_closed() {
    let idle = Config {
        idle_timeout: Some(Duration::from_millis(50)),
        ..config()
    };
    let server = Running::over(idle, Arc::new(Model::new()));
    server.connect().expect_end();
    let mut half = server.connect();
    half.send(b"set k 0 0 10\r\nabc");
    half.expect_end();
}

/// Connections above the limit are told, and room that is made is used.
#[test]
fn connections_have_a_limit() {
    let server = Running::over(
        Config {
            max_connections: 2,
            ..config()
        },
        Arc::new(Model::new()),
    );
    let mut first = server.connect();
    let mut second = server.connect();
    first.ask("verbosity 1\r\n", "OK\r\n");
    second.ask("verbosity 1\r\n", "OK\r\n");
    let mut third = server.connect();
    assert_eq!(
        shown(&third.rest()),
        shown(b"ERROR Too many open connections\r\n")
    );
    drop(first);
    let begin = Instant::now();
    loop {
        let mut again = server.connect();
        let mut answer = [0; 2];
        // Where there is no room, the server may be gone before it has read anything.
        let _ = again.socket.write_all(b"verbosity 1\r\n");
        if again.socket.read_exact(&mut answer).is_ok() && answer == *b"OK" {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "no room is made");
    }
    assert!(server.stop().rejected >= 1);
}

/// Addresses that other machines can reach need a word; one that is taken is named.
#[test]
fn addresses_are_checked() {
    let bind = |config| Server::bind(config, Arc::new(Model::new()));
    let everywhere = vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))];
    let remote = Config {
        listen: everywhere,
        ..config()
    };
    assert!(matches!(bind(remote.clone()), Err(Error::NotLoopback(_))));
    assert!(
        bind(Config {
            allow_remote: true,
            ..remote
        })
        .is_ok()
    );
    assert!(matches!(
        bind(Config {
            listen: vec![],
            ..config()
        }),
        Err(Error::NoAddress)
    ));
    let first = bind(config()).expect("a free port");
    let taken = bind(Config {
        listen: first.addresses(),
        ..config()
    });
    assert!(matches!(taken, Err(Error::Listen { .. })));
}
