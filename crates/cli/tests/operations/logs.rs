//! The server's log on its error stream.

use crate::common::Pool;
use crate::common::server::Server;
use crate::{log, wait_until};
use std::process::Stdio;

/// Connections, recovery and slow commands are logged as JSON, one object per line, with their details.
#[test]
fn events_are_told() {
    let pool = Pool::new();
    let args = ["--log", "json", "--log-level", "debug", "--slow-log", "0"];
    let server = Server::start_with(&pool, &args);
    let mut client = server.client();
    assert_eq!(client.get("k"), None);
    drop(client);
    wait_until("the end of the connection", || {
        log(&pool).contains("disconnected")
    });
    assert_eq!(server.terminate(), Some(0));
    let log = log(&pool);
    let events: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect();
    let event = |message: &str| {
        let found = events.iter().find(|event| event["message"] == message);
        found.unwrap_or_else(|| panic!("no '{message}' in:\n{log}"))
    };
    assert_eq!(event("connected")["protocol"], "memcached");
    assert_eq!(event("slow command")["command"], "get");
    assert_eq!(event("slow command")["level"], "WARN");
    assert!(event("recovery")["pages"].is_u64());
    assert_eq!(event("disconnected")["id"], event("connected")["id"]);
}

/// Only the chosen levels are logged.
#[test]
fn events_have_levels() {
    let pool = Pool::new();
    let server = Server::start_with(&pool, &["--log-level", "off", "--slow-log", "0"]);
    server.parameter("maxclients");
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(log(&pool), "");
}

/// A server whose log has no reader continues to serve, and shuts down normally.
#[test]
fn nobody_need_take_the_events() {
    let pool = Pool::new();
    let mut command = pool.command(["serve", "--json", "--log-level", "debug"]);
    // This pipe is never read.
    let server = Server::with_log_to(&mut command, Stdio::piped());
    for i in 0..2000 {
        let mut client = server.client();
        let stored = client.ask(&format!("set k 0 0 4\r\n{i:04}\r\n"));
        assert_eq!(stored.as_deref(), Some("STORED"));
    }
    assert_eq!(server.client().get("k").as_deref(), Some("1999"));
    assert_eq!(server.terminate(), Some(0));
}

/// Errors of clients are logged only at level `debug`.
#[test]
fn mistakes_of_clients_are_told_to_clients() {
    for (level, is_logged) in [("info", false), ("debug", true)] {
        let pool = Pool::new();
        let args = ["--log-level", level, "--memory-limit", "1K", "-M"];
        let server = Server::start_with(&pool, &args);
        let mut client = server.client();
        let large = "x".repeat(2000);
        let refused = client.ask(&format!("set k 0 0 2000\r\n{large}\r\n"));
        assert_eq!(
            refused.as_deref(),
            Some("SERVER_ERROR out of memory storing object")
        );
        drop(client);
        assert_eq!(server.terminate(), Some(0));
        assert_eq!(log(&pool).contains("out of memory storing object"), is_logged);
    }
}
