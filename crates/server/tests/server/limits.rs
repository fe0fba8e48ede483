//! Limits: those that change while connections are open, and those of what a connection, or the server for it, holds.

use crate::support::{Running, with_redis};
use index::model::Model;
use std::sync::Arc;
use wollemi_server::Config;

/// A limit on values holds for the connections that were open before it was set, as for new ones.
#[test]
fn a_new_limit_on_values_holds_at_once() {
    let server = Running::over(with_redis(), Arc::new(Model::new()));
    let mut old = server.connect_redis();
    let large = format!(
        "*3\r\n$3\r\nset\r\n$1\r\nk\r\n$1048577\r\n{}\r\n",
        "x".repeat(1_048_577)
    );
    old.ask(&large, "+OK\r\n");
    server
        .connect_redis()
        .ask("config set proto-max-bulk-len 1048576\r\n", "+OK\r\n");
    old.send(b"*3\r\n$3\r\nset\r\n$1\r\nk\r\n$1048577\r\n");
    old.expect(b"-ERR Protocol error: invalid bulk length\r\n");
    old.expect_end();
    let mut new = server.connect_redis();
    new.ask("config set proto-max-bulk-len 2000000\r\n", "+OK\r\n");
    new.ask(&large, "+OK\r\n");
}

/// memcached's limit is the configuration's, for all ways to make a value.
#[test]
fn values_have_a_largest_size() {
    let small = Config {
        max_value: 10,
        ..with_redis()
    };
    let server = Running::over(small, Arc::new(Model::new()));
    let mut client = server.connect();
    client.ask("set k 0 0 10\r\n0123456789\r\n", "STORED\r\n");
    client.ask("append k 0 0 1\r\nx\r\n", "NOT_STORED\r\n");
    client.ask("ms k 1 MA\r\nx\r\n", "NS\r\n");
    client.ask(
        "set k 0 0 11\r\n01234567890\r\n",
        "SERVER_ERROR object too large for cache\r\n",
    );
}

/// What a connection may have the server hold is bounded: watched keys, in number and in bytes, commands that wait for their
/// `EXEC`, its name. What is refused leaves the rest as it was.
#[test]
fn what_a_connection_may_hold_is_bounded() {
    let server = Running::with_redis();
    let mut client = server.connect_redis();
    let resp = |words: &[String]| {
        let each = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
        format!("*{}\r\n{}", words.len(), each.collect::<String>())
    };
    let too_many = "-ERR too many keys are watched\r\n";
    let watch = |keys: std::ops::Range<usize>, width: usize| {
        let keys = keys.map(|i| format!("{i:0width$}"));
        resp(
            &std::iter::once("watch".to_owned())
                .chain(keys)
                .collect::<Vec<_>>(),
        )
    };
    client.ask(&watch(0..1 << 16, 5), "+OK\r\n");
    client.ask("watch more\r\n", too_many);
    client.ask(
        "watch 00000\r\nunwatch\r\nwatch more\r\nunwatch\r\n",
        &"+OK\r\n".repeat(4),
    );
    // Of the longest keys, 256 are just below 16 MiB.
    client.ask(&watch(0..256, index::MAX_KEY), "+OK\r\n");
    client.ask(&watch(256..257, index::MAX_KEY), too_many);
    client.ask("unwatch\r\n", "+OK\r\n");

    let half = resp(&["set".to_owned(), "k".to_owned(), "x".repeat(32 << 20)]);
    client.ask(&format!("multi\r\n{half}"), "+OK\r\n+QUEUED\r\n");
    client.ask(&half, "-ERR too much is queued\r\n");
    client.ask(
        "ping\r\nexec\r\nexists k\r\n",
        "+QUEUED\r\n-EXECABORT Transaction discarded because of previous errors.\r\n:0\r\n",
    );

    let name = "n".repeat(1024);
    client.ask(&format!("client setname {name}\r\n"), "+OK\r\n");
    client.ask(
        &format!("client setname {name}n\r\nclient getname\r\n"),
        &format!("-ERR the name is longer than 1024 bytes\r\n$1024\r\n{name}\r\n"),
    );
    server.stop();
}

/// A `SCAN` of long keys ends early, and goes on from its cursor, of which the last 16,384 are remembered.
#[test]
fn scans_end_early_and_go_on() {
    const CURSORS: usize = 1 << 14;
    let server = Running::with_redis();
    let mut client = server.connect_redis();
    let bulk = |word: &str| format!("${}\r\n{word}\r\n", word.len());
    let keys: Vec<_> = (0..32)
        .map(|i| bulk(&format!("{i:0width$}", width = index::MAX_KEY)))
        .collect();
    for key in &keys {
        client.ask(&format!("*3\r\n{}{key}{}", bulk("SET"), bulk("x")), "+OK\r\n");
    }
    // Sixteen of them are just below 1 MiB.
    let (first, rest) = keys.split_at(17);
    let found = |cursor: usize, keys: &[String]| {
        let cursor = bulk(&cursor.to_string());
        format!("*2\r\n{cursor}*{}\r\n{}", keys.len(), keys.concat())
    };
    client.ask("scan 0 count 1000\r\n", &found(1, first));
    client.ask("scan 1 count 1000\r\n", &found(0, rest));

    let mut other = server.connect_redis();
    other.ask("select 1\r\nmset a 1 b 2\r\n", "+OK\r\n+OK\r\n");
    let (a, b) = ([bulk("a")], [bulk("b")]);
    for cursor in 2..=CURSORS {
        other.ask("scan 0 count 1\r\n", &found(cursor, &a));
    }
    client.ask("scan 1 count 1000\r\n", &found(0, rest));
    other.ask("scan 0 count 1\r\n", &found(CURSORS + 1, &a));
    for gone in ["1", "99999999"] {
        client.ask(&format!("scan {gone} count 1000\r\n"), "-ERR invalid cursor\r\n");
    }
    other.ask("scan 2\r\n", &found(0, &b));
    server.stop();
}
