//! Comparison with `redis-server`, whose answers are those of version 7.0.

mod reply;
mod tells;
mod walks;
mod words;

use super::{Random, Real, rounds};
use crate::support::{Client, Running, shown};
use reply::Reply;
use words::command;

fn encoded(words: &[String]) -> String {
    let bulk = |word: &String| format!("${}\r\n{word}\r\n", word.len());
    format!(
        "*{}\r\n{}",
        words.len(),
        words.iter().map(bulk).collect::<String>()
    )
}

fn real() -> Real {
    Real::start("redis-server", |command, own, port| {
        command
            .args(["--save", "", "--bind", &own.to_string()])
            .args(["--port", &port.to_string()]);
    })
}

/// Returns a server's answer; the end of the answer is known.
fn answer(client: &mut Client, request: &str) -> Vec<u8> {
    client.send(request.as_bytes());
    client.send(b"*1\r\n$7\r\nDISCARD\r\n*2\r\n$4\r\nECHO\r\n$12\r\n--the end--\n\r\n");
    client.until(b"--the end--\n\r\n")
}

/// Random commands get Redis's answers, in RESP2 and RESP3, singly and in pipelines.
#[test]
fn answers_are_rediss() {
    let real = real();
    let ours = Running::over_pool();
    let mut random = Random::seeded();
    for round in 0..rounds(60) {
        let mut clients = [Client::connect(real.address), ours.connect_redis()];
        if round % 2 == 1 {
            for client in &mut clients {
                client.send(b"HELLO 3\r\n");
                client.until(b"modules\r\n*0\r\n");
            }
        }
        for _ in 0..60 {
            let length = 1 + random.below(8);
            let commands: Vec<_> = (0..length).map(|_| command(&mut random)).collect();
            let request: String = commands.iter().map(|words| encoded(words)).collect();
            let [theirs, ours] = clients.each_mut().map(|client| answer(client, &request));
            assert_eq!(shown(&ours), shown(&theirs), "{commands:?}");
        }
    }
    let report = ours.stop();
    assert_eq!((report.failures, report.abandoned), (0, 0));
}

/// A watched key counts as changed exactly when it does in Redis.
#[test]
fn watched_keys_change_as_in_redis() {
    let real = real();
    let ours = Running::over_pool();
    let mut random = Random::seeded();
    let mut pairs = [(); 2].map(|()| [Client::connect(real.address), ours.connect_redis()]);
    for round in 0..rounds(1000) {
        let keys = [(); 2].map(|()| random.of(words::KEYS).to_owned());
        let watch = encoded(&["WATCH".to_owned(), keys[0].clone(), keys[1].clone()]);
        let commands: Vec<_> = (0..1 + random.below(4)).map(|_| command(&mut random)).collect();
        let changes: String = commands.iter().map(|words| encoded(words)).collect();
        let requests = [
            (0, watch),
            (1, changes),
            (0, "multi\r\nping\r\nexec\r\n".to_owned()),
        ];
        for (pair, request) in requests {
            let [theirs, ours] = pairs[pair].each_mut().map(|client| answer(client, &request));
            assert_eq!(
                shown(&ours),
                shown(&theirs),
                "round {round}: {keys:?}, {commands:?}"
            );
        }
    }
    drop(pairs);
    assert_eq!(ours.stop().failures, 0);
}

/// Each form of each command, in a fixed order, gets Redis's answer. Nothing there depends on chance or time.
#[test]
fn each_form_of_a_command_is_answered_as_in_redis() {
    let real = real();
    let ours = Running::over_pool();
    let blocks = include_str!("redis/checklist.txt").split("\n\n");
    let mut differences = Vec::new();
    for block in blocks {
        for protocol in ["2", "3"] {
            let mut clients = [Client::connect(real.address), ours.connect_redis()];
            for client in &mut clients {
                client.send(format!("HELLO {protocol}\r\n").as_bytes());
                client.until(b"modules\r\n*0\r\n");
            }
            for line in block.lines().filter(|line| !line.starts_with('#')) {
                let [theirs, ours] = clients.each_mut().map(|client| Reply::to_line(client, line));
                if ours != theirs {
                    differences.push(format!("RESP{protocol}: {line}: {ours:?} instead of {theirs:?}"));
                }
            }
        }
    }
    assert!(differences.is_empty(), "{differences:#?}");
}

/// Bytes that violate the protocol get Redis's answer, and the connection continues or ends as with Redis.
#[test]
fn answers_to_malformed_input_are_rediss() {
    let real = real();
    let ours = Running::over_pool();
    for input in [
        "*x\r\n",
        "*3000000000\r\n",
        "*1\r\n:1\r\n",
        "*1\r\n$-1\r\n",
        "*1\r\n$x\r\n",
        "*1\r\nxx\r\n",
        "*0\r\n",
        "*-1\r\n",
        "\r\n",
        "  \r\n",
        "ping\r\n",
        "ping\n",
        "PING \"a b\"\r\n",
        "ping 'a\r\n",
        "ping \"a\"b\r\n",
        "ping \"\\x41\\n\"\r\n",
        "get\r\nping\r\n",
        "*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n",
        "set k\r\n",
        "nonesuch 'a b' c\r\n",
        "quit\r\nping\r\n",
        "*2\r\n$3\r\nget\r\n$1000000000\r\n",
        "*1\r\n$ 4\r\nPING\r\n",
        "*+1\r\n$4\r\nPING\r\n",
        "*01\r\n$4\r\nPING\r\n",
        "ping\0\r\n",
        "pi\0ng\r\nping\r\n",
        "ping\r\n\0\r\nping\r\n",
        "ping\r\0\n",
        "*1\0\r\n$4\r\nPING\r\n",
        "*1\r\n$4\0\r\nPING\r\n",
        "*1\r\0$4\r\nPING\r\n",
        "*1\r\n$4\r\nPI\0G\r\n",
        "*2\r\n$4\r\nPI\0G\r\n$3\r\na\0b\r\n",
        &format!("\0{}", "x".repeat(66_000)),
        &format!("*1\0{}", "x".repeat(66_000)),
    ] {
        let answers = [real.address, ours.redis.expect("the server serves Redis clients")].map(|address| {
            let mut client = Client::connect(address);
            client.send(input.as_bytes());
            client
                .socket
                .shutdown(std::net::Shutdown::Write)
                .expect("a socket");
            shown(&client.rest())
        });
        assert_eq!(answers[1], answers[0], "{input:?}");
    }
}
