//! Limits that change while connections are open.

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
