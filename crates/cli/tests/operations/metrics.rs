//! Metrics, and monitoring a server with them.

use crate::common::server::Server;
use crate::common::{Pool, text};

/// `top --once` shows a server's activity in an interval, as text and as JSON.
#[test]
fn one_look_is_printed() {
    let pool = Pool::new();
    let server = Server::start_with(&pool, &["--metrics", "127.0.0.1:0"]);
    let metrics = server.address("metrics");
    let mut client = server.client();
    client.ask("set k 0 0 1\r\nx\r\n").expect("an answer");
    let look = ["top", "--once", "--interval", "0.1", metrics];
    // Recovery may still be running, and the server may stall for seconds: ask again.
    let mut printed = String::new();
    crate::wait_until("a look after recovery", || {
        let run = pool.run(look);
        printed = text(&run.out).to_owned();
        run.code == 0 && printed.contains("recovery    done\n")
    });
    for words in [
        "version     0.1.0\n",
        "connections 1 of 1024\n",
        "items       1\n",
        "backup      none\n",
    ] {
        assert!(printed.contains(words), "no '{words}' in:\n{printed}");
    }
    let set = printed.lines().find(|line| line.starts_with("memcached  set "));
    assert!(set.is_some_and(|line| line.ends_with(" 1")), "{printed}");
    let mut json = Vec::new();
    crate::wait_until("a look for programs", || {
        let run = pool.run(look.iter().chain(&["--json"]));
        json = run.out;
        run.code == 0
    });
    let json: serde_json::Value = serde_json::from_slice(&json).expect("one JSON object");
    assert_eq!(json["items"], 1.0);
    assert_eq!(json["commands"][0]["command"], "set");
    assert!(
        json["pool"]["used"].as_f64().is_some_and(|used| used > 0.0),
        "{json}"
    );
    assert_eq!(server.terminate(), Some(0));
}

/// `top` reports why it cannot monitor: no server, no terminal.
#[test]
fn what_cannot_be_watched_is_told() {
    let pool = Pool::new();
    let address = crate::common::free_address();
    pool.run(["top", "--once", &address])
        .fails(5, &[&address, "refused"]);
    pool.run(["top"]).fails(2, &["--once"]);
    pool.run(["top", "--interval", "0"]).fails(2, &["seconds"]);
    pool.run(["serve", "--metrics", "0.0.0.0:0"])
        .fails(2, &["metrics", "--allow-remote"]);
}
