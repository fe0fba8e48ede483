//! `KEYS`, `SCAN` and `RANDOMKEY`, compared as sets because Redis visits keys in another order. And `KRANGE`, compared
//! with Redis's ranges of sorted-set members.

use super::reply::Reply;
use super::{Client, Random, Running, real, rounds};

/// The letters of keys and patterns.
const LETTERS: &[&str] = &["a", "b", "c", "*", "?", "[", "]", "^", "-", "\\", "\0", "\u{e9}"];

fn word(random: &mut Random, longest: usize) -> String {
    let length = 1 + random.below(longest);
    (0..length).map(|_| random.of(LETTERS)).collect()
}

/// Returns a pattern without ranges that end in a byte above 127: Redis compares such bytes as `char`, whose signedness
/// depends on the machine.
fn pattern(random: &mut Random) -> String {
    let pattern = word(random, 6);
    match pattern.is_ascii() {
        true => pattern,
        false => pattern.replace('-', ""),
    }
}

/// Returns both replies to a command.
fn both(clients: &mut [Client; 2], words: &[&str]) -> [Reply; 2] {
    clients.each_mut().map(|client| Reply::to(client, words))
}

fn expect_same(clients: &mut [Client; 2], words: &[&str]) {
    let [theirs, ours] = both(clients, words);
    assert_eq!(ours, theirs, "{words:?}");
}

/// Returns all keys that a scan with these options visits.
fn scan(client: &mut Client, options: &[&str]) -> Vec<Reply> {
    let (mut cursor, mut keys) = ("0".to_owned(), Vec::new());
    loop {
        let mut reply = Reply::to(client, &[&["SCAN", &cursor], options].concat());
        assert_eq!(reply.parts.len(), 2, "{reply:?}");
        keys.append(&mut reply.parts[1].parts);
        cursor.clone_from(&reply.parts[0].text);
        if cursor == "0" {
            keys.sort();
            keys.dedup();
            return keys;
        }
    }
}

/// Both servers match the same keys for every pattern; a full `SCAN` returns every key at any `COUNT`; `RANDOMKEY`
/// returns an existing key; and after `FLUSHDB` or `FLUSHALL` both are empty.
#[test]
fn walks_match_redis() {
    let real = real();
    let ours = Running::over_pool();
    let mut random = Random::seeded();
    for round in 0..rounds(20) {
        let mut clients = [Client::connect(real.address), ours.connect_redis()];
        if round % 2 == 1 {
            both(&mut clients, &["HELLO", "3"]);
        }
        let mut made: Vec<String> = Vec::new();
        for _ in 0..random.below(60) {
            let key = word(&mut random, 5);
            match random.below(12) {
                0 => expect_same(&mut clients, &["DEL", &key]),
                1 => expect_same(&mut clients, &["RENAMENX", &key, &word(&mut random, 5)]),
                2 if !made.is_empty() => {
                    let from = &made[random.below(made.len())];
                    expect_same(&mut clients, &["RENAME", from, &key]);
                }
                _ => expect_same(&mut clients, &["SET", &key, "x"]),
            }
            made.push(key);
        }
        expect_same(&mut clients, &["DBSIZE"]);
        let [theirs, ours] = both(&mut clients, &["KEYS", "*"]).map(Reply::into_set);
        assert_eq!(ours, theirs);
        for client in &mut clients {
            let random = Reply::to(client, &["RANDOMKEY"]);
            assert!(
                ours.parts.contains(&random) || ours.parts.is_empty(),
                "{random:?}"
            );
        }
        for _ in 0..40 {
            let pattern = pattern(&mut random);
            let [theirs, ours] = both(&mut clients, &["KEYS", &pattern]).map(Reply::into_set);
            assert_eq!(ours, theirs, "KEYS {pattern}");
            let count = (1 + random.below(30)).to_string();
            let kind = random.of(&["string", "STRING", "hash", "nonesuch"]);
            for options in [
                &["COUNT", &count, "MATCH", &pattern][..],
                &["TYPE", kind, "COUNT", &count],
                &["MATCH", &pattern, "TYPE", kind],
            ] {
                let [theirs, ours] = clients.each_mut().map(|client| scan(client, options));
                assert_eq!(ours, theirs, "SCAN {options:?}");
            }
        }
        if random.below(2) == 0 {
            let flush = random.of(&["FLUSHDB", "FLUSHALL"]);
            expect_same(&mut clients, &[flush]);
            expect_same(&mut clients, &["DBSIZE"]);
            expect_same(&mut clients, &["RANDOMKEY"]);
            expect_same(&mut clients, &["KEYS", "*"]);
        }
    }
    assert_eq!(ours.stop().failures, 0);
}

/// Returns a bound of `ZRANGEBYLEX`, or rarely an invalid one. Invalid bounds have no zero byte: Redis compares `-` and
/// `+` as C strings, so `-\0...` counts as `-`.
fn bound(random: &mut Random) -> String {
    let text = word(random, 3);
    match random.below(8) {
        0 => "-".to_owned(),
        1 => "+".to_owned(),
        2 => text.replace('\0', ""),
        3 => random.of(&["[", "("]).to_owned(),
        4 | 5 => format!("[{text}"),
        _ => format!("({text}"),
    }
}

/// Ranges of keys match those of a sorted set's members with equal scores, for all bounds, limits and directions.
#[test]
fn key_ranges_match_sorted_set_ranges() {
    let real = real();
    let ours = Running::over_pool();
    let mut random = Random::seeded();
    let mut clients = [Client::connect(real.address), ours.connect_redis()];
    for _ in 0..rounds(20) {
        for client in &mut clients {
            Reply::to(client, &["FLUSHALL"]);
        }
        for _ in 0..random.below(40) {
            let key = word(&mut random, 4);
            Reply::to(&mut clients[0], &["ZADD", "z", "0", &key]);
            Reply::to(&mut clients[1], &["SET", &key, "x"]);
        }
        for _ in 0..100 {
            let [from, to] = [bound(&mut random), bound(&mut random)];
            let limit = random.of(&["-1", "0", "1", "2", "5", "100", "x"]);
            let limited = random.below(2) == 0;
            let (theirs, ours) = match random.below(2) {
                0 => ("ZRANGEBYLEX", &[][..]),
                _ => ("ZREVRANGEBYLEX", &["REV"][..]),
            };
            let mut theirs = vec![theirs, "z", &from, &to];
            let mut ours = [&["KRANGE", &from, &to], ours].concat();
            if limited {
                theirs.extend(["LIMIT", "0", limit]);
                ours.extend(["LIMIT", limit]);
            }
            let [theirs, ours] =
                [(0, theirs), (1, ours)].map(|(i, words)| (Reply::to(&mut clients[i], &words), words));
            assert_eq!(ours.0, theirs.0, "{:?}, {:?}", ours.1, theirs.1);
        }
    }
    assert_eq!(ours.stop().failures, 0);
}
