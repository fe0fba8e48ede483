//! Backups of a running server, and pools restored from them.

use crate::common::Pool;
use crate::common::server::{Client, Server};
use crate::{log, wait_until};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use std::fs;
use std::process::Command;

const BACKUP: &[&str] = &["--backup", "all.backup"];

/// Returns a server over a pool restored from a backup.
fn restored(pool: &Pool, name: &str) -> Server {
    pool.ok(["restore", "all.backup", "--pool", name]);
    pool.ok(["check", "--pool", name]);
    Server::start_with(pool, &["--pool", name])
}

/// Returns the first line of an answer, and the ones after it.
fn lines(client: &mut Client, request: &str, more: usize) -> Vec<String> {
    let first = client.ask(request).expect("an answer");
    let rest = (0..more).map(|_| client.line().expect("a line"));
    [first].into_iter().chain(rest).collect()
}

fn ask(client: &mut Client, request: &str) -> String {
    client.ask(&format!("{request}\r\n")).expect("an answer")
}

fn set(client: &mut Client, key: &str, flags: u32, expires: u32, value: &str) {
    let request = format!("set {key} {flags} {expires} {}\r\n{value}", value.len());
    assert_eq!(ask(client, &request), "STORED");
}

/// Returns 1000 letters that a backup cannot compress.
fn noise(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let letter = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(
            b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[(state >> 58) as usize],
        )
    };
    (0..1000).map(letter).collect()
}

/// Returns whether a backup is in progress.
fn runs(client: &mut Client) -> bool {
    let head = ask(client, "INFO persistence");
    let length: usize = head.trim_start_matches('$').parse().expect("a length");
    let (mut read, mut found) = (0, None);
    while read < length {
        let line = client.line().expect("a line");
        read += line.len() + 2;
        found = found.or(line.strip_prefix("rdb_bgsave_in_progress:").map(|is| is == "1"));
    }
    assert_eq!(client.line().as_deref(), Some(""));
    found.expect("`INFO` has the line")
}

/// Returns all observable properties of items that were put in many ways.
fn all(server: &Server) -> Vec<Vec<String>> {
    let (mut cached, mut redis) = (server.client(), server.redis_client());
    let mut all = vec![
        lines(&mut cached, "gets plain timed big counted\r\n", 8),
        lines(&mut cached, "mg stale f c v\r\n", 1),
    ];
    for (db, keys) in [(0, 5), (3, 2), (15, 1), (7, 0)] {
        assert_eq!(ask(&mut redis, &format!("SELECT {db}")), "+OK");
        all.push(lines(&mut redis, "KEYS *\r\n", 2 * keys));
        assert_eq!(all.last().map(|lines| &lines[0]), Some(&format!("*{keys}")));
        for key in ["plain", "timed", "k"] {
            all.push(lines(&mut redis, &format!("PEXPIRETIME {key}\r\n"), 0));
        }
    }
    all.push(lines(&mut redis, "SELECT 3\r\nGET k\r\n", 2));
    all
}

