//! Histories that `kill -9` ends at a random moment.
//!
//! This program is both processes: the child carries out operations and writes journals; the parent kills it, opens its
//! pool, lets other threads continue at once, and reads all keys. All of that must be one strictly serializable
//! history. Of the operations in flight at the kill each happened as a whole, before the opening, or not at all; what
//! had returned has happened.
//!
//! Half of the kills come amid a commit ([`aim`](super::aim)).
//!
//! At level `disk`, with immediate durability, the machine also seems to have stopped at half of the kills: the pool is
//! removed, so that the opening rebuilds it from the log. The page cache keeps what was not synced; the crash kit's disk
//! loses it.

use super::aim::{Aim, Trigger};
use super::client::{Client, THREADS};
use super::forms::Form;
use super::journal::{Journal, read};
use super::keys::{KEYS, Key};
use super::{Done, MAPS, Random, groups, maps, seed};
use index::conformance::serializability::{ABSENT, Version, check};
use pmem::Watched;
use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use wollemi::{Durability, Error, IndexKind, Level, Options, RecoveryState};

const FOLDER: &str = "WOLLEMI_SERIALIZABLE_FOLDER";
const SETUP: &str = "WOLLEMI_SERIALIZABLE_SETUP";
const POOL: &str = "pool";
const PATIENCE: Duration = Duration::from_secs(120);

/// What the child and the parent must agree about.
#[derive(Clone, Copy)]
struct Setup {
    level: Level,
    durability: Durability,
    seed: u64,
    /// The number of the kill; each group of indexes that the seed says has its turn.
    round: usize,
    /// Where the child kills itself.
    aim: Aim,
}

impl Setup {
    fn options(self) -> Options {
        let options = Options::new().level(self.level).durability(self.durability);
        options.max_size(1 << 30)
    }

    fn kinds(self) -> [IndexKind; MAPS] {
        let groups = groups(self.seed);
        groups[self.round % groups.len()]
    }

    /// Returns the seed of the operations.
    fn random(self) -> u64 {
        self.seed ^ self.round as u64
    }

    fn to_text(self) -> String {
        let is_eventual = self.durability == Durability::Eventual;
        let Setup { seed, round, aim, .. } = self;
        let Aim { commits, stores } = aim;
        format!(
            "{} {is_eventual} {seed} {round} {commits} {stores}",
            self.level.name()
        )
    }

    fn of_text(text: &str) -> Option<Setup> {
        let mut words = text.split(' ');
        Some(Setup {
            level: words.next()?.parse().ok()?,
            durability: match words.next()?.parse().ok()? {
                true => Durability::Eventual,
                false => Durability::Immediate,
            },
            seed: words.next()?.parse().ok()?,
            round: words.next()?.parse().ok()?,
            aim: Aim {
                commits: words.next()?.parse().ok()?,
                stores: words.next()?.parse().ok()?,
            },
        })
    }
}

fn journal(folder: &Path, thread: u64) -> PathBuf {
    folder.join(format!("journal {thread}"))
}

/// Carries out operations until it kills itself or is killed. As a test of its own it does nothing.
#[test]
fn child() -> Result<(), Error> {
    let (Ok(folder), Ok(setup)) = (std::env::var(FOLDER), std::env::var(SETUP)) else {
        return Ok(());
    };
    let folder = Path::new(&folder);
    let setup = Setup::of_text(&setup).expect("a setup");
    let media = Watched::machine(Trigger::new(setup.aim));
    let db = setup.options().open_on(folder.join(POOL), media)?;
    let maps = maps(&db, setup.kinds())?;
    let clock = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let file = File::create(journal(folder, thread)).expect("a file");
            let journal = Journal {
                file: Some(file),
                ..Journal::default()
            };
            let client = Client::new(&db, &maps, &clock, (setup.random(), thread), journal);
            scope.spawn(move || client.run(u64::MAX).expect("no error"));
        }
        // A parent that fails does not kill its child.
        std::thread::sleep(PATIENCE);
        std::process::exit(1);
    })
}

