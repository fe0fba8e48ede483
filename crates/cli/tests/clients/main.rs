//! Real clients write while the server is killed, while it is backed up, and behind a proxy over three servers. Every
//! acknowledged write survives, and every backup is a consistent snapshot.

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

/// Operations of each client to be acknowledged before a kill.
const BEFORE_A_KILL: usize = 150;

/// How long the server is down after a kill: longer than the lives of short-lived items.
const DOWN: Duration = Duration::from_millis(1100);

fn clients(script: &str, what: &str, server: &Server, file: &Path) -> Command {
    let port = |of| server.address(of).rsplit(':').next().expect("a port").to_owned();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    let mut command = Command::new(python());
    command
        .arg(folder.join(script))
        .args([what, &port("memcached"), &port("redis")])
        .arg(file);
    command
}

/// Returns how many operations of the client were acknowledged.
fn acknowledged(ledger: &Path, client: &str) -> usize {
    let begin = format!("[true, \"{client}\",");
    let text = fs::read_to_string(ledger).unwrap_or_default();
    text.lines().filter(|line| line.starts_with(&begin)).count()
}

/// Everything acknowledged to both clients before the kill holds in the next server: data, flags, counts. Deleted and
/// flushed items stay absent; expiries keep their time, even while no server runs.
#[test]
fn acknowledged_writes_survive_a_kill() {
    let pool = Pool::new();
    let ledger = pool.file("ledger");
    for _ in 0..KILLS {
        let mut server = Server::start(&pool);
        let before = ["m", "r"].map(|client| (client, acknowledged(&ledger, client)));
        let mut working = clients("killed.py", "work", &server, &ledger)
            .spawn()
            .expect("python runs");
        let started = Instant::now();
        while !before
            .iter()
            .all(|(client, before)| acknowledged(&ledger, client) >= before + BEFORE_A_KILL)
        {
            assert!(
                started.elapsed() < PATIENCE,
                "fewer than {BEFORE_A_KILL} operations per client acknowledged within {PATIENCE:?}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        server.child.kill().expect("SIGKILL");
        server.child.wait().expect("ends");
        let ended = working.wait().expect("python ends");
        assert!(ended.success(), "killed.py failed: {ended}");
        std::thread::sleep(DOWN);

        let server = Server::start(&pool);
        run(&mut clients("killed.py", "verify", &server, &ledger));
        assert_eq!(server.terminate(), Some(0));
    }
    pool.check();
}

/// Backups made while clients write, each requested a second time while it runs, each contain the state at one moment
/// between the request and the end of the backup: keys written together agree, in all databases, and no write
/// acknowledged before is missing.
#[test]
fn backups_under_load_are_consistent_snapshots() {
    let pool = Pool::new();
    let server = Server::start_with(&pool, &["--backup", "all.backup"]);
    let mut work = clients("backed_up.py", "work", &server, &pool.file("."));
    run(work.arg(pool.file("all.backup")));
    assert_eq!(server.terminate(), Some(0));
    pool.check();
    for number in 0..3 {
        let (backup, new) = (format!("{number}.backup"), format!("{number}.pool"));
        pool.ok(["restore", &backup, "--pool", &new]);
        pool.ok(["check", "--pool", &new]);
        let server = Server::start_with(&pool, &["--pool", &new]);
        let bounds = pool.file(&format!("{number}.json"));
        run(&mut clients("backed_up.py", "verify", &server, &bounds));
        assert_eq!(server.terminate(), Some(0));
    }
}

/// Three servers, with the keys sharded by a proxy or by the clients, lose no acknowledged write when each is killed
/// and restarted on its pool. The script skips, and names, nutcracker and any Python client that is not installed.
#[test]
fn servers_side_by_side_lose_no_acknowledged_write() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/scale.py");
    run(Command::new(python())
        .arg(script)
        .args(["proxies", env!("CARGO_BIN_EXE_wollemi")])
        .args(["--kills", "3", "--keys", "300", "--limit", "600"]));
}
