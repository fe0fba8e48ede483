//! The limit on the items' memory: it holds for all writers, and is reported in each protocol's words.

use crate::support::{Client, Running, with_redis};
use index::model::ModelIndex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wollemi_server::Config;

fn server(limit: u64, evicts: bool) -> (Running, ModelIndex) {
    let index = ModelIndex::new();
    let config = Config {
        memory_limit: Some(limit),
        evicts,
        threads: 4,
        ..with_redis()
    };
    (Running::over(config, Arc::new(index.clone())), index)
}

/// Returns a number from the lines of `stats`.
fn stat(client: &mut Client, name: &str) -> u64 {
    client.send(b"stats\r\n");
    let text = String::from_utf8(client.until(b"END\r\n")).expect("text");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
    line.expect("`stats` has the name").parse().expect("a number")
}

/// While several clients write values of all lengths, in several databases and transactions, the items never take more
/// than the limit, both by the server's accounting and by the bytes of the keys and values in database 0's index.
#[test]
fn the_limit_is_kept_under_concurrent_writers() {
    const LIMIT: u64 = 1 << 20;
    let (server, index) = server(LIMIT, true);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4u64)
            .map(|writer| {
                let server = &server;
                scope.spawn(move || {
                    let mut random = writer + 1;
                    let mut next = || {
                        random = random
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1_442_695_040_888_963_407);
                        random >> 33
                    };
                    let (mut plain, mut redis) = (server.connect(), server.connect_redis());
                    redis.ask(&format!("select {writer}\r\n"), "+OK\r\n");
                    for _ in 0..1500 {
                        let (key, data) = (next() % 2000, "x".repeat((next() % 3000) as usize));
                        match next() % 4 {
                            0 => {
                                let set = format!(
                                    "*3\r\n$3\r\nSET\r\n$4\r\n{key:04}\r\n${}\r\n{data}\r\n",
                                    data.len()
                                );
                                redis.ask(
                                    &format!("multi\r\n{set}incr n\r\nexec\r\n"),
                                    "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n",
                                );
                                redis.line();
                            }
                            1 => {
                                redis.send(format!("setrange {key} {} x\r\n", data.len()).as_bytes());
                                redis.line();
                            }
                            _ => plain.ask(
                                &format!("set {key} 0 0 {}\r\n{data}\r\n", data.len()),
                                "STORED\r\n",
                            ),
                        }
                    }
                })
            })
            .collect();
        let watcher = scope.spawn(|| {
            let mut client = server.connect();
            loop {
                let last = ended.load(Ordering::Relaxed);
                assert!(stat(&mut client, "bytes") <= LIMIT);
                assert!(index.used() <= LIMIT);
                if last {
                    break;
                }
            }
        });
        for writer in writers {
            writer.join().expect("no panic");
        }
        ended.store(true, Ordering::Relaxed);
        watcher.join().expect("no panic");
    });
    let mut client = server.connect();
    assert!(stat(&mut client, "evictions") > 0);
    client.ask("stats reset\r\n", "RESET\r\n");
    assert_eq!(stat(&mut client, "evictions"), 0);
    assert_eq!(stat(&mut client, "limit_maxbytes"), LIMIT);
    assert!(
        stat(&mut client, "bytes") > LIMIT / 2,
        "no more is evicted than necessary"
    );
}

/// Without eviction, both protocols report that there is no room; a `set` that fails leaves no older value, as in
/// memcached, a `SET` leaves it, as in Redis; and removing makes room.
#[test]
fn without_eviction_there_is_an_error() {
    let (server, index) = server(2000, false);
    let (mut plain, mut redis) = (server.connect(), server.connect_redis());
    let large = "x".repeat(1500);
    let set = format!("set a 0 0 1500\r\n{large}\r\n");
    plain.ask(&set, "STORED\r\n");
    let before = index.used();
    let full = "SERVER_ERROR out of memory storing object\r\n";
    plain.ask(&set.replace("set a", "set b"), full);
    plain.ask(&set.replace("set a", "add b"), full);
    plain.ask(&format!("ms b 1500\r\n{large}\r\n"), full);
    let oom = "OOM command not allowed when used memory > 'maxmemory'.\r\n";
    redis.ask(
        &format!("set b {large}\r\nappend a {large}\r\nmset a 1 b {large}\r\n"),
        &format!("-{oom}").repeat(3),
    );
    redis.ask(
        &format!("multi\r\nset b {large}\r\nset c 1\r\nexec\r\nget c\r\nexec\r\n"),
        &format!("+OK\r\n+QUEUED\r\n+QUEUED\r\n-EXECABORT Transaction discarded because of: {oom}$-1\r\n-ERR EXEC without MULTI\r\n"),
    );
    assert_eq!(index.used(), before);
    redis.ask("set small 1\r\nstrlen a\r\n", "+OK\r\n:1500\r\n");
    plain.ask(&set, full);
    redis.ask("exists a\r\n", ":0\r\n");
    plain.ask(&set, "STORED\r\n");
    redis.ask("del a small\r\n", ":2\r\n");
    plain.ask(&set, "STORED\r\n");
}

