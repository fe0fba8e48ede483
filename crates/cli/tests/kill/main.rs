//! A process that writes and reads is killed with `kill -9` at random moments, over and over; whatever it had
//! acknowledged before, writes and reads, is there afterwards, and no space is lost.
//!
//! This binary is both processes: the parent kills, judges (`oracle`) and reopens; the child works (`child`) and
//! acknowledges through a pipe, which outlives it. What each thread does is computed from the seed (`workload`), so
//! the parent knows which operation was in flight.
//!
//! `WOLLEMI_SEED` repeats a run's workload (not the moments of its kills), `WOLLEMI_KILLS` sets how many kills, and
//! `WOLLEMI_INDEX` the one index whose map is worked on.

#[path = "../common/mod.rs"]
mod common;

mod child;
mod oracle;
mod workload;

use common::{Pool, Random};
use oracle::Oracle;
use std::io::{BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use wollemi::{Db, IndexKind, RecoveryState};
use workload::{MAP, Record};

fn main() {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() == Some("--child") {
        let mut number = || args.next().and_then(|arg| arg.parse().ok()).expect("a number");
        let (seed, round) = (number(), number());
        let kind = args.next().and_then(|name| name.parse().ok()).expect("an index");
        child::work(Path::new(&args.next().expect("a path")), kind, seed, round);
    }
    println!("acknowledged_operations_survive_kill_9");
    let kills = std::env::var("WOLLEMI_KILLS")
        .ok()
        .and_then(|kills| kills.parse().ok());
    match std::env::var("WOLLEMI_INDEX") {
        Ok(name) => {
            acknowledged_operations_survive_kill_9(name.parse().expect("an index"), kills.unwrap_or(50))
        }
        Err(_) => {
            acknowledged_operations_survive_kill_9(IndexKind::default(), kills.unwrap_or(50));
            // Merges in the background, and a log that is replayed.
            acknowledged_operations_survive_kill_9(IndexKind::DpTree, kills.unwrap_or(20));
        }
    }
    println!("ok");
}

fn acknowledged_operations_survive_kill_9(kind: IndexKind, kills: u64) {
    let pool = Pool::new();
    let mut random = Random::announced("kill");
    let seed = random.next();
    let mut oracle = Oracle::new();
    let mut records = 0;
    for round in 1..=kills {
        // Some die while they open or recover, some in full flight.
        let micros = match random.below(4) {
            0 => random.below(15_000),
            _ => 15_000 + random.below(200_000),
        };
        let heard = run_and_kill(&pool.path(), kind, (seed, round), Duration::from_micros(micros));
        records += heard.len();
        oracle.judge(seed, round, &heard);
        // Without a look in between, two crashes may meet in one recovery.
        if pool.path().exists() && random.below(2) == 0 {
            verify(&pool.path(), kind, &mut oracle);
        }
    }
    println!("{kind}: {kills} kills, {records} acknowledgements");
    assert!(records > 0, "no child ever came to work");
    verify(&pool.path(), kind, &mut oracle);
    pool.check();
    // A DPTree that was emptied still has the log of it.
    if kind != IndexKind::DpTree {
        nothing_is_left_of_nothing(&pool.path());
        pool.check();
    }
}

/// Lets a child work for a while; returns what it has acknowledged.
fn run_and_kill(pool: &Path, kind: IndexKind, (seed, round): (u64, u64), after: Duration) -> Vec<Record> {
    let mut child = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--child", &seed.to_string(), &round.to_string(), kind.name()])
        .arg(pool)
        .stdout(Stdio::piped())
        .spawn()
        .expect("this binary starts");
    let mut pipe = BufReader::new(child.stdout.take().expect("piped"));
    let listener = thread::spawn(move || {
        let mut records = Vec::new();
        let mut bytes = [0; Record::LEN];
        while pipe.read_exact(&mut bytes).is_ok() {
            records.push(Record::decode(&bytes));
        }
        records
    });
    thread::sleep(after);
    if let Some(status) = child.try_wait().expect("a child") {
        panic!("round {round}: the child ended by itself: {status}");
    }
    child.kill().expect("SIGKILL");
    child.wait().expect("a child");
    listener.join().expect("no panic")
}

/// Opens the pool, compares every key with what it may hold, and walks everything.
fn verify(pool: &Path, kind: IndexKind, oracle: &mut Oracle) {
    let db = Db::open(pool).expect("the pool opens after a kill");
    let map = db.map_with(MAP, kind).expect("the map opens");
    oracle.compare(&map);
    assert_eq!(db.wait_recovered().state, RecoveryState::Done);
    let check = db.check().expect("everything can be walked");
    assert!(check.is_clean(), "{check:#?}");
    let space = db.stats().expect("statistics").space;
    assert_eq!(space.used + space.free, space.reserved, "{space:?}");
    oracle.compare(&map);
}

/// When all keys are removed, hardly any space is in use: none was lost by the kills.
fn nothing_is_left_of_nothing(pool: &Path) {
    let db = Db::open(pool).expect("the pool opens");
    db.wait_recovered();
    let map = db.map(MAP).expect("the map opens");
    for entry in &map {
        let (key, _) = entry.expect("an entry");
        assert!(map.remove(key).expect("removed"));
    }
    drop((map, db));
    let db = Db::open(pool).expect("the pool opens");
    db.wait_recovered();
    let stats = db.stats().expect("statistics");
    // Page 0, and the ends of pages that hold the empty map's few chunks.
    assert!(stats.space.used < 2 * stats.page_size, "{stats:#?}");
    assert!(stats.space.objects < 100, "{stats:#?}");
}
