//! `bench compare`: our indexes beside today's alternatives.
//!
//! I1 All engines run in one process, with the same keys, in the same loop. In memory: ours in an anonymous pool, maps
//!    in the C library's heap, everything on huge pages. Durable: ours in a file, persistent engines in theirs.
//! I2 All engines are measured in turn, a slice of the keys at a time, so that a slow second of the machine affects
//!    them equally. Ratios are formed within a round; their median and extremes over the rounds are reported.
//! I3 The time of a cache miss is measured before and after each round, on the kind of pages that our pool has, and a
//!    round in which it changed is marked.
//! I4 Ours issues every write-back and fence; maps in memory issue none. The report states what the others promise: to
//!    survive a kill or, with `--sync`, power loss.

mod counted;
mod figures;
mod huge;
mod operation;
mod pace;
mod published;
mod report;
mod rounds;
mod targets;

use crate::keys::{KeyKind, Keys};
use crate::limit::Calibrator;
use crate::machine::{HugePages, Machine};
use crate::peers::Promise;
use crate::progress::Progress;
use crate::store::{self, Place, Space};
use crate::{Error, peers};
use counted::Persists;
use figures::{Figures, OURS};
use pace::RoundPace;
use pmem::PoolLevel;
use rounds::{Own, Round};
use serde::Serialize;
use std::path::PathBuf;
use tempfile::TempDir;
use wollemi::indexes::IndexKind;

/// Measures an index and its peers in turn.
#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// Index
    #[arg(long, default_value_t, value_name = "NAME", value_parser = crate::index())]
    index: IndexKind,
    /// Further indexes of ours, measured with it in memory
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = crate::index())]
    with: Vec<IndexKind>,
    /// Keys of eight bytes, random and printable
    #[arg(long, default_value = "10M", value_parser = crate::count)]
    keys: usize,
    /// Keys of 4 to 128 characters
    #[arg(long, default_value = "5M", value_parser = crate::count)]
    str_keys: usize,
    /// Keys of either kind for the persistent engines [default: 200k; with --sync 1k]
    #[arg(long, value_parser = crate::count)]
    durable_keys: Option<usize>,
    /// Measure only in memory
    #[arg(long, conflicts_with_all = ["durable_keys", "sync"])]
    in_memory: bool,
    /// Measure only the persistent engines, each configured to return from a write once it is on the medium: choose a
    /// --dir there. Ours does so only on a DAX file; elsewhere it runs at level process, for orientation
    #[arg(long, conflicts_with_all = ["keys", "str_keys"])]
    sync: bool,
    /// Directory for the engines' files, in a folder that is removed afterwards [default: the system's temporary
    /// directory]
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
    /// Maximum number of reads per round; updates, operations of YCSB A, inserts into the loaded map and removals are
    /// an eighth of it each, scans a fortieth
    #[arg(long, default_value = "2M", value_parser = crate::count)]
    ops: usize,
    /// Rounds, each with all keys loaded again
    #[arg(long, default_value_t = 5, value_parser = crate::count)]
    rounds: usize,
    /// Threads that run each loop
    #[arg(long, default_value_t = 1, value_parser = crate::threads)]
    threads: usize,
    /// The seed of the keys and their order
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print lines of JSON
    #[arg(long)]
    json: bool,
}

/// A group of compared engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Section {
    /// Ours in an anonymous pool beside maps in memory.
    Memory,
    /// Ours in a file beside persistent engines, which survive a kill.
    Durable,
    /// The same, configured to survive power loss.
    Synced,
}

