//! `BGSAVE`, `SAVE` and `LASTSAVE`, with backups whose duration and outcome the test controls.

use crate::pool::Pool;
use crate::support::{Client, PATIENCE, Running, with_redis};
use index::model::ModelIndex;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use wollemi::Snapshot;
use wollemi_server::{BackupTo, Config, Copying, Host};

type Outcome = Result<(), String>;

/// The test's side of its backups.
struct Maker {
    /// Sends the outcome of a backup: each waits for it.
    ends: Sender<Outcome>,
    seen: Arc<Seen>,
}

/// Observations of the backups of a test.
#[derive(Default)]
struct Seen {
    /// Number of backups that were aborted.
    given_up: AtomicUsize,
    /// The item of the key `k` in the snapshot of the last backup.
    item: Mutex<Option<Vec<u8>>>,
}

/// The server's side: backups that write nothing, and end when the test says so.
struct Waits {
    ended: Mutex<Receiver<Outcome>>,
    seen: Arc<Seen>,
    /// Whether the next backup panics.
    panics: AtomicBool,
}

impl Host for Waits {
    fn back_up(&self, snapshot: &Snapshot, to: &BackupTo, copying: &Copying) -> Outcome {
        assert_eq!(to.memory, 1 << 20);
        assert!(!self.panics.swap(false, SeqCst), "a panic on request");
        let view = snapshot.find_view("memcached").expect("a map");
        *self.seen.item.lock().expect("one at a time") =
            view.and_then(|view| view.get("k").expect("the item is readable"));
        copying.reached(7, 700, 70);
        wait(
            &self.ended.lock().expect("one at a time"),
            copying,
            &self.seen.given_up,
        )
    }
}

/// Writes each backup after a first signal of `goes_on`, and ends after a second one.
struct Writes {
    goes_on: Mutex<Receiver<()>>,
}

impl Host for Writes {
    fn back_up(&self, snapshot: &Snapshot, to: &BackupTo, copying: &Copying) -> Outcome {
        let wait = || {
            let signal = self.goes_on.lock().expect("one at a time").recv_timeout(PATIENCE);
            signal.map_err(|error| error.to_string())
        };
        wait()?;
        let mut file = File::create(&to.file).map_err(|error| error.to_string())?;
        let written = snapshot.backup(&mut file, |copied| {
            copying.reached(copied.entries, copied.bytes, snapshot.memory());
        });
        written.map_err(|error| error.to_string())?;
        wait()
    }
}

/// Returns a server that can make backups, and their controls.
fn server() -> (Running, Maker) {
    let (config, maker) = config();
    (Running::over_this(Pool::new(), config), maker)
}

fn config() -> (Config, Maker) {
    config_that(false)
}

/// Returns a configuration whose first backup panics, if requested.
fn config_that(panics: bool) -> (Config, Maker) {
    let (ends, ended) = channel();
    let seen = Arc::new(Seen::default());
    let host = Waits {
        ended: Mutex::new(ended),
        seen: seen.clone(),
        panics: panics.into(),
    };
    let maker = Maker { ends, seen };
    let config = Config {
        host: Some(Arc::new(host)),
        backup_to: Some(BackupTo {
            file: PathBuf::from("/somewhere/all.backup"),
            memory: 1 << 20,
        }),
        ..with_redis()
    };
    (config, maker)
}

