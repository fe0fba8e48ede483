//! `serve`: a client's writes survive the server, however it ends.

mod common;

use common::server::{Client, PATIENCE, Server};
use common::{Pool, Random};
use rustix::process::Signal;
use std::collections::HashMap;
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Instant;

/// SIGTERM stops a server normally; the next one has the stored items, and counts them in its first line.
#[test]
fn a_stopped_server_has_kept_everything() {
    let pool = Pool::new();
    let server = Server::start(&pool);
    assert_eq!(server.ready["entries"], 0);
    assert_eq!(server.ready["level"], "process");
    let mut client = server.client();
    assert_eq!(client.ask("set k 7 0 5\r\nvalue\r\n").as_deref(), Some("STORED"));
    assert_eq!(client.ask("get k\r\n").as_deref(), Some("VALUE k 7 5"));
    drop(client);
    assert_eq!(server.terminate(), Some(0));

    let server = Server::start(&pool);
    assert_eq!(server.ready["entries"], 1);
    assert_eq!(server.client().get("k").as_deref(), Some("value"));
    pool.run(["get", "k", "--lock-wait", "0"])
        .fails(3, &["opened by process", &server.child.id().to_string()]);
    assert_eq!(server.terminate(), Some(0));
    pool.check();
}

/// A server killed in the middle of writes has kept every acknowledged write, a dozen times over, at levels `process`
/// and `disk`; at level `disk` also if the pool is lost.
#[test]
fn a_killed_server_has_kept_what_it_acknowledged() {
    for level in ["process", "disk"] {
        acknowledged_writes_are_kept(level);
    }
}

fn acknowledged_writes_are_kept(level: &str) {
    let mut random = Random::announced("serve");
    let pool = Pool::new();
    let mut stored: HashMap<String, String> = HashMap::new();
    for round in 0..12 {
        let mut server = Server::start_with(&pool, &["--level", level]);
        let mut client = server.client();
        has_all(&mut client, &stored);
        // One write is acknowledged however slow the machine is.
        let first = format!("set first 0 0 2\r\n{round:02}\r\n");
        assert_eq!(client.ask(&first).as_deref(), Some("STORED"));
        stored.insert("first".into(), format!("{round:02}"));
        let killer = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            server.child.kill().expect("SIGKILL");
            server.child.wait().expect("ends");
        });
        loop {
            let key = format!("key-{}", random.below(500));
            let value = format!("{round}-{:x}", random.next());
            let request = format!("set {key} 0 0 {}\r\n{value}\r\n", value.len());
            match client.ask(&request).as_deref() {
                Some("STORED") => drop(stored.insert(key, value)),
                Some(other) => panic!("{other}"),
                None => {
                    // In flight: it may have happened.
                    stored.remove(&key);
                    break;
                }
            }
        }
        killer.join().expect("no panic");
        pool.check();
        if level == "disk" && round % 3 == 1 {
            std::fs::remove_file(pool.path()).expect("removed");
        }
    }
    let server = Server::start_with(&pool, &["--level", level]);
    has_all(&mut server.client(), &stored);
    assert_eq!(server.terminate(), Some(0));
}

fn has_all(client: &mut Client, stored: &HashMap<String, String>) {
    for (key, value) in stored {
        assert_eq!(client.get(key).as_ref(), Some(value));
    }
}

/// `--sync` is a setting of a pool of level `disk`, shown in the first line, and changed by a reload; other levels
/// refuse it.
#[test]
fn when_writes_are_durable_is_chosen() {
    let pool = Pool::new();
    let refused = [
        "serve",
        "--sync",
        "everysec",
        "--memcached",
        "127.0.0.1:0",
        "--no-redis",
    ];
    pool.run(refused)
        .fails(2, &["sync 'everysec'", "level process", "--level"]);

    let pool = Pool::new();
    let server = Server::start_with(&pool, &["--level", "disk"]);
    assert_eq!(server.ready["level"], "disk");
    assert_eq!(server.ready["sync"], "always");
    assert_eq!(server.parameter("appendfsync"), "always");
    assert_eq!(server.terminate(), Some(0));

    let settings = pool.file("settings.toml");
    std::fs::write(&settings, "sync = \"everysec\"\n").expect("written");
    let server = Server::start_with(&pool, &["--level", "disk", "--config", "settings.toml"]);
    assert_eq!(server.ready["sync"], "everysec");
    std::fs::write(&settings, "sync = \"no\"\n").expect("written");
    server.signal(Signal::HUP);
    let started = Instant::now();
    while server.parameter("appendfsync") != "no" {
        assert!(started.elapsed() < PATIENCE, "the settings are not applied");
    }
    assert_eq!(server.terminate(), Some(0));
    pool.check();
}