/// A child that is killed at the latest when the value is dropped.
struct Killed(Child);

impl Killed {
    fn has_ended(&mut self) -> bool {
        self.0.try_wait().expect("a child").is_some()
    }

    fn kill(mut self) {
        self.0.kill().expect("SIGKILL");
        let status = self.0.wait().expect("a child");
        assert_eq!(status.signal(), Some(9), "the child ended by itself: {status}");
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Operations of each thread that end before a kill at a random moment.
const BEFORE_KILL: usize = 3;

/// Runs a child until it kills itself, or kills it a while after each of its threads has ended some operations.
fn run_and_kill(folder: &Path, setup: Setup, after: Option<Duration>) {
    let child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "serializable::killed::child"])
        .env(FOLDER, folder)
        .env(SETUP, setup.to_text())
        .stdout(Stdio::null())
        .spawn();
    let mut child = Killed(child.expect("this program starts"));
    let start = Instant::now();
    let has_worked = |thread| {
        let text = fs::read_to_string(journal(folder, thread));
        text.is_ok_and(|text| text.matches("E\n").count() >= BEFORE_KILL)
    };
    while !child.has_ended() && (after.is_none() || !(0..THREADS).all(has_worked)) {
        assert!(start.elapsed() < PATIENCE, "the child does not come to its end");
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(after.unwrap_or_default());
    child.kill();
}

/// Returns the operations of a killed child that have ended, and those in flight.
fn recorded(folder: &Path) -> (Vec<Done>, Vec<Done>) {
    let (mut ended, mut in_flight) = (Vec::new(), Vec::new());
    for thread in 0..THREADS {
        // A child may kill itself before all of its threads have begun.
        let text = fs::read_to_string(journal(folder, thread)).unwrap_or_default();
        let (done, pending) = read(&text);
        ended.extend(done);
        in_flight.extend(pending.into_iter().filter(|done| !done.writes.is_empty()));
    }
    (ended, in_flight)
}

/// Continues a history after a kill with other threads, and then with a read of all keys.
fn continued(folder: &Path, setup: Setup, clock: u64) -> Result<Vec<Done>, Error> {
    let db = setup.options().open(folder.join(POOL))?;
    assert_eq!(db.level(), setup.level);
    let maps = maps(&db, setup.kinds())?;
    let clock = AtomicU64::new(clock);
    let mut done = Vec::new();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..THREADS)
            .map(|thread| {
                let client = Client::new(&db, &maps, &clock, (!setup.random(), thread), Journal::default());
                scope.spawn(move || client.run(20))
            })
            .collect();
        for client in clients {
            done.extend(client.join().expect("no panic")?);
        }
        Ok::<_, Error>(())
    })?;
    done.push(last_look(&maps, &clock)?);
    assert_eq!(db.wait_recovered().state, RecoveryState::Done);
    let check = db.check()?;
    assert!(check.is_clean(), "{check:#?}");
    Ok(done)
}

fn last_look(maps: &[Form; MAPS], clock: &AtomicU64) -> Result<Done, Error> {
    let now = clock.fetch_add(2, SeqCst);
    let mut done = Done::between(now, now + 1);
    for (map, form) in maps.iter().enumerate() {
        for key in KEYS {
            done = done.read((map, key), form.version(form.map().get(key)?.as_deref()));
        }
    }
    Ok(done)
}

/// Returns the versions that operations have read or replaced.
fn used(operations: &[Done]) -> HashSet<(Key, Version)> {
    let mut used = HashSet::new();
    for done in operations {
        used.extend(&done.reads);
        used.extend(done.scans.iter().flat_map(|scan| &scan.found));
        used.extend(done.writes.iter().map(|write| (write.key, write.replaced)));
    }
    used
}