/// A pool restored from a backup has the content of its moment, in all databases: data, flags, uniques, times, marks.
/// It has nothing from later, and does not hand out uniques again.
#[test]
fn a_backup_is_exactly_what_there_was() {
    let pool = Pool::new();
    let server = Server::start_with(&pool, BACKUP);
    let (mut cached, mut redis) = (server.client(), server.redis_client());
    set(&mut cached, "plain", 7, 0, "alpha");
    set(&mut cached, "timed", u32::MAX, 100_000, "beta");
    set(&mut cached, "big", 0, 0, &"x".repeat(300_000));
    set(&mut cached, "stale", 5, 0, "old");
    set(&mut cached, "gone", 5, 0, "deleted");
    assert_eq!(ask(&mut cached, "md stale I T1000"), "HD");
    // The first client to read it may replace it.
    assert!(ask(&mut cached, "mg stale").contains(" W"));
    assert_eq!(ask(&mut cached, "delete gone"), "DELETED");
    assert_eq!(ask(&mut redis, "INCRBY counted 41"), ":41");
    assert_eq!(ask(&mut redis, "SELECT 3"), "+OK");
    assert_eq!(ask(&mut redis, "SET k three PX 100000000"), "+OK");
    assert_eq!(ask(&mut redis, "MSET timed 1 plain 2"), "+OK");
    assert_eq!(ask(&mut redis, "DEL plain"), ":1");
    assert_eq!(ask(&mut redis, "SELECT 15"), "+OK");
    assert_eq!(ask(&mut redis, "SET k fifteen"), "+OK");
    assert_eq!(ask(&mut redis, "SELECT 7"), "+OK");
    assert_eq!(ask(&mut redis, "SET k flushed"), "+OK");
    assert_eq!(ask(&mut redis, "FLUSHDB"), "+OK");
    let then = all(&server);
    assert_eq!(ask(&mut redis, "SAVE"), "+OK");

    // Changes that the backup does not have.
    set(&mut cached, "plain", 8, 0, "later");
    let unique = |of: &[String]| {
        let last = of[0].rsplit(' ').next().expect("words");
        last.parse::<u64>().expect("a unique")
    };
    assert_eq!(ask(&mut redis, "SELECT 3"), "+OK");
    assert_eq!(ask(&mut redis, "SET new v"), "+OK");
    assert_eq!(ask(&mut redis, "FLUSHALL"), "+OK");
    server.kill();
    let server = restored(&pool, "new.pool");
    assert_eq!(all(&server), then);
    let mut cached = server.client();
    let plain = unique(&then[0]);
    assert_eq!(
        ask(&mut cached, &format!("cas plain 7 0 5 {plain}\r\nother")),
        "STORED"
    );
    let given = unique(&lines(&mut cached, "gets plain\r\n", 2));
    let before = then[0].iter().filter(|line| line.starts_with("VALUE "));
    for item in before {
        assert!(given > unique(std::slice::from_ref(item)), "{given} and {item}");
    }
    assert_eq!(server.terminate(), Some(0));
    // The pool itself keeps the later changes.
    let server = Server::start(&pool);
    assert_eq!(server.client().get("plain"), None);
    assert_eq!(server.terminate(), Some(0));
}

/// The backup's path is a setting that SIGHUP reloads. A backup that cannot be written reports why, and the older one
/// stays: if the folder is missing, something is in the way, the disk is full, or the path is the pool's.
#[test]
fn a_backup_that_fails_leaves_the_older_one() {
    let pool = Pool::new();
    let set_to = |file: &str| {
        fs::write(pool.file("w.toml"), format!("backup = \"{file}\"\n")).expect("a file");
    };
    set_to("nowhere/all.backup");
    // A file that grows beyond its limit is then an error, as on a full disk, and not a signal.
    let mut command = Command::new("sh");
    command
        .args([
            "-c",
            "trap '' XFSZ; exec \"$0\" \"$@\"",
            env!("CARGO_BIN_EXE_wollemi"),
        ])
        .args(["serve", "--json", "--config", "w.toml"])
        .current_dir(pool.file("."))
        .env_remove("WOLLEMI_POOL");
    let server = Server::run(&mut command, &pool);
    let (mut cached, mut redis) = (server.client(), server.redis_client());
    let mut fails = |words: &[&str]| {
        let answer = ask(&mut redis, "SAVE");
        let is_so = answer.starts_with("-ERR ") && words.iter().all(|word| answer.contains(word));
        assert!(is_so, "{words:?}: {answer}");
    };
    let reload = |file: &str| {
        let before = log(&pool).matches("limits reloaded").count();
        set_to(file);
        server.signal(Signal::HUP);
        wait_until("a reload", || {
            log(&pool).matches("limits reloaded").count() > before
        });
    };
    let is_made = || {
        assert_eq!(ask(&mut server.redis_client(), "SAVE"), "+OK");
        fs::read(pool.file("all.backup")).expect("the file exists")
    };
    for i in 0..300 {
        set(&mut cached, &format!("k{i}"), 0, 0, &noise(i));
    }
    fails(&["nowhere/all.backup"]);
    reload("all.backup");
    let whole = is_made();
    assert!(whole.len() > 300_000);

    fs::write(pool.file("all.backup.part"), "a user's").expect("written");
    fs::create_dir(pool.file("folder")).expect("a folder");
    reload("folder");
    fails(&["folder"]);
    reload("all.backup");
    assert!(fs::read(pool.file("all.backup")).expect("the file exists") == whole);

    let limit = |bytes| {
        let limit = Rlimit {
            current: bytes,
            maximum: None,
        };
        let pid = Pid::from_child(&server.child);
        prlimit(Some(pid), Resource::Fsize, limit).expect("the server is a child of this process");
    };
    limit(Some(100_000));
    fails(&["too large"]);
    limit(None);
    assert!(pool.part_of("all.backup").is_none());
    assert!(fs::read(pool.file("all.backup")).expect("the file exists") == whole);
    set(&mut cached, "k0", 0, 0, &noise(300));
    let newer = is_made();
    assert!(newer != whole && newer.len() == whole.len());

    reload("./wollemi.pool");
    fails(&["is the pool"]);
    assert_eq!(cached.get("k1").map(|value| value.len()), Some(1000));
    assert_eq!(server.terminate(), Some(0));
    let logged = log(&pool);
    assert_eq!(
        logged.matches("backup failed, the one before stays").count(),
        4,
        "{logged}"
    );
    assert_eq!(logged.matches("backup done").count(), 2, "{logged}");
    pool.check();
    assert_eq!(
        fs::read(pool.file("all.backup.part")).expect("there"),
        b"a user's"
    );
    pool.run(["backup", "wollemi.pool"]).fails(2, &["is the pool"]);
    pool.check();
}

