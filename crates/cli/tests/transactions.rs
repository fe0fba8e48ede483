//! `serve`: a transaction is executed as a whole or not at all, wherever `kill -9` hits it, at levels `process` and
//! `disk`; at level `disk` also if the pool is lost.

mod common;

use common::server::{Client, Server};
use common::{Pool, Random};
use std::time::Duration;

const KILLS: u64 = 15;

/// Sends one round: an `EXEC` over two databases that sets, counts, removes and renames, and an `MSET`.
fn round(client: &mut Client, n: u64) -> Option<()> {
    let old = n - 1;
    let commands = [
        format!("set a {n}"),
        "select 1".to_owned(),
        format!("set b {n}"),
        "incr c".to_owned(),
        format!("del gone-{old}"),
        format!("set gone-{n} here"),
        "select 0".to_owned(),
        format!("rename name-{old} name-{n}"),
        "get a".to_owned(),
    ];
    let mut request = "multi\r\n".to_owned();
    for command in &commands {
        request += &format!("{command}\r\n");
    }
    request += "exec\r\n";
    assert_eq!(client.ask(&request)?, "+OK");
    for _ in &commands {
        assert_eq!(client.line()?, "+QUEUED");
    }
    let shown = n.to_string();
    let answers = [
        "*9",
        "+OK",
        "+OK",
        "+OK",
        &format!(":{n}"),
        ":1",
        "+OK",
        "+OK",
        "+OK",
    ];
    for answer in answers {
        assert_eq!(client.line()?, answer, "round {n}");
    }
    assert_eq!(client.line()?, format!("${}", shown.len()));
    assert_eq!(client.line()?, shown, "a read sees what was written before it");
    assert_eq!(client.ask(&format!("mset x {n} y {n} z {n}\r\n"))?, "+OK");
    Some(())
}

/// Returns the value of a number's key.
fn number(client: &mut Client, key: &str) -> u64 {
    let head = client.ask(&format!("get {key}\r\n")).expect("an answer");
    assert!(head.starts_with('$') && head != "$-1", "{key}: {head}");
    client.line().expect("a value").parse().expect("a number")
}

#[test]
fn no_half_of_a_transaction_survives_a_kill() {
    for level in ["process", "disk"] {
        transactions_are_whole(level);
    }
}

fn transactions_are_whole(level: &str) {
    let mut random = Random::announced("transactions");
    let pool = Pool::new();
    let start = || Server::start_with(&pool, &["--level", level]);
    let mut acknowledged = 0;
    let server = start();
    let mut client = server.redis_client();
    for command in [
        "set name-0 x",
        "mset a 0 x 0 y 0 z 0",
        "select 1",
        "mset b 0 c 0 gone-0 here",
    ] {
        assert_eq!(client.ask(&format!("{command}\r\n")).as_deref(), Some("+OK"));
    }
    server.kill();
    for _ in 0..KILLS {
        let server = start();
        let mut client = server.redis_client();
        let micros = 1000 + random.below(60_000);
        // One round is acknowledged however slow the machine is.
        let mut n = acknowledged + 1;
        round(&mut client, n).expect("an answer");
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(micros));
            server.kill();
        });
        while round(&mut client, n + 1).is_some() {
            n += 1;
        }
        killer.join().expect("no panic");
        pool.check();
        if level == "disk" && random.below(3) == 0 {
            std::fs::remove_file(pool.path()).expect("removed");
        }

        let server = start();
        let mut client = server.redis_client();
        let a = number(&mut client, "a");
        assert!(a == n || a == n + 1, "{a} after {n}");
        let set = ["x", "y", "z"].map(|key| number(&mut client, key));
        assert!(
            set == [set[0]; 3] && (set[0] == n || set[0] == a),
            "{set:?} beside {a}"
        );
        assert_eq!(client.ask(&format!("exists name-{a}\r\n")).as_deref(), Some(":1"));
        let mset = format!("exists name-{}\r\nmset x {a} y {a} z {a}\r\n", a.wrapping_sub(1));
        assert_eq!(client.ask(&mset).as_deref(), Some(":0"));
        assert_eq!(client.line().as_deref(), Some("+OK"));
        assert_eq!(client.ask("select 1\r\n").as_deref(), Some("+OK"));
        assert_eq!(number(&mut client, "b"), a);
        assert_eq!(number(&mut client, "c"), a);
        assert_eq!(client.ask(&format!("exists gone-{a}\r\n")).as_deref(), Some(":1"));
        let before = format!("exists gone-{}\r\n", a.wrapping_sub(1));
        assert_eq!(client.ask(&before).as_deref(), Some(":0"));
        server.kill();
        pool.check();
        acknowledged = a;
    }
}