/// Checks that the history is strictly serializable with some of the operations in flight, or returns why it is not
/// with any choice of them.
fn check_some(history: &[Done], in_flight: &[Done]) -> Result<(), String> {
    let (certain, possible) = (used(history), used(&[history, in_flight].concat()));
    let uses = |used: &HashSet<_>, done: &Done| {
        let mut put = done.writes.iter().filter(|write| write.new != ABSENT);
        put.any(|write| used.contains(&(write.key, write.new)))
    };
    let puts = |done: &Done| done.writes.iter().any(|write| write.new != ABSENT);
    let (happened, others): (Vec<_>, Vec<_>) =
        in_flight.iter().cloned().partition(|done| uses(&certain, done));
    // What was put and not replaced would have been read in the end.
    let in_doubt = others.iter().filter(|done| !puts(done) || uses(&possible, done));
    let in_doubt: Vec<_> = in_doubt.cloned().collect();
    assert!(in_doubt.len() < 12, "too many in doubt");
    let mut why = String::new();
    for choice in 0..1_u32 << in_doubt.len() {
        let chosen = in_doubt
            .iter()
            .enumerate()
            .filter(|(at, _)| choice >> at & 1 == 1);
        let chosen: Vec<_> = chosen.map(|(_, done)| done.clone()).collect();
        match check(&[history, &happened, &chosen].concat()) {
            Ok(()) => return Ok(()),
            Err(wrong) => why += &format!("with {chosen:#?} in flight: {wrong}\n"),
        }
    }
    Err(why)
}

/// Runs a history that a kill ends, and returns how many operations had ended.
fn history(setup: Setup, after: Option<Duration>, machine_stops: bool) -> Result<usize, Error> {
    println!("{} {:?}: killed after {after:?}", setup.to_text(), setup.kinds());
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    run_and_kill(folder, setup, after);
    let (ended, in_flight) = recorded(folder);
    let last = ended.iter().map(|done| done.ended).max().unwrap_or(0);
    let begun = in_flight.iter().map(|done| done.began).max().unwrap_or(0);
    let killed = last.max(begun) + 1;
    if machine_stops {
        fs::remove_file(folder.join(POOL)).expect("removed");
    }
    let in_flight: Vec<_> = in_flight
        .into_iter()
        .map(|done| Done {
            ended: killed,
            ..done
        })
        .collect();
    let operations = ended.len();
    let history = [ended, continued(folder, setup, killed + 1)?].concat();
    if let Err(why) = check_some(&history, &in_flight) {
        panic!("{}: {why}", setup.to_text());
    }
    Ok(operations)
}

/// Kills children of all groups of indexes. Set `WOLLEMI_SEED` to rerun the operations of one seed; the moments of the
/// kills are other ones.
fn histories(level: Level, durabilities: &[Durability], rounds: usize) -> Result<(), Error> {
    let seed = seed();
    let mut random = Random(seed);
    let mut operations = 0;
    for round in 0..rounds {
        let after = Duration::from_micros(random.below(50_000));
        let after = random.one_in(2).then_some(after);
        let setup = Setup {
            level,
            durability: random.pick(durabilities),
            seed,
            round,
            aim: after.map_or_else(|| Aim::random(&mut random), |_| Aim::NOWHERE),
        };
        let is_durable = level == Level::Disk && setup.durability == Durability::Immediate;
        operations += history(setup, after, is_durable && random.one_in(2))?;
    }
    println!("{operations} operations had ended");
    assert!(operations > 10 * rounds, "only {operations} operations");
    Ok(())
}

#[test]
fn killed_histories_are_strictly_serializable() -> Result<(), Error> {
    histories(Level::Process, &[Durability::Immediate], 16)
}

#[test]
fn killed_histories_on_a_disk_are_strictly_serializable() -> Result<(), Error> {
    histories(Level::Disk, &[Durability::Immediate, Durability::Eventual], 10)
}