/// A backup to a pipe, which would wait for a reader, is refused, and the server stops.
#[test]
fn a_pipe_keeps_no_server_from_stopping() {
    let pool = Pool::new();
    let made = Command::new("mkfifo").arg(pool.file("all.backup")).status();
    assert!(made.expect("it runs").success());
    let mut server = Server::start_with(&pool, BACKUP);
    let mut redis = server.redis_client();
    assert_eq!(ask(&mut redis, "BGSAVE"), "+Background saving started");
    wait_until("the end of the backup", || log(&pool).contains("backup begun"));
    server.signal(Signal::TERM);
    wait_until("the server's end", || {
        server.child.try_wait().expect("its child").is_some()
    });
    assert!(log(&pool).contains("a running server backs up to a file only"));
}

/// A server that ends during a backup, by `kill -9` or normally, leaves the older backup or the newer one, complete;
/// leftovers of a kill do not obstruct the next backup.
#[test]
fn a_server_that_ends_amid_a_backup_leaves_a_whole_one() {
    let pool = Pool::new();
    let part = || pool.part_of("all.backup");
    for (round, in_order) in [false, true, false, true].into_iter().enumerate() {
        let server = Server::start_with(&pool, BACKUP);
        let (mut cached, mut redis) = (server.client(), server.redis_client());
        let old = format!("{round}-old");
        set(&mut cached, "marker", 0, 0, &old);
        for i in 0..100 {
            set(&mut cached, &format!("k{i}"), 0, 0, &"x".repeat(100_000));
        }
        assert_eq!(ask(&mut redis, "SAVE"), "+OK");
        assert!(part().is_none());
        let new = format!("{round}-new");
        set(&mut cached, "marker", 0, 0, &new);
        assert_eq!(ask(&mut redis, "BGSAVE"), "+Background saving started");
        wait_until("an incomplete file or the end of the backup", || {
            part().is_some() || !runs(&mut redis)
        });
        match in_order {
            true => {
                assert_eq!(server.terminate(), Some(0));
                assert!(part().is_none());
            }
            false => server.kill(),
        }
        pool.check();
        let name = format!("{round}.pool");
        let server = restored(&pool, &name);
        let mut cached = server.client();
        let marker = cached.get("marker").expect("the item exists");
        assert!(marker == old || marker == new, "{marker}");
        assert_eq!(cached.get("k99").map(|value| value.len()), Some(100_000));
        assert_eq!(server.terminate(), Some(0));
        fs::remove_file(pool.file(&name)).expect("the file exists");
    }
}