/// Acknowledged pipelined writes of both protocols are present after a kill, and also if the pool is lost, as by a loss
/// of power: from the log and the checkpoints beside it.
#[test]
fn what_was_told_at_level_disk_survives_the_pool() {
    let pool = Pool::new();
    let mut acknowledged: Vec<String> = Vec::new();
    for round in 0..4 {
        let server = Server::start_with(&pool, &["--level", "disk"]);
        let (mut memcached, mut redis) = (server.client(), server.redis_client());
        for key in &acknowledged {
            assert_eq!(memcached.get(key).as_ref(), Some(key));
        }
        let keys = |of: &str| (0..30).map(|i| format!("{of}-{round}-{i}")).collect::<Vec<_>>();
        let (ours, theirs) = (keys("memcached"), keys("redis"));
        let sets = ours
            .iter()
            .map(|key| format!("set {key} 0 0 {}\r\n{key}\r\n", key.len()));
        assert_eq!(
            memcached.ask(&sets.collect::<String>()).as_deref(),
            Some("STORED")
        );
        let sets = theirs.iter().map(|key| format!("set {key} {key}\r\n"));
        assert_eq!(redis.ask(&sets.collect::<String>()).as_deref(), Some("+OK"));
        for _ in 1..30 {
            assert_eq!(memcached.line().as_deref(), Some("STORED"));
            assert_eq!(redis.line().as_deref(), Some("+OK"));
        }
        server.kill();
        acknowledged.extend(ours.into_iter().chain(theirs));
        if round % 2 == 1 {
            std::fs::remove_file(pool.path()).expect("removed");
        }
    }
    let server = Server::start_with(&pool, &["--level", "disk"]);
    let mut client = server.client();
    for key in &acknowledged {
        assert_eq!(client.get(key).as_ref(), Some(key));
    }
    assert_eq!(server.terminate(), Some(0));
    let log = std::fs::read_to_string(pool.file("log")).expect("the log");
    for event in ["the pool is being rebuilt", "the pool is rebuilt"] {
        assert_eq!(log.matches(event).count(), 1, "{event}: {log}");
    }
    pool.check();
}

/// A Redis client's writes survive a killed server, in every database, with their times; memcached clients see those of
/// database 0.
#[test]
fn a_killed_server_has_kept_what_redis_clients_wrote() {
    let pool = Pool::new();
    let mut server = Server::start(&pool);
    let mut client = server.redis_client();
    assert_eq!(client.ask("set k redis ex 1000\r\n").as_deref(), Some("+OK"));
    assert_eq!(client.ask("multi\r\n").as_deref(), Some("+OK"));
    for command in ["incrby n 41", "incr n", "mset a 1 b 2"] {
        assert_eq!(client.ask(&format!("{command}\r\n")).as_deref(), Some("+QUEUED"));
    }
    assert_eq!(client.ask("exec\r\n").as_deref(), Some("*3"));
    assert_eq!(client.line().as_deref(), Some(":41"));
    assert_eq!(client.line().as_deref(), Some(":42"));
    assert_eq!(client.line().as_deref(), Some("+OK"));
    assert_eq!(client.ask("select 3\r\n").as_deref(), Some("+OK"));
    assert_eq!(client.ask("set other here\r\n").as_deref(), Some("+OK"));
    server.child.kill().expect("SIGKILL");
    server.child.wait().expect("ends");

    let server = Server::start(&pool);
    assert_eq!(server.client().get("k").as_deref(), Some("redis"));
    assert_eq!(server.client().get("n").as_deref(), Some("42"));
    assert_eq!(server.client().get("other"), None);
    let mut client = server.redis_client();
    let left = client.ask("ttl k\r\n").expect("an answer");
    let left: u64 = left[1..].parse().expect("seconds");
    assert!((900..=1000).contains(&left), "{left}");
    assert_eq!(client.ask("exists other\r\n").as_deref(), Some(":0"));
    assert_eq!(client.ask("select 3\r\n").as_deref(), Some("+OK"));
    assert_eq!(client.ask("exists other\r\n").as_deref(), Some(":1"));
    assert_eq!(server.terminate(), Some(0));
    pool.check();
}