/// An `EXEC` that is refused evicts nothing, whatever it would have stored.
#[test]
fn nothing_goes_for_a_transaction_that_is_refused() {
    let (server, index) = server(4000, true);
    let (mut client, mut other) = (server.connect_redis(), server.connect_redis());
    let large = "x".repeat(1500);
    client.ask(&format!("set a {large}\r\nset b {large}\r\n"), "+OK\r\n+OK\r\n");
    let before = index.used();
    client.ask(
        &format!("multi\r\nset c {large}\r\nset d\r\nexec\r\n"),
        "+OK\r\n+QUEUED\r\n-ERR wrong number of arguments for 'set' command\r\n\
         -EXECABORT Transaction discarded because of previous errors.\r\n",
    );
    client.ask("watch w\r\n", "+OK\r\n");
    other.ask("set w 1\r\ndel w\r\n", "+OK\r\n:1\r\n");
    client.ask(
        &format!("multi\r\nset c {large}\r\nexec\r\n"),
        "+OK\r\n+QUEUED\r\n*-1\r\n",
    );
    assert_eq!(index.used(), before);
    client.ask("exists a b\r\n", ":2\r\n");
    client.ask(
        &format!("multi\r\nset c {large}\r\nexec\r\n"),
        "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n",
    );
    client.ask("exists a b c\r\n", ":2\r\n");
}

/// The limit and the policy at the limit are shown, and can be changed while the server runs.
#[test]
fn the_limit_can_be_changed() {
    let (server, _) = server(1 << 20, true);
    let mut redis = server.connect_redis();
    redis.ask(
        "config get maxmemory*\r\n",
        "*4\r\n$9\r\nmaxmemory\r\n$7\r\n1048576\r\n$16\r\nmaxmemory-policy\r\n$11\r\nallkeys-lfu\r\n",
    );
    redis.ask(
        "config set maxmemory 3kb maxmemory-policy noeviction\r\n",
        "+OK\r\n",
    );
    redis.ask(
        "config get maxmemory\r\n",
        "*2\r\n$9\r\nmaxmemory\r\n$4\r\n3072\r\n",
    );
    for wrong in ["maxmemory much", "maxmemory -1", "maxmemory-policy volatile-lru"] {
        redis.send(format!("config set {wrong}\r\n").as_bytes());
        let line = redis.line();
        assert!(line.starts_with("-ERR CONFIG SET failed"), "{line}");
    }
    let value = "x".repeat(1000);
    redis.ask(&format!("set a {value}\r\nset b {value}\r\n"), "+OK\r\n+OK\r\n");
    redis.send(format!("set c {value}\r\n").as_bytes());
    assert!(redis.line().starts_with("-OOM "));
    redis.ask("config set maxmemory-policy allkeys-lfu\r\n", "+OK\r\n");
    redis.ask(&format!("set c {value}\r\n"), "+OK\r\n");
    redis.ask("config set maxmemory 0\r\n", "+OK\r\n");
    redis.ask(
        &format!("set d {value}\r\nset e {value}\r\nexists c d e\r\n"),
        "+OK\r\n+OK\r\n:3\r\n",
    );
    let mut plain = server.connect();
    assert_eq!(stat(&mut plain, "limit_maxbytes"), 0);
    plain.ask("cache_memlimit 8\r\n", "OK\r\n");
    assert_eq!(stat(&mut plain, "limit_maxbytes"), 8 << 20);
    redis.ask(
        "config get maxmemory\r\n",
        "*2\r\n$9\r\nmaxmemory\r\n$7\r\n8388608\r\n",
    );
    assert!(stat(&mut plain, "evictions") > 0);
}
