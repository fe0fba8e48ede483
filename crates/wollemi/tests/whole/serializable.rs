//! Random operations of several threads on few keys are strictly serializable: transactions, read-only transactions,
//! batches, snapshots, single writes, and grouped writes, over maps of bytes, typed maps and expiring maps.
//!
//! Each written value is unique, and each write knows which value it has replaced, as the checker of the conformance
//! suite requires. Removals leave nothing; the checker infers from the clock between which values a key was absent. So
//! writes that read nothing first, such as a batch without expectations, are in no history; nor are reads outside of
//! transactions and snapshots, each of which sees a moment of its own.
//!
//! | module     | what it holds                                                   |
//! |------------|-----------------------------------------------------------------|
//! | `keys`     | the keys, and the bounds of ranges of them                      |
//! | `forms`    | the forms of a map: of bytes, typed, and expiring               |
//! | `journal`  | the record of a client's operations, which survives its process |
//! | `seen`     | what a transaction has read and changed, and must see           |
//! | `steps`    | the steps of a transaction                                      |
//! | `client`   | a thread and its operations                                     |
//! | `aim`      | kills amid a commit                                             |
//! | `killed`   | histories that a kill ends                                      |

mod aim;
mod client;
mod forms;
mod journal;
mod keys;
mod killed;
mod seen;
mod steps;

use client::{Client, THREADS};
use forms::Form;
use index::conformance::serializability::{ABSENT, Committed, check};
use journal::Journal;
use keys::Key;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::AtomicU64;
use wollemi::{Db, Durability, Error, IndexKind, Level, Media, Options};

type Done = Committed<Key>;

/// The number of maps of a history, each of another form.
const MAPS: usize = 3;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// Returns groups of indexes for the maps of a history, in an order that the seed says, so that each index is in at least one.
fn groups(seed: u64) -> Vec<[IndexKind; MAPS]> {
    let (mut random, mut kinds) = (Random(seed), IndexKind::ALL.to_vec());
    for left in (1..kinds.len()).rev() {
        kinds.swap(left, random.below(left as u64 + 1) as usize);
    }
    let groups = (0..kinds.len()).step_by(MAPS);
    let group = |from: usize| std::array::from_fn(|map| kinds[(from + map) % kinds.len()]);
    groups.map(group).collect()
}

/// Returns the maps of a history.
fn maps<M: Media>(db: &Db<M>, kinds: [IndexKind; MAPS]) -> Result<[Form; MAPS], Error> {
    let map = |number: usize| db.map_with(&format!("map {number}"), kinds[number]);
    Ok([
        Form::Bytes(map(0)?),
        Form::typed(map(1)?),
        Form::expiring(map(2)?),
    ])
}

/// Lets threads carry out operations, and returns these.
fn run(db: &Db, maps: &[Form; MAPS], seed: u64, ops: u64) -> Result<Vec<Done>, Error> {
    let clock = AtomicU64::new(0);
    let mut done = Vec::new();
    std::thread::scope(|scope| {
        let client = |thread| Client::new(db, maps, &clock, (seed, thread), Journal::default());
        let clients: Vec<_> = (0..THREADS)
            .map(|thread| {
                let client = client(thread);
                scope.spawn(move || client.run(ops))
            })
            .collect();
        for client in clients {
            done.extend(client.join().expect("no panic")?);
        }
        Ok::<_, Error>(())
    })?;
    Ok(done)
}

/// Runs and judges a history.
fn judge(db: &Db, kinds: [IndexKind; MAPS], seed: u64, ops: u64) -> Result<(), Error> {
    println!("seed {seed}: {kinds:?}");
    let done = run(db, &maps(db, kinds)?, seed, ops)?;
    let writes = done.iter().filter(|done| !done.writes.is_empty()).count();
    assert!(writes as u64 > ops, "seed {seed}: only {writes} writes");
    let all_writes = done.iter().flat_map(|done| &done.writes);
    let removals = all_writes.filter(|write| write.new == ABSENT).count();
    let ranges: usize = done.iter().map(|done| done.scans.len()).sum();
    let enough = removals.min(ranges) as u64 * 4 > ops;
    assert!(
        enough,
        "seed {seed}: only {removals} removals and {ranges} ranges"
    );
    if let Err(wrong) = check(&done) {
        panic!("seed {seed}: {wrong}");
    }
    let check = db.check()?;
    assert!(check.is_clean(), "seed {seed}: {check:?}");
    Ok(())
}

/// Returns a random seed, or the one to rerun.
fn seed() -> u64 {
    let given = std::env::var("WOLLEMI_SEED");
    let given = given.ok().and_then(|seed| seed.parse().ok());
    given.unwrap_or_else(|| RandomState::new().build_hasher().finish())
}

/// Set `WOLLEMI_SEED` to rerun the histories of one seed.
#[test]
fn histories_are_strictly_serializable() -> Result<(), Error> {
    let seed = seed();
    for kinds in groups(seed) {
        for round in 0..2 {
            judge(&Db::anonymous()?, kinds, seed ^ round, 4000)?;
        }
    }
    Ok(())
}

/// At level `disk`, writes wait for the log before others see them, or afterwards.
#[test]
fn histories_on_a_disk_are_strictly_serializable() -> Result<(), Error> {
    let seed = seed();
    let groups = groups(seed);
    for (durability, ops) in [(Durability::Immediate, 200), (Durability::Eventual, 2000)] {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options::new().level(Level::Disk).durability(durability);
        let db = options.max_size(1 << 30).open(folder.path().join("pool"))?;
        let kinds = Random(seed ^ ops).pick(&groups);
        judge(&db, kinds, seed, ops)?;
    }
    Ok(())
}
