//! A process that writes and reads is killed with `kill -9` at random moments, over and over, and in the middle of
//! changes of structure and of merges (`aim`). Everything it had acknowledged before, writes and reads, is present
//! afterwards, no space is lost, and after every kill `wollemi check` is clean.
//!
//! This binary is both processes: the parent kills, judges (`oracle`) and reopens; the child works (`child`) and
//! acknowledges through a pipe, which outlives it. The seed determines each thread's operations (`workload`), so the
//! parent knows which operation was in flight.
//!
//! At level `disk` the machine also seems to stop at some of the kills: the pool is removed, so that the next opening
//! rebuilds it from the log and the checkpoints. (The page cache keeps what was not synced; the crash kit's disk and
//! power cuts of a virtual machine lose it.)
//!
//! `WOLLEMI_SEED` repeats a run's workload (not the moments of its kills), `WOLLEMI_KILLS` sets the number of kills
//! (one more follows in each of `Aim::parts`), `WOLLEMI_INDEX` selects the one index to test, and `WOLLEMI_LEVEL` its
//! level.

#[path = "../common/mod.rs"]
mod common;

mod aim;
mod child;
mod oracle;
mod workload;

use aim::Aim;
use common::server::PATIENCE;
use common::{Pool, Random};
use oracle::Oracle;
use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use wollemi::{Db, IndexKind, Level, Options, RecoveryState};
use workload::{MAP, Record};

fn main() {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() == Some("--child") {
        let mut number = || args.next().and_then(|arg| arg.parse().ok()).expect("a number");
        let (seed, round) = (number(), number());
        let kind = args.next().and_then(|name| name.parse().ok()).expect("an index");
        let level = args.next().and_then(|name| name.parse().ok()).expect("a level");
        let pool = args.next().expect("a path");
        let aim = args.next().map(|part| Aim {
            part: Aim::named(kind, &part).expect("a part"),
            nth: args.next().and_then(|nth| nth.parse().ok()).expect("a number"),
        });
        child::work(Path::new(&pool), Tested { kind, level }, (seed, round), aim);
    }
    println!("acknowledged_operations_survive_kill_9");
    let kills = std::env::var("WOLLEMI_KILLS")
        .ok()
        .and_then(|kills| kills.parse().ok());
    let chosen = |name: &str| std::env::var(name).ok();
    let kind = chosen("WOLLEMI_INDEX").map(|name| name.parse().expect("an index"));
    let level = chosen("WOLLEMI_LEVEL").map(|name| name.parse().expect("a level"));
    let run = |kind, level, by_default| {
        acknowledged_operations_survive_kill_9(Tested { kind, level }, kills.unwrap_or(by_default));
    };
    if kind.is_some() || level.is_some() {
        run(kind.unwrap_or_default(), level.unwrap_or_default(), 50);
    } else {
        run(IndexKind::default(), Level::Process, 50);
        run(IndexKind::default(), Level::Disk, 25);
        // It merges in the background, and replays a log of its own.
        run(IndexKind::DpTree, Level::Process, 20);
        run(IndexKind::DpTree, Level::Disk, 10);
    }
    println!("ok");
}

/// What is tested: an index, at a level.
#[derive(Clone, Copy, Debug)]
struct Tested {
    kind: IndexKind,
    level: Level,
}

impl Tested {
    fn open(self, pool: &Path) -> Result<Db, wollemi::Error> {
        Options::new().level(self.level).open(pool)
    }
}

fn acknowledged_operations_survive_kill_9(tested: Tested, kills: u64) {
    let Tested { kind, level } = tested;
    let pool = Pool::new();
    let mut random = Random::announced("kill");
    let seed = random.next();
    let mut oracle = Oracle::new();
    let (mut writes, mut reads, mut rebuilds) = (0, 0, 0);
    let mut hits = BTreeMap::<&str, u64>::new();
    let parts = Aim::parts(kind);
    for round in 1..=kills + parts.len() as u64 {
        // Finally one kill in each of the rarely reached parts, however long a slow machine takes to reach it.
        let surely = (round - 1).checked_sub(kills).map(|part| Aim {
            part: parts[part as usize],
            nth: 1 + random.below(16),
        });
        let waited_for = surely.is_some();
        // Before that, some die during opening or recovery, some at random moments, some in rarely reached parts.
        let (micros, aim) = match random.below(8) {
            _ if waited_for => (120_000_000, surely),
            0 | 1 => (random.below(15_000), None),
            2..=5 => (15_000 + random.below(200_000), None),
            _ => (1_500_000, Some(aim(kind, &mut random))),
        };
        let part = aim.as_ref().map(|aim| aim.part);
        let ended = run_and_kill(
            &pool.path(),
            tested,
            (seed, round),
            Duration::from_micros(micros),
            aim,
        );
        if let (Some(part), true) = (part, ended.by_itself) {
            *hits.entry(part).or_insert(0) += 1;
        }
        assert!(
            ended.by_itself || !waited_for,
            "no child reached {}",
            part.unwrap_or_default()
        );
        let written = ended
            .heard
            .iter()
            .filter(|record| matches!(record, Record::Wrote { .. }));
        let written = written.count();
        writes += written;
        reads += ended.heard.len() - written;
        oracle.judge(seed, round, &ended.heard);
        let exists = pool.path().exists();
        if exists {
            // It opens the pool read-only, so the next opening finds what this kill has left.
            pool.check();
        }
        if exists && level == Level::Disk && random.below(3) == 0 {
            std::fs::remove_file(pool.path()).expect("removed");
            rebuilds += 1;
        }
        // Without an opening for writes in between, two crashes may fall into one recovery.
        if exists && random.below(2) == 0 {
            verify(&pool.path(), tested, &mut oracle);
        }
    }
    println!(
        "{kind}, level {level}: {kills} kills and {} in its parts, {rebuilds} of them with the pool, {writes} writes and \
         {reads} pairs read, acknowledged; aimed kills that hit: {hits:?}",
        parts.len()
    );
    verify(&pool.path(), tested, &mut oracle);
    pool.check();
    // An emptied DPTree still has its log.
    if kind != IndexKind::DpTree {
        nothing_is_left_of_nothing(&pool.path(), tested);
        pool.check();
    }
}

