//! A server's information about itself: its commands, its settings, its state and its clients. Where the two differ in
//! content, their words and forms do not.

use super::reply::Reply;
use super::{Client, Real, Running, real};

/// Returns a real server, this one, and a client of each.
fn both() -> (Real, Running, [Client; 2]) {
    let (real, ours) = (real(), Running::over_pool());
    let clients = [Client::connect(real.address), ours.connect_redis()];
    (real, ours, clients)
}

fn ask(clients: &mut [Client; 2], words: &[&str]) -> [Reply; 2] {
    clients.each_mut().map(|client| Reply::to(client, words))
}

/// Returns the type marks of a reply's elements: its form.
fn form(reply: &Reply) -> Vec<char> {
    reply.parts.iter().map(|part| part.kind).collect()
}

/// Returns the description of arguments, in any order, without the version that added them.
fn without_since(reply: &Reply) -> Reply {
    let mut parts: Vec<_> = reply.parts.iter().map(without_since).collect();
    if parts.first().is_some_and(|first| first.text == "name") {
        let mut pairs: Vec<_> = parts
            .chunks_exact(2)
            .filter(|pair| pair[0].text != "since")
            .collect();
        pairs.sort();
        parts = pairs.concat();
    }
    Reply {
        text: if parts.is_empty() {
            reply.text.clone()
        } else {
            String::new()
        },
        parts,
        ..*reply
    }
}

/// Commands that the real server lacks: `WAITAOF` is of a later version.
const NOT_THERE: [&str; 3] = ["krange", "kprefix", "waitaof"];

/// Each command that Redis also has is described by the same name, arity and key positions, in the same group, and in
/// the same form.
fn expect_described(clients: &mut [Client; 2]) {
    let [theirs, list] = ask(clients, &["COMMAND", "LIST"]);
    assert_eq!(list.kind, theirs.kind);
    let count = Reply::to(&mut clients[1], &["COMMAND", "COUNT"]);
    assert_eq!(count.text, list.parts.len().to_string());
    let all = ask(clients, &["COMMAND"]);
    assert_eq!(all[1].parts.len(), list.parts.len());
    let docs = ask(clients, &["COMMAND", "DOCS"]);
    assert_eq!(docs[1].kind, docs[0].kind);
    let names = list.parts.iter().map(|name| name.text.as_str());
    for name in names.filter(|name| !NOT_THERE.contains(name)) {
        let [theirs, ours] = ask(clients, &["COMMAND", "INFO", name]).map(|reply| reply.parts[0].clone());
        assert_eq!(form(&ours), form(&theirs), "{name}");
        assert_eq!(ours.parts[..2], theirs.parts[..2], "{name}");
        assert_eq!(ours.parts[3..6], theirs.parts[3..6], "{name}");
        assert!(all[1].parts.contains(&ours));
        for ours in ours
            .parts
            .last()
            .iter()
            .flat_map(|subcommands| &subcommands.parts)
        {
            let mut there = theirs.parts.iter().flat_map(|subcommands| &subcommands.parts);
            let theirs = there.find(|theirs| theirs.parts.first() == ours.parts.first());
            // Commands of later versions.
            let Some(theirs) = theirs else { continue };
            assert_eq!(form(ours), form(theirs), "{ours:?}");
            assert_eq!(ours.parts[1], theirs.parts[1], "{ours:?}");
        }
        let [theirs, ours] = docs
            .each_ref()
            .map(|docs| docs.get(name).expect("both servers document it"));
        assert_eq!(ours.kind, theirs.kind, "{name}");
        assert_eq!(ours.get("group"), theirs.get("group"), "{name}");
        let [theirs_args, ours_args] = [theirs, ours].map(|docs| docs.get("arguments").map(without_since));
        assert_eq!(ours_args, theirs_args, "{name}");
        assert_eq!(ours.get("summary").map(|text| text.kind), Some('$'));
    }
}

#[test]
fn commands_are_described_as_rediss() {
    let (_real, _ours, mut clients) = both();
    expect_described(&mut clients);
    ask(&mut clients, &["HELLO", "3"]);
    expect_described(&mut clients);
}

/// Commands and subcommands are listed by pattern as in Redis, except for those missing here.
#[test]
fn commands_are_listed_by_pattern_as_in_redis() {
    let (_real, _ours, mut clients) = both();
    let listed = |clients: &mut [Client; 2], pattern: &str| {
        ask(clients, &["COMMAND", "LIST", "FILTERBY", "PATTERN", pattern]).map(|list| {
            let mut names: Vec<_> = list.parts.into_iter().map(|name| name.text).collect();
            names.sort();
            names
        })
    };
    let [_, here] = listed(&mut clients, "*");
    for pattern in ["config|*", "CONFIG|*", "co*", "*get", "[c]onfig|get", "x"] {
        let [theirs, ours] = listed(&mut clients, pattern);
        let common: Vec<_> = theirs.into_iter().filter(|name| here.contains(name)).collect();
        assert_eq!(ours, common, "{pattern}");
    }
    for words in [
        &["COMMAND", "LIST", "FILTERBY", "PATTERN"][..],
        &["COMMAND", "LIST", "FILTERBY", "MODULE", "nonesuch"],
        &["COMMAND", "LIST", "FILTERBY", "NONESUCH", "x"],
        &["COMMAND", "LIST", "x"],
    ] {
        let [theirs, ours] = ask(&mut clients, words);
        assert_eq!(ours, theirs, "{words:?}");
    }
}

