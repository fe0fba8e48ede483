//! The report of the rounds.

use super::counted::Persists;
use super::figures::Done;
use super::huge;
use super::operation::Operation;
use super::pace::RoundPace;
use super::targets::Verdict;
use super::{CompareArgs, Compared, Section};
use crate::keys::KeyKind;
use crate::machine::{HugePages, Machine};
use crate::summary::Summary;
use crate::{Error, records};
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
    /// What an engine's files take once the keys are loaded, as they lie, logs of what is not merged or flushed
    /// included; holes take nothing.
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
        /// Whether all threads of the peers in memory allocate from one arena of the C library's heap, and wait for
        /// each other there.
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

/// Prints what was asked for.
pub fn print(
    args: &CompareArgs,
    all: &[Compared],
    verdicts: &[Verdict],
    machine: &Machine,
) -> Result<(), Error> {
    let mut records = Vec::new();
    let mut line = |record| records.push(record);
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
            line(Record::Throughput {
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
            });
        }
        for (operation, peer, ratio) in figures.ratios() {
            line(Record::Ratio {
                section,
                key_kind,
                operation,
                index: args.index.name(),
                peer,
                ratio,
            });
        }
        let [bytes_per_key, live_bytes_per_key] =
            [space.reserved, space.live].map(|bytes| bytes as f64 / keys as f64);
        line(Record::Space {
            key_kind,
            index: args.index.name(),
            keys,
            bytes_per_key,
            live_bytes_per_key,
        });
        for persists in persists {
            line(Record::Persists {
                section,
                key_kind,
                index: args.index.name(),
                persists,
            });
        }
        for &(engine, bytes) in files {
            line(Record::Files {
                key_kind,
                engine: args.name(engine),
                keys,
                bytes_per_key: bytes as f64 / keys as f64,
            });
        }
    }
    for verdict in verdicts {
        line(Record::Target(verdict));
    }
    let (rounds, threads, most_huge_pages) = (args.rounds, args.threads, most_memory(all));
    line(Record::Conditions {
        rounds,
        threads,
        most_huge_pages,
        one_arena: huge::one_arena(),
        pace: all.iter().flat_map(|compared| &compared.pace).collect(),
        machine,
    });
    records::print(args.json, &records)
}
