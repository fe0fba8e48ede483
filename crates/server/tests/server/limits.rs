//! Limits: those that change while connections are open, and those on the memory of a connection.

use crate::support::{Client, Running, with_redis};
use index::model::ModelIndex;
use std::sync::Arc;
use wollemi_server::Config;

/// A new limit on values applies to connections opened before as well as to new ones.
#[test]
fn a_new_limit_on_values_holds_at_once() {
    let server = Running::over(with_redis(), Arc::new(ModelIndex::new()));
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

/// A limit on the idle time applies to the connections that are already idle, of any worker.
#[test]
fn a_new_idle_time_holds_at_once() {
    let config = Config {
        threads: 2,
        ..with_redis()
    };
    let server = Running::over(config, Arc::new(ModelIndex::new()));
    let mut idle: Vec<_> = (0..8).map(|_| server.connect_redis()).collect();
    for client in &mut idle {
        client.ask("ping\r\n", "+PONG\r\n");
    }
    let mut other = server.connect_redis();
    // The later limit counts, from when the connection became idle.
    for limit in [1000, 1] {
        other.ask(&format!("config set timeout {limit}\r\n"), "+OK\r\n");
    }
    idle.iter_mut().for_each(Client::expect_end);
    server.stop();
}

/// The limit on memcached's values is the configured one: for `set`, `append`, `prepend`, and `ms` that appends.
#[test]
fn values_have_a_largest_size() {
    let small = Config {
        max_value: 10,
        ..with_redis()
    };
    let server = Running::over(small, Arc::new(ModelIndex::new()));
    let mut client = server.connect();
    client.ask("set k 0 0 10\r\n0123456789\r\n", "STORED\r\n");
    client.ask("append k 0 0 1\r\nx\r\n", "NOT_STORED\r\n");
    client.ask("ms k 1 MA\r\nx\r\n", "NS\r\n");
    // A value that just fits is accepted.
    client.ask("set l 0 0 8\r\n01234567\r\n", "STORED\r\n");
    client.ask("append l 0 0 1\r\n8\r\n", "STORED\r\n");
    client.ask("prepend l 0 0 1\r\n-\r\n", "STORED\r\n");
    client.ask("prepend l 0 0 1\r\n-\r\n", "NOT_STORED\r\n");
    client.ask(
        "set k 0 0 11\r\n01234567890\r\n",
        "SERVER_ERROR object too large for cache\r\n",
    );
}

/// The server's memory for a connection is bounded: watched keys, in number and in bytes, commands queued for `EXEC`,
/// the connection's name. A refusal leaves the rest unchanged.
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
    // 256 of the longest keys are just below 16 MiB.
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

/// Returns a word as a bulk string.
fn bulk(word: &str) -> String {
    format!("${}\r\n{word}\r\n", word.len())
}

/// Returns the cursor of a `SCAN`'s reply, whose keys must be these.
#[track_caller]
fn scanned(client: &mut Client, command: &str, keys: &[String]) -> u64 {
    client.send(command.as_bytes());
    assert_eq!(client.line(), "*2");
    client.line();
    let cursor = client.line().parse().expect("a number");
    client.expect(format!("*{}\r\n{}", keys.len(), keys.concat()).as_bytes());
    cursor
}

/// A `SCAN` of long keys ends early, continues from its cursor, and from the same one again: the answer may have been
/// lost.
#[test]
fn scans_end_early_and_go_on() {
    let server = Running::with_redis();
    let mut client = server.connect_redis();
    let keys: Vec<_> = (0..48)
        .map(|i| bulk(&format!("{i:0width$}", width = index::MAX_KEY)))
        .collect();
    for key in &keys {
        client.ask(&format!("*3\r\n{}{key}{}", bulk("SET"), bulk("x")), "+OK\r\n");
    }
    // Sixteen of them are just below 1 MiB.
    let first = scanned(&mut client, "scan 0 count 1000\r\n", &keys[..17]);
    for _ in 0..2 {
        let go_on = format!("scan {first} count 1000\r\n");
        let second = scanned(&mut client, &go_on, &keys[17..34]);
        assert!(first < second && second < 1 << 53, "{first}, {second}");
        let go_on = format!("scan {second} count 1000\r\n");
        assert_eq!(scanned(&mut client, &go_on, &keys[34..]), 0);
    }
    let never = first - 1;
    client.ask(&format!("scan {never} count 1000\r\n"), "-ERR invalid cursor\r\n");
    server.stop();
}

/// The next server refuses a cursor of a server that has ended, and does not mistake it for another scan's.
#[test]
fn cursors_end_with_their_server() {
    let index = ModelIndex::new();
    let server = Running::over(with_redis(), Arc::new(index.clone()));
    let mut client = server.connect_redis();
    client.ask("mset a 1 b 2 c 3\r\n", "+OK\r\n");
    let key = |key: &str| [bulk(key)];
    let old = scanned(&mut client, "scan 0 count 1\r\n", &key("a"));
    server.stop();
    let server = Running::over(with_redis(), Arc::new(index));
    let mut client = server.connect_redis();
    let new = scanned(&mut client, "scan 0 count 1\r\n", &key("a"));
    client.ask(&format!("scan {old}\r\n"), "-ERR invalid cursor\r\n");
    scanned(&mut client, &format!("scan {new} count 1\r\n"), &key("b"));
    server.stop();
}

/// The number of a command's arguments is limited only by its bytes: far above the 2^20 of older servers.
#[test]
fn a_command_may_have_very_many_arguments() {
    const PAIRS: usize = 600_000;
    let server = Running::with_redis();
    let mut client = server.connect_redis();
    let mut words = vec!["MSET".to_owned()];
    words.extend((0..2 * PAIRS).map(|i| {
        if i % 2 == 0 {
            format!("k{i}")
        } else {
            "v".to_owned()
        }
    }));
    client.ask(&resp(&words), "+OK\r\n");
    client.ask("DBSIZE\r\n", &format!(":{PAIRS}\r\n"));
    words.truncate(1);
    words[0] = "DEL".to_owned();
    words.extend((0..2 * PAIRS).map(|i| format!("k{i}")));
    client.ask(&resp(&words), &format!(":{PAIRS}\r\n"));
    // An announced number of arguments is not refused, although the server could never hold them: the limit on a
    // command's bytes applies as they arrive.
    client.send(format!("*{}\r\n", i32::MAX).as_bytes());
    let mut other = server.connect_redis();
    other.ask("PING\r\n", "+PONG\r\n");
    other.ask(
        &format!("*{}\r\n", i64::from(i32::MAX) + 1),
        "-ERR Protocol error: invalid multibulk length\r\n",
    );
}

fn resp(words: &[String]) -> String {
    let each = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{}\r\n{}", words.len(), each.collect::<String>())
}

/// A reply about commands is limited like others: one about very many names is refused.
#[test]
fn what_is_told_of_commands_is_bounded() {
    let server = Running::over(with_redis(), Arc::new(ModelIndex::new()));
    let mut client = server.connect_redis();
    let names = 200_000;
    let request = format!("*{}\r\n$7\r\ncommand\r\n$4\r\ninfo\r\n", names + 2);
    client.send((request + &"$6\r\nclient\r\n".repeat(names)).as_bytes());
    client.expect(b"-ERR the reply would be longer than 64 MiB: ask for less at a time\r\n");
    client.ask(
        "command count x\r\nping\r\n",
        "-ERR wrong number of arguments for 'command|count' command\r\n+PONG\r\n",
    );
    let request = format!("*{}\r\n$7\r\ncommand\r\n$4\r\ndocs\r\n", names + 2);
    client.send((request + &"$4\r\nnone\r\n".repeat(names)).as_bytes());
    client.expect(b"*0\r\n");
}