/// Settings behave as in Redis: the same values are accepted, and read back the same.
#[test]
fn settings_are_rediss() {
    let (_real, _ours, mut clients) = both();
    for (name, values) in [
        ("timeout", &["0", "100", "2147483647", "-1", "1s", "", "0"][..]),
        (
            "maxmemory",
            &[
                "100mb", "1gb", "1k", "100", "2MB", "5G", "0", "x", "1.5gb", "10xb", "", "3b", "0",
            ],
        ),
        (
            "maxmemory-policy",
            &["noeviction", "allkeys-lfu", "ALLKEYS-LFU", "noeviction"],
        ),
        ("slowlog-log-slower-than", &["-1", "0", "10000", "x"]),
        ("slowlog-max-len", &["0", "128", "1000", "x"]),
        ("proto-max-bulk-len", &["1mb", "1048576", "2m", "x", "33554432"]),
        ("maxclients", &["100", "0", "x", "200"]),
    ] {
        for value in values {
            let words = ["CONFIG", "SET", name, value];
            let [theirs, ours] = ask(&mut clients, &words);
            assert_eq!(ours, theirs, "{words:?}");
            let [theirs, ours] = ask(&mut clients, &["CONFIG", "GET", name]);
            assert_eq!(ours, theirs, "after {words:?}");
        }
    }
    for words in [
        &["CONFIG", "SET", "timeout", "5", "MAXMEMORY", "1mb"][..],
        &["CONFIG", "SET", "timeout", "6", "maxmemory", "x"],
        &["CONFIG", "SET", "timeout", "7", "maxmemory"],
        &["CONFIG", "RESETSTAT"],
    ] {
        let [theirs, ours] = ask(&mut clients, words);
        assert_eq!(ours, theirs, "{words:?}");
        let [theirs, ours] = ask(&mut clients, &["CONFIG", "GET", "timeout", "maxmemory"])
            .map(|reply| ["timeout", "maxmemory"].map(|name| reply.get(name).cloned()));
        assert_eq!(ours, theirs, "after {words:?}");
    }
    let [theirs, ours] = ask(&mut clients, &["CONFIG", "GET", "*"]);
    for pair in ours.parts.chunks_exact(2) {
        assert!(theirs.get(&pair[0].text).is_some(), "{}", pair[0].text);
    }
}

/// Returns the sections of `INFO`, with the fields of each.
fn sections(text: &str) -> Vec<(&str, Vec<(&str, &str)>)> {
    let sections = text.split("\\r\\n\\r\\n");
    sections
        .map(|section| {
            let mut lines = section.split("\\r\\n");
            let title = lines.next().and_then(|title| title.strip_prefix("# "));
            let pairs = lines.filter_map(|line| line.split_once(':'));
            (title.expect("a title"), pairs.collect())
        })
        .collect()
}

/// Fields that only this server has.
const OUR_OWN: &[&str] = &[
    "wollemi_version",
    "threads",
    "keyspace_exact",
    "http_hangups",
    "pool_level",
    "pool_sync",
    "pool_generation",
    "pool_bytes",
    "pool_used_bytes",
    "pool_free_bytes",
    "pool_given_back_bytes",
    "pool_unswept_bytes",
    "pool_recovery",
];

/// Fields that Redis monitoring programs look for.
const WATCHED: &[&str] = &[
    "redis_version",
    "redis_mode",
    "process_id",
    "tcp_port",
    "uptime_in_seconds",
    "connected_clients",
    "blocked_clients",
    "used_memory",
    "used_memory_human",
    "used_memory_rss",
    "maxmemory",
    "maxmemory_policy",
    "loading",
    "aof_enabled",
    "total_connections_received",
    "total_commands_processed",
    "rejected_connections",
    "keyspace_hits",
    "keyspace_misses",
    "evicted_keys",
    "role",
    "connected_slaves",
    "cluster_enabled",
    "db0",
];

