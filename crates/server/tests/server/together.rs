//! Sets that arrive and are executed together: each has the same answer and effect as alone.

use crate::support::{Client, Running, with_redis};
use index::Index;
use index::model::ModelIndex;
use std::sync::Arc;
use wollemi_server::Config;

/// More sets than the server executes together.
const MANY: usize = 100;

/// Returns servers over the reference index and over a pool.
fn servers() -> [Running; 2] {
    [Running::with_redis(), Running::over_pool()]
}

/// Returns the requests of both protocols that set keys to their data, and the answers.
fn sets<'s>(pairs: impl IntoIterator<Item = (&'s str, &'s str)> + Clone) -> [(String, String); 2] {
    let classic = pairs
        .clone()
        .into_iter()
        .map(|(key, data)| format!("set {key} 0 0 {}\r\n{data}\r\n", data.len()));
    let resp = pairs
        .clone()
        .into_iter()
        .map(|(key, data)| resp(&["SET", key, data]));
    let times = pairs.into_iter().count();
    [
        (classic.collect(), "STORED\r\n".repeat(times)),
        (resp.collect(), "+OK\r\n".repeat(times)),
    ]
}

/// Encodes a Redis client's command.
fn resp(words: &[&str]) -> String {
    let each = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{}\r\n{}", words.len(), each.collect::<String>())
}

/// Returns the answer to a Redis client that requests the data of keys.
fn values(values: &[Option<&str>]) -> String {
    let each = values.iter().map(|value| match value {
        Some(value) => format!("${}\r\n{value}\r\n", value.len()),
        None => "$-1\r\n".to_owned(),
    });
    format!("*{}\r\n{}", values.len(), each.collect::<String>())
}

fn keys(count: usize) -> Vec<String> {
    (0..count).map(|i| format!("k{i:03}")).collect()
}

/// Returns clients of both protocols.
fn clients(server: &Running) -> [Client; 2] {
    [server.connect(), server.connect_redis()]
}

/// A transaction does not run if a key that it watches is among the sets, first, last or between, even if it is set to
/// the same data. Otherwise the transaction runs.
#[test]
fn grouped_set_aborts_watching_transaction() {
    let keys = keys(MANY);
    for server in servers() {
        let mut watcher = server.connect_redis();
        let pairs = keys.iter().map(|key| (key.as_str(), "same"));
        for ((sets, stored), mut setter) in sets(pairs).into_iter().zip(clients(&server)) {
            for watched in [0, 1, 63, 64, MANY - 1].map(|i| keys[i].as_str()) {
                watcher.ask(&format!("watch other {watched}\r\n"), "+OK\r\n");
                setter.ask(&sets, &stored);
                watcher.ask("multi\r\nset x 1\r\nexec\r\n", "+OK\r\n+QUEUED\r\n*-1\r\n");
                watcher.ask("exists x\r\n", ":0\r\n");
            }
            watcher.ask("watch other absent\r\n", "+OK\r\n");
            setter.ask(&sets, &stored);
            watcher.ask("multi\r\nset x 1\r\nexec\r\n", "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n");
            watcher.ask("del x\r\n", ":1\r\n");
        }
        // The connection that watches the key sets it, in the same segment as the transaction.
        let own = "watch k000\r\nset k000 a\r\nset k001 b\r\nmulti\r\nping\r\nexec\r\n";
        watcher.ask(own, "+OK\r\n+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n*-1\r\n");
        server.stop();
    }
}

/// A flush of either protocol between sets drops the items stored before it and none stored after it.
#[test]
fn flush_between_sets_drops_earlier_items() {
    let keys = keys(MANY);
    let (before, behind) = keys.split_at(70);
    for server in servers() {
        let all = |some: &'static str, keys: &[String]| {
            let pairs: Vec<_> = keys.iter().map(|key| (key.clone(), some)).collect();
            let pairs = pairs.iter().map(|(key, data)| (key.as_str(), *data));
            sets(pairs)
        };
        let flushes = [
            ("flush_all\r\n", "OK\r\n", 0),
            ("FLUSHALL\r\n", "+OK\r\n", 1),
            ("FLUSHDB\r\n", "+OK\r\n", 1),
        ];
        let [mut memcached, mut redis] = clients(&server);
        for (flush, flushed, protocol) in flushes {
            // The flush drops the items before it; one of their keys is set again behind it.
            redis.ask("set old x\r\n", "+OK\r\n");
            let [first, second, third] = [
                all("before", before)[protocol].clone(),
                all("before", &keys[70..71])[protocol].clone(),
                all("behind", behind)[protocol].clone(),
            ];
            let request = first.0 + &second.0 + flush + &third.0;
            let answer = first.1 + &second.1 + flushed + &third.1;
            let client = if protocol == 0 { &mut memcached } else { &mut redis };
            client.ask(&request, &answer);
            redis.ask(
                "dbsize\r\nexists old\r\n",
                &format!(":{}\r\n:0\r\n", behind.len()),
            );
            let got: Vec<_> = (0..MANY).map(|i| (i >= 70).then_some("behind")).collect();
            redis.ask(&format!("mget {}\r\n", keys.join(" ")), &values(&got));
        }
        server.stop();
    }
}

