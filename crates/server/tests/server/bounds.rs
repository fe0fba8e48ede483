//! Bounds: on buffered answers, on idleness, on the number of connections, on access.

use crate::support::{PATIENCE, Running, config, memory, shown};
use index::model::ModelIndex;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wollemi_server::{Address, Config, Error, Protocol, Server, Shutdown};

/// A client that requests much and reads nothing delays no other client, and gets its answers once it reads. Its
/// answers amount to 4 GiB, of which the server buffers a bounded part.
#[test]
fn slow_readers_wait_alone() {
    let server = Running::over(
        Config {
            threads: 1,
            ..config()
        },
        Arc::new(ModelIndex::new()),
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

/// The server does not read forever from a client that does not read: the client's sends block when the sockets are
/// full.
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

/// The server survives arbitrary bytes, and answers or closes the connection.
#[test]
fn garbage_is_survived() {
    let server = Running::with_redis();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    for round in 0..300 {
        let mut bytes: Vec<u8> = (0..next() % 5000).map(|_| next() as u8).collect();
        let half = bytes.len() / 2;
        let (mut client, at, amid): (_, _, &[u8]) = match round % 3 {
            0 => (server.connect(), 0, b""),
            1 => (server.connect(), half, b"\r\nset key 0 0 9999\r\n"),
            _ => (
                server.connect_redis(),
                0,
                b"*3\r\n$3\r\nset\r\n$1\r\nk\r\n$1\r\nv\r\n*2\r\n$99\r\n",
            ),
        };
        bytes.splice(at..at, amid.iter().copied());
        // The server may close before it has read everything.
        let _ = client.socket.write_all(&bytes);
        let _ = client.socket.shutdown(std::net::Shutdown::Write);
        let _ = client.socket.read_to_end(&mut Vec::new());
    }
    server.connect_redis().ask("get k\r\n", "$1\r\nv\r\n");
    server.connect().ask("set k 0 0 1\r\nx\r\n", "STORED\r\n");
}

/// Connections that neither send nor receive are closed, if configured.
#[test]
fn idle_connections_are_closed() {
    let idle = Config {
        idle_timeout: Some(Duration::from_millis(50)),
        ..config()
    };
    let server = Running::over(idle, Arc::new(ModelIndex::new()));
    server.connect().expect_end();
    // It may be closed before half has arrived, which turns the close into a reset.
    let mut half = server.connect();
    let _ = half.socket.write_all(b"set k 0 0 10\r\nabc");
    let mut rest = Vec::new();
    match half.socket.read_to_end(&mut rest) {
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        Ok(_) => assert_eq!(shown(&rest), ""),
    }
}

/// A client whose machine disappears is noticed: the system's keepalive timer runs.
#[cfg(target_os = "linux")]
#[test]
fn silent_clients_are_asked_for() {
    let server = Running::start();
    let mut client = server.connect();
    client.ask("mn\r\n", "MN\r\n");
    let name = |address: std::io::Result<SocketAddr>| {
        let address = address.expect("a socket");
        format!("0100007F:{:04X}", address.port())
    };
    let (here, there) = (name(client.socket.peer_addr()), name(client.socket.local_addr()));
    let timer = || {
        let sockets = std::fs::read_to_string("/proc/net/tcp").expect("Linux");
        let line = sockets.lines().find_map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            (words.get(1..3)? == [here.as_str(), there.as_str()]).then(|| words[5].to_owned())
        });
        // If other tests open and close sockets meanwhile, one look may miss it.
        line.unwrap_or_default()
    };
    // While an answer is in flight another timer runs.
    let began = Instant::now();
    while !timer().starts_with("02:") {
        assert!(began.elapsed() < PATIENCE, "{}", timer());
        std::thread::yield_now();
    }
}

/// Connections above the limit get an error, and a closed connection makes room for a new one.
#[test]
fn connections_have_a_limit() {
    let server = Running::over(
        Config {
            max_connections: 2,
            ..config()
        },
        Arc::new(ModelIndex::new()),
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
        // If there is no room, the server may have closed before it has read anything.
        let _ = again.socket.write_all(b"verbosity 1\r\n");
        if again.socket.read_exact(&mut answer).is_ok() && answer == *b"OK" {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "no connection becomes free");
    }
    assert!(server.stop().rejected >= 1);
}

/// Addresses that other machines can reach need explicit permission; an address in use is named.
#[test]
fn addresses_are_checked() {
    let bind = |config| Server::bind(config, &memory());
    let everywhere = vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)).into()];
    let remote = Config {
        memcached: everywhere,
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
            memcached: vec![],
            ..config()
        }),
        Err(Error::NoAddress)
    ));
    let first = bind(config()).expect("a free port");
    let taken = bind(Config {
        memcached: first.addresses(Protocol::Memcached),
        ..config()
    });
    assert!(matches!(taken, Err(Error::Listen { .. })));
}

/// A unix socket serves like an address. Its file is for its owner. It does not replace the file of a listening server,
/// replaces that of a killed one, and is removed with the server.
#[test]
fn unix_sockets_are_served() {
    let directory = std::env::temp_dir().join(format!("wollemi-unix-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let path = directory.join("socket");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a socket that is left behind"));
    let unix = Config {
        memcached: vec![Address::Unix(path.clone())],
        ..config()
    };
    let server = Server::bind(unix.clone(), &memory()).expect("the server starts");
    let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let shutdown = Shutdown::new();
    let stop = shutdown.clone();
    let thread = std::thread::spawn(move || server.run(&stop));
    for _ in 0..8 {
        let mut client = UnixStream::connect(&path).expect("the server listens");
        client.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        client.write_all(b"verbosity 1\r\n").expect("the server reads");
        let mut answer = [0; 4];
        client.read_exact(&mut answer).expect("the server answers");
        assert_eq!(&answer, b"OK\r\n");
    }
    let second = Server::bind(unix, &memory());
    assert!(matches!(second, Err(Error::Listen { .. })));
    shutdown.stop();
    let report = thread.join().expect("no panic").expect("no failure");
    assert!(report.connections >= 8);
    assert!(!path.exists());
    std::fs::remove_dir(&directory).expect("the directory is empty");
}

/// A socket's file is left alone unless no process listens on it any more.
#[test]
fn the_sockets_of_others_are_left_alone() {
    let directory = std::env::temp_dir().join(format!("wollemi-others-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let path = directory.join("socket");
    let other = std::os::unix::net::UnixDatagram::bind(&path).expect("a socket of datagrams");
    let config = Config {
        memcached: vec![Address::Unix(path.clone())],
        ..config()
    };
    let refused = Server::bind(config, &memory());
    assert!(matches!(refused, Err(Error::Listen { .. })));
    assert!(path.exists());
    drop(other);
    std::fs::remove_dir_all(&directory).expect("it is a test's own");
}
