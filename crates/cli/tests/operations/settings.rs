//! Settings: flags, environment, file; and reloading them.

use crate::common::{Pool, text};
use crate::{Server, log, wait_until};
use std::fs;

/// All settings are shown with where they come from, and nothing is opened.
#[test]
fn the_settings_are_shown() {
    let pool = Pool::new();
    fs::write(pool.file("w.toml"), "max-connections = 7\nidle-timeout = 3\n").expect("a file");
    let mut command = pool.command(["serve", "--print-config", "--max-value", "2M"]);
    command
        .env("WOLLEMI_CONFIG", "w.toml")
        .env("WOLLEMI_IDLE_TIMEOUT", "4");
    let shown = command.output().expect("it runs");
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

/// A file with a mistake keeps the server from starting, and the mistake is placed.
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

/// SIGHUP takes the file's limits over; a file that is wrong changes nothing, and the server says so and goes on.
#[test]
fn limits_are_reloaded() {
    let pool = Pool::new();
    let write = |text: &str| fs::write(pool.file("w.toml"), text).expect("a file");
    write("max-connections = 50\n");
    let server = Server::start(&pool, &["--config", "w.toml", "--idle-timeout", "100"]);
    assert_eq!(server.parameter("maxclients"), "50");
    write("max-connections = 60\nidle-timeout = 200\nmax-bulk = '2M'\nslow-log = 5\n");
    server.signal("HUP");
    // One is taken over after the other.
    let bulk = (2 << 20).to_string();
    for (name, value) in [
        ("maxclients", "60"),
        ("proto-max-bulk-len", &bulk),
        ("slowlog-log-slower-than", "5"),
    ] {
        wait_until(name, || server.parameter(name) == value);
    }
    // The command line is stronger than the file.
    assert_eq!(server.parameter("timeout"), "100");
    write("max-connections = 'many'\n");
    server.signal("HUP");
    wait_until("a refusal", || {
        let log = log(&pool);
        log.contains("reload refused") && log.contains("w.toml:1")
    });
    assert_eq!(server.parameter("maxclients"), "60");
    assert_eq!(server.stop(), Some(0));
}
