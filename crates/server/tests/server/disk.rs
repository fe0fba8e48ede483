//! Over a pool of level `disk`: answered writes survive a loss of power, and answers wait for the disk together.

mod kept;

use crate::logged;
use crate::support::{Client, PATIENCE, Running, SIGNALS, with_redis};
use kept::Kept;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wollemi::{Db, Durability, Level, LogStats, Options, Snapshot};
use wollemi_server::{BackupTo, Config, Copying, Error, Host, Server, Sync};

/// A server over a new database whose disk the test controls.
struct Served {
    directory: tempfile::TempDir,
    disk: Kept,
    db: Db,
    running: Running,
}

impl Served {
    fn new(config: Config) -> Served {
        let directory = tempfile::tempdir().expect("a directory");
        let disk = Kept::new(directory.path());
        let path = directory.path().join("served.pool");
        let db = options().create_on_disk(path, disk.disk()).expect("a database");
        let running = Running::over_db(config, &db);
        Served {
            directory,
            disk,
            db,
            running,
        }
    }

    fn log(&self) -> LogStats {
        self.db.log_stats().expect("there is a log")
    }

    /// Opens a database, in a directory of this name, as a loss of power at this moment leaves it.
    fn cut(&self, name: &str) -> Db {
        let pool = self.directory.path().join(name);
        self.disk.cut(&pool.with_extension("disk")); // The log's directory, which has no pool beside it.
        options().open(&pool).expect("the pool is rebuilt")
    }
}

fn options() -> Options {
    Options::new().level(Level::Disk).max_size(1 << 30)
}

/// Returns a configuration for both protocols with one worker.
fn one_worker() -> Config {
    Config {
        threads: 1,
        ..with_redis()
    }
}

/// Returns the data of an item.
fn data(db: &Db, key: &str) -> Option<Vec<u8>> {
    let map = db.find_map("memcached").expect("sound").expect("there");
    let value = map.get(key).expect("sound")?;
    Some(value[24..].to_vec())
}

/// Returns the metrics as text.
fn scrape(served: &Served) -> String {
    let mut client = Client::connect(served.running.metrics.expect("the server serves metrics"));
    client.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    String::from_utf8(client.rest()).expect("UTF-8")
}

