//! Damaged bits, lengths and files: opening returns an error or the right data, never wrong data.

use super::pool::{ID, draw_options, pool};
use super::state::{State, key, value};
use super::trouble::Trouble;
use crate::log::{Damaged, mutate};
use crashkit::Random;
use crashkit::disk::{CrashDisk, Medium};
use crashkit::killed::{Image, told};
use std::sync::Arc;
use wollemi::IndexKind;

/// The number of mutations tried on one database.
const MUTATIONS_PER_DATABASE: u64 = 250;

/// Damages the files of cleanly closed databases at random, and opens the result, with the pool or without it.
///
/// # Errors
///
/// Content that is missing or wrong, with the mutation that caused it.
pub fn damage(seed: u64, mutations: u64) -> Result<Damaged, String> {
    let mut random = Random(seed);
    let mut report = Damaged::default();
    while report.mutations < mutations {
        let database = Database::new(ID, &mut random).map_err(|error| error.to_string())?;
        let other = Database::new(ID + 1, &mut random).map_err(|error| error.to_string())?;
        for _ in 0..MUTATIONS_PER_DATABASE.min(mutations - report.mutations) {
            report.mutations += 1;
            let (medium, how) = database.mutate(&other, &mut random);
            match database.judge(medium, &mut random) {
                Ok(true) => report.whole += 1,
                Ok(false) => report.refused += 1,
                Err(what) => {
                    let number = report.mutations;
                    return Err(format!("seed {seed}, mutation {number}: {how}: {what}"));
                }
            }
        }
    }
    Ok(report)
}

/// A cleanly closed database.
struct Database {
    medium: Medium,
    pool: Image,
    state: State,
}

impl Database {
    /// Writes a database with a full checkpoint, two deltas and, half the time, a log after them, and closes it.
    fn new(id: u128, random: &mut Random) -> Result<Database, Trouble> {
        let disk = CrashDisk::new(Medium::new());
        let (pool, memory) = pool(None, id, told(|| ()))?;
        let mut opened = draw_options(random);
        opened.small = 0;
        let db = opened.open(pool, Arc::new(disk.clone()))?;
        let kinds = [IndexKind::Roart, IndexKind::Part, IndexKind::Clht];
        let maps = ["a", "b", "c"].into_iter().zip(kinds);
        let maps = maps.map(|(name, kind)| db.map_with(name, kind));
        let maps = maps.collect::<Result<Vec<_>, _>>()?;
        let mut number = 0;
        for part in 0..3 + random.below(2) {
            for _ in 0..4 + random.below(8) {
                number += 1;
                let (map, key) = (random.pick(&maps), key(random));
                match random.below(5) {
                    0 => drop(map.remove(&key)?),
                    _ => map.upsert(&key, value(number, random))?,
                }
            }
            if part < 3 {
                db.checkpoint(part == 0)?;
            }
        }
        let state = State::of(&db)?;
        drop((maps, db));
        Ok(Database {
            medium: disk.medium(),
            pool: Image::of(&memory),
            state,
        })
    }

    /// Changes a file, removes it, exchanges it with another file of this database, or replaces it by a file of
    /// `other`.
    fn mutate(&self, other: &Database, random: &mut Random) -> (Medium, String) {
        let names = self.medium.names();
        // `log::damage` tests damage of the log.
        let own: Vec<_> = names
            .iter()
            .filter(|name| !name.starts_with("log-"))
            .cloned()
            .collect();
        let name = random.pick(&own).clone();
        match random.below(10) {
            0 => {
                let mut left = self.medium.clone();
                left.remove(&name);
                (left, format!("{name} is missing"))
            }
            1 => {
                let theirs = other.medium.names();
                let theirs = random.pick(&theirs);
                let mut left = self.medium.clone();
                left.put(&name, &other.medium.contents(theirs).unwrap_or_default());
                (
                    left,
                    format!("{name} is replaced by {theirs} of another database"),
                )
            }
            _ => mutate(&self.medium, &own, random),
        }
    }

    /// Opens the database. Returns `true` if it has all its content, `false` if opening or reading fails.
    ///
    /// # Errors
    ///
    /// Any other content.
    fn judge(&self, medium: Medium, random: &mut Random) -> Result<bool, String> {
        let with_pool = random.below(4) == 0;
        let image = with_pool.then_some(&self.pool);
        let look = || {
            let (pool, memory) = pool(image, ID, told(|| ()))?;
            let db = draw_options(random).open(pool, Arc::new(CrashDisk::new(medium)))?;
            let found = State::of(&db)?;
            drop(db);
            Ok::<_, Trouble>((found, memory))
        };
        match look() {
            Ok((found, _)) if found == self.state => Ok(true),
            Ok((found, _)) => Err(format!("it holds\n{found:?}\n  instead of\n{:?}", self.state)),
            Err(Trouble::Refused(_)) => Ok(false),
            Err(Trouble::Wrong(what)) => Err(what),
        }
    }
}