/// Host names are resolved, and a server serves even if its first line is never read.
#[test]
fn a_server_listens_on_names_and_is_not_ended_by_a_closed_pipe() {
    let pool = Pool::new();
    let server = Server::start_with(&pool, &["--memcached", "localhost:0"]);
    let addresses = server.ready["memcached"].as_array().expect("addresses");
    assert!(
        addresses
            .iter()
            .any(|address| address.as_str().is_some_and(|a| a.starts_with("127.0.0.1:")))
    );
    let mut client = server.client();
    assert_eq!(client.ask("set k 0 0 1\r\nx\r\n").as_deref(), Some("STORED"));
    assert_eq!(server.terminate(), Some(0));

    let address = common::free_address();
    let mut child = pool
        .command(["serve", "--no-redis", "--memcached", &address])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server starts");
    drop(child.stdout.take());
    let stream = loop {
        assert_eq!(
            child.try_wait().expect("the server's state"),
            None,
            "the server has ended"
        );
        match TcpStream::connect(&address) {
            Ok(stream) => break stream,
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    };
    let lines = BufReader::new(stream);
    assert_eq!(Client { lines }.get("k").as_deref(), Some("x"));
    let server = Server {
        child,
        ready: serde_json::Value::Null,
    };
    assert_eq!(server.terminate(), Some(0));
}

/// An invalid setup is reported at once.
#[test]
fn a_server_that_cannot_serve_says_why() {
    let pool = Pool::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    pool.run(["serve", "--no-redis", "--memcached", &address])
        .fails(6, &["cannot listen", &address]);
    pool.run(["serve", "--no-redis", "--memcached", "0.0.0.0:0"])
        .fails(2, &["passwords", "--allow-remote"]);
    pool.run(["serve", "--memcached", "nowhere"])
        .fails(2, &["nowhere"]);
    for threads in ["--threads", "--recovery-threads"] {
        pool.run(["serve", threads, "100000000"])
            .fails(2, &[threads, "not in"]);
    }
    for none in ["--threads", "--recovery-threads", "--max-connections"] {
        pool.run(["serve", none, "0"]).fails(2, &[none, "not in"]);
    }
    pool.ok(["put", "k", "v"]);
    pool.run([
        "serve",
        "--map",
        "default",
        "--no-redis",
        "--memcached",
        "127.0.0.1:0",
    ])
    .fails(3, &["a map of its own"]);
    let mut busy = Server::start(&pool);
    let second = pool.run([
        "serve",
        "--lock-wait",
        "0",
        "--no-redis",
        "--memcached",
        "127.0.0.1:0",
    ]);
    second.fails(3, &["opened by process"]);
    busy.child.kill().expect("SIGKILL");
    busy.child.wait().expect("ends");
}

/// A server serves although its first line cannot be written, and stops normally.
#[test]
fn a_full_output_stops_no_server() {
    let pool = Pool::new();
    let address = common::free_address();
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("a full device");
    let mut server = pool
        .command(["serve", "--no-redis", "--memcached", &address])
        .stdout(full)
        .stderr(Stdio::null())
        .spawn()
        .expect("the server starts");
    let begun = Instant::now();
    let mut stream = loop {
        assert!(
            server.try_wait().expect("a child of this process").is_none(),
            "the server has ended"
        );
        assert!(begun.elapsed() < PATIENCE);
        if let Ok(stream) = TcpStream::connect(&*address) {
            break stream;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    // The server answers only once it listens for signals.
    stream.write_all(b"version\r\n").expect("sent");
    stream.read_exact(&mut [0; 8]).expect("an answer");
    let pid = rustix::process::Pid::from_child(&server);
    rustix::process::kill_process(pid, Signal::TERM).expect("the server runs");
    assert_eq!(server.wait().expect("the server ends").code(), Some(0));
    pool.check();
}
