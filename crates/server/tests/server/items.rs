//! The fate of items: with many clients, over time, across restarts.

use crate::support::{PATIENCE, Running, config};
use index::Index;
use index::model::ModelIndex;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wollemi_server::Config;

/// Increments from many connections at once are all counted, and of several `cas` with one unique exactly one wins.
#[test]
fn changes_are_atomic() {
    let server = Running::start();
    server
        .connect()
        .ask("set n 0 0 1\r\n0\r\nset c 0 0 1\r\n0\r\n", "STORED\r\nSTORED\r\n");
    let wins: usize = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|_| {
                let mut client = server.connect();
                scope.spawn(move || {
                    client.send("incr n 1 noreply\r\n".repeat(500).as_bytes());
                    let mut wins = 0;
                    for _ in 0..100 {
                        client.send(b"gets c\r\n");
                        let line = client.line();
                        let unique = line.rsplit(' ').next().expect("a unique").to_owned();
                        let old: u64 = client.line().parse().expect("a number");
                        assert_eq!(client.line(), "END");
                        let new = (old + 1).to_string();
                        client.send(format!("cas c 0 0 {} {unique}\r\n{new}\r\n", new.len()).as_bytes());
                        wins += usize::from(client.line() == "STORED");
                    }
                    wins
                })
            })
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().expect("no panic"))
            .sum()
    });
    let wins = wins.to_string();
    let answer = format!(
        "VALUE n 0 4\r\n4000\r\nVALUE c 0 {}\r\n{wins}\r\nEND\r\n",
        wins.len()
    );
    server.connect().ask("get n c\r\n", &answer);
}

/// Flags, uniques, expiry and flushes outlive the server; and uniques continue.
#[test]
fn items_outlive_the_server() {
    let index = Arc::new(ModelIndex::new());
    let server = Running::over(config(), index.clone());
    let mut client = server.connect();
    client.ask("set gone 0 0 1\r\nx\r\nflush_all\r\n", "STORED\r\nOK\r\n");
    client.ask(
        "set k 77 0 1\r\nx\r\nset soon 1 1 1\r\nx\r\n",
        "STORED\r\nSTORED\r\n",
    );
    client.send(b"gets k\r\n");
    let first = client.line();
    server.stop();

    let server = Running::over(config(), index);
    let mut client = server.connect();
    client.send(b"gets k gone\r\n");
    assert_eq!(client.line(), first);
    client.expect(b"x\r\nEND\r\n");
    std::thread::sleep(Duration::from_millis(1100));
    client.ask("get soon\r\nset k 0 0 1\r\nx\r\n", "END\r\nSTORED\r\n");
    client.send(b"gets k\r\n");
    let second = client.line();
    let unique = |line: &str| {
        line.rsplit(' ')
            .next()
            .and_then(|word| word.parse::<u64>().ok())
            .expect("a unique")
    };
    assert!(unique(&second) > unique(&first));
}

/// A delayed flush drops the items present when it is due.
#[test]
fn flushes_may_be_delayed() {
    let server = Running::start();
    let mut client = server.connect();
    let begin = Instant::now();
    loop {
        client.ask("flush_all 2\r\nset k 0 0 1\r\nx\r\nget k\r\n", "OK\r\nSTORED\r\n");
        if client.line() != "END" {
            client.expect(b"x\r\nEND\r\n");
            break;
        }
        // The server stalled for two seconds.
        assert!(begin.elapsed() < PATIENCE, "the flush does not wait");
    }
    std::thread::sleep(Duration::from_millis(2100));
    client.ask(
        "get k\r\nset k 0 0 1\r\nx\r\nget k\r\n",
        "END\r\nSTORED\r\nVALUE k 0 1\r\nx\r\nEND\r\n",
    );
}

