//! Metrics, and watching a server by them.

use crate::common::server::Server;
use crate::common::{Pool, text};

/// `top --once` tells what a server has done in an interval, for people and for programs.
#[test]
fn one_look_is_printed() {
    let pool = Pool::new();
    let server = Server::start_with(&pool, &["--metrics", "127.0.0.1:0"]);
    let metrics = server.address("metrics");
    let mut client = server.client();
    client.ask("set k 0 0 1\r\nx\r\n").expect("an answer");
    let look = ["top", "--once", "--interval", "0.1", "--metrics", metrics];
    let printed = pool.ok(look);
    let printed = text(&printed);
    for words in [
        "version     0.1.0\n",
        "connections 1 of 1024\n",
        "items       1\n",
        "recovery    done\n",
    ] {
        assert!(printed.contains(words), "no '{words}' in:\n{printed}");
    }
    let set = printed.lines().find(|line| line.starts_with("memcached  set "));
    assert!(set.is_some_and(|line| line.ends_with(" 1")), "{printed}");
    let json = pool.ok(look.iter().chain(&["--json"]));
    let json: serde_json::Value = serde_json::from_slice(&json).expect("one JSON object");
    assert_eq!(json["items"], 1.0);
    assert_eq!(json["commands"][0]["command"], "set");
    assert!(
        json["pool"]["used"].as_f64().is_some_and(|used| used > 0.0),
        "{json}"
    );
    assert_eq!(server.terminate(), Some(0));
}

/// What cannot be watched is said: no server, no terminal.
#[test]
fn what_cannot_be_watched_is_told() {
    let pool = Pool::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("bound").to_string();
    drop(free);
    pool.run(["top", "--once", "--metrics", &address])
        .fails(5, &[&address, "refused"]);
    pool.run(["top"]).fails(2, &["--once"]);
    pool.run(["top", "--interval", "0"]).fails(2, &["seconds"]);
    pool.run(["serve", "--metrics", "0.0.0.0:0"])
        .fails(2, &["metrics", "--allow-remote"]);
}