/// The last set of a key wins, whether the sets are executed together or not; a request between sets sees exactly the
/// sets before it.
#[test]
fn last_set_of_a_key_wins() {
    let data: Vec<_> = (0..MANY).map(|i| format!("{i:03}")).collect();
    for server in servers() {
        let pairs = data
            .iter()
            .flat_map(|data| [("twice", data.as_str()), ("other", "x")]);
        for ((sets, stored), mut client) in sets(pairs).into_iter().zip(clients(&server)) {
            client.ask(&sets, &stored);
            server
                .connect()
                .ask("get twice\r\n", "VALUE twice 0 3\r\n099\r\nEND\r\n");
        }
        server.connect().ask(
            "set k 0 0 1\r\na\r\nset k 0 0 1\r\nb\r\nget k\r\nset k 0 0 1\r\nc\r\nappend k 0 0 1\r\nd\r\nset l 0 0 1\r\ne\r\nget k l\r\n",
            "STORED\r\nSTORED\r\nVALUE k 0 1\r\nb\r\nEND\r\nSTORED\r\nSTORED\r\nSTORED\r\n\
             VALUE k 0 2\r\ncd\r\nVALUE l 0 1\r\ne\r\nEND\r\n",
        );
        server.connect_redis().ask(
            "set k a\r\nset k b\r\nget k\r\nset k 1\r\nincr k\r\nset l e\r\nmget k l\r\ndbsize\r\n",
            "+OK\r\n+OK\r\n$1\r\nb\r\n+OK\r\n:2\r\n+OK\r\n*2\r\n$1\r\n2\r\n$1\r\ne\r\n:4\r\n",
        );
        server.stop();
    }
}

/// Options, expiry times and flags of a set take effect within a group; a later plain set resets them.
#[test]
fn options_take_effect_in_groups() {
    for server in servers() {
        let mut redis = server.connect_redis();
        let end = "4102444800";
        let dialogue: &[(&[&str], &str)] = &[
            (&["SET", "k", "1"], "+OK\r\n"),
            (&["SET", "k", "2", "NX"], "$-1\r\n"),
            (&["SET", "k", "3", "GET"], "$1\r\n1\r\n"),
            (&["set", "k", "4", "XX"], "+OK\r\n"),
            (&["SET", "k", "5", "EXAT", end], "+OK\r\n"),
            (&["EXPIRETIME", "k"], ":4102444800\r\n"),
            (&["SET", "l", "1"], "+OK\r\n"),
            (&["SET", "k", "6", "KEEPTTL"], "+OK\r\n"),
            (&["EXPIRETIME", "k"], ":4102444800\r\n"),
            (&["SET", "k", "7"], "+OK\r\n"),
            (&["SET", "l", "2"], "+OK\r\n"),
            (&["EXPIRETIME", "k"], ":-1\r\n"),
            (&["SET", "k", "8", "WRONG"], "-ERR syntax error\r\n"),
            (
                &["SET", "", "8"],
                "-ERR the empty key is reserved for the server\r\n",
            ),
            (
                &["SET", "k"],
                "-ERR wrong number of arguments for 'set' command\r\n",
            ),
            (&["SET", "n", "9", "NX"], "+OK\r\n"),
            (
                &["SETEX", "l", "0", "3"],
                "-ERR invalid expire time in 'setex' command\r\n",
            ),
            (&["SETNX", "l", "3"], ":0\r\n"),
            (&["SET", "l", "4"], "+OK\r\n"),
            (
                &["MGET", "k", "l", "n"],
                "*3\r\n$1\r\n7\r\n$1\r\n4\r\n$1\r\n9\r\n",
            ),
        ];
        let request: String = dialogue.iter().map(|(words, _)| resp(words)).collect();
        let answer: String = dialogue.iter().map(|&(_, answer)| answer).collect();
        redis.ask(&request, &answer);

        // Sets that expire at once, that have flags and an expiry time, and that get no answer.
        let mut memcached = server.connect();
        memcached.ask(
            "set m 7 0 1\r\na\r\nset m 0 -1 1\r\nb\r\nset n 8 4102444800 1\r\nc\r\nset o 9 0 1 noreply\r\nd\r\n\
             get m n o\r\nset m 5 -1 1\r\ne\r\nset m 6 0 1\r\nf\r\nget m\r\n",
            "STORED\r\nSTORED\r\nSTORED\r\nVALUE n 8 1\r\nc\r\nVALUE o 9 1\r\nd\r\nEND\r\n\
             STORED\r\nSTORED\r\nVALUE m 6 1\r\nf\r\nEND\r\n",
        );
        redis.ask("expiretime n\r\nexpiretime o\r\n", ":4102444800\r\n:-1\r\n");
        server.stop();
    }
}

