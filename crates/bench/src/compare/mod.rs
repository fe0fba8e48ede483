//! `bench compare`: one of our indexes beside what people use today.
//!
//! I1 All run in one process, with the same keys, in the same loop. In memory: ours in an anonymous pool, maps in the C
//!    library's heap, everything on huge pages. Durable: ours in a file, engines that keep their data in theirs.
//! I2 All are measured in turn, a slice of the keys at a time, so that a slow second of the machine meets each of
//!    them alike; a ratio is formed within a round, and its median and extremes over the rounds are reported.
//! I3 Every write-back and fence of ours is issued; maps in memory issue none; what the others promise is said.

mod figures;
mod huge;
mod rounds;
mod targets;

use crate::keys::{KeyKind, Keys};
use crate::machine::{HugePages, Machine};
use crate::progress::Progress;
use crate::store::{self, Place, Space};
use crate::summary::Summary;
use crate::{Error, peers, table};
use figures::{Figures, OURS};
use indexes::IndexKind;
use rounds::{Operation, Round};
use serde::Serialize;
use std::path::PathBuf;
use targets::Verdict;

/// Measures an index and its peers in turn.
#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// The index
    #[arg(long, default_value_t, value_name = "NAME", value_parser = crate::index())]
    index: IndexKind,
    /// Keys of eight bytes, random and printable
    #[arg(long, default_value = "10M", value_parser = crate::count)]
    keys: usize,
    /// Keys of 4 to 128 characters
    #[arg(long, default_value = "5M", value_parser = crate::count)]
    str_keys: usize,
    /// Keys of either kind for the engines that keep their data
    #[arg(long, default_value = "200k", value_parser = crate::count)]
    durable_keys: usize,
    /// Where those keep it, in a directory that is removed afterwards [default: the system's for such]
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
    /// Reads in each round, at most; scans are a fortieth of them
    #[arg(long, default_value = "2M", value_parser = crate::count)]
    ops: usize,
    /// Rounds, each with everything loaded anew
    #[arg(long, default_value_t = 5, value_parser = crate::count)]
    rounds: usize,
    /// Threads that run each loop
    #[arg(long, default_value_t = 1, value_parser = crate::count)]
    threads: usize,
    /// The seed of the keys and their order
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print lines of JSON
    #[arg(long)]
    json: bool,
}

/// A line of the result.
#[derive(Debug, Serialize)]
#[serde(tag = "record", rename_all = "snake_case")]
enum Record<'r> {
    /// What one engine did, in millions of operations a second.
    Throughput {
        section: Section,
        key_kind: KeyKind,
        operation: Operation,
        engine: &'r str,
        /// What it promises, and by which setting.
        setting: &'r str,
        keys: usize,
        mops: Summary,
    },
    /// How our index stands to a peer.
    Ratio {
        section: Section,
        key_kind: KeyKind,
        operation: Operation,
        index: &'r str,
        peer: &'r str,
        ratio: Summary,
    },
    /// What our index takes.
    Space {
        key_kind: KeyKind,
        index: &'r str,
        keys: usize,
        bytes_per_key: f64,
        live_bytes_per_key: f64,
    },
    /// A target, and whether it is met.
    Target(&'r Verdict),
    /// What the run was made on.
    Conditions {
        rounds: usize,
        threads: usize,
        most_huge_pages: HugePages,
        machine: &'r Machine,
    },
}

/// Which engines were compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Section {
    /// Ours in an anonymous pool beside maps in memory.
    Memory,
    /// Ours in a file beside engines that keep their data.
    Durable,
}

/// What one kind of keys gave in one section.
struct Compared {
    section: Section,
    kind: KeyKind,
    keys: usize,
    figures: Figures,
    space: Space,
    memory: HugePages,
}

/// Runs the rounds and prints what they gave.
pub fn run(args: &CompareArgs) -> Result<(), Error> {
    huge::reexecute_on_huge_pages();
    let progress = &Progress::new();
    let (memory, durable) = (Section::Memory, Section::Durable);
    let kinds = [
        (memory, KeyKind::U64, args.keys),
        (memory, KeyKind::Str, args.str_keys),
        (memory, KeyKind::Print8, args.keys),
        (durable, KeyKind::U64, args.durable_keys),
        (durable, KeyKind::Str, args.durable_keys),
    ];
    let mut all = Vec::new();
    for (section, kind, keys) in kinds {
        // Printable keys of eight bytes are there for the space they take.
        let rounds = if kind == KeyKind::Print8 { 1 } else { args.rounds };
        all.push(compare(args, section, kind, keys, rounds, progress)?);
    }
    let verdicts = targets::verdicts(&all);
    let machine = Machine::detect();
    progress.clear();
    if args.json {
        print_json(args, &all, &verdicts, &machine)
    } else {
        print_tables(args, &all, &verdicts, &machine)
    }
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
    let keys = &Keys::generate(kind, count, args.seed);
    let mut compared = Compared {
        section,
        kind,
        keys: count,
        figures: Figures::default(),
        space: Space::default(),
        memory: HugePages::default(),
    };
    for round in 1..=rounds {
        let ops = args.ops.min(count);
        let directory = crate::directory(args.dir.as_deref())?;
        let (place, peers) = match section {
            Section::Memory if kind == KeyKind::Print8 => (Place::Anonymous, Vec::new()),
            Section::Memory => (Place::Anonymous, peers::in_memory(kind)),
            Section::Durable => (
                Place::File(directory.path().join("ours")),
                peers::durable(directory.path())?,
            ),
        };
        let heap = &place.create(pmem::Hardware::as_persistent())?;
        let index = store::create(args.index, heap)?;
        let round = Round {
            heap,
            peers,
            load: keys,
            reads: &keys.shuffled(ops, args.seed.wrapping_add(round as u64)),
            scans: &keys.shuffled(ops.div_ceil(40), args.seed.wrapping_add(round as u64)),
            threads: args.threads,
            progress,
            label: format!("{section:?} {} round {round} of {rounds}", crate::name(kind)),
        };
        let outcome = round.run(&*index)?;
        compared.figures.add(outcome.figures);
        compared.space = outcome.space;
        if outcome.memory.resident_mib >= compared.memory.resident_mib {
            compared.memory = outcome.memory;
        }
    }
    Ok(compared)
}

