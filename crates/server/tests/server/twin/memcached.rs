//! Comparison with `memcached`, whose answers are those of version 1.6.18.
//!
//! Answers about time and uniques differ between two servers, and are [masked](mask); values that depend on both have
//! lifetimes of hours. The requests avoid what `docs/server.md` lists as a difference.

mod mask;
mod requests;
mod words;

use super::{Random, Real, rounds};
use crate::support::{Client, PATIENCE, Running, config, shown};
use index::model::ModelIndex;
use mask::Uniques;
use requests::{END, ENDS};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

fn real() -> Real {
    Real::start("memcached", |command, own, port| {
        command
            .args(["-l", &own.to_string(), "-p", &port.to_string()])
            .args(["-U", "0", "-m", "1024", "-u", "root"])
            // Its other threads keep items for a moment, and such an item is not incremented in place.
            .args(["-o", "no_lru_maintainer,no_lru_crawler"]);
    })
}

/// A connection to one of the two, and the uniques it has shown.
struct Side {
    address: SocketAddr,
    client: Client,
    uniques: Uniques,
}

impl Side {
    fn new(address: SocketAddr) -> Side {
        Side {
            address,
            client: Client::connect(address),
            uniques: Uniques::default(),
        }
    }

    /// Returns its masked answer to a request.
    fn answer(&mut self, requests: &str) -> Vec<String> {
        let ends = requests.ends_with(ENDS);
        self.client.send(self.uniques.filled_in(requests).as_bytes());
        let answer = if ends {
            let rest = self.client.rest();
            self.client = Client::connect(self.address);
            rest
        } else {
            self.client.send(END.as_bytes());
            self.client.until(requests::ENDED)
        };
        self.uniques.masked(&answer)
    }
}

/// Random requests, classic ones and meta commands, get memcached's answers, singly and in pipelines.
#[test]
fn answers_are_memcacheds() {
    let real = real();
    let ours = Running::over_pool();
    let mut random = Random::seeded();
    let mut sides = [Side::new(real.address), Side::new(ours.address)];
    for round in 0..rounds(3000) {
        let requests = requests::some(&mut random);
        let [theirs, ours] = sides.each_mut().map(|side| side.answer(&requests));
        assert_eq!(ours, theirs, "round {round}, to {}", shown(requests.as_bytes()));
    }
    drop(sides);
    let report = ours.stop();
    assert_eq!((report.failures, report.abandoned), (0, 0));
}

/// Statistics that only this server has.
const OUR_OWN: &[&str] = &[
    "wollemi_version",
    "curr_items_exact",
    "swept_items",
    "server_errors",
    "http_hangups",
    "redis_commands",
    "slowlog_micros",
    "slowlog_length",
    // memcached shows it only with a limit on idle time.
    "idle_kicks",
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

/// Statistics that memcached monitoring programs look for.
const WATCHED: &[&str] = &[
    "pid",
    "uptime",
    "time",
    "version",
    "max_connections",
    "curr_connections",
    "total_connections",
    "rejected_connections",
    "accepting_conns",
    "cmd_get",
    "cmd_set",
    "cmd_flush",
    "cmd_touch",
    "get_hits",
    "get_misses",
    "delete_hits",
    "delete_misses",
    "incr_hits",
    "incr_misses",
    "decr_hits",
    "decr_misses",
    "cas_hits",
    "cas_misses",
    "cas_badval",
    "touch_hits",
    "touch_misses",
    "store_too_large",
    "store_no_memory",
    "bytes_read",
    "bytes_written",
    "limit_maxbytes",
    "threads",
    "bytes",
    "curr_items",
    "evictions",
];

/// Returns statistics or settings, by name.
fn statistics(client: &mut Client, request: &str) -> Vec<(String, String)> {
    client.send(request.as_bytes());
    let text = String::from_utf8(client.until(b"END\r\n")).expect("text");
    let lines = text.lines().filter_map(|line| line.strip_prefix("STAT "));
    lines
        .filter_map(|line| line.split_once(' '))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Statistics and settings have memcached's names, and numbers where it has numbers; and all names that clients look
/// for are present.
#[test]
fn statistics_are_memcacheds() {
    let real = real();
    let ours = Running::over_pool();
    let mut clients = [Client::connect(real.address), ours.connect()];
    for client in &mut clients {
        client.ask("set a 0 0 1\r\nx\r\n", "STORED\r\n");
    }
    for request in [
        "stats\r\n",
        "stats settings\r\n",
        "stats items\r\n",
        "stats conns\r\n",
    ] {
        let [theirs, ours] = clients.each_mut().map(|client| statistics(client, request));
        for (name, value) in ours.iter().filter(|(name, _)| !OUR_OWN.contains(&name.as_str())) {
            // All items are of one class here.
            let there = |theirs: &str| theirs.split(':').next_back() == name.split(':').next_back();
            let there = theirs.iter().find(|(theirs, _)| there(theirs));
            let (_, there) = there.unwrap_or_else(|| panic!("{name}"));
            let is_number = |value: &str| value.parse::<f64>().is_ok();
            assert_eq!(is_number(value), is_number(there), "{name}: {value}, {there}");
        }
        if request == "stats\r\n" {
            for wanted in WATCHED {
                assert!(ours.iter().any(|(name, _)| name == wanted), "{wanted}");
            }
        }
    }
}

/// Returns the connections in `stats conns`: each with its state, in order.
fn states(asking: &mut Client) -> Vec<String> {
    let connections = statistics(asking, "stats conns\r\n");
    let of_state = connections
        .into_iter()
        .filter(|(name, _)| name.ends_with(":state"));
    of_state.map(|(_, state)| state).collect()
}

/// `stats conns` shows listening sockets, and the state of each connection: new, waiting for a line, for data, to send,
/// or the one that asks.
#[test]
fn connections_are_told_of_as_in_memcached() {
    let real = real();
    let ours = Running::over(config(), Arc::new(ModelIndex::new()));
    let scenes = [real.address, ours.address].map(|address| {
        let connect = |sends: &[u8]| {
            let mut client = Client::connect(address);
            client.send(sends);
            client
        };
        let mut idle = connect(b"version\r\n");
        idle.line();
        let mut large = connect(b"set large 0 0 1000000\r\n");
        large.send(&[b'x'; 1_000_000]);
        large.ask("\r\n", "STORED\r\n");
        let deaf = connect("get large\r\n".repeat(60).as_bytes());
        let others = [&b""[..], b"get k", b"set k 0 0 10\r\nabc"].map(connect);
        (idle, large, deaf, others, Client::connect(address))
    });
    let mut scenes = scenes;
    let begin = Instant::now();
    let mut expected = [
        "conn_listening",
        "conn_read",
        "conn_read",
        "conn_mwrite",
        "conn_new_cmd",
        "conn_read",
        "conn_nread",
        "conn_parse_cmd",
    ];
    expected.sort_unstable();
    for scene in &mut scenes {
        // Connections reach their states in their own time, and are accepted in any order.
        loop {
            let mut found = states(&mut scene.4);
            found.sort_unstable();
            if found == expected {
                break;
            }
            assert!(begin.elapsed() < PATIENCE, "{found:?}");
        }
    }
    let [theirs, ours] = scenes.each_mut().map(|scene| -> Vec<String> {
        let connections = statistics(&mut scene.4, "stats conns\r\n").into_iter();
        connections
            .map(|(name, _)| name.rsplit(':').next().unwrap_or_default().to_owned())
            .collect()
    });
    assert_eq!(ours, theirs);
}