/// At a memory limit without eviction, each set has its own answer: those that fit are stored, before and after one
/// that does not. A set that does not fit removes the key's older value under memcached's protocol and keeps it under
/// Redis's.
#[test]
fn those_that_fit_are_stored() {
    let index = ModelIndex::new();
    let config = Config {
        memory_limit: Some(3000),
        evicts: false,
        ..with_redis()
    };
    let server = Running::over(config, Arc::new(index));
    let [mut memcached, mut redis] = clients(&server);
    let (large, small) = ("x".repeat(1500), "y".repeat(1000));
    let data = [
        ("a", small.as_str()),
        ("b", large.as_str()),
        ("c", large.as_str()),
        ("d", "1"),
        ("d", large.as_str()),
        ("e", "2"),
    ];
    let [_, (request, _)] = sets(data);
    let oom = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    redis.ask(&request, &format!("+OK\r\n+OK\r\n{oom}+OK\r\n{oom}+OK\r\n"));
    redis.ask(
        "mget a b c d e\r\n",
        &values(&[Some(&small), Some(&large), None, Some("1"), Some("2")]),
    );
    redis.ask("flushall\r\n", "+OK\r\n");
    let [(request, _), _] = sets(data);
    let full = "SERVER_ERROR out of memory storing object\r\n";
    let quiet = format!("set c 0 0 1500 noreply\r\n{large}\r\nset f 0 0 1 noreply\r\n3\r\n");
    memcached.ask(
        &(request + &quiet + "mn\r\n"),
        &format!("STORED\r\nSTORED\r\n{full}STORED\r\n{full}STORED\r\nMN\r\n"),
    );
    redis.ask(
        "mget a b c d e f\r\n",
        &values(&[Some(&small), Some(&large), None, None, Some("2"), Some("3")]),
    );
    server.stop();
}

/// A set whose key holds a value without an item header gets its own error, and leaves that value; it does not count as
/// executed.
#[test]
fn one_that_fails_leaves_the_others_alone() {
    let index = ModelIndex::new();
    let server = Running::over(with_redis(), Arc::new(index.clone()));
    index
        .insert(b"foreign", b"short")
        .expect("the model does not fail");
    let pairs = [("a", "1"), ("foreign", "2"), ("b", "3")];
    let [memcached, redis] = sets(pairs).map(|(request, _)| request);
    let why = "the key holds a value that no Wollemi server has written";
    server.connect().ask(
        &(memcached + "set foreign 0 0 1 noreply\r\n4\r\nset c 0 0 1\r\n5\r\n"),
        &format!("STORED\r\nSERVER_ERROR {why}\r\nSTORED\r\nSTORED\r\n"),
    );
    let long = resp(&["SET", &"k".repeat(index::MAX_KEY + 1), "x"]);
    server.connect_redis().ask(
        &(redis + &long + "set foreign 5 keepttl\r\nset d 6\r\nmget a b c d\r\n"),
        &format!(
            "+OK\r\n-ERR {why}\r\n+OK\r\n-ERR key of 65536 bytes: the longest key is 65535 bytes\r\n-ERR {why}\r\n+OK\r\n{}",
            values(&["1", "3", "5", "6"].map(Some))
        ),
    );
    let guard = heap::pin();
    let foreign = index.get(b"foreign", &guard).expect("the model does not fail");
    assert_eq!(foreign.as_deref(), Some(&b"short"[..]));
    let report = server.stop();
    assert_eq!(report.failures, 2, "of memcached's clients");
    assert_eq!(report.sets, 6, "of both protocols' clients");
}
