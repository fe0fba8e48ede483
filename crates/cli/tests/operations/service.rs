//! The server as a service: the manager is notified, the example files work, and there are manual pages.

use crate::PATIENCE;
use crate::common::server::Server;
use crate::common::{Pool, text};
use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};

fn contrib(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../contrib")
        .join(name)
}

/// The manager is notified once the server serves, at a socket with a file and at an abstract one.
#[test]
fn the_manager_is_told() {
    let pool = Pool::new();
    let path = pool.file("notify");
    let file = (
        UnixDatagram::bind(&path).expect("a socket"),
        path.display().to_string(),
    );
    let name = format!("wollemi-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let named = (
        UnixDatagram::bind_addr(&address).expect("a socket"),
        format!("@{name}"),
    );
    for (socket, name) in [file, named] {
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut command = pool.command(["serve", "--json"]);
        let server = Server::run(command.env("NOTIFY_SOCKET", name), &pool);
        let mut message = [0; 64];
        let length = socket.recv(&mut message).expect("word of the server");
        assert_eq!(&message[..length], b"READY=1");
        // The server answers only once it listens for signals.
        assert_eq!(server.client().get("k"), None);
        assert_eq!(server.terminate(), Some(0));
    }
}

/// The example settings are valid, including those that are commented out; the unit's command is valid.
#[test]
fn the_examples_are_right() {
    let pool = Pool::new();
    let example = fs::read_to_string(contrib("wollemi.toml")).expect("the example");
    let whole: String = example
        .lines()
        .map(
            |line| match line.strip_prefix("# ").filter(|rest| rest.contains(" = ")) {
                Some(setting) => format!("{setting}\n"),
                None => format!("{line}\n"),
            },
        )
        .collect();
    assert!(
        whole.lines().count() > 15 && whole.contains("\ntls-key = "),
        "{whole}"
    );
    for text in [&example, &whole] {
        fs::write(pool.file("example.toml"), text).expect("a file");
        pool.ok(["serve", "--config", "example.toml", "--print-config"]);
    }
    let unit = fs::read_to_string(contrib("wollemi.service")).expect("the unit");
    let command = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart=wollemi "));
    let command = command
        .expect("a command")
        .replace("/etc/wollemi.toml", "example.toml");
    pool.ok(command.split(' ').chain(["--print-config"]));
    // The manager is told only after a rebuild, which may take longer than systemd's 90 s.
    assert!(unit.contains("\nTimeoutStartSec=infinity\n"), "{unit}");
}

/// There is a page for each command, with its options.
#[test]
fn there_are_manual_pages() {
    let pool = Pool::new();
    pool.ok(["man", "pages"]);
    let page = |name: &str| fs::read_to_string(pool.file("pages").join(name)).expect(name);
    assert!(page("wollemi.1").contains("serve"));
    assert!(
        page("wollemi-serve.1")
            .replace('\\', "")
            .contains("--max-connections")
    );
    let help = pool.ok(["--help"]);
    let commands = text(&help).split("Commands:").nth(1).expect("commands").lines();
    let names = commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let mut count = 0;
    for command in
        names.filter(|name| name.starts_with(|first: char| first.is_ascii_lowercase()) && *name != "help")
    {
        assert!(!page(&format!("wollemi-{command}.1")).is_empty());
        count += 1;
    }
    assert!(count > 10);
    pool.run(["man", "/proc/nowhere"]).fails(5, &["/proc/nowhere"]);
}
