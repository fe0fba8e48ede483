//! What the server tells of itself on its error stream.

use crate::common::Pool;
use crate::{Server, log, wait_until};
use std::io::{BufRead, Write};

/// Connections, recovery and slow commands are told as JSON, one object a line, with what they were.
#[test]
fn events_are_told() {
    let pool = Pool::new();
    let args = ["--log", "json", "--log-level", "debug", "--slow-log", "0"];
    let server = Server::start(&pool, &args);
    let mut client = server.connect("memcached");
    client
        .get_mut()
        .write_all(b"get k\r\n")
        .expect("the server reads");
    client.read_line(&mut String::new()).expect("an answer");
    drop(client);
    wait_until("the end of the connection", || {
        log(&pool).contains("disconnected")
    });
    assert_eq!(server.stop(), Some(0));
    let log = log(&pool);
    let events: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect();
    let told = |message: &str| {
        let found = events.iter().find(|event| event["message"] == message);
        found.unwrap_or_else(|| panic!("no '{message}' in:\n{log}"))
    };
    assert_eq!(told("connected")["protocol"], "memcached");
    assert_eq!(told("slow command")["command"], "get");
    assert_eq!(told("slow command")["level"], "WARN");
    assert!(told("recovery")["pages"].is_u64());
    assert_eq!(told("disconnected")["id"], told("connected")["id"]);
}

/// Only what was asked for is told.
#[test]
fn events_have_levels() {
    let pool = Pool::new();
    let server = Server::start(&pool, &["--log-level", "off", "--slow-log", "0"]);
    server.parameter("maxclients");
    assert_eq!(server.stop(), Some(0));
    assert_eq!(log(&pool), "");
}
