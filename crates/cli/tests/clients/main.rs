//! Clients that people use, at work until the server is killed: what they were told is there afterwards, items that expire,
//! counters and numbers changed by compare-and-swap among it.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../server/tests/server/python.rs"]
mod python;

use common::Pool;
use common::server::{PATIENCE, Server};
use python::{python, run};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const KILLS: usize = 4;

/// Operations of each client that are acknowledged before a kill.
const BEFORE_A_KILL: usize = 150;

fn clients(what: &str, server: &Server, ledger: &Path) -> Command {
    let port = |of| server.address(of).rsplit(':').next().expect("a port").to_owned();
    let mut command = Command::new(python());
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/killed.py"))
        .args([what, &port("memcached"), &port("redis")])
        .arg(ledger);
    command
}

/// How many operations of the client were acknowledged.
fn acknowledged(ledger: &Path, client: &str) -> usize {
    let begin = format!("[true, \"{client}\",");
    let text = fs::read_to_string(ledger).unwrap_or_default();
    text.lines().filter(|line| line.starts_with(&begin)).count()
}

/// Whatever both clients were told before the server was killed amid their work is true of the next server.
#[test]
fn what_clients_were_told_outlives_a_killed_server() {
    let pool = Pool::new();
    let ledger = pool.file("ledger");
    for _ in 0..KILLS {
        let mut server = Server::start(&pool);
        let before = ["m", "r"].map(|client| (client, acknowledged(&ledger, client)));
        let mut working = clients("work", &server, &ledger).spawn().expect("python runs");
        let started = Instant::now();
        while !before
            .iter()
            .all(|(client, before)| acknowledged(&ledger, client) >= before + BEFORE_A_KILL)
        {
            assert!(started.elapsed() < PATIENCE, "the clients do nothing");
            std::thread::sleep(Duration::from_millis(20));
        }
        server.child.kill().expect("SIGKILL");
        server.child.wait().expect("ends");
        let ended = working.wait().expect("python ends");
        assert!(ended.success(), "a client had a wrong answer: {ended}");

        let server = Server::start(&pool);
        run(&mut clients("verify", &server, &ledger));
        assert_eq!(server.terminate(), Some(0));
    }
    pool.check();
}
