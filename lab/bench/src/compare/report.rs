//! The report of the rounds.

use super::counted::Persists;
use super::figures::EngineSummary;
use super::huge;
use super::operation::Operation;
use super::pace::RoundPace;
use super::published::Published;
use super::targets::Verdict;
use super::{CompareArgs, Compared, Section};
use crate::keys::KeyKind;
use crate::machine::{HugePages, Machine};
use crate::store::Space;
use crate::summary::Summary;
use crate::{Error, records};
use serde::Serialize;

/// A line of the result.
#[derive(Debug, Serialize)]
#[serde(tag = "record", rename_all = "snake_case")]
enum Record<'r> {
    /// The results of one engine: millions of operations per second, and latencies.
    Throughput {
        section: Section,
        key_kind: KeyKind,
        operation: Operation,
        engine: &'r str,
        /// The engine's setting, and what it promises.
        setting: &'r str,
        keys: usize,
        mops: Summary,
        /// Latencies of every 32nd call, but of each `multi_get` of 32 keys. `None` if too few were timed.
        p50_ns: Option<Summary>,
        p99_ns: Option<Summary>,
        /// Cache-miss time before and after each round.
        pace: &'r [RoundPace],
    },
    /// The ratio of our index to a peer.
    Ratio {
        section: Section,
        key_kind: KeyKind,
        operation: Operation,
        index: &'r str,
        peer: &'r str,
        ratio: Summary,
    },
    /// The space that one of our indexes uses.
    Space {
        key_kind: KeyKind,
        index: &'r str,
        keys: usize,
        bytes_per_key: f64,
        live_bytes_per_key: f64,
    },
    /// The persists of an operation of our index, from a separate counting pass.
    Persists {
        section: Section,
        key_kind: KeyKind,
        index: &'r str,
        #[serde(flatten)]
        persists: &'r Persists,
    },
    /// The space of an engine's files after loading, including logs of writes not yet merged or flushed; holes do not
    /// count.
    Files {
        key_kind: KeyKind,
        engine: &'r str,
        keys: usize,
        bytes_per_key: f64,
    },
    /// A published program, measured elsewhere, beside one of our indexes.
    Published(&'r Published),
    /// A target, and whether it is met.
    Target(&'r Verdict),
    /// The conditions of the run.
    Conditions {
        rounds: usize,
        threads: usize,
        most_huge_pages: HugePages,
        /// Whether all threads of in-memory peers allocate from, and contend for, one arena of the C library's heap.
        one_arena: bool,
        /// Cache-miss times of all rounds.
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

/// Prints the records in the requested format.
pub fn print(
    args: &CompareArgs,
    all: &[Compared],
    published: &[Published],
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
            ref space,
            ref persists,
            ref files,
            ref pace,
            ..
        } = compared;
        for done in figures.done() {
            let EngineSummary {
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
        for &(engine, Space { reserved, live }) in space {
            let [bytes_per_key, live_bytes_per_key] =
                [reserved, live].map(|bytes| bytes as f64 / keys as f64);
            line(Record::Space {
                key_kind,
                index: args.name(engine),
                keys,
                bytes_per_key,
                live_bytes_per_key,
            });
        }
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
    for published in published {
        line(Record::Published(published));
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
