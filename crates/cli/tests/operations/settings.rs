//! Settings: flags, environment, file; and reloading them.

use crate::common::server::{Client, PATIENCE, Server};
use crate::common::{Pool, text};
use crate::{log, wait_until};
use rustix::process::Signal;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::Command;

/// All settings are printed with their sources, and nothing is opened.
#[test]
fn the_settings_are_shown() {
    let pool = Pool::new();
    fs::write(pool.file("w.toml"), "max-connections = 7\nidle-timeout = 3\n").expect("a file");
    let mut command = pool.command(["serve", "--print-config", "--max-value", "2M"]);
    command
        .env("WOLLEMI_CONFIG", "w.toml")
        .env("WOLLEMI_IDLE_TIMEOUT", "4");
    let shown = command.output().expect("the program runs");
    let shown = text(&shown.stdout).to_owned();
    for line in [
        "max-connections = 7  # w.toml:1",
        "idle-timeout = 4  # WOLLEMI_IDLE_TIMEOUT",
        "max-value = \"2M\"  # command line",
        "map = \"memcached\"  # default",
        "# passwords is not set",
    ] {
        assert!(
            shown.lines().any(|shown| shown == line),
            "no '{line}' in:\n{shown}"
        );
    }
    assert!(!pool.path().exists());
    let json = pool.ok(["serve", "--print-config", "--config", "w.toml", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json).expect("one JSON object");
    assert_eq!(json["idle-timeout"]["value"], 3);
    assert_eq!(json["idle-timeout"]["source"], "w.toml:2");
}

/// A file with a mistake keeps the server from starting, and the error names the place.
#[test]
fn mistakes_keep_the_server_from_starting() {
    let pool = Pool::new();
    fs::write(pool.file("w.toml"), "\nmax-conections = 7\n").expect("a file");
    pool.run(["serve", "--config", "w.toml"])
        .fails(2, &["w.toml:2", "unknown key 'max-conections'"]);
    pool.run(["serve", "--config", "nowhere.toml"])
        .fails(5, &["nowhere.toml"]);
    assert!(!pool.path().exists());
}

/// SIGHUP applies the file's limits; an invalid file changes nothing, and the server reports it and continues.
#[test]
fn limits_are_reloaded() {
    let pool = Pool::new();
    let write = |text: &str| fs::write(pool.file("w.toml"), text).expect("a file");
    write("max-connections = 50\n");
    let server = Server::start_with(&pool, &["--config", "w.toml", "--idle-timeout", "100"]);
    assert_eq!(server.parameter("maxclients"), "50");
    write("max-connections = 60\nidle-timeout = 200\nmax-bulk = '2M'\nslow-log = 5\n");
    server.signal(Signal::HUP);
    // Settings are applied one after the other.
    let bulk = (2 << 20).to_string();
    for (name, value) in [
        ("maxclients", "60"),
        ("proto-max-bulk-len", &bulk),
        ("slowlog-log-slower-than", "5"),
    ] {
        wait_until(name, || server.parameter(name) == value);
    }
    // Flags override the file.
    assert_eq!(server.parameter("timeout"), "100");
    write("max-connections = 'many'\n");
    server.signal(Signal::HUP);
    wait_until("a refusal", || {
        let log = log(&pool);
        log.contains("reload refused") && log.contains("w.toml:1")
    });
    assert_eq!(server.parameter("maxclients"), "60");
    assert_eq!(server.terminate(), Some(0));
}

/// Starts a server whose soft limit on open files is 100.
fn with_few_files(pool: &Pool, args: &[&str]) -> Server {
    let mut wollemi = pool.command(["serve", "--json"]);
    let wollemi = wollemi.args(args);
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -S -n 100 && exec \"$@\"", "sh"])
        .arg(wollemi.get_program())
        .args(wollemi.get_args())
        .current_dir(wollemi.get_current_dir().expect("the pool's"));
    Server::run(&mut limited, pool)
}

/// The files of many threads, and of their sockets, take nothing from the connections.
#[test]
fn many_threads_leave_room_for_the_connections() {
    let pool = Pool::new();
    let server = with_few_files(&pool, &["--threads", "64", "--max-connections", "200"]);
    let mut clients: Vec<_> = (0..200).map(|_| server.redis_client()).collect();
    for client in &mut clients {
        assert_eq!(client.ask("ping\r\n").as_deref(), Some("+PONG"));
    }
    let refused = server.redis_client().line();
    assert_eq!(refused.as_deref(), Some("-ERR max number of clients reached"));
    assert_eq!(server.terminate(), Some(0));
}

