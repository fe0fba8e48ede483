//! The choices that a seed determines for a pool: the index, the keys, the threads, the generations.

use super::keys;
use crate::random::Random;
use crate::worker::Wrong;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wollemi::{AfterPowerLoss, Durability, IndexKind, Level, Options};

/// The name of the map that holds the hot keys.
pub(super) const MAP: &str = "hot";

/// Minimum and maximum number of kills of a pool.
const MIN_KILLS: u64 = 3;
pub(super) const MAX_KILLS: u64 = 5;

/// A pool with hot keys.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub seed: u64,
    pub threads: usize,
    pub kind: IndexKind,
    pub keys: Vec<Vec<u8>>,
    /// The number of keys of another map, which recovery must trace as well, and its index.
    pub ballast: (u64, IndexKind),
    /// The number of generations that end by a kill; one more follows them.
    pub killed: u64,
    /// Whether the pool is at level `disk`. The recorded writes then wait until they are durable, and some of the kills
    /// are followed by a simulated power loss.
    pub on_disk: bool,
    page_size: u64,
    pub directory: PathBuf,
}

impl Plan {
    /// Draws the plan of a seed. With 0 `threads` it has two to six. The indexes take turns, seed by seed.
    pub fn new(seed: u64, threads: usize, kinds: &[IndexKind], directory: &Path) -> Plan {
        let random = &mut Random::new(seed, 30 << 32);
        let drawn = 2 + random.index(5);
        Plan {
            seed,
            threads: if threads == 0 { drawn } else { threads },
            kind: kinds[(seed % kinds.len() as u64) as usize],
            keys: keys::hostile(random),
            ballast: (random.pick(&[0, 1_000, 10_000]), random.pick(kinds)),
            killed: MIN_KILLS + random.below(MAX_KILLS - MIN_KILLS + 1),
            on_disk: random.one_in(4),
            page_size: random.pick(&[64 << 10, 256 << 10, 1 << 20]),
            directory: directory.to_owned(),
        }
    }

    pub fn pool(&self) -> PathBuf {
        self.directory.join("hot.pool")
    }

    /// Returns the options with which a generation opens the pool. Recovery has none to two threads of its own.
    pub fn options(&self, generation: u64) -> Options {
        let random = &mut Random::new(self.seed, 31 << 32 | generation);
        let options = Options::new()
            .page_size(self.page_size)
            .recovery_threads(random.pick(&[0, 1, 1, 2]))
            .huge_pages(random.one_in(2))
            .lock_wait(Duration::from_secs(10))
            .create(false);
        if !self.on_disk {
            return options;
        }
        options
            .level(Level::Disk)
            .durability(Durability::Immediate)
            .log_limit(64 << 20)
            .on_rebuild(|_| {})
            .after_power_loss(AfterPowerLoss::Accept)
    }

    /// Creates the pool, and closes it.
    pub fn create(&self) -> Result<(), Wrong> {
        let failed = |error: wollemi::Error| error.to_string();
        let db = self.options(0).create(true).open(self.pool()).map_err(failed)?;
        db.map_with(MAP, self.kind).map_err(failed)?;
        let (count, kind) = self.ballast;
        let ballast = db.map_with("ballast", kind).map_err(failed)?;
        let entries = (0..count).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(), [7; 24]));
        // With immediate durability each write at level `disk` would wait for the disk. The close makes all durable.
        let ballast = ballast.with_durability(Durability::Eventual);
        ballast.load(entries).map_err(failed)?;
        Ok(())
    }

    /// Returns the arguments of [`new`](Plan::new) as text, for a process of the pool or a later look at its ledgers.
    pub fn spec(seed: u64, threads: usize, kinds: &[IndexKind], directory: &Path) -> String {
        let kinds: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
        format!("{seed} {threads} {} {}", kinds.join(","), directory.display())
    }

    pub fn of_spec(spec: &str) -> Result<Plan, Wrong> {
        let mut words = spec.splitn(4, ' ');
        let mut word = || {
            words
                .next()
                .ok_or_else(|| format!("not a pool of hot keys: '{spec}'"))
        };
        let number = |word: &str| word.parse::<u64>().map_err(|error| format!("{word}: {error}"));
        let (seed, threads) = (number(word()?)?, number(word()?)?);
        let kinds: Result<Vec<IndexKind>, _> = word()?.split(',').map(str::parse).collect();
        let kinds = kinds.map_err(|error| error.to_string())?;
        Ok(Plan::new(seed, threads as usize, &kinds, Path::new(word()?)))
    }

    /// Describes the plan in one line, for the report of a failure.
    pub fn about(&self) -> String {
        let keys: Vec<_> = self.keys.iter().map(|key| shown(key)).collect();
        let level = if self.on_disk { "disk" } else { "process" };
        format!(
            "{} at level {level}, {} threads, {} kills, keys {}",
            self.kind,
            self.threads,
            self.killed,
            keys.join(" ")
        )
    }
}

/// Returns a key as text, in quotes; a long one without its middle.
pub(super) fn shown(key: &[u8]) -> String {
    match key.len() {
        0..=40 => format!("\"{}\"", key.escape_ascii()),
        len => format!(
            "\"{}...{}\" ({len} bytes)",
            key[..8].escape_ascii(),
            key[len - 8..].escape_ascii()
        ),
    }
}