/// The fields of `INFO` are in Redis's places, under the same names, numbers as numbers; and no field that programs
/// look for is missing.
#[test]
fn information_is_rediss() {
    let (_real, _ours, mut clients) = both();
    ask(&mut clients, &["MSET", "a", "1", "b", "2"]);
    let [theirs, ours] = ask(&mut clients, &["INFO"]);
    let [theirs, ours] = [sections(&theirs.text), sections(&ours.text)];
    let mut titles = theirs.iter().map(|(title, _)| title);
    for (title, fields) in &ours {
        assert!(titles.any(|theirs| theirs == title), "{title}, in this order");
        let (_, theirs) = theirs.iter().find(|(theirs, _)| theirs == title).expect("found");
        for (name, value) in fields.iter().filter(|(name, _)| !OUR_OWN.contains(name)) {
            let there = theirs.iter().find(|(theirs, _)| theirs == name);
            let (_, there) = there.unwrap_or_else(|| panic!("{title}: {name}"));
            let is_number = |value: &str| value.parse::<f64>().is_ok();
            assert_eq!(is_number(value), is_number(there), "{name}: {value}, {there}");
        }
    }
    let find = |sections: &[(&str, Vec<(&str, &str)>)], wanted: &str| {
        let mut all = sections.iter().flat_map(|(_, fields)| fields);
        all.find(|(name, _)| *name == wanted)
            .map(|(_, value)| value.to_string())
    };
    for name in WATCHED {
        assert!(find(&ours, name).is_some(), "{name}");
    }
    for name in [
        "redis_version",
        "redis_mode",
        "loading",
        "role",
        "db0",
        "maxmemory_human",
        "cluster_enabled",
    ] {
        assert_eq!(find(&ours, name), find(&theirs, name), "{name}");
    }
    for words in [
        &["INFO", "cluster"][..],
        &["INFO", "KEYSPACE", "cluster"],
        &["INFO", "nonesuch"],
    ] {
        let [theirs, ours] = ask(&mut clients, words);
        assert_eq!(ours, theirs, "{words:?}");
    }
}

/// Returns the fields of a client's line.
fn fields(line: &str) -> Vec<(String, String)> {
    let fields = line.trim_end_matches("\\n").split(' ');
    fields
        .filter_map(|field| field.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// A client's line has Redis's fields, in Redis's order, and its state in the same words.
#[test]
fn clients_are_told_of_as_in_redis() {
    let (real, ours, mut watched) = both();
    let mut watching = [Client::connect(real.address), ours.connect_redis()];
    let ids = ask(&mut watched, &["CLIENT", "ID"]).map(|id| id.text);
    for words in [
        &["CLIENT", "SETNAME", "somebody"][..],
        &["SELECT", "3"],
        &["GET", "a"],
        &["CONFIG", "GET", "port"],
        &["MULTI"],
        &["SET", "a", "1"],
        &["GET", "a"],
        &["DISCARD"],
        &["MULTI"],
        &["EXEC"],
        &["HELLO", "3"],
        &["RESET"],
    ] {
        ask(&mut watched, words);
        let [theirs, ours] = std::array::from_fn(|i| {
            let line = Reply::to(&mut watching[i], &["CLIENT", "LIST", "ID", &ids[i]]);
            fields(&line.text)
        });
        assert_eq!(ours[0].1, ids[1]);
        let (shared, library) = ours.split_at(theirs.len());
        let of_library: Vec<_> = library.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(of_library, ["lib-name", "lib-ver"]);
        for (ours, theirs) in shared.iter().zip(&theirs) {
            assert_eq!(ours.0, theirs.0, "after {words:?}");
            let same = [
                "name", "flags", "db", "sub", "psub", "ssub", "multi", "events", "cmd", "user", "redir",
                "resp",
            ];
            if same.contains(&ours.0.as_str()) {
                assert_eq!(ours, theirs, "after {words:?}");
            }
        }
    }
    let [theirs, ours] = ask(&mut watching, &["CLIENT", "INFO"]).map(|line| fields(&line.text).len());
    assert_eq!(ours, theirs + 2);
}

/// A client that ends its own connection gets the answer, and nothing after it.
#[test]
fn who_kills_itself_is_answered_as_in_redis() {
    let (_real, _ours, mut clients) = both();
    let ids = ask(&mut clients, &["CLIENT", "ID"]).map(|id| id.text);
    let answers = std::array::from_fn::<_, 2, _>(|i| {
        let client = &mut clients[i];
        client.send(format!("ping\r\nclient kill id {} skipme no\r\nping\r\n", ids[i]).as_bytes());
        crate::support::shown(&client.rest())
    });
    assert_eq!(answers[1], answers[0]);
}

/// A slow command is recorded in the same form, with the same words.
#[test]
fn slow_commands_are_told_as_in_redis() {
    let (_real, _ours, mut clients) = both();
    ask(&mut clients, &["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
    ask(&mut clients, &["SLOWLOG", "RESET"]);
    let long = "x".repeat(200);
    ask(&mut clients, &["SET", "a", &long]);
    ask(&mut clients, &[&["MGET"][..], &["a"; 40]].concat());
    let [theirs, ours] = ask(&mut clients, &["SLOWLOG", "GET", "2"]);
    assert_eq!(ours.parts.len(), theirs.parts.len());
    for (ours, theirs) in ours.parts.iter().zip(&theirs.parts) {
        assert_eq!(form(ours), form(theirs));
        assert_eq!(ours.parts[3], theirs.parts[3]);
    }
    let [theirs, ours] = ask(&mut clients, &["SLOWLOG", "LEN"]);
    assert_eq!(ours, theirs);
}
