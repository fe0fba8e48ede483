//! Many clients, and misbehaving ones: half-open connections, slow readers, requests in pieces or too large.

use crate::pool::Pool;
use crate::python::{python, run};
use crate::support::{Client, PATIENCE, Running, with_redis};
use index::model::ModelIndex;
use rustix::process::{Resource, getrlimit};
use std::io::Write;
use std::net::Shutdown;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wollemi_server::Config;

/// Number of concurrent clients.
const CROWD: usize = 10_000;

/// Open files that this process needs besides the crowd's connections: other tests run in it concurrently.
const OTHER_FILES: u64 = 500;

/// Returns the server's `curr_connections`.
fn connections(client: &mut Client) -> usize {
    client.send(b"stats\r\n");
    let text = String::from_utf8(client.until(b"END\r\n")).expect("text");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("STAT curr_connections "));
    line.expect("`stats` reports curr_connections")
        .parse()
        .expect("a number")
}

/// Ten thousand clients of both protocols, in a separate process, stay connected, and each is answered, twice. If the
/// system limits this process to fewer files, there are fewer clients, and the output says so.
#[test]
fn ten_thousand_clients_are_served() {
    let pool = Pool::new();
    let many = Config {
        max_connections: CROWD + 1000,
        ..pool.config()
    };
    let server = Running::over_this(pool, many);
    // The server has raised the limit on open files to its maximum.
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let count = files.saturating_sub(OTHER_FILES).min(CROWD as u64);
    if count < CROWD as u64 {
        let few = format!("ONLY {count} CLIENTS, not {CROWD}: the limit on open files is {files}\n");
        // Bypasses the test's captured output, which is not shown when it passes.
        let _ = std::io::stderr().write_all(few.as_bytes());
    }
    assert!(count >= 100, "the limit of {files} open files is too low");
    let redis = server.redis.expect("the server serves Redis clients");
    run(Command::new(python())
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/clients/crowd.py"))
        .arg("127.0.0.1")
        .args([server.address.port(), redis.port()].map(|port| port.to_string()))
        .arg(count.to_string()));
    assert_eq!(server.stop().failures, 0);
}

/// A client that has closed its sending side is still answered, up to the last complete request; half a request is
/// dropped.
#[test]
fn half_open_connections_are_answered() {
    let server = Running::with_redis();
    let value = "x".repeat(100_000);
    let mut memcached = server.connect();
    let mut redis = server.connect_redis();
    memcached.ask(&format!("set k 0 0 100000\r\n{value}\r\n"), "STORED\r\n");
    memcached.send(("get k\r\n".repeat(50) + "set k 0 0 10\r\nhalf").as_bytes());
    redis.send(("get k\r\n".repeat(50) + "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9\r\nhalf").as_bytes());
    for client in [&memcached, &redis] {
        client
            .socket
            .shutdown(Shutdown::Write)
            .expect("the connection is open");
    }
    let each = format!("VALUE k 0 100000\r\n{value}\r\nEND\r\n");
    assert!(memcached.rest() == each.repeat(50).as_bytes());
    assert!(redis.rest() == format!("$100000\r\n{value}\r\n").repeat(50).as_bytes());
    server.connect_redis().ask("strlen k\r\n", ":100000\r\n");
}

