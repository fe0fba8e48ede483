//! Beside `redis-server`, whose answers are those of version 7.0.

use super::{Random, Real, rounds};
use crate::support::{Client, Running, shown};

const KEYS: &[&str] = &["a", "b", "c", "counter", "key with blank", "k\r\nx"];
const VALUES: &[&str] = &[
    "",
    "1",
    "42",
    "-7",
    "007",
    "9223372036854775807",
    "word",
    "1.5",
    "a\r\nb",
    "10 ",
    "3e2",
    "-0",
    "+1",
];
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "-2",
    "5",
    "10",
    "-100",
    "9223372036854775807",
    "-9223372036854775808",
    "x",
    "",
    "1.5",
    " 1",
    "01",
];
const SECONDS: &[&str] = &[
    "100",
    "1000",
    "0",
    "-1",
    "x",
    "9223372036854775807",
    "9223372036854775",
];
const MILLISECONDS: &[&str] = &["100000", "1000000", "0", "-5", "x", "9223372036854775807"];

const FLOATS: &[&str] = &[
    "0.25", "-0.25", "3", "1e2", "5.0e-1", "-.5", "+1", "x", "", "1.5.5", " 1",
];
const TIMES: &[&str] = &["33177117420000", "33177117421500", "33177117422499", "1", "-5"];

/// A command, more or less; single capitals stand for words of a kind. What depends on the moment is not among them: of
/// the key `timed`, alone, times are asked for, since it has absolute ones.
const SHAPES: &[&str] = &[
    "GET K",
    "GET K",
    "GET K",
    "SET K V",
    "SET K V",
    "SET K V",
    "SET K V NX",
    "SET K V XX",
    "SET K V GET",
    "SET K V EX S",
    "SET K V PX M",
    "SET K V KEEPTTL",
    "SET K V NX GET",
    "SET K V XX GET KEEPTTL",
    "SET K V EX S NX",
    "SET K V EX",
    "SET K V NX XX",
    "SET K V EX S PX M",
    "SET K V bogus",
    "SET K V KEEPTTL EX S",
    "SET K",
    "SETNX K V",
    "SETEX K S V",
    "PSETEX K M V",
    "GETSET K V",
    "GETDEL K",
    "GETEX K",
    "GETEX K EX S",
    "GETEX K PX M",
    "GETEX K PERSIST",
    "GETEX K bogus",
    "GETEX K EX",
    "APPEND K V",
    "STRLEN K",
    "GETRANGE K N N",
    "SUBSTR K N N",
    "SETRANGE K N V",
    "SETRANGE K 3 V",
    "INCR K",
    "DECR K",
    "INCRBY K N",
    "DECRBY K N",
    "INCRBYFLOAT float F",
    "INCRBYFLOAT float F",
    "GET float",
    "MGET K K K",
    "MSET K V K V",
    "MSET K V K",
    "MSETNX K V K V",
    "MSETNX K",
    "DEL K",
    "DEL K K",
    "UNLINK K",
    "EXISTS K K",
    "TYPE K",
    "TOUCH K K",
    "EXPIRE K S",
    "EXPIRE K S NX",
    "EXPIRE K S XX",
    "EXPIRE K S NX XX",
    "EXPIRE K S GT LT",
    "EXPIRE K S bogus",
    "PEXPIRE K M",
    "EXPIREAT K 33177117420",
    "EXPIREAT K 1",
    "PERSIST K",
    "RENAME K K",
    "RENAMENX K K",
    "DBSIZE",
    "KEYS none*",
    "SET timed V",
    "SET timed V PXAT A",
    "SET timed V KEEPTTL",
    "GETEX timed PXAT T",
    "PEXPIREAT timed T",
    "PEXPIREAT timed T GT",
    "PEXPIREAT timed T LT",
    "PEXPIREAT timed T NX",
    "PEXPIREAT timed T XX",
    "EXPIRETIME timed",
    "PEXPIRETIME timed",
    "PERSIST timed",
    "TTL nothing",
    "PTTL nothing",
    "SELECT 1",
    "SELECT 0",
    "SELECT 0",
    "SELECT 16",
    "SELECT x",
    "MULTI",
    "MULTI",
    "EXEC",
    "EXEC",
    "EXEC",
    "DISCARD",
    "WATCH K",
    "UNWATCH",
    "PING",
    "PING V",
    "ECHO V",
    "PING V V",
    "ECHO",
    "NONESUCH V V",
    "get",
    "gEt K",
    "CLIENT SETNAME ok",
    "CLIENT GETNAME",
    "CLIENT SETNAME",
    "CLIENT SETNAME K",
    "AUTH V",
    "HELLO 4",
    "HELLO x",
    "FLUSHDB",
    "FLUSHALL ASYNC",
    "FLUSHDB bogus",
    "CONFIG SET",
    "DBSIZE V",
    "EXISTS",
    "SCAN x",
    "SCAN 0 COUNT 0",
    "SCAN 0 COUNT",
    "SCAN 0 bogus 1",
    "RESET",
    "GETDEL",
    "EXPIRE K",
    "CONFIG bogus",
    "CONFIG SET timeout -1",
    "CONFIG SET timeout x",
    "CONFIG SET maxclients 0",
    "CONFIG SET maxmemory 0 timeout 0 MAXMEMORY 1",
    "CONFIG SET foo 1 foo 2",
    "CONFIG SET maxclients x databases 1",
    "CLIENT bogus",
    "CLIENT LIST TYPE bogus",
    "CLIENT LIST TYPE pubsub",
    "CLIENT LIST ID x",
    "CLIENT LIST ID 999999999 0",
    "CLIENT KILL TYPE bogus",
    "CLIENT KILL TYPE pubsub",
    "CLIENT KILL USER bogus",
    "CLIENT KILL USER default ID 999999999",
    "CLIENT KILL ID x",
    "CLIENT KILL ADDR 1.2.3.4:5",
    "CLIENT KILL 1.2.3.4:5",
    "CLIENT NO-EVICT bogus",
    "CLIENT NO-EVICT off",
    "SLOWLOG GET x",
    "SLOWLOG GET -2",
    "SLOWLOG HELP x",
    "BGSAVE bogus",
    "BGSAVE SCHEDULE V",
    "SAVE V",
    "LASTSAVE V",
];

fn command(random: &mut Random) -> Vec<String> {
    random
        .of(SHAPES)
        .split(' ')
        .map(|word| {
            let words = match word {
                "K" => KEYS,
                "V" => VALUES,
                "N" => NUMBERS,
                "S" => SECONDS,
                "M" => MILLISECONDS,
                "F" => FLOATS,
                "T" => TIMES,
                "A" => &TIMES[..3], // A time that is past is not seen at once, there as here.
                literal => return literal.to_owned(),
            };
            random.of(words).to_owned()
        })
        .collect()
}

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

/// What a server answers; the last answer is known.
fn answer(client: &mut Client, request: &str) -> Vec<u8> {
    client.send(request.as_bytes());
    client.send(b"*1\r\n$7\r\nDISCARD\r\n*2\r\n$4\r\nECHO\r\n$12\r\n--the end--\n\r\n");
    client.until(b"--the end--\n\r\n")
}

/// Random commands have the answers that Redis gives, in RESP2 and RESP3, alone and in pipelines.
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

/// What is not the protocol has the answer that Redis gives, and the connection goes on or ends as there.
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
        let answers = [real.address, ours.redis.expect("it serves Redis clients")].map(|address| {
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
