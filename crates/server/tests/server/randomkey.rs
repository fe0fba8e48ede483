//! `RANDOMKEY` from outside. Its unit tests check its uniformity.

use crate::support::{Client, Running};
use std::collections::BTreeSet;

/// Each of two keys comes up within this many calls, except with probability 2^-199.
const CALLS: usize = 200;

fn picked(client: &mut Client, calls: usize) -> BTreeSet<String> {
    (0..calls)
        .map(|_| {
            client.send(b"RANDOMKEY\r\n");
            client.line();
            client.line()
        })
        .collect()
}

/// Each key comes up, including the first and the last, and also if one is far from all others.
#[test]
fn each_key_comes() {
    let server = Running::with_redis();
    let mut client = server.connect_redis();
    client.ask("RANDOMKEY\r\n", "$-1\r\n");
    client.ask("MSET key:1 x key:2 x\r\n", "+OK\r\n");
    assert_eq!(picked(&mut client, CALLS).len(), 2);
    // A key that is a prefix of another, and one far from both.
    client.ask("FLUSHALL\r\nMSET a x aa x zzz x\r\n", "+OK\r\n+OK\r\n");
    assert_eq!(picked(&mut client, CALLS).len(), 3);
    client.ask("FLUSHALL\r\nSET far x\r\n", "+OK\r\n+OK\r\n");
    for i in 0..1000 {
        client.ask(&format!("SET key:{i} x\r\n"), "+OK\r\n");
    }
    // The outlier is not picked much more often than others: most calls return keys that differ.
    assert!(picked(&mut client, CALLS).len() > CALLS / 2);
}

/// Flushed or expired keys are not picked, and a live one among very many of them is found.
#[test]
fn the_dead_are_passed_over() {
    let server = Running::over(
        wollemi_server::Config {
            sweep_pause: None,
            ..crate::support::with_redis()
        },
        std::sync::Arc::new(index::model::ModelIndex::new()),
    );
    let mut client = server.connect_redis();
    let many: String = (0..40_000).map(|i| format!("SET key:{i} x\r\n")).collect();
    let sent = std::thread::spawn({
        let mut socket = client.socket.try_clone().expect("a socket");
        move || std::io::Write::write_all(&mut socket, many.as_bytes())
    });
    for _ in 0..40_000 {
        client.expect(b"+OK\r\n");
    }
    sent.join().expect("no panic").expect("the server reads");
    client.ask("FLUSHDB\r\nRANDOMKEY\r\n", "+OK\r\n$-1\r\n");
    client.ask("SET key:2 x\r\n", "+OK\r\n");
    for _ in 0..20 {
        client.ask("RANDOMKEY\r\n", "$5\r\nkey:2\r\n");
    }
    client.ask(
        "MULTI\r\nRANDOMKEY\r\nEXEC\r\n",
        "+OK\r\n+QUEUED\r\n*1\r\n$5\r\nkey:2\r\n",
    );
}
