//! What is printed of the rounds.

use super::figures::OURS;
use super::pace::{self, RoundPace};
use super::rounds::Operation;
use super::targets::Verdict;
use super::{CompareArgs, Compared, Section};
use crate::keys::KeyKind;
use crate::machine::{HugePages, Machine};
use crate::summary::Summary;
use crate::{Error, peers, table};
use serde::Serialize;

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
    /// A target, and whether it is met.
    Target(&'r Verdict),
    /// What the run was made on.
    Conditions {
        rounds: usize,
        threads: usize,
        most_huge_pages: HugePages,
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
    for &Compared {
        section,
        kind: key_kind,
        keys,
        ref figures,
        space,
        ref pace,
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
    }
    for verdict in verdicts {
        line(&Record::Target(verdict))?;
    }
    let (rounds, threads, most_huge_pages) = (args.rounds, args.threads, most_memory(all));
    line(&Record::Conditions {
        rounds,
        threads,
        most_huge_pages,
        pace: all.iter().flat_map(|compared| &compared.pace).collect(),
        machine,
    })
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
    let durable = peers::DURABLE.iter().map(|peer| peer.name);
    let in_memory = peers::in_memory(KeyKind::U64).into_iter().map(|(name, _)| name);
    let settings = durable
        .chain(in_memory)
        .map(|peer| format!("{peer}: {}\n", peers::setting(peer)));
    crate::print(&format!(
        "\nwhat the engines promise:\n{}: {}\n{}",
        args.index,
        Section::Durable.setting(OURS),
        settings.collect::<String>()
    ))?;
    let rows: Vec<Vec<String>> = verdicts.iter().map(Verdict::row).collect();
    crate::print(&format!(
        "\n{}",
        table::render(&["target", "asked", "measured", "spread", ""], &rows)
    ))?;
    let pace = all.iter().flat_map(|compared| &compared.pace);
    crate::print(&format!("\n{}", pace::render(pace)))?;
    let HugePages {
        resident_mib,
        huge_mib,
    } = most_memory(all);
    crate::print(&format!(
        "\n{} rounds, {} threads, {huge_mib} of {resident_mib} MiB on huge pages\n{machine}",
        args.rounds, args.threads
    ))
}