/// Returns a place, and the number of the step there at which the child kills itself: 1 to 4,096, small numbers more
/// often.
fn aim(kind: IndexKind, random: &mut Random) -> Aim {
    let parts = Aim::all(kind);
    let bits = random.below(13);
    Aim {
        part: parts[random.below(parts.len() as u64) as usize],
        nth: 1 + random.below(1 << bits),
    }
}

/// How a child ended.
struct Ended {
    /// The acknowledgements received.
    heard: Vec<Record>,
    /// Whether it reached the aimed step.
    by_itself: bool,
}

/// Runs a child for a while, or until it reaches the aimed step.
fn run_and_kill(
    pool: &Path,
    Tested { kind, level }: Tested,
    (seed, round): (u64, u64),
    after: Duration,
    aim: Option<Aim>,
) -> Ended {
    let aimed = aim.is_some();
    let mut child = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--child", &seed.to_string(), &round.to_string()])
        .args([kind.name(), level.name()])
        .arg(pool)
        .args(
            aim.into_iter()
                .flat_map(|aim| [aim.part.to_owned(), aim.nth.to_string()]),
        )
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
    let start = Instant::now();
    let mut ended = None;
    while ended.is_none() && start.elapsed() < after {
        thread::sleep(if aimed {
            Duration::from_millis(2).min(after)
        } else {
            after
        });
        ended = child.try_wait().expect("a child");
    }
    match ended {
        None => {
            child.kill().expect("SIGKILL");
            child.wait().expect("a child");
        }
        Some(status) if aimed && status.signal() == Some(9) => {}
        Some(status) => panic!("round {round}: the child ended by itself: {status}"),
    }
    Ended {
        heard: listener.join().expect("no panic"),
        by_itself: ended.is_some(),
    }
}

/// Opens the pool, compares every key with its possible values, and walks everything.
fn verify(pool: &Path, tested: Tested, oracle: &mut Oracle) {
    let db = tested.open(pool).expect("the pool opens after a kill");
    assert_eq!(db.level(), tested.level);
    let map = db.map_with(MAP, tested.kind).expect("the map opens");
    oracle.compare(&map);
    assert_eq!(db.wait_recovered().state, RecoveryState::Done);
    let check = db.check().expect("everything can be walked");
    assert!(check.is_clean(), "{check:#?}");
    // While a restarted merge allocates and frees leaves, the numbers are of slightly different moments.
    let started = Instant::now();
    loop {
        let space = db.stats().expect("statistics").space;
        if space.used + space.free == space.reserved {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "{space:?}");
        thread::sleep(Duration::from_millis(1));
    }
    oracle.compare(&map);
}

/// After all keys are removed, hardly any space is in use: the kills have leaked none.
fn nothing_is_left_of_nothing(pool: &Path, tested: Tested) {
    let db = tested.open(pool).expect("the pool opens");
    db.wait_recovered();
    let map = db.map(MAP).expect("the map opens");
    let turn = db.turn();
    for entry in &map {
        let (key, _) = entry.expect("an entry");
        assert!(map.remove(key).expect("removed"));
    }
    turn.end().expect("durable");
    drop((map, db));
    let db = tested.open(pool).expect("the pool opens");
    db.wait_recovered();
    let stats = db.stats().expect("statistics");
    // Page 0, and the ends of pages that hold the empty map's few chunks.
    assert!(stats.space.used < 2 * stats.page_size, "{stats:#?}");
    assert!(stats.space.objects < 100, "{stats:#?}");
}
