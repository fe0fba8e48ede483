//! A bounded run of `exercise --server`: users call the server over both protocols.

mod common;

use common::{Lab, text, wollemi};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

/// Commands that no user of the exerciser calls, and why.
const LEFT_OUT: [(&str, &str); 7] = [
    ("auth", "there are no passwords"),
    ("flushall", "called between rounds, since it affects all users"),
    ("hello", "called at the start of connections"),
    (
        "quit",
        "a user's connections stay open as long as the server runs",
    ),
    (
        "reset",
        "the same, and the user would lose the database it has selected",
    ),
    ("save", "called at the end of rounds"),
    ("multi", "counted as `exec` or `discard`"),
];

/// Returns the names of the server's Redis commands, from `COMMAND LIST`.
fn commands() -> std::io::Result<Vec<String>> {
    let lab = Lab::new();
    let mut server = Command::new(wollemi())
        .args([
            "serve",
            "--json",
            "--memcached",
            "127.0.0.1:0",
            "--redis",
            "127.0.0.1:0",
        ])
        .current_dir(lab.path())
        .stdout(Stdio::piped())
        .spawn()?;
    let names = (|| {
        let mut ready = String::new();
        BufReader::new(server.stdout.take().expect("piped")).read_line(&mut ready)?;
        let ready: Value = serde_json::from_str(&ready)?;
        let mut stream = TcpStream::connect(ready["redis"][0].as_str().expect("an address"))?;
        stream.write_all(b"COMMAND LIST\r\n")?;
        let mut lines = BufReader::new(stream).lines();
        let mut line = || lines.next().expect("more");
        let count = line()?[1..].parse().expect("a number");
        // A line with its length precedes each name.
        (0..count).map(|_| line().and_then(|_| line())).collect()
    })();
    server.kill()?;
    server.wait()?;
    names
}

/// Every answer is right, every acknowledged write survives each kill, and the users call every command.
#[test]
fn the_server_keeps_what_it_has_acknowledged() -> std::io::Result<()> {
    let lab = Lab::new();
    let seed = std::env::var("WOLLEMI_SEED").unwrap_or_else(|_| "1".into());
    let server = format!("--server={}", wollemi().display());
    let arguments = [
        "exercise", &server, "--json", "--budget", "600s", "--calls", "60000", "--dir", ".", "--seed", &seed,
    ];
    let report: Value = serde_json::from_str(text(&lab.ok(arguments)))?;
    assert!(report["kills"].as_u64() > Some(0), "{report}");
    let called = report["called"].as_object().expect("an object");
    let called: BTreeSet<String> = called.keys().map(|name| name.to_lowercase()).collect();
    for name in commands()? {
        let left_out = LEFT_OUT.iter().any(|(of, _)| *of == name);
        assert!(called.contains(&name) || left_out, "no user calls {name}");
    }
    Ok(())
}
