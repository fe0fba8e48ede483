//! What is printed of the rounds.

use super::counted::Persists;
use super::figures::Done;
use super::huge;
use super::pace::{self, RoundPace};
use super::rounds::Operation;
use super::targets::Verdict;
use super::{CompareArgs, Compared, Section};
use crate::keys::KeyKind;
use crate::machine::{HugePages, Machine};
use crate::summary::Summary;
use crate::{Error, table};
use serde::Serialize;

/// A line of the result.
#[derive(Debug, Serialize)]
#[serde(tag = "record", rename_all = "snake_case")]
enum Record<'r> {
    /// What one engine did: millions of operations a second, and how long calls took.
    Throughput {
        section: Section,
        key_kind: KeyKind,
        operation: Operation,
        engine: &'r str,
        /// What it promises, and by which setting.
        setting: &'r str,
        keys: usize,
        mops: Summary,
        /// Latencies of every 32nd call; a `multi_get` is one call. None where too few were timed.
        p50_ns: Option<Summary>,
        p99_ns: Option<Summary>,
        /// What a miss took before and after each round.
        pace: &'r [RoundPace],
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
    /// What an operation of our index persists, from a pass of its own that counts.
    Persists {
        section: Section,
        key_kind: KeyKind,
        index: &'r str,
        #[serde(flatten)]
        persists: &'r Persists,
    },
    /// What an engine's files take once the keys are loaded, as they lie, logs of what is not merged or flushed included; holes take
    /// nothing.
    Files {
        key_kind: KeyKind,
        engine: &'r str,
        keys: usize,
        bytes_per_key: f64,
    },
    /// A target, and whether it is met.
    Target(&'r Verdict),
    /// What the run was made on.
    Conditions {
        rounds: usize,
        threads: usize,
        most_huge_pages: HugePages,
        /// Whether all threads of the peers in memory allocate from one arena of the C library's heap, and wait for each other
        /// there.
        one_arena: bool,
        /// Of all rounds.
        pace: Vec<&'r RoundPace>,
        machine: &'r Machine,
    },
}

fn most_memory(all: &[Compared]) -> HugePages {
    all.iter()
        .map(|compared| compared.memory)
        .max_by_key(|memory| memory.resident_mib)
        .unwrap_or_default()
}

/// As lines of JSON.
pub fn print_json(
    args: &CompareArgs,
    all: &[Compared],
    verdicts: &[Verdict],
    machine: &Machine,
) -> Result<(), Error> {
    let line = |record: &Record<'_>| crate::print(&serde_json::to_string(record)?);
    for compared in all {
        let &Compared {
            section,
            kind: key_kind,
            keys,
            ref figures,
            space,
            ref persists,
            ref files,
            ref pace,
            ..
        } = compared;
        for done in figures.done() {
            let Done {
                operation,
                engine,
                mops,
                p50_ns,
                p99_ns,
            } = done;
            let setting = compared.setting(engine);
            let engine = args.name(engine);
            line(&Record::Throughput {
                section,
                key_kind,
                operation,
                engine,
                setting,
                keys,
                mops,
                p50_ns,
                p99_ns,
                pace,
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
        for persists in persists {
            line(&Record::Persists {
                section,
                key_kind,
                index: args.index.name(),
                persists,
            })?;
        }
        for &(engine, bytes) in files {
            line(&Record::Files {
                key_kind,
                engine: args.name(engine),
                keys,
                bytes_per_key: bytes as f64 / keys as f64,
            })?;
        }
    }
    for verdict in verdicts {
        line(&Record::Target(verdict))?;
    }
    let (rounds, threads, most_huge_pages) = (args.rounds, args.threads, most_memory(all));
    line(&Record::Conditions {
        rounds,
        threads,
        most_huge_pages,
        one_arena: huge::one_arena(),
        pace: all.iter().flat_map(|compared| &compared.pace).collect(),
        machine,
    })
}

/// Of throughputs from those of a disk to those of a cache.
fn digits(mops: f64) -> String {
    match mops < 0.1 {
        true => format!("{mops:.6}"),
        false => format!("{mops:.3}"),
    }
}

fn nanoseconds(latency: Option<Summary>) -> String {
    latency.map_or(String::new(), |latency| format!("{:.0}", latency.median))
}

/// As tables.
pub fn print_tables(
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
        files,
        ..
    } in all
    {
        let ratios: Vec<_> = figures.ratios().collect();
        for done in figures.done() {
            let Done {
                operation,
                engine,
                mops,
                ..
            } = done;
            let ratio = ratios
                .iter()
                .find(|(of, peer, _)| (*of, *peer) == (operation, engine));
            rows.push(vec![
                format!("{section:?} {} {}", crate::name(*kind), operation.name()).to_lowercase(),
                args.name(engine).to_owned(),
                keys.to_string(),
                digits(mops.median),
                format!("{}-{}", digits(mops.least), digits(mops.most)),
                nanoseconds(done.p50_ns),
                nanoseconds(done.p99_ns),
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
        for &(engine, bytes) in files {
            rows.push(vec![
                format!("{section:?} {} files, bytes a key", crate::name(*kind)).to_lowercase(),
                args.name(engine).to_owned(),
                keys.to_string(),
                format!("{:.1}", bytes as f64 / *keys as f64),
            ]);
        }
    }
    let header = [
        "",
        "engine",
        "keys",
        "Mops/s",
        "spread",
        "p50, ns",
        "p99, ns",
        "ours : it",
        "spread",
    ];
    crate::print(&table::render(&header, &rows))?;
    let rows: Vec<Vec<String>> = all
        .iter()
        .flat_map(|compared| compared.persists.iter().map(move |persists| (compared, persists)))
        .map(|(compared, persists)| {
            let (section, kind) = (compared.section, crate::name(compared.kind));
            vec![
                format!("{section:?} {kind} {}", persists.operation.name()).to_lowercase(),
                persists.counted_keys.to_string(),
                format!("{:.2}", persists.write_backs_per_op),
                format!("{:.2}", persists.fences_per_op),
            ]
        })
        .collect();
    crate::print(&format!(
        "\nwhat an operation of {} persists:\n{}",
        args.index,
        table::render(&["", "keys", "write-backs", "fences"], &rows)
    ))?;
    let mut settings: Vec<(&str, &str)> = Vec::new();
    for compared in all {
        for done in compared.figures.done() {
            let setting = (args.name(done.engine), compared.setting(done.engine));
            if !settings.contains(&setting) {
                settings.push(setting);
            }
        }
    }
    let settings = settings
        .iter()
        .map(|(engine, setting)| format!("{engine}: {setting}\n"));
    crate::print(&format!(
        "\nwhat the engines promise:\n{}",
        settings.collect::<String>()
    ))?;
    if !verdicts.is_empty() {
        let rows: Vec<Vec<String>> = verdicts.iter().map(Verdict::row).collect();
        let header = ["target", "asked", "measured", "spread", ""];
        crate::print(&format!("\n{}", table::render(&header, &rows)))?;
    }
    let pace = all.iter().flat_map(|compared| &compared.pace);
    crate::print(&format!("\n{}", pace::render(pace)))?;
    let HugePages {
        resident_mib,
        huge_mib,
    } = most_memory(all);
    crate::print(&format!(
        "\n{} rounds, {} threads, {huge_mib} of {resident_mib} MiB on huge pages{}\n{machine}",
        args.rounds,
        args.threads,
        match huge::one_arena() {
            true => ", peers' threads in one arena of malloc",
            false => "",
        }
    ))
}
