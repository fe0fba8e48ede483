//! Requests and answers in order, however they arrive.

use crate::support::{Running, shown};
use std::io::{Read, Write};

/// A request that arrives byte by byte is answered like one that arrives at once.
#[test]
fn requests_may_arrive_in_pieces() {
    let server = Running::start();
    let mut client = server.connect();
    client.socket.set_nodelay(true).expect("a socket");
    for byte in b"set key 5 0 7\r\na\r\nb\r\nc\r\nget key\r\n" {
        client.send(&[*byte]);
    }
    client.expect(b"STORED\r\nVALUE key 5 7\r\na\r\nb\r\nc\r\nEND\r\n");
    client.send(b"get ke");
    client.send(b"y\r\nge");
    client.expect(b"VALUE key 5 7\r\na\r\nb\r\nc\r\nEND\r\n");
}

/// Any number of pipelined requests is answered in order.
#[test]
fn requests_may_be_pipelined() {
    let server = Running::start();
    let mut client = server.connect();
    let mut reader = client.socket.try_clone().expect("a socket");
    let mut answers = Vec::new();
    for i in 0..20_000u32 {
        let len = (i % 50) as usize;
        answers.extend(
            format!(
                "STORED\r\nVALUE k{} {i} {len}\r\n{}\r\nEND\r\n",
                i % 1000,
                "v".repeat(len)
            )
            .bytes(),
        );
        if i % 3 == 0 {
            answers
                .extend(format!("VALUE k{} {i} {len}\r\n{}\r\nEND\r\n", i % 1000, "v".repeat(len)).bytes());
        }
    }
    let length = answers.len();
    let reading = std::thread::spawn(move || {
        let mut read = vec![0; length];
        reader.read_exact(&mut read).map(|()| read)
    });
    let mut requests = Vec::new();
    for i in 0..20_000u32 {
        let len = (i % 50) as usize;
        let key = i % 1000;
        requests.extend(format!("set k{key} {i} 0 {len}\r\n{}\r\nget k{key}\r\n", "v".repeat(len)).bytes());
        if i % 3 == 0 {
            requests.extend(format!("get k{key} absent\r\n").bytes());
        }
    }
    client.send(&requests);
    let read = reading.join().expect("no panic").expect("all answers");
    assert!(read == answers);
}

/// A `get` of many keys returns all its values, in order, and consecutive ones have their own ends.
#[test]
fn gets_of_many_keys_are_whole() {
    let server = Running::start();
    let mut client = server.connect();
    for i in 0..300 {
        client.ask(&format!("set k{i} 0 0 3\r\n{i:3}\r\n"), "STORED\r\n");
    }
    let mut requests = String::new();
    let mut answers = String::new();
    for first in (0..300).step_by(7) {
        for count in [1, 2, 63, 64, 65, 130] {
            let keys = (first..first + count).map(|i| i % 310);
            requests += "get";
            for i in keys {
                requests += &format!(" k{i}");
                if i < 300 {
                    answers += &format!("VALUE k{i} 0 3\r\n{i:3}\r\n");
                }
            }
            requests += "\r\n";
            answers += "END\r\n";
        }
    }
    let mut sender = client.socket.try_clone().expect("a socket");
    let sending = std::thread::spawn(move || sender.write_all(requests.as_bytes()));
    client.expect(answers.as_bytes());
    sending.join().expect("no panic").expect("all sent");
}

/// A client that closes its side after a request still gets its answer.
#[test]
fn half_closed_connections_are_answered() {
    let server = Running::start();
    let mut client = server.connect();
    client.send(b"set k 0 0 1\r\nx\r\nget k\r\nget");
    client
        .socket
        .shutdown(std::net::Shutdown::Write)
        .expect("a socket");
    assert_eq!(
        shown(&client.rest()),
        shown(b"STORED\r\nVALUE k 0 1\r\nx\r\nEND\r\n")
    );
}