/// The results of one kind of keys in one section.
struct Compared {
    section: Section,
    kind: KeyKind,
    keys: usize,
    figures: Figures,
    /// The space of each of our indexes.
    space: Vec<(&'static str, Space)>,
    /// The level of our pool.
    level: PoolLevel,
    /// The persists of our index.
    persists: Vec<Persists>,
    /// The size of each engine's files in bytes, for engines that have any.
    files: Vec<(&'static str, u64)>,
    memory: HugePages,
    pace: Vec<RoundPace>,
}

/// Runs the rounds and prints their results.
pub fn run(args: &CompareArgs) -> Result<(), Error> {
    huge::reexecute_on_huge_pages();
    let progress = &Progress::new();
    let memory = [
        (Section::Memory, KeyKind::U64, args.keys),
        (Section::Memory, KeyKind::Str, args.str_keys),
        (Section::Memory, KeyKind::Print8, args.keys),
    ];
    let (section, keys) = match args.sync {
        true => (Section::Synced, 1_000),
        false => (Section::Durable, 200_000),
    };
    let keys = args.durable_keys.unwrap_or(keys);
    let durable = [KeyKind::U64, KeyKind::Str].map(|kind| (section, kind, keys));
    let durable = durable.into_iter().filter(|_| !args.in_memory);
    let kinds = memory.into_iter().filter(|_| !args.sync).chain(durable);
    let mut all = Vec::new();
    for (section, kind, keys) in kinds {
        // Printable keys of eight bytes are measured only for their space.
        let rounds = if kind == KeyKind::Print8 { 1 } else { args.rounds };
        all.push(compare(args, section, kind, keys, rounds, progress)?);
    }
    let verdicts = targets::verdicts(&all);
    let machine = Machine::detect();
    progress.clear();
    report::print(
        args,
        &all,
        &published::beside(args.index, &all),
        &verdicts,
        &machine,
    )
}

fn compare(
    args: &CompareArgs,
    section: Section,
    kind: KeyKind,
    count: usize,
    rounds: usize,
    progress: &Progress,
) -> Result<Compared, Error> {
    progress.say(format_args!("making {count} {} keys", crate::name(kind)));
    let ops = args.ops.min(count);
    let updates = ops.div_ceil(8);
    let mut keys = Keys::generate_more(kind, count, updates, args.seed);
    let (inserts, keys) = (&keys.split_off(count), &keys);
    let mut compared = Compared {
        section,
        kind,
        keys: count,
        figures: Figures::default(),
        space: Vec::new(),
        level: PoolLevel::Process,
        persists: counted::count(args.index, kind, count, updates, args.seed)?,
        files: Vec::new(),
        memory: HugePages::default(),
        pace: Vec::with_capacity(rounds),
    };
    let mut calibrator = {
        let directory = crate::directory(args.dir.as_deref())?;
        Calibrator::for_keys(count, &section.place(&directory), true)?
    };
    for round in 1..=rounds {
        let seed = args.seed.wrapping_add(round as u64);
        let directory = crate::directory(args.dir.as_deref())?;
        let peers = match section {
            Section::Memory if kind == KeyKind::Print8 => Vec::new(),
            Section::Memory => peers::in_memory(kind),
            Section::Durable | Section::Synced => peers::durable(directory.path(), section.promise())?,
        };
        let own = &args.own(section, &directory)?;
        let before = calibrator.misses()?;
        let outcome = Round {
            own,
            peers,
            load: keys,
            reads: &keys.shuffled(ops, seed),
            scans: &keys.shuffled(ops.div_ceil(40), seed),
            updates: &keys.shuffled(updates, seed),
            inserts,
            removes: &keys.shuffled(updates, !seed),
            files: (section != Section::Memory).then_some(directory.path()),
            seed,
            threads: args.threads,
            progress,
            label: format!("{section:?} {} round {round} of {rounds}", crate::name(kind)),
        }
        .run()?;
        compared.pace.push(RoundPace {
            section,
            key_kind: kind,
            round,
            pace: calibrator.since(before)?,
        });
        compared.figures.add(outcome.figures);
        compared.space = outcome.space;
        compared.level = own[0].heap.pool().level();
        compared.files = outcome.files;
        if outcome.memory.resident_mib >= compared.memory.resident_mib {
            compared.memory = outcome.memory;
        }
    }
    Ok(compared)
}

impl Section {
    /// Returns the place of our pool, in a round with this directory.
    fn place(self, directory: &TempDir) -> Place {
        match self {
            Section::Memory => Place::Anonymous,
            Section::Durable | Section::Synced => Place::File(directory.path().join(OURS)),
        }
    }

    /// Returns the failure that persistent engines are configured to survive in this section.
    fn promise(self) -> Promise {
        match self {
            Section::Memory | Section::Durable => Promise::Kill,
            Section::Synced => Promise::Power,
        }
    }
}

impl Compared {
    /// Returns the bytes per key of one of our indexes.
    fn bytes_per_key(&self, engine: &str) -> Option<f64> {
        let (_, space) = self.space.iter().find(|(name, _)| *name == engine)?;
        Some(space.reserved as f64 / self.keys as f64)
    }

    /// Returns the promise of an engine.
    fn setting(&self, engine: &str) -> &'static str {
        match (engine, self.level, self.section) {
            (OURS, PoolLevel::Power, _) => "level power, every write-back and fence issued",
            (OURS, PoolLevel::Process, Section::Synced) => {
                "level process, every write-back and fence issued: the file is not DAX, so power loss is not survived"
            }
            (OURS, PoolLevel::Process, _) => "level process, every write-back and fence issued",
            // Another one of ours.
            _ if self.bytes_per_key(engine).is_some() => self.setting(OURS),
            _ => peers::setting(engine, self.section.promise()),
        }
    }
}

impl CompareArgs {
    /// Creates our indexes of a round, each in a pool of its own. The compared one is the first.
    fn own(&self, section: Section, directory: &TempDir) -> Result<Vec<Own>, Error> {
        let mut all = vec![(OURS, self.index)];
        for &kind in self.with.iter().filter(|_| section == Section::Memory) {
            if all.iter().all(|&(_, other)| other != kind) {
                all.push((kind.name(), kind));
            }
        }
        let own = |(name, kind): (_, IndexKind)| {
            let heap = section.place(directory).create(pmem::Hardware::as_persistent())?;
            Ok(Own {
                name,
                is_ordered: kind.is_ordered(),
                index: store::create(kind, &heap)?,
                heap,
            })
        };
        all.into_iter().map(own).collect()
    }

    /// Returns the display name of an engine.
    fn name<'n>(&'n self, engine: &'n str) -> &'n str {
        if engine == OURS { self.index.name() } else { engine }
    }
}