impl Section {
    /// What an engine promises in it.
    fn setting(self, engine: &str) -> &'static str {
        if engine == OURS {
            return "level process, every write-back and fence issued";
        }
        let peer = peers::DURABLE.iter().find(|peer| peer.name == engine);
        peer.map_or("volatile", |peer| peer.setting)
    }
}

impl CompareArgs {
    /// What to call an engine.
    fn name<'n>(&'n self, engine: &'n str) -> &'n str {
        if engine == OURS { self.index.name() } else { engine }
    }
}

fn most_memory(all: &[Compared]) -> HugePages {
    all.iter()
        .map(|compared| compared.memory)
        .max_by_key(|memory| memory.resident_mib)
        .unwrap_or_default()
}

fn print_json(
    args: &CompareArgs,
    all: &[Compared],
    verdicts: &[Verdict],
    machine: &Machine,
) -> Result<(), Error> {
    let line = |record: &Record<'_>| crate::print(&serde_json::to_string(record)?);
    for &Compared {
        section,
        kind: key_kind,
        keys,
        ref figures,
        space,
        ..
    } in all
    {
        for (operation, engine, mops) in figures.throughputs() {
            let setting = section.setting(engine);
            let engine = args.name(engine);
            line(&Record::Throughput {
                section,
                key_kind,
                operation,
                engine,
                setting,
                keys,
                mops,
            })?;
        }
        for (operation, peer, ratio) in figures.ratios() {
            line(&Record::Ratio {
                section,
                key_kind,
                operation,
                index: args.index.name(),
                peer,
                ratio,
            })?;
        }
        let [bytes_per_key, live_bytes_per_key] =
            [space.reserved, space.live].map(|bytes| bytes as f64 / keys as f64);
        line(&Record::Space {
            key_kind,
            index: args.index.name(),
            keys,
            bytes_per_key,
            live_bytes_per_key,
        })?;
    }
    for verdict in verdicts {
        line(&Record::Target(verdict))?;
    }
    let (rounds, threads, most_huge_pages) = (args.rounds, args.threads, most_memory(all));
    line(&Record::Conditions {
        rounds,
        threads,
        most_huge_pages,
        machine,
    })
}

fn print_tables(
    args: &CompareArgs,
    all: &[Compared],
    verdicts: &[Verdict],
    machine: &Machine,
) -> Result<(), Error> {
    let mut rows = Vec::new();
    for Compared {
        section,
        kind,
        keys,
        figures,
        space,
        ..
    } in all
    {
        let ratios: Vec<_> = figures.ratios().collect();
        for (operation, engine, mops) in figures.throughputs() {
            let ratio = ratios
                .iter()
                .find(|(of, peer, _)| (*of, *peer) == (operation, engine));
            rows.push(vec![
                format!("{section:?} {} {}", crate::name(*kind), operation.name()).to_lowercase(),
                args.name(engine).to_owned(),
                keys.to_string(),
                format!("{:.3}", mops.median),
                format!("{:.3}-{:.3}", mops.least, mops.most),
                ratio.map_or(String::new(), |(.., ratio)| format!("{:.2}", ratio.median)),
                ratio.map_or(String::new(), |(.., ratio)| {
                    format!("{:.2}-{:.2}", ratio.least, ratio.most)
                }),
            ]);
        }
        let [reserved, live] = [space.reserved, space.live].map(|bytes| bytes as f64 / *keys as f64);
        rows.push(vec![
            format!("{section:?} {} bytes a key", crate::name(*kind)).to_lowercase(),
            args.index.to_string(),
            keys.to_string(),
            format!("{reserved:.1}"),
            format!("{live:.1} live"),
        ]);
    }
    let header = ["", "engine", "keys", "Mops/s", "spread", "ours : it", "spread"];
    crate::print(&table::render(&header, &rows))?;
    let settings = peers::DURABLE
        .iter()
        .map(|peer| format!("{}: {}\n", peer.name, peer.setting));
    crate::print(&format!(
        "\nwhat the durable engines promise:\n{}: {}\n{}",
        args.index,
        Section::Durable.setting(OURS),
        settings.collect::<String>()
    ))?;
    let rows: Vec<Vec<String>> = verdicts.iter().map(Verdict::row).collect();
    crate::print(&format!(
        "\n{}",
        table::render(&["target", "asked", "measured", "spread", ""], &rows)
    ))?;
    let HugePages {
        resident_mib,
        huge_mib,
    } = most_memory(all);
    crate::print(&format!(
        "\n{} rounds, {} threads, {huge_mib} of {resident_mib} MiB on huge pages\n{machine}",
        args.rounds, args.threads
    ))
}