/// Fails if anything has arrived from the server.
#[track_caller]
fn expect_nothing(client: &Client) {
    client.socket.set_nonblocking(true).expect("a socket");
    let looked = client.socket.peek(&mut [0]);
    client.socket.set_nonblocking(false).expect("a socket");
    assert_eq!(looked.map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
}

/// Returns whether anything has arrived from the server.
fn is_answered(client: &Client) -> bool {
    client.socket.set_nonblocking(true).expect("a socket");
    let looked = client.socket.peek(&mut [0]);
    client.socket.set_nonblocking(false).expect("a socket");
    looked.is_ok()
}

/// Waits until one of the clients is answered; returns its index.
fn first_answered(clients: &[Client]) -> usize {
    let began = Instant::now();
    loop {
        if let Some(first) = clients.iter().position(is_answered) {
            return first;
        }
        assert!(began.elapsed() < PATIENCE, "no client is answered");
        std::thread::yield_now();
    }
}

/// Clients of both protocols send pipelines of writes and reads. Every answered write is present, whenever the power
/// fails.
#[test]
fn what_was_answered_survives_the_loss_of_power() {
    const CLIENTS: usize = 3;
    const ROUNDS: usize = 8;
    const PIPELINE: usize = 40;
    let served = Served::new(with_redis());
    let answered = &Mutex::new(Vec::new());
    let key = |client: &str, round: usize, i: usize| format!("{client}-{round}-{i}");
    let note = |client: &str, round: usize| {
        let all = (0..PIPELINE).map(|i| key(client, round, i));
        answered.lock().expect("no panic").extend(all);
    };
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let mut memcached = served.running.connect();
            scope.spawn(move || {
                let name = format!("m{number}");
                for round in 0..ROUNDS {
                    // Every second request is quiet: then the answer to another request stands for it.
                    let set = |i| {
                        let quiet = if i % 2 == 0 { "" } else { " noreply" };
                        let key = key(&name, round, i);
                        format!("set {key} 0 0 {}{quiet}\r\n{key}\r\n", key.len())
                    };
                    let sets: String = (0..PIPELINE).map(set).collect();
                    let last = key(&name, round, PIPELINE - 1);
                    memcached.send(format!("{sets}get {last}\r\n").as_bytes());
                    memcached.expect("STORED\r\n".repeat(PIPELINE / 2).as_bytes());
                    let len = last.len();
                    memcached.expect(format!("VALUE {last} 0 {len}\r\n{last}\r\nEND\r\n").as_bytes());
                    note(&name, round);
                }
            });
            let mut redis = served.running.connect_redis();
            scope.spawn(move || {
                let name = format!("r{number}");
                for round in 0..ROUNDS {
                    let set = |i| match key(&name, round, i) {
                        key if i % 3 == 0 => format!("mset {key} {key} {name}-last {key}\r\n"),
                        key => format!("set {key} {key}\r\n"),
                    };
                    let sets: String = (0..PIPELINE).map(set).collect();
                    redis.send(format!("{sets}get {}\r\n", key(&name, round, 0)).as_bytes());
                    redis.expect("+OK\r\n".repeat(PIPELINE).as_bytes());
                    let first = key(&name, round, 0);
                    redis.expect(format!("${}\r\n{first}\r\n", first.len()).as_bytes());
                    note(&name, round);
                }
            });
        }
        for cut in 0..6 {
            let known = answered.lock().expect("no panic").clone();
            let left = served.cut(&format!("cut-{cut}"));
            for key in known {
                assert_eq!(data(&left, &key), Some(key.clone().into_bytes()), "cut {cut}");
            }
        }
    });
    let left = served.cut("last");
    let known = answered.lock().expect("no panic").clone();
    assert_eq!(known.len(), 2 * CLIENTS * ROUNDS * PIPELINE);
    for key in known {
        assert_eq!(data(&left, &key), Some(key.clone().into_bytes()));
    }
    assert!(left.check().expect("read").is_clean());
}

/// During a sync, no connection is answered that waits for it. The requests that arrive meanwhile on many connections
/// share the next sync.
#[test]
fn one_sync_serves_many_connections() {
    const CLIENTS: usize = 40;
    let served = Served::new(one_worker());
    let mut clients: Vec<_> = (0..CLIENTS)
        .map(|i| match i % 2 {
            0 => served.running.connect(),
            _ => served.running.connect_redis(),
        })
        .collect();
    // All are accepted.
    for (i, client) in clients.iter_mut().enumerate() {
        match i % 2 {
            0 => client.ask("mn\r\n", "MN\r\n"),
            _ => client.ask("ping\r\n", "+PONG\r\n"),
        }
    }
    let before = served.log().syncs;
    served.disk.hold();
    let ask = |client: &mut Client, i: usize| match i % 2 {
        0 => client.send(format!("set key-{i} 0 0 1\r\nx\r\nget key-{i}\r\n").as_bytes()),
        _ => client.send(format!("set key-{i} x\r\nget key-{i}\r\n").as_bytes()),
    };
    ask(&mut clients[0], 0);
    served.disk.until_one_waits();
    for (i, client) in clients.iter_mut().enumerate().skip(1) {
        ask(client, i);
    }
    clients.iter().for_each(expect_nothing);
    served.disk.release();
    for (i, client) in clients.iter_mut().enumerate() {
        match i % 2 {
            0 => client.expect(format!("STORED\r\nVALUE key-{i} 0 1\r\nx\r\nEND\r\n").as_bytes()),
            _ => client.expect(b"+OK\r\n$1\r\nx\r\n"),
        }
    }
    // The thread that syncs each second may have added one.
    let syncs = served.log().syncs - before;
    assert!(syncs <= 4, "{syncs} syncs");
}