/// Dead items are removed even if no client requests them.
#[test]
fn dead_items_are_swept() {
    let index = Arc::new(ModelIndex::new());
    let pause = Some(Duration::from_millis(1));
    let server = Running::over(
        Config {
            sweep_pause: pause,
            ..config()
        },
        index.clone(),
    );
    let mut client = server.connect();
    for i in 0..1000 {
        client.ask(
            &format!("set k{i} 0 {} 1\r\nx\r\n", if i % 2 == 0 { -1 } else { 0 }),
            "STORED\r\n",
        );
    }
    let begin = Instant::now();
    while index.check().expect("no failure").keys > 501 {
        assert!(begin.elapsed() < PATIENCE, "the sweep removes nothing");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(index.check().expect("no failure").keys, 501);
    assert!(server.stop().swept >= 1);
}

/// `gets` shows the unique that `cas` takes; `gats` too, and a touch does not change it.
#[test]
fn uniques_are_shown_and_taken() {
    let server = Running::start();
    let mut client = server.connect();
    client.ask("set k 9 0 1\r\nx\r\n", "STORED\r\n");
    client.send(b"gets k\r\n");
    let line = client.line();
    client.expect(b"x\r\nEND\r\n");
    client.ask("touch k 100\r\n", "TOUCHED\r\n");
    client.ask("gats 100 k\r\n", &format!("{line}\r\nx\r\nEND\r\n"));
    let unique = line.rsplit(' ').next().expect("a unique");
    client.ask(&format!("cas k 0 0 1 {unique}\r\ny\r\n"), "STORED\r\n");
    client.ask(&format!("cas k 0 0 1 {unique}\r\nz\r\n"), "EXISTS\r\n");
    client.ask("get k\r\n", "VALUE k 0 1\r\ny\r\nEND\r\n");
}

/// `stats` counts the operations, and prints the lines it was given.
#[test]
fn stats_count() {
    let server = Running::over(config(), Arc::new(ModelIndex::new()));
    let mut client = server.connect();
    client.ask(
        "set k 0 0 1\r\nx\r\nset l 0 0 1\r\nx\r\nget k a\r\ngat 0 k a\r\nmg k T0\r\nmg b T0\r\ntouch k 0\r\ndelete k\r\n",
        "STORED\r\nSTORED\r\nVALUE k 0 1\r\nx\r\nEND\r\nVALUE k 0 1\r\nx\r\nEND\r\nHD\r\nEN\r\nTOUCHED\r\nDELETED\r\n",
    );
    let mut lines: Vec<String> = Vec::new();
    // The items are counted beside the clients.
    while !lines.iter().any(|line| line == "STAT curr_items_exact yes") {
        client.send(b"stats\r\n");
        lines.clear();
        while lines.last().is_none_or(|line| line != "END") {
            lines.push(client.line());
        }
    }
    for line in [
        // As memcached counts them, `gat`s are touches and not lookups, and an `mg` that finds nothing to touch is a
        // lookup.
        "cmd_touch 4",
        "touch_hits 3",
        "touch_misses 1",
        "cmd_get 3",
        "get_hits 1",
        "get_misses 2",
        "cmd_set 2",
        "delete_hits 1",
        "threads 2",
        "curr_connections 1",
        "total_connections 1",
        "curr_items 1",
        "curr_items_exact yes",
        "pool_level process",
        "pointer_size 64",
    ] {
        assert!(
            lines.contains(&format!("STAT {line}")),
            "{line} is not in {lines:#?}"
        );
    }
    client.send(b"stats conns\r\n");
    let conns = String::from_utf8(client.until(b"END\r\n")).expect("text");
    let own = client.socket.local_addr().expect("an address");
    for line in [
        format!("STAT 1:addr tcp:{}", server.address),
        "STAT 1:state conn_listening".to_owned(),
        format!("STAT 2:addr tcp:{own}"),
        format!("STAT 2:listen_addr tcp:{}", server.address),
        "STAT 2:state conn_parse_cmd".to_owned(),
    ] {
        assert!(
            conns.lines().any(|shown| shown == line),
            "{line} is not in {conns}"
        );
    }
    client.ask("stats reset\r\n", "RESET\r\n");
}

/// `ma` counts as memcached's does: only an absent key is a miss, and an item that it creates is neither hit nor miss.
/// So does `md`: an item with another unique is a miss, and one that becomes stale is not counted.
#[test]
fn meta_commands_count_hits_and_misses_as_memcached_does() {
    let server = Running::start();
    let mut client = server.connect();
    client.ask(
        "set word 0 0 1\r\nx\r\nset n 0 0 1\r\n5\r\n",
        "STORED\r\nSTORED\r\n",
    );
    let not_number = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
    let mut expected = [0; 6];
    for (request, answer, counts) in [
        ("incr word 1", not_number, [0, 0, 0, 0, 0, 0]),
        ("ma word", not_number, [0, 0, 0, 0, 0, 0]),
        ("ma word MD", not_number, [0, 0, 0, 0, 0, 0]),
        ("ma n C99", "EX\r\n", [0, 0, 0, 0, 0, 0]),
        ("ma n MD C99", "EX\r\n", [0, 0, 0, 0, 0, 0]),
        ("ma created N0", "HD\r\n", [0, 0, 0, 0, 0, 0]),
        ("incr no 1", "NOT_FOUND\r\n", [0, 1, 0, 0, 0, 0]),
        ("ma no", "NF\r\n", [0, 1, 0, 0, 0, 0]),
        ("ma no MD", "NF\r\n", [0, 0, 0, 1, 0, 0]),
        ("ma created N0", "HD\r\n", [1, 0, 0, 0, 0, 0]),
        ("ma n MD", "HD\r\n", [0, 0, 1, 0, 0, 0]),
        ("md no", "NF\r\n", [0, 0, 0, 0, 0, 1]),
        ("md n C99", "EX\r\n", [0, 0, 0, 0, 0, 1]),
        ("md n I", "HD\r\n", [0, 0, 0, 0, 0, 0]),
        ("md n", "HD\r\n", [0, 0, 0, 0, 1, 0]),
    ] {
        client.ask(&format!("{request}\r\n"), answer);
        expected
            .iter_mut()
            .zip(counts)
            .for_each(|(sum, more)| *sum += more);
        client.send(b"stats\r\n");
        let stats = String::from_utf8(client.until(b"END\r\n")).expect("text");
        let counted = [
            "incr_hits",
            "incr_misses",
            "decr_hits",
            "decr_misses",
            "delete_hits",
            "delete_misses",
        ]
        .map(|name| {
            let name = format!("STAT {name} ");
            let count = stats
                .lines()
                .find_map(|line| line.strip_prefix(&name)?.parse::<u64>().ok());
            count.expect("a number")
        });
        assert_eq!(counted, expected, "{request}");
    }
}
