//! The server, as users ask it over both protocols: a share of what `exercise --server` does.

mod common;

use common::server::Server;
use common::{Pool, text};
use std::collections::BTreeSet;

/// Commands that no user of the exerciser calls, and why.
const LEFT_OUT: [(&str, &str); 7] = [
    ("auth", "there are no passwords"),
    ("flushall", "called between rounds, as it concerns all users"),
    ("hello", "called as connections begin"),
    ("quit", "a user's connections stay as long as the server"),
    (
        "reset",
        "the same, and the user would lose the database it has selected",
    ),
    ("save", "called as rounds end"),
    ("multi", "counted as `exec` or `discard`"),
];

/// Every answer is right, and what was acknowledged is there after each kill; and every command is among those called.
#[test]
fn the_server_keeps_what_it_has_acknowledged() {
    let pool = Pool::new();
    let directory = pool.file("exercise");
    let directory = directory.to_str().expect("UTF-8");
    let seed = std::env::var("WOLLEMI_SEED").unwrap_or_else(|_| "1".into());
    let arguments = [
        "exercise", "--server", "--json", "--budget", "60s", "--calls", "60000", "--dir",
    ];
    let out = pool.ok(arguments.into_iter().chain([directory, "--seed", &seed]));
    let report: serde_json::Value = serde_json::from_str(text(&out)).expect("an object");
    assert!(report["kills"].as_u64() > Some(0), "{report}");
    let called = report["called"].as_object().expect("an object");
    let called: BTreeSet<String> = called.keys().map(|name| name.to_lowercase()).collect();

    let server = Server::start(&pool);
    let mut client = server.redis_client();
    let head = client.ask("COMMAND LIST\r\n").expect("an array");
    let count: usize = head[1..].parse().expect("a number");
    for _ in 0..count {
        client.line().expect("a head");
        let name = client.line().expect("a name");
        let left_out = LEFT_OUT.iter().any(|(of, _)| *of == name);
        assert!(called.contains(&name) || left_out, "no user calls {name}");
    }
    assert_eq!(server.terminate(), Some(0));
}