/// A connection that has read only durable items is answered while others wait for the disk.
#[test]
fn reads_of_durable_items_do_not_wait() {
    let served = Served::new(Config {
        threads: 2,
        ..with_redis()
    });
    let mut setup = served.running.connect_redis();
    setup.ask("set old 1\r\n", "+OK\r\n");
    // Over two workers, one of which waits.
    let mut readers: Vec<_> = (0..32).map(|_| served.running.connect_redis()).collect();
    for reader in &mut readers {
        reader.ask("ping\r\n", "+PONG\r\n");
    }
    served.disk.hold();
    setup.send(b"set new 1\r\n");
    served.disk.until_one_waits();
    for reader in &mut readers {
        reader.send(b"get old\r\n");
    }
    // Some of the 32 connections belong to the other worker.
    first_answered(&readers);
    expect_nothing(&setup);
    served.disk.release();
    for reader in &mut readers {
        reader.expect(b"$1\r\n1\r\n");
    }
    setup.expect(b"+OK\r\n");
}

/// The count of the items waits for no sync, although it reads data that is not durable yet: writers wait for a step of
/// it, and would wait for the disk. It is exact even if keys are added and removed meanwhile.
#[test]
fn the_count_waits_for_no_sync() {
    const KEYS: usize = 10_000; // Some twenty steps.
    let directory = tempfile::tempdir().expect("a directory");
    let db = options()
        .open(directory.path().join("a.pool"))
        .expect("a database");
    // Nothing is synced unless a thread waits for it.
    let unsynced = Config {
        sync: Some(Sync::No),
        sweep_pause: None,
        ..one_worker()
    };
    let server = Running::over_db(unsynced.clone(), &db);
    let sets: String = (0..KEYS).map(|i| format!("set key-{i:05} x\r\n")).collect();
    let mut client = server.connect_redis();
    client.ask(&sets, &"+OK\r\n".repeat(KEYS));
    server.stop();

    let server = Server::bind(unsynced, &db).expect("the server starts");
    let map = db.find_map("memcached").expect("sound").expect("there");
    // This item's record is in the log, and no thread waits for it.
    let turn = db.turn();
    let item = map.get("key-00001").expect("sound").expect("there");
    let immediate = map.with_durability(Durability::Immediate);
    immediate.upsert("key-00001", item).expect("room");
    let _not_settled = turn.pause();
    let syncs = || db.log_stats().expect("there is a log").syncs;
    let before = syncs();
    let server = Running::of(server);
    let mut client = server.connect_redis();
    // The same keys at both ends and in the middle are added and removed repeatedly: none has the stripe of that item,
    // for which its client would wait.
    let came = "set a x\r\nset key-05000-new x\r\nset z x\r\ndel key-05000\r\n";
    let went = "del a key-05000-new z\r\nset key-05000 x\r\n";
    let began = Instant::now();
    loop {
        client.ask(came, "+OK\r\n+OK\r\n+OK\r\n:1\r\n");
        client.send(b"info stats\r\n");
        let info = String::from_utf8(client.until(b"\r\n\r\n")).expect("text");
        if info.contains("keyspace_exact:1\r\n") {
            break;
        }
        client.ask(went, ":3\r\n+OK\r\n");
        assert!(began.elapsed() < PATIENCE, "the count does not end");
    }
    assert_eq!(syncs(), before, "the count has waited for the disk");
    client.ask("dbsize\r\n", &format!(":{}\r\n", KEYS + 2));
    server.stop();
    // The record of the items is a key, too.
    assert_eq!(map.count().expect("sound"), KEYS as u64 + 3);
}

