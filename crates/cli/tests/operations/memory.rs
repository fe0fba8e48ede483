//! Memory that a server uses for its clients, and frees.

use crate::common::Pool;
use crate::common::server::{PATIENCE, Server};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

const MIB: usize = 1 << 20;

/// Allowance for other changes meanwhile.
const SLACK: usize = 40 * MIB;

/// Returns the process's own memory in bytes: without files, such as its pool.
fn own_memory(server: &Server) -> usize {
    let path = format!("/proc/{}/status", server.child.id());
    let status = std::fs::read_to_string(path).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line
        .and_then(|line| line.split_whitespace().next())
        .expect("a line");
    kib.parse::<usize>().expect("a number") * 1024
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address("redis")).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Sends a request and waits for an answer that ends with `end`.
fn ask(stream: &mut TcpStream, request: &[u8], end: &[u8]) {
    let mut socket = stream.try_clone().expect("a socket");
    let request = request.to_vec();
    let sent = std::thread::spawn(move || socket.write_all(&request));
    let (mut answer, mut piece) = (Vec::new(), [0; 1 << 16]);
    while !answer.ends_with(end) {
        let length = match stream.read(&mut piece) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            read => read.expect("an answer"),
        };
        assert!(length > 0, "the connection has ended");
        answer.extend_from_slice(&piece[..length]);
    }
    sent.join().expect("no panic").expect("the server reads");
}

/// Waits until the server's own memory is at most this much.
fn expect_at_most(server: &Server, max: usize, what: &str) {
    let begin = Instant::now();
    loop {
        let own = own_memory(server);
        if own <= max {
            return;
        }
        let waited = begin.elapsed() > PATIENCE;
        assert!(!waited, "{what}: {} MiB, and not {}", own / MIB, max / MIB);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// The memory of queued transactions is freed, whether their commands are large or small, executed or discarded.
#[test]
fn the_memory_of_large_queues_is_given_back() {
    let pool = Pool::new();
    let server = Server::start_with(&pool, &["--threads", "2"]);
    let before = own_memory(&server);
    for (size, commands) in [(100, 40_000), (100_000, 300), (10 * MIB, 3)] {
        let value = "x".repeat(size);
        let set = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${size}\r\n{value}\r\n");
        let queue = [
            &b"MULTI\r\n"[..],
            set.repeat(commands).as_bytes(),
            b"PING the-end\r\n",
        ]
        .concat();
        let answer = [b"+OK\r\n".to_vec(), b"+QUEUED\r\n".repeat(commands + 1)].concat();
        let mut clients: Vec<_> = (0..4).map(|_| connect(&server)).collect();
        for client in &mut clients {
            ask(client, &queue, &answer);
        }
        let full = own_memory(&server);
        println!("{commands} of {size}: {} MiB", full / MIB);
        for (i, client) in clients.iter_mut().enumerate() {
            match i % 2 {
                0 => ask(client, b"EXEC\r\n", b"$7\r\nthe-end\r\n"),
                _ => ask(client, b"DISCARD\r\n", b"+OK\r\n"),
            }
        }
        expect_at_most(&server, before + SLACK, "after all have ended");
    }
    assert_eq!(server.terminate(), Some(0));
}

/// A partly sent command takes as much memory as was sent, not a multiple of it.
#[test]
fn half_a_command_takes_what_was_sent() {
    let pool = Pool::new();
    let server = Server::start(&pool);
    let before = own_memory(&server);
    let mut client = connect(&server);
    let half = 33 * MIB;
    client
        .write_all(format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n", 60 * MIB).as_bytes())
        .expect("the server reads");
    client.write_all(&vec![b'x'; half]).expect("the server reads");
    // Until the server has read it; the sockets' buffers hold far less.
    let begin = Instant::now();
    while own_memory(&server) < before + half - 8 * MIB {
        assert!(begin.elapsed() < PATIENCE, "the server does not read it");
    }
    expect_at_most(&server, before + half + 8 * MIB, "half a command");
    drop(client);
    expect_at_most(&server, before + SLACK / 2, "after the client disconnected");
    assert_eq!(server.terminate(), Some(0));
}
