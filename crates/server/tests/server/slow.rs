//! Durations of commands, and the slow log.

use crate::support::{Client, Running, with_redis};
use index::model::ModelIndex;
use std::sync::Arc;
use wollemi_server::Config;

/// Returns a server that considers every command slow, and keeps few.
fn server(length: usize) -> Running {
    let all = Config {
        slow_threshold: 0,
        slow_length: length,
        ..with_redis()
    };
    Running::over(all, Arc::new(ModelIndex::new()))
}

/// Returns the value of one name in `stats`; "" if it is absent.
fn stat(client: &mut Client, what: &str, name: &str) -> String {
    client.send(format!("stats {what}\r\n").as_bytes());
    let text = String::from_utf8(client.until(b"END\r\n")).expect("UTF-8");
    let begin = format!("STAT {name} ");
    let found = text.lines().find_map(|line| line.strip_prefix(&begin));
    found.unwrap_or_default().to_owned()
}

/// Slow commands are kept as in Redis: newest first, shortened, at most as many as configured, without passwords.
#[test]
fn slow_commands_are_kept() {
    let server = server(5);
    let mut client = server.connect_redis();
    client.ask("client setname me\r\n", "+OK\r\n");
    client.ask("slowlog reset\r\n", "+OK\r\n");
    client.send(b"auth one two\r\n");
    assert!(client.line().starts_with("-WRONGPASS"));
    let long = "x".repeat(200);
    client.ask(&format!("set k {long}\r\n"), "+OK\r\n");
    client.send(b"slowlog get 2\r\n");
    let reply: Vec<_> = (0..25).map(|_| client.line()).collect();
    assert_eq!((reply[0].as_str(), reply[1].as_str()), ("*2", "*6"));
    assert_eq!(reply[5], "*3");
    assert_eq!((reply[7].as_str(), reply[9].as_str()), ("set", "k"));
    assert_eq!(reply[11], format!("{}... (72 more bytes)", "x".repeat(128)));
    assert_eq!(reply[15], "me");
    assert_eq!((reply[16].as_str(), reply[20].as_str()), ("*6", "*2"));
    assert_eq!((reply[22].as_str(), reply[24].as_str()), ("auth", "(redacted)"));
    client.until(b"me\r\n");
    for _ in 0..9 {
        client.ask("ping\r\n", "+PONG\r\n");
    }
    client.ask("slowlog len\r\n", ":5\r\n");
    client.ask(
        "config set slowlog-log-slower-than -1 slowlog-max-len 7\r\n",
        "+OK\r\n",
    );
    client.ask("slowlog reset\r\nslowlog len\r\n", "+OK\r\n:0\r\n");
    client.ask(
        "slowlog get -2\r\n",
        "-ERR count should be greater than or equal to -1\r\n",
    );
    client.ask(
        "slowlog what\r\n",
        "-ERR unknown subcommand 'what'. Try SLOWLOG HELP.\r\n",
    );
}

/// memcached's clients see the same log.
#[test]
fn slow_commands_are_among_the_stats() {
    let server = server(128);
    let mut client = server.connect();
    client.ask("set some 0 0 1\r\nx\r\n", "STORED\r\n");
    client.ask("get some other\r\n", "VALUE some 0 1\r\nx\r\nEND\r\n");
    assert_eq!(stat(&mut client, "slowlog", "0:command"), "set some");
    assert_eq!(stat(&mut client, "slowlog", "1:command"), "get some other");
    assert_eq!(stat(&mut client, "slowlog", "1:protocol"), "memcached");
    assert_eq!(stat(&mut client, "settings", "slowlog_micros"), "0");
}

/// Each command is counted under its name, once per request, however many are looked up together.
#[test]
fn commands_are_timed() {
    let server = server(0);
    let mut client = server.connect();
    client.ask("get a b c\r\nget d\r\nmg a\r\n", "END\r\nEND\r\nEN\r\n");
    client.ask(
        "set a 0 0 1\r\nx\r\ngat 0 a\r\n",
        "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n",
    );
    client.ask("ms b 1\r\ny\r\nwhat\r\n", "HD\r\nERROR\r\n");
    let mut redis = server.connect_redis();
    redis.ask(
        "get a\r\nget b\r\nmget a b\r\n",
        "$1\r\nx\r\n$1\r\ny\r\n*2\r\n$1\r\nx\r\n$1\r\ny\r\n",
    );
    redis.ask("multi\r\nincr n\r\nexec\r\n", "+OK\r\n+QUEUED\r\n*1\r\n:1\r\n");
    for (command, count) in [
        ("memcached:get", "2"),
        ("memcached:mg", "1"),
        ("memcached:set", "1"),
        ("memcached:gat", "1"),
        ("memcached:ms", "1"),
        ("redis:get", "2"),
        ("redis:mget", "1"),
        ("redis:exec", "1"),
        ("redis:incr", ""),
    ] {
        let counted = stat(&mut client, "latency", &format!("{command}:count"));
        assert_eq!(counted, count, "{command}");
    }
    let micros = |client: &mut Client, name: &str| -> f64 {
        let found = stat(client, "latency", &format!("memcached:set:{name}"));
        found.parse().expect("microseconds")
    };
    let (half, max) = (micros(&mut client, "p50"), micros(&mut client, "max"));
    assert!(0.0 < half && half <= max);
    client.ask("stats reset\r\n", "RESET\r\n");
    assert_eq!(stat(&mut client, "latency", "memcached:set:count"), "");
}