/// No command reveals a flush before the flush is durable, whichever worker serves it.
#[test]
fn a_flush_is_told_when_it_is_durable() {
    let served = Served::new(Config {
        threads: 2,
        ..with_redis()
    });
    let mut flusher = served.running.connect_redis();
    flusher.ask("ping\r\n", "+PONG\r\n");
    let mut redis: Vec<_> = (0..32).map(|_| served.running.connect_redis()).collect();
    let mut memcached: Vec<_> = (0..32).map(|_| served.running.connect()).collect();
    for (redis, memcached) in redis.iter_mut().zip(&mut memcached) {
        redis.ask("ping\r\n", "+PONG\r\n");
        memcached.ask("mn\r\n", "MN\r\n");
    }
    // One worker waits for the disk. The other one answers those of the 32 connections that belong to it; one of these
    // is used for each protocol.
    served.disk.hold();
    flusher.send(b"set k 1\r\n");
    served.disk.until_one_waits();
    redis.iter_mut().for_each(|client| client.send(b"ping\r\n"));
    memcached.iter_mut().for_each(|client| client.send(b"mn\r\n"));
    let (of_redis, of_memcached) = (first_answered(&redis), first_answered(&memcached));
    served.disk.release();
    flusher.expect(b"+OK\r\n");
    redis.iter_mut().for_each(|client| client.expect(b"+PONG\r\n"));
    memcached.iter_mut().for_each(|client| client.expect(b"MN\r\n"));

    let queued = |command: &str| (format!("multi\r\n{command}\r\n"), "+OK\r\n+QUEUED\r\n");
    let (watched, answers) = queued("ping");
    let watched = (format!("watch k\r\n{watched}"), format!("+OK\r\n{answers}"));
    let (within, answers) = queued("exists k");
    let within = (within, answers.to_owned());
    let nothing = (String::new(), String::new());
    let cases = [
        (&nothing, "exists k", ":0\r\n"),
        (&nothing, "touch k", ":0\r\n"),
        (&nothing, "ttl k", ":-2\r\n"),
        (&nothing, "expiretime k", ":-2\r\n"),
        (&nothing, "strlen k", ":0\r\n"),
        (&nothing, "type k", "+none\r\n"),
        (&nothing, "getrange k 0 1", "$0\r\n\r\n"),
        (&nothing, "getex k persist", "$-1\r\n"),
        (&nothing, "rename k l", "-ERR no such key\r\n"),
        (&nothing, "mget k l", "*2\r\n$-1\r\n$-1\r\n"),
        (&watched, "exec", "*-1\r\n"),
        (&within, "exec", "*1\r\n:0\r\n"),
        (&nothing, "me k", "EN\r\n"),
        (&nothing, "get k", "END\r\n"),
    ];
    for ((before, answers), command, answer) in cases {
        let reader = match answer {
            "EN\r\n" | "END\r\n" => &mut memcached[of_memcached],
            _ => &mut redis[of_redis],
        };
        flusher.ask("set k 1\r\n", "+OK\r\n");
        reader.ask(before, answers);
        served.disk.hold();
        flusher.send(b"flushall\r\n");
        served.disk.until_one_waits();
        reader.send(format!("{command}\r\n").as_bytes());
        std::thread::sleep(Duration::from_millis(50));
        assert!(!is_answered(reader), "{command} reveals the flush");
        served.disk.release();
        flusher.expect(b"+OK\r\n");
        reader.expect(answer.as_bytes());
    }
}

/// A flush whose sync has failed is not shown: reads of the items it dropped fail.
#[test]
fn a_flush_that_failed_is_not_told() {
    let served = Served::new(one_worker());
    let mut redis = served.running.connect_redis();
    redis.ask("set old 1\r\n", "+OK\r\n");
    served.disk.hold();
    redis.send(b"flushall\r\n");
    served.disk.until_one_waits();
    served.disk.fail();
    served.disk.release();
    assert!(redis.line().starts_with("-MISCONF "));
    redis.expect_end();

    let (mut redis, mut memcached) = (served.running.connect_redis(), served.running.connect());
    for command in ["get old", "mget other old", "exists old", "ttl old"] {
        redis.send(format!("{command}\r\n").as_bytes());
        let reply = redis.line();
        assert!(reply.starts_with("-MISCONF "), "{command}: {reply}");
    }
    redis.ask("get other\r\n", "$-1\r\n");
    for command in ["get old", "me old", "mg old v"] {
        memcached.send(format!("{command}\r\n").as_bytes());
        let reply = memcached.line();
        assert!(reply.starts_with("SERVER_ERROR "), "{command}: {reply}");
    }
    assert_eq!(data(&served.cut("after"), "old"), Some(b"1".to_vec()));
}