/// The limit on open files follows the limit on connections, also when it is raised later.
#[test]
fn files_follow_the_limit_on_connections() {
    let pool = Pool::new();
    let write =
        |max: u32| fs::write(pool.file("w.toml"), format!("max-connections = {max}\n")).expect("a file");
    write(20);
    let server = with_few_files(&pool, &["--threads", "1", "--config", "w.toml"]);
    let files = || {
        let limits = fs::read_to_string(format!("/proc/{}/limits", server.child.id())).expect("limits");
        let line = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max open files"));
        let soft = line
            .and_then(|line| line.split_whitespace().next())
            .expect("a limit");
        soft.parse::<u32>().expect("a number")
    };
    // The server answers only once it listens for signals.
    assert_eq!((server.parameter("maxclients").as_str(), files()), ("20", 100));
    write(300);
    server.signal(Signal::HUP);
    wait_until("the new limit", || server.parameter("maxclients") == "300");
    assert!(files() >= 300, "{}", files());
    let mut client = server.redis_client();
    assert_eq!(
        client.ask("config set maxclients 400\r\n").as_deref(),
        Some("+OK")
    );
    assert!(files() >= 400, "{}", files());
    assert_eq!(server.terminate(), Some(0));
}

/// The flags for passwords, addresses and limits take effect. Changed passwords apply from the next reload on, to later
/// logins; an invalid file of passwords changes nothing.
#[test]
fn flags_and_passwords_hold() {
    let pool = Pool::new();
    let write = |text: &str| fs::write(pool.file("users"), text).expect("a file");
    write("ann:secret\n");
    let flags = [
        "--passwords",
        "users",
        "--unix",
        "w.sock",
        "--memory-limit",
        "1M",
        "--no-evict",
        "--max-bulk",
        "2M",
    ];
    let server = Server::start_with(&pool, &flags);
    let mut ann = server.redis_client();
    let refused = "-NOAUTH Authentication required.";
    assert_eq!(ann.ask("ping\r\n").as_deref(), Some(refused));
    let come_in = |client: &mut Client, password: &str| {
        let answer = client
            .ask(&format!("auth ann {password}\r\n"))
            .expect("an answer");
        answer == "+OK"
    };
    assert!(come_in(&mut ann, "secret"));
    assert_eq!(ann.parameter("maxmemory-policy"), "noeviction");
    assert_eq!(ann.parameter("maxmemory"), (1 << 20).to_string());
    assert_eq!(ann.parameter("proto-max-bulk-len"), (2 << 20).to_string());

    let socket = pool.file("w.sock");
    let mode = fs::metadata(&socket).expect("a file").permissions().mode();
    assert_eq!(mode & 0o077, 0, "the owner's alone");
    let mut local = UnixStream::connect(&socket).expect("the server listens");
    local.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let value = "x".repeat(600_000);
    let sets = ["a", "b"]
        .map(|key| format!("set {key} 0 0 600000\r\n{value}\r\n"))
        .concat();
    let requests = format!("set who 0 0 10\r\nann secret\r\n{sets}get who\r\nquit\r\n");
    local.write_all(requests.as_bytes()).expect("the server reads");
    let mut answers = String::new();
    local.read_to_string(&mut answers).expect("the server answers");
    let full = "SERVER_ERROR out of memory storing object";
    assert_eq!(answers, format!("STORED\r\nSTORED\r\n{full}\r\nEND\r\n"));

    write("ann:other\n");
    server.signal(Signal::HUP);
    wait_until("new passwords", || log(&pool).contains("passwords reloaded"));
    let mut again = server.redis_client();
    assert!(!come_in(&mut again, "secret") && come_in(&mut again, "other"));
    assert_eq!(ann.ask("ping\r\n").as_deref(), Some("+PONG"));
    write("nobody\n");
    server.signal(Signal::HUP);
    wait_until("a refusal", || log(&pool).contains("passwords refused"));
    assert!(come_in(&mut server.redis_client(), "other"));
    assert_eq!(server.terminate(), Some(0));
}
