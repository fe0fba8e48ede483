//! What DPTree plots (VLDB 2020, §4).

use super::{
    Claim, Figure, HARDWARE, MICROS, MOPS, Maker, Measure, OTHER_MEMORY, Said, between, ratio, shown, value,
};
use crate::figures::svg::Shape;
use indexes::IndexKind;

const WORT: (&str, &str) = ("wort", "dptree");

// Why ours may differ.
const INSERTS: &str = "WORT allocates without persists here, which the paper counts as 4 more of its write-backs, and a merge \
    takes its time from a thread that inserts.";
const LOOKUPS: &str =
    "WORT's nodes and leaves lie in DRAM here too, where a miss costs less beside what DPTree computes.";
const SCANS: &str =
    "WORT's leaves lie in DRAM, where a miss costs less, and in the order of their insertion.";
const LOG: &str = "A record is written back with its line once; only pages that are begun add to that.";
const CLEARING: &str = "Mostly the clearing of log pages that never served before; how many it takes depends on when merges end.";
const MERGED: &str = "Neighbouring pairs that a merge adds to a leaf share lines, and a line is written back once for all of \
    them.";
const FENCES: &str = "One for the log record; merges put many write-backs before each of theirs.";
const ALLOCATION: &str =
    "The heap persists pages, not objects: one write-back and one fence for each page taken.";
const SPACE: &str = "How many nodes a key of WORT's takes depends on the number of keys, and what a pair of its own takes on the \
    allocator: chunks have no headers here, and the paper does not say what its pairs take.";
const NODES: &str = "The depth of the tree and the share of new nodes depend on the number of keys.";

const PROCESSOR: &str = "Another processor, another cache, and fewer keys.";
const SCALING: &str = "Another memory, whose bandwidth cores share otherwise.";