/// With `everysec` and `no` an answer does not wait for the disk. With `everysec` the write becomes durable by itself;
/// with `no`, `WAITAOF` makes it durable, and so does a change to `always`.
#[test]
fn eventual_writes_are_answered_at_once() {
    let served = Served::new(one_worker());
    let mut client = served.running.connect_redis();
    client.ask("config set appendfsync everysec\r\n", "+OK\r\n");
    client.ask(
        "config get appendfsync\r\n",
        "*2\r\n$11\r\nappendfsync\r\n$8\r\neverysec\r\n",
    );
    client.ask("waitaof 1 0 0\r\n", "*2\r\n:1\r\n:0\r\n");
    served.disk.hold();
    client.ask("set a 1\r\n", "+OK\r\n");
    client.ask("get a\r\n", "$1\r\n1\r\n");
    served.disk.release();
    let began = Instant::now();
    while served.log().durable < served.log().appended {
        assert!(began.elapsed() < PATIENCE, "the write is not synced");
        std::thread::yield_now();
    }
    assert_eq!(data(&served.cut("everysec"), "a"), Some(b"1".to_vec()));

    client.ask("config set appendfsync no\r\n", "+OK\r\n");
    client.ask("waitaof 1 0 0\r\n", "*2\r\n:1\r\n:0\r\n");
    served.disk.hold();
    client.ask("set b 2\r\n", "+OK\r\n");
    client.ask("waitaof 0 0 0\r\n", "*2\r\n:0\r\n:0\r\n");
    served.disk.release();
    client.ask("waitaof 1 0 0\r\n", "*2\r\n:1\r\n:0\r\n");
    assert_eq!(data(&served.cut("no"), "b"), Some(b"2".to_vec()));

    // The change of the policy is answered once earlier writes are durable.
    client.ask("set c 3\r\n", "+OK\r\n");
    client.ask("config set appendfsync always\r\n", "+OK\r\n");
    assert_eq!(data(&served.cut("always"), "c"), Some(b"3".to_vec()));
}

/// In a transaction `WAITAOF` makes the writes before the `EXEC` durable, and not those of the transaction.
#[test]
fn waitaof_in_a_transaction_covers_the_writes_before_it() {
    let served = Served::new(one_worker());
    let mut client = served.running.connect_redis();
    client.ask("config set appendfsync no\r\n", "+OK\r\n");
    client.ask("set before 1\r\n", "+OK\r\n");
    let transaction = "multi\r\nset within 2\r\nwaitaof 1 0 0\r\nexec\r\n";
    let answers = "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n*2\r\n:1\r\n:0\r\n";
    client.ask(transaction, answers);
    assert_eq!(data(&served.cut("before"), "before"), Some(b"1".to_vec()));

    client.ask("waitaof 1 0 0\r\n", "*2\r\n:1\r\n:0\r\n");
    served.disk.hold();
    // All writes before it are durable, so it does not wait.
    client.ask(transaction, answers);
    client.ask("waitaof 0 0 0\r\n", "*2\r\n:0\r\n:0\r\n");
    served.disk.release();
    client.ask("waitaof 1 0 0\r\n", "*2\r\n:1\r\n:0\r\n");
    assert_eq!(data(&served.cut("within"), "within"), Some(b"2".to_vec()));
}