/// The server closes connections that the client closes during a request, or resets during an answer.
#[test]
fn server_closes_broken_connections() {
    let server = Running::with_redis();
    let mut last = server.connect();
    last.ask(
        &format!("set k 0 0 1000000\r\n{}\r\n", "x".repeat(1_000_000)),
        "STORED\r\n",
    );
    for i in 0..40 {
        let mut client = match i % 2 {
            0 => server.connect(),
            _ => server.connect_redis(),
        };
        match i % 4 {
            0 => client.send(b"set k 0 0 100\r\nhalf"),
            1 => client.send(b"*2\r\n$3\r\nGET\r\n$1"),
            _ => client.send("get k\r\n".repeat(20).as_bytes()),
        }
        // Unread data turns the close into a reset.
        if i % 4 >= 2 {
            client.read(1);
        }
    }
    let begin = Instant::now();
    while connections(&mut last) > 1 {
        assert!(begin.elapsed() < PATIENCE, "broken connections are still open");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A Redis client that requests much and reads nothing blocks no other client, and gets its answers once it reads.
#[test]
fn slow_redis_readers_wait_alone() {
    let one = Config {
        threads: 1,
        ..with_redis()
    };
    let server = Running::over(one, Arc::new(ModelIndex::new()));
    let mut slow = server.connect_redis();
    let large = "x".repeat(1 << 20);
    slow.ask(
        &format!("*3\r\n$3\r\nSET\r\n$1\r\nl\r\n${}\r\n{large}\r\n", large.len()),
        "+OK\r\n",
    );
    // 4 GiB of answers, singly, grouped and in transactions.
    slow.send(
        "get l\r\nmget l l l l\r\nmulti\r\nget l\r\nexec\r\n"
            .repeat(680)
            .as_bytes(),
    );
    let mut quick = server.connect_redis();
    for _ in 0..100 {
        quick.ask("set k x\r\nget k\r\n", "+OK\r\n$1\r\nx\r\n");
    }
    let value = format!("${}\r\n{large}\r\n", large.len());
    let turn = format!("{value}*4\r\n{}+OK\r\n+QUEUED\r\n*1\r\n{value}", value.repeat(4));
    for _ in 0..5 {
        assert!(slow.read(turn.len()) == turn.as_bytes());
    }
}

/// Requests sent a byte at a time, or in two parts cut at any byte, are answered as if sent whole.
#[test]
fn requests_in_pieces_are_answered() {
    let server = Running::with_redis();
    let dialogues: [(&[u8], &[u8]); 2] = [
        (
            b"set k 0 0 4\r\na\r\nb\r\nget k k\r\nms m 2 T0\r\nhi\r\nmg m v\r\nbogus\r\ndelete k\r\n",
            b"STORED\r\nVALUE k 0 4\r\na\r\nb\r\nVALUE k 0 4\r\na\r\nb\r\nEND\r\nHD\r\nVA 2\r\nhi\r\nERROR\r\nDELETED\r\n",
        ),
        (
            b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\na\r\nb\r\nget k\r\nMULTI\r\nincr n\r\n*1\r\n$4\r\nEXEC\r\nbogus\r\ndel k n\r\n",
            b"+OK\r\n$4\r\na\r\nb\r\n+OK\r\n+QUEUED\r\n*1\r\n:1\r\n-ERR unknown command 'bogus', with args beginning with: \r\n:2\r\n",
        ),
    ];
    for (i, (request, answer)) in dialogues.into_iter().enumerate() {
        let connect = || match i {
            0 => server.connect(),
            _ => server.connect_redis(),
        };
        for cut in 1..request.len() {
            let mut client = connect();
            client.socket.set_nodelay(true).expect("a socket");
            client.send(&request[..cut]);
            std::thread::yield_now();
            client.send(&request[cut..]);
            client.expect(answer);
        }
        let mut client = connect();
        client.socket.set_nodelay(true).expect("a socket");
        request.iter().for_each(|&byte| client.send(&[byte]));
        client.expect(answer);
    }
}

/// Requests that are too large get the error text of their protocol. A memcached client's connection continues; a Redis
/// client's ends, as with Redis.
#[test]
fn oversized_requests_are_refused() {
    let server = Running::over(
        Config {
            max_value: 1000,
            ..with_redis()
        },
        Arc::new(ModelIndex::new()),
    );
    let mut memcached = server.connect();
    let huge = "x".repeat(3 << 20);
    memcached.ask(
        &format!("set k 0 0 {}\r\n{huge}\r\nset k 0 0 1\r\nx\r\n", huge.len()),
        "SERVER_ERROR object too large for cache\r\nSTORED\r\n",
    );
    memcached.ask(
        &format!("ms m 1001\r\n{}\r\nmn\r\n", "x".repeat(1001)),
        "SERVER_ERROR object too large for cache\r\nMN\r\n",
    );
    let mut redis = server.connect_redis();
    redis.ask("config set proto-max-bulk-len 1048576\r\n", "+OK\r\n");
    for (request, answer) in [
        (
            "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1048577\r\n".to_owned(),
            "-ERR Protocol error: invalid bulk length\r\n",
        ),
        (
            "*2147483648\r\n".to_owned(),
            "-ERR Protocol error: invalid multibulk length\r\n",
        ),
    ] {
        let mut client = server.connect_redis();
        client.ask(&request, answer);
        client.expect_end();
    }
    redis.ask("get k\r\n", "$1\r\nx\r\n");
}