pub fn figures(maker: &Maker) -> Vec<Figure> {
    let named = |names: &'static [&str]| {
        let wanted = |index: &IndexKind| names.contains(&index.name());
        IndexKind::ALL.iter().copied().filter(wanted)
    };
    let probing = || named(&["dptree", "dptree-linear", "dptree-fingerprints"]);
    let thresholds = || named(&["dptree-merge-2", "dptree", "dptree-merge-50"]);
    let sizes = maker.sizes("--no-counts");
    let mut threads: Vec<usize> = [1, 2, 4, 8, 16, 32]
        .into_iter()
        .filter(|threads| *threads <= maker.cores)
        .collect();
    threads.dedup();
    let places: Vec<(String, String)> = threads
        .iter()
        .map(|threads| {
            (
                threads.to_string(),
                format!("--keys {} --threads {threads} --no-counts", maker.keys),
            )
        })
        .collect();
    let mixes = [
        "dptree-insert",
        "dptree-read",
        "dptree-read-update",
        "dptree-scan-insert",
        "dptree-mixed",
    ];
    let mixes = mixes.map(|mix| {
        maker
            .over(mix, Shape::Lines, shown(), mix, &places, MOPS)
            .along("threads")
    });
    let persists = |title: &str, path: &'static [&'static str]| {
        let measure = Measure::Path(path);
        maker.workloads(title, shown(), &["load"], "--key-kind u64", "per insert", measure)
    };
    let per_op = |mix: &str| {
        HARDWARE.map(|what| {
            let title = format!("{mix}: {}", what.0);
            let what = ("per operation", what.1);
            maker
                .over(&title, Shape::Lines, shown(), mix, &places, what)
                .along("threads")
        })
    };
    let most = sizes.last().map_or("", |(place, _)| place.as_str());
    let scans: Vec<(String, String)> = ["0.01%", "0.1%", "1%"]
        .map(|share| {
            let ops = (maker.keys / 500).max(20);
            (
                share.to_owned(),
                format!(
                    "--keys {} --scan-length {share} --ops {ops} --no-counts",
                    maker.keys
                ),
            )
        })
        .into();
    // What the paper has of one thread and of 32, where there are 32 cores.
    let many = threads.contains(&32);
    let scaling: Vec<Claim> = [(1, "27.3"), (2, "21.9"), (4, "14")]
        .into_iter()
        .filter(|_| many)
        .map(|(mix, paper)| between(mix, ("32", "1"), "dptree", paper, "§4.4", SCALING))
        .collect();
    let one = ["1768", "456", "3.05", "2.34", "1461", "444", "2.68", "1.76"];
    let all = ["2947", "474", "3.25", "2.50", "1662", "447", "2.82", "1.80"];
    let counted = (0..)
        .zip(one.into_iter().zip(all))
        .flat_map(|(panel, (one, all))| {
            let of = |threads, count| value(panel, threads, "dptree", count, "Table 2", PROCESSOR);
            [Some(of("1", one)), many.then(|| of("32", all))]
                .into_iter()
                .flatten()
        });
    vec![
        Figure {
            id: "dptree-8",
            title: "DPTree Fig. 8: inserts, lookups and scans by data size",
            ours: false,
            paper: "25 to 100 M keys, one thread: DPTree's lookups are up to 2.19 times as fast as WORT's, its scans up \
                to 10.98 times, and WORT's inserts take 1.25 times as long. 50 M pairs take 1.7 GB, WORT 6.02 GB.",
            panels: vec![
                maker.over("(a) inserts", Shape::Lines, shown(), "load", &sizes, MICROS),
                maker.over(
                    "(b) lookups",
                    Shape::Lines,
                    shown(),
                    "dptree-read",
                    &sizes,
                    MICROS,
                ),
                maker
                    .over(
                        "(c) scans of a share of the keys",
                        Shape::Lines,
                        shown(),
                        "scan100",
                        &scans,
                        MICROS,
                    )
                    .along("share of the keys"),
                maker.over(
                    "space",
                    Shape::Lines,
                    shown(),
                    "load",
                    &sizes,
                    ("bytes a key", Measure::Field("bytes_per_key")),
                ),
            ],
            claims: vec![
                ratio(0, most, WORT, "1.25", "§4.2", INSERTS),
                ratio(1, most, WORT, Said::UpTo("2.19"), "§4.2", LOOKUPS),
                ratio(2, "0.1%", WORT, Said::UpTo("10.98"), "§4.2", SCANS),
                ratio(
                    3,
                    most,
                    WORT,
                    Said::Over("6.02", "1.7"),
                    "§4.2, 6.02 GB to 1.7 GB of 50 M pairs",
                    SPACE,
                ),
            ],
            differs: "Another memory: DRAM, where fences cost less beside misses. Fig. 8 (d), the write-backs of a \
                merge in place and of one that is not, is missing: here merges are in place only (docs/deviations.md).",
        },
        Figure {
            id: "dptree-table-1",
            title: "DPTree Table 1: persists an insert, by purpose",
            ours: false,
            paper: "50 M keys. DPTree: 2.26 write-backs (log 1.1, allocation 0.06, nodes 1.1) and 1.06 fences; WORT: 6.8 \
                (allocation 3.9, nodes 2.9) and 6.5 fences.",
            panels: vec![
                persists("write-backs for logs", &["persists_per_op", "log", "write_backs"]),
                persists(
                    "write-backs for allocation",
                    &["persists_per_op", "alloc", "write_backs"],
                ),
                persists(
                    "write-backs for nodes",
                    &["persists_per_op", "node", "write_backs"],
                ),
                maker.workloads(
                    "write-backs in all",
                    shown(),
                    &["load"],
                    "--key-kind u64",
                    "per insert",
                    Measure::Field("write_backs_per_op"),
                ),
                maker.workloads(
                    "fences",
                    shown(),
                    &["load"],
                    "--key-kind u64",
                    "per insert",
                    Measure::Field("fences_per_op"),
                ),
            ],
            claims: vec![
                value(0, "load", "dptree", "1.1", "Table 1", LOG),
                value(1, "load", "dptree", "0.06", "Table 1", CLEARING),
                value(2, "load", "dptree", "1.1", "Table 1", MERGED),
                value(3, "load", "dptree", "2.26", "Table 1", MERGED),
                value(4, "load", "dptree", "1.06", "Table 1", FENCES),
                value(1, "load", "wort", "3.9", "Table 1", ALLOCATION),
                value(2, "load", "wort", "2.9", "Table 1", NODES),
                value(3, "load", "wort", "6.8", "Table 1", ALLOCATION),
                value(4, "load", "wort", "6.5", "Table 1", ALLOCATION),
            ],
            differs: "The heap itself takes a write-back and a fence for each new page, whatever the index; DPTree's share of \
                allocation is the clearing of new log pages.",
        },
        Figure {
            id: "dptree-10",
            title: "DPTree Fig. 10: lookups by leaf probing",
            ours: false,
            paper: "Plot only. Linear probing with fingerprints is fastest, fingerprints alone slowest.",
            panels: vec![
                maker.over("lookups", Shape::Bars, probing(), "get", &sizes[2..], MICROS),
                maker.over(
                    "lookups of absent keys",
                    Shape::Bars,
                    probing(),
                    "get-absent",
                    &sizes[2..],
                    MICROS,
                ),
            ],
            claims: vec![],
            differs: "Groups of 64 slots, each with its line of fingerprints, stand for the paper's slots. The buffer tree is \
                looked into first, and has up to a tenth of the keys. Entries have 16 bytes in a leaf, whatever the pair has, so that \
                the paper's other axis (16 to 64) has one place here: by keys instead.",
        },
        Figure {
            id: "dptree-threshold",
            title: "DPTree: when to merge",
            ours: true,
            paper: "A merge begins when the buffer tree has a share R of the base tree's keys, 0.1 in the paper (dptree). Later merges write less, and leave more to replay and more DRAM in use.",
            panels: vec![
                maker.workloads(
                    "operations",
                    thresholds(),
                    &["insert", "get"],
                    "--no-counts",
                    MOPS.0,
                    MOPS.1,
                ),
                maker.workloads(
                    "write-backs an insert",
                    thresholds(),
                    &["load"],
                    "--key-kind u64",
                    "per insert",
                    Measure::Field("write_backs_per_op"),
                ),
            ],
            claims: vec![],
            differs: "One thread. The write-backs are of a load of keys of eight bytes, counted with a run of its own.",
        },
        Figure {
            id: "dptree-12",
            title: "DPTree Fig. 12: its mixes by threads",
            ours: false,
            paper: "Plot only for DPTree beside WORT. With 32 threads it is 27.3 times as fast as with one on reads, 21.9 times on reads and updates, and \
                14 times on all mixed, and ahead of FAST&FAIR by up to 1.36 times on inserts and 1.58 times on reads.",
            panels: mixes.into(),
            claims: scaling,
            differs: OTHER_MEMORY,
        },
        Figure {
            id: "dptree-table-2",
            title: "DPTree Table 2: what the processor counts, by threads",
            ours: false,
            paper: "An operation of DPTree with 1 and 32 threads: read-update 1768 and 2947 cycles, 456 and 474 instructions, 3.05 \
                and 3.25 cache misses, 2.34 and 2.50 mispredicted branches; read 1461 and 1662, 444 and 447, 2.68 and \
                2.82, 1.76 and 1.80.",
            panels: ["dptree-read-update", "dptree-read"]
                .into_iter()
                .flat_map(per_op)
                .collect(),
            claims: counted.collect(),
            differs: PROCESSOR,
        },
        Figure {
            id: "dptree-13",
            title: "DPTree Fig. 13: recovery",
            ours: false,
            paper: "Plot only. 8 M to 128 M keys: DPTree replays its log and rebuilds its inner nodes, with 32 threads up to 8 times as \
                fast as with one.",
            panels: vec![
                maker.openings("until the first answer after a kill", "first_get_ms"),
                maker.recoveries(
                    IndexKind::DpTree,
                    "DPTree's first answer, by threads that replay",
                    "first_get_ms",
                ),
            ],
            claims: vec![],
            differs: "The radix trees need no recovery before they answer. No more than two threads replay here, however many cores \
                there are; the paper has up to 32.",
        },
    ]
}