/// `WAITAOF`'s answer waits for the disk, together with those before it.
#[test]
fn waitaof_waits() {
    let served = Served::new(Config {
        sync: Some(Sync::No),
        ..one_worker()
    });
    let mut client = served.running.connect_redis();
    served.disk.hold();
    client.ask("set a 1\r\n", "+OK\r\n");
    client.send(b"waitaof 1 5 100\r\n");
    served.disk.until_one_waits();
    expect_nothing(&client);
    served.disk.release();
    client.expect(b"*2\r\n:1\r\n:0\r\n");
    for (wrong, why) in [
        ("2 0 0", "value is out of range, must be between 0 and 1"),
        ("-1 0 0", "value is out of range, must be between 0 and 1"),
        ("x 0 0", "value is not an integer or out of range"),
        ("0 -1 0", "value is out of range, must be positive"),
        ("0 0 -1", "timeout is negative"),
        ("0 0 x", "timeout is not an integer or out of range"),
    ] {
        client.ask(&format!("waitaof {wrong}\r\n"), &format!("-ERR {why}\r\n"));
    }
}

/// A pool of another level reports the equivalent policy, and refuses any other.
#[test]
fn other_levels_have_no_choice() {
    let db = Db::anonymous().expect("memory");
    let bound = |sync| {
        let config = Config {
            sync: Some(sync),
            ..with_redis()
        };
        Server::bind(config, &db).map(|server| server.sync())
    };
    assert_eq!(bound(Sync::No).expect("the pool's policy"), Sync::No);
    for sync in [Sync::Always, Sync::EverySecond] {
        let error = bound(sync).expect_err("there is no log");
        assert!(matches!(error, Error::Sync { .. }), "{error}");
        assert!(error.to_string().contains("level process"), "{error}");
    }
    let server = Running::over_db(with_redis(), &db);
    let mut client = server.connect_redis();
    client.ask(
        "config get append*\r\n",
        "*4\r\n$11\r\nappendfsync\r\n$2\r\nno\r\n$10\r\nappendonly\r\n$2\r\nno\r\n",
    );
    client.ask("config set appendfsync no\r\n", "+OK\r\n");
    client.send(b"config set appendfsync always\r\n");
    let refused = client.line();
    assert!(
        refused.starts_with("-ERR CONFIG SET failed") && refused.contains("level process"),
        "{refused}"
    );
    client.ask(
        "waitaof 1 0 0\r\n",
        "-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.\r\n",
    );
    client.ask("waitaof 0 1 1\r\n", "*2\r\n:0\r\n:0\r\n");
    client.send(b"bgrewriteaof\r\n");
    assert!(client.line().starts_with("-ERR a pool of level process"));
}

/// After a failed sync no write is acknowledged, not even to the clients that waited for that sync. Durable items are
/// still readable. Errors, `INFO` and metrics name the reason.
#[test]
fn a_failed_sync_ends_writing() {
    let metrics = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let served = Served::new(Config {
        metrics: Some(metrics),
        ..one_worker()
    });
    let (mut redis, mut memcached) = (served.running.connect_redis(), served.running.connect());
    redis.ask("set old 1\r\n", "+OK\r\n");
    memcached.ask("mn\r\n", "MN\r\n");
    served.disk.hold();
    redis.send(b"set new 1\r\nget old\r\n");
    served.disk.until_one_waits();
    memcached.send(b"set newer 0 0 1\r\n1\r\n");
    served.disk.fail();
    served.disk.release();
    let reply = redis.line();
    assert!(
        reply.starts_with("-MISCONF Errors writing to the AOF file: "),
        "{reply}"
    );
    assert!(reply.contains("the medium is gone"), "{reply}");
    redis.expect_end();
    let reply = memcached.line();
    assert!(
        reply.starts_with("SERVER_ERROR ") && reply.contains("the medium is gone"),
        "{reply}"
    );

    let (mut redis, mut memcached) = (served.running.connect_redis(), served.running.connect());
    for command in [
        "set old 2",
        "incr old",
        "mset a 1 b 2",
        "del old other",
        "flushdb",
        "flushall",
        "get new",
    ] {
        redis.send(format!("{command}\r\n").as_bytes());
        let reply = redis.line();
        assert!(
            reply.starts_with("-MISCONF ") && reply.contains("the medium is gone"),
            "{command}: {reply}"
        );
    }
    redis.ask("get old\r\n", "$1\r\n1\r\n");
    memcached.ask("get old\r\n", "VALUE old 0 1\r\n1\r\nEND\r\n");
    memcached.send(b"set old 0 0 1\r\n2\r\n");
    let reply = memcached.line();
    assert!(
        reply.starts_with("SERVER_ERROR ") && reply.contains("the medium is gone"),
        "{reply}"
    );
    redis.send(b"info persistence\r\n");
    let reply = redis.until(b"\r\n\r\n");
    let reply = String::from_utf8_lossy(&reply);
    assert!(
        reply.contains("aof_last_write_status:err\r\n") && reply.contains("log_failure:file 'log-"),
        "{reply}"
    );
    let reply = scrape(&served);
    assert!(reply.contains("\nwollemi_log_ok 0\n"), "{reply}");
    assert_eq!(data(&served.cut("after"), "old"), Some(b"1".to_vec()));
}