/// Waits until the test or the server ends the backup.
fn wait(ended: &Receiver<Outcome>, copying: &Copying, given_up: &AtomicUsize) -> Outcome {
    loop {
        match ended.recv_timeout(Duration::from_millis(1)) {
            Ok(outcome) => return outcome,
            Err(RecvTimeoutError::Disconnected) => return Err("the test has ended".into()),
            Err(RecvTimeoutError::Timeout) if copying.is_given_up() => {
                given_up.fetch_add(1, SeqCst);
                return Err("given up".into());
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Returns a line of `INFO`.
fn info(client: &mut Client, name: &str) -> String {
    client.send(b"INFO persistence\r\nPING\r\n");
    let text = String::from_utf8(client.until(b"+PONG\r\n")).expect("UTF-8");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
}

/// Waits until a line of `INFO` has this value.
fn wait_until(client: &mut Client, name: &str, value: &str) {
    let begin = Instant::now();
    while info(client, name) != value {
        assert!(begin.elapsed() < PATIENCE, "{name} is not {value}");
    }
}

fn wait_until_idle(client: &mut Client) {
    wait_until(client, "rdb_bgsave_in_progress", "0");
}

fn wait_until_busy(client: &mut Client) {
    wait_until(client, "rdb_bgsave_in_progress", "1");
}

/// Backups run beside the clients, one at a time, with their progress and outcome reported.
#[test]
fn one_backup_runs_beside_the_clients() {
    let (server, maker) = server();
    let mut client = server.connect_redis();
    client.ask("SET k v\r\n", "+OK\r\n");
    assert_eq!(info(&mut client, "rdb_changes_since_last_save"), "1");
    client.ask("BGSAVE\r\n", "+Background saving started\r\n");
    for again in ["BGSAVE\r\n", "BGSAVE SCHEDULE\r\n", "SAVE\r\n"] {
        client.ask(again, "-ERR Background save already in progress\r\n");
    }
    client.ask("SET k w\r\nGET k\r\n", "+OK\r\n$1\r\nw\r\n");
    assert_eq!(info(&mut client, "rdb_bgsave_in_progress"), "1");
    wait_until(&mut client, "current_save_keys_processed", "7");
    // The figures are noted one after the other.
    wait_until(&mut client, "current_cow_size", "70");
    // The snapshot does not have the later change.
    let item = maker.seen.item.lock().expect("one at a time").take();
    assert_eq!(item.expect("a key").last(), Some(&b'v'));
    assert_eq!(info(&mut client, "rdb_last_bgsave_time_sec"), "-1");

    maker.ends.send(Ok(())).expect("the backup waits");
    wait_until_idle(&mut client);
    let done = [
        ("rdb_saves", "1"),
        ("rdb_last_bgsave_status", "ok"),
        ("rdb_changes_since_last_save", "1"),
        ("current_save_keys_processed", "0"),
    ];
    for (name, value) in done {
        assert_eq!(info(&mut client, name), value, "{name}");
    }
    let time = info(&mut client, "rdb_last_save_time");
    client.ask("LASTSAVE\r\n", &format!(":{time}\r\n"));

    client.ask("bgsave Schedule\r\n", "+Background saving started\r\n");
    maker
        .ends
        .send(Err("the disk is full".into()))
        .expect("the backup waits");
    wait_until_idle(&mut client);
    assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "err");
    assert_eq!(info(&mut client, "rdb_saves"), "1");
    client.ask("LASTSAVE\r\n", &format!(":{time}\r\n"));
    client.ask(
        "CONFIG GET d*\r\n",
        "*6\r\n$9\r\ndatabases\r\n$2\r\n16\r\n$10\r\ndbfilename\r\n$10\r\nall.backup\r\n$3\r\ndir\r\n$10\r\n/somewhere\r\n",
    );
    server.stop();
}

/// The changes since the last backup include removals of items by clients, and the items that a flush drops.
#[test]
fn removals_are_changes() {
    let (server, maker) = server();
    let mut client = server.connect_redis();
    client.ask(
        "MSET a 1 b 2 c 3 d 4\r\nBGSAVE\r\n",
        "+OK\r\n+Background saving started\r\n",
    );
    maker.ends.send(Ok(())).expect("the backup waits");
    wait_until_idle(&mut client);
    let changes = |client: &mut Client| info(client, "rdb_changes_since_last_save");
    assert_eq!(changes(&mut client), "0");
    for (request, answer, count) in [
        ("DEL a\r\n", ":1\r\n", "1"),
        ("DEL a\r\n", ":0\r\n", "1"),
        ("UNLINK b nope\r\n", ":1\r\n", "2"),
        ("FLUSHALL\r\n", "+OK\r\n", "4"),
        ("FLUSHALL\r\n", "+OK\r\n", "4"),
        ("DEL c\r\n", ":0\r\n", "4"),
    ] {
        client.ask(request, answer);
        assert_eq!(changes(&mut client), count, "{request}");
    }
    server
        .connect()
        .ask("set e 0 0 1\r\n1\r\ndelete e\r\n", "STORED\r\nDELETED\r\n");
    assert_eq!(changes(&mut client), "6");
    server.stop();
}

/// `SAVE` waits, and so do its client's later requests; other clients do not. The backup continues if the client is
/// disconnected meanwhile.
#[test]
fn save_holds_up_its_own_connection_alone() {
    let (config, maker) = config();
    // So all connections share a thread.
    let one = Config { threads: 1, ..config };
    let server = Running::over(one, Arc::new(ModelIndex::new()));
    let mut saver = server.connect_redis();
    let mut other = server.connect_redis();
    saver.ask(
        "SET k v\r\nSAVE\r\nSET k w\r\nCLIENT ID\r\n",
        // Earlier requests are answered at once.
        "+OK\r\n",
    );
    wait_until_busy(&mut other);
    other.ask("GET k\r\n", "$1\r\nv\r\n");
    server.connect().ask("get k\r\n", "VALUE k 0 1\r\nv\r\nEND\r\n");
    maker.ends.send(Ok(())).expect("the backup waits");
    saver.expect(b"+OK\r\n+OK\r\n:");
    let id = saver.line();
    other.ask("GET k\r\n", "$1\r\nw\r\n");

    saver.send(b"SAVE\r\n");
    maker
        .ends
        .send(Err("no room\r\nat all".into()))
        .expect("the backup waits");
    saver.expect(b"-ERR no room  at all\r\n");

    saver.send(b"SAVE\r\n");
    wait_until_busy(&mut other);
    other.ask(&format!("CLIENT KILL ID {id}\r\n"), ":1\r\n");
    saver.expect_end();
    assert_eq!(info(&mut other, "rdb_bgsave_in_progress"), "1");
    maker.ends.send(Ok(())).expect("the backup waits");
    wait_until_idle(&mut other);
    assert_eq!(info(&mut other, "rdb_saves"), "2");
    server.stop();
}

/// A backup contains everything answered before its request, and nothing that its client has sent after it in the same
/// segment, although it is written after all of that has been executed.
#[test]
fn a_backup_is_of_the_moment_at_which_it_is_asked_for() {
    const KEYS: usize = 1000;
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("all.backup");
    let pool = Pool::new();
    let (go_on, goes_on) = channel();
    let config = Config {
        host: Some(Arc::new(Writes {
            goes_on: Mutex::new(goes_on),
        })),
        backup_to: Some(BackupTo {
            file: file.clone(),
            memory: 1 << 30,
        }),
        ..pool.config()
    };
    let server = Running::over_this(pool, config);
    let (mut memcached, mut client) = (server.connect(), server.connect_redis());
    let key = |i: usize| format!("key-{i:04}");
    let classic: String = (0..KEYS / 2)
        .map(|i| format!("set {} {i} 0 4\r\n{i:04}\r\n", key(i)))
        .collect();
    memcached.ask(&classic, &"STORED\r\n".repeat(KEYS / 2));
    let sets: String = (KEYS / 2..KEYS)
        .map(|i| format!("set {} {i:04}\r\n", key(i)))
        .collect();
    client.ask(&sets, &"+OK\r\n".repeat(KEYS / 2));
    client.ask("select 3\r\nset third x\r\nselect 0\r\n", &"+OK\r\n".repeat(3));

    // One write, and so one segment.
    client.ask(
        "set key-0000 last\r\nBGSAVE\r\nFLUSHALL\r\nset key-0001 behind\r\nset new behind\r\ndbsize\r\n",
        "+OK\r\n+Background saving started\r\n+OK\r\n+OK\r\n+OK\r\n:2\r\n",
    );
    // The items and the records of two databases, as of that moment.
    let total = (KEYS + 3).to_string();
    assert_eq!(info(&mut client, "current_save_keys_total"), total);
    assert_eq!(info(&mut client, "current_save_keys_processed"), "0");
    go_on.send(()).expect("the backup waits");
    wait_until(&mut client, "current_save_keys_processed", &total);
    assert_eq!(info(&mut client, "current_save_keys_total"), total);
    go_on.send(()).expect("the backup waits");
    wait_until_idle(&mut client);
    assert_eq!(info(&mut client, "current_save_keys_total"), "0");
    assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "ok");
    client.ask("dbsize\r\n", ":2\r\n");
    server.stop();

    let pool = Pool::restored(&file);
    let config = pool.config();
    let server = Running::over_this(pool, config);
    let (mut memcached, mut client) = (server.connect(), server.connect_redis());
    client.ask("get key-0000\r\nexists new\r\n", "$4\r\nlast\r\n:0\r\n");
    let gets: String = (1..KEYS).map(|i| format!("get {}\r\n", key(i))).collect();
    let got: String = (1..KEYS)
        .map(|i| {
            // Redis's clients set no flags.
            let flags = if i < KEYS / 2 { i } else { 0 };
            format!("VALUE {} {flags} 4\r\n{i:04}\r\nEND\r\n", key(i))
        })
        .collect();
    memcached.ask(&gets, &got);
    client.ask("select 3\r\nget third\r\n", "+OK\r\n$1\r\nx\r\n");
    server.stop();
}

/// A transaction cannot wait; a backup that it requests begins after its execution.
#[test]
fn a_transaction_asks_for_a_backup_after_it() {
    let (server, maker) = server();
    let mut client = server.connect_redis();
    client.ask("MULTI\r\n", "+OK\r\n");
    client.ask("SAVE\r\n", "-ERR Command not allowed inside a transaction\r\n");
    client.ask(
        "EXEC\r\n",
        "-EXECABORT Transaction discarded because of previous errors.\r\n",
    );
    client.ask(
        "MULTI\r\nSET k v\r\nBGSAVE\r\nBGSAVE\r\nSET k w\r\nEXEC\r\n",
        "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*4\r\n+OK\r\n+Background saving scheduled\r\n\
         -ERR Background save already in progress\r\n+OK\r\n",
    );
    maker.ends.send(Ok(())).expect("the backup waits");
    wait_until_idle(&mut client);
    client.ask("BGSAVE\r\n", "+Background saving started\r\n");
    maker.ends.send(Ok(())).expect("the backup waits");
    wait_until_idle(&mut client);
    server.stop();
}

/// A server that stops aborts the running backup and answers the client that waits for it; when the server has ended,
/// no backup runs.
#[test]
fn stopping_gives_a_backup_up() {
    let (server, maker) = server();
    let mut saver = server.connect_redis();
    let mut other = server.connect_redis();
    saver.send(b"SAVE\r\n");
    wait_until_busy(&mut other);
    server.tell_to_stop();
    saver.expect(b"-ERR given up\r\n");
    saver.expect_end();
    assert_eq!(server.stop().abandoned, 0);
    assert_eq!(maker.seen.given_up.load(SeqCst), 1);
}

/// A backup that panics has failed, and the next one can be made.
#[test]
fn a_backup_that_panics_has_failed() {
    let (config, maker) = config_that(true);
    let server = Running::over(config, Arc::new(ModelIndex::new()));
    let mut client = server.connect_redis();
    client.ask("SAVE\r\n", "-ERR the backup has panicked\r\n");
    maker.ends.send(Ok(())).expect("the next backup takes it");
    client.ask("SAVE\r\n", "+OK\r\n");
    server.stop();
}

/// Without a file, or without a backup function, there are no backups, and the error says so.
#[test]
fn backups_need_a_place() {
    let (config, _maker) = config();
    let nowhere = Config {
        backup_to: None,
        ..config
    };
    let server = Running::over(nowhere, Arc::new(ModelIndex::new()));
    let mut client = server.connect_redis();
    for command in ["SAVE", "BGSAVE"] {
        client.send(format!("{command}\r\n").as_bytes());
        let line = client.line();
        assert!(line.starts_with("-ERR no file for backups is set: "), "{line}");
        assert!(line.contains("--backup FILE"), "{line}");
    }
    client.ask(
        "CONFIG GET dbfilename\r\n",
        "*2\r\n$10\r\ndbfilename\r\n$0\r\n\r\n",
    );
    server.stop();
    let server = Running::with_redis();
    let mut client = server.connect_redis();
    client.ask(
        "BGSAVE\r\n",
        "-ERR this server has nothing that makes backups\r\n",
    );
    server.stop();
}