/// A program whose settings say that writes are durable when they are answered.
struct SyncsAlways;

impl Host for SyncsAlways {
    fn reload(&self) -> Result<Config, String> {
        Ok(Config {
            sync: Some(Sync::Always),
            ..Config::default()
        })
    }

    fn back_up(&self, _: &Snapshot, _: &BackupTo, _: &Copying) -> Result<(), String> {
        Err("no test makes a backup".into())
    }
}

/// After the log has failed a reload changes the sync policy all the same, and the event log does not deny it.
#[test]
fn a_reload_tells_the_policy_that_is_in_effect() {
    let _alone = SIGNALS.lock().unwrap_or_else(PoisonError::into_inner);
    logged::collect();
    let served = Served::new(Config {
        sync: Some(Sync::EverySecond),
        host: Some(Arc::new(SyncsAlways)),
        ..one_worker()
    });
    let mut client = served.running.connect_redis();
    served.disk.fail();
    client.ask("set a 1\r\n", "+OK\r\n");
    let begin = Instant::now();
    let until = |done: &mut dyn FnMut() -> bool| {
        while !done() {
            assert!(begin.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    until(&mut || served.db.failure().is_some());
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::HUP).expect("a signal");
    let mut told = None;
    until(&mut || {
        let mut lines = logged::lines().into_iter();
        told = lines.find(|line| line.why.contains("the medium is gone"));
        told.is_some()
    });
    let told = told.expect("just found").message;
    assert_eq!(
        told,
        "sync is changed, but earlier writes may not survive a loss of power"
    );
    client.ask(
        "config get appendfsync\r\n",
        "*2\r\n$11\r\nappendfsync\r\n$6\r\nalways\r\n",
    );
}

/// Both protocols show the level, the log and the checkpoints; a client can request a checkpoint.
#[test]
fn the_log_is_told() {
    let served = Served::new(Config {
        metrics: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        ..with_redis()
    });
    let (mut redis, mut memcached) = (served.running.connect_redis(), served.running.connect());
    redis.ask("set a 1\r\n", "+OK\r\n");
    let before = served.log().checkpoints;
    redis.ask(
        "bgrewriteaof\r\n",
        "+Background append only file rewriting started\r\n",
    );
    let began = Instant::now();
    while served.log().checkpoints == before {
        assert!(began.elapsed() < PATIENCE, "no checkpoint is taken");
        std::thread::yield_now();
    }
    redis.send(b"info persistence\r\n");
    let reply = String::from_utf8_lossy(&redis.until(b"\r\n\r\n")).into_owned();
    for line in [
        "aof_enabled:1",
        "aof_last_write_status:ok",
        "aof_last_bgrewrite_status:ok",
        "aof_pending_bio_fsync:0",
        "aof_delayed_fsync:0",
        "pool_level:disk",
        "pool_sync:always",
        "log_status:ok",
        "log_refused_at_limit:0",
    ] {
        assert!(reply.contains(&format!("{line}\r\n")), "no {line} in {reply}");
    }
    memcached.send(b"stats\r\n");
    let reply = String::from_utf8_lossy(&memcached.until(b"END\r\n")).into_owned();
    for line in [
        "STAT pool_level disk",
        "STAT pool_sync always",
        "STAT log_limit_bytes 268435456",
    ] {
        assert!(reply.contains(&format!("{line}\r\n")), "no {line} in {reply}");
    }
    let reply = scrape(&served);
    let log = served.log();
    for line in [
        "wollemi_pool_info{level=\"disk\",sync=\"always\"} 1".to_owned(),
        "wollemi_log_ok 1".to_owned(),
        format!("wollemi_log_sync_duration_seconds_count {}", log.syncs),
        format!("wollemi_log_group_records_bucket{{le=\"+Inf\"}} {}", log.syncs),
        format!("wollemi_log_group_records_sum {}", log.synced),
        "wollemi_log_room_wait_duration_seconds_count 0".to_owned(),
        format!("wollemi_checkpoint_duration_seconds_count {}", log.checkpoints),
    ] {
        assert!(reply.contains(&format!("\n{line}\n")), "no {line} in {reply}");
    }
    assert_eq!(data(&served.cut("checkpointed"), "a"), Some(b"1".to_vec()));
}

/// What the server removes without a request, and what a flush drops, stays gone after a loss of power: evicted and
/// expired items are removed by records of the log.
#[test]
fn what_is_gone_stays_gone() {
    const ITEMS: usize = 400;
    let served = Served::new(Config {
        evicts: true,
        sweep_pause: Some(Duration::from_millis(1)),
        ..one_worker()
    });
    let mut client = served.running.connect_redis();
    client.ask("set flushed 1\r\nflushall\r\n", "+OK\r\n+OK\r\n");
    client.ask("set expired 1 px 1\r\n", "+OK\r\n");
    let held = |db: &Db| {
        let map = db.find_map("memcached").expect("sound").expect("there");
        let keys = map.iter().map(|entry| entry.expect("sound").0);
        keys.collect::<Vec<_>>()
    };
    let began = Instant::now();
    while held(&served.db)
        .iter()
        .any(|key| key == b"expired" || key == b"flushed")
    {
        assert!(began.elapsed() < PATIENCE, "the sweep does not come");
        std::thread::yield_now();
    }
    client.ask("config set maxmemory 64kb\r\n", "+OK\r\n");
    for i in 0..ITEMS {
        client.ask(&format!("set key-{i} {}\r\n", "x".repeat(400)), "+OK\r\n");
    }
    client.ask("waitaof 1 0 0\r\n", "*2\r\n:1\r\n:0\r\n");
    let there = held(&served.db);
    assert!(
        there.len() > 10 && there.len() < ITEMS / 2,
        "{} items",
        there.len()
    );
    assert_eq!(held(&served.cut("after")), there);
}

/// The files beside the pool, without the pool, contain everything that a client was answered.
#[test]
fn the_files_beside_the_pool_are_whole() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.pool");
    let db = options().open(&path).expect("a database");
    let server = Running::over_db(with_redis(), &db);
    let mut client = server.connect_redis();
    client.ask("set a 1\r\nset b 2\r\nget a\r\n", "+OK\r\n+OK\r\n$1\r\n1\r\n");
    let left = directory.path().join("left.pool");
    copy(
        &path.with_extension("pool.disk"),
        &left.with_extension("pool.disk"),
    );
    let db = options().open(&left).expect("the pool is rebuilt");
    assert_eq!(
        (data(&db, "a"), data(&db, "b")),
        (Some(b"1".to_vec()), Some(b"2".to_vec()))
    );
    drop(client);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        std::fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
}
