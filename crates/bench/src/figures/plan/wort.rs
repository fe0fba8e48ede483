//! What WORT plots (FAST 2017, §5).

use super::{CACHE_MISSES, Figure, MICROS, Maker, Measure, OTHER_CACHE, between, shown, value};
use crate::figures::svg::Shape;

/// Why a count of inserts may differ.
const SHAPE: &str = "A smaller tree has the same lowest nodes, but those above weigh more in it.";

const FRAGMENTED: &str = "Clustered keys share prefixes that are scattered over more nodes, which lie apart: what that takes depends \
    on what of them the cache holds, and here allocation is part of an insert.";

/// As many keys as a tree has with the lowest nodes of the paper's 2^27 keys, in which 8 evenly spaced keys meet: fewer by
/// whole levels of a byte, one or two.
fn shaped_like_the_papers(most: usize) -> usize {
    if most < 1 << 19 { 1 << 11 } else { 1 << 19 }
}

pub fn figures(maker: &Maker) -> Vec<Figure> {
    let kinds = ["dense", "sparse", "clustered"];
    let with_keys = |keys: usize, title: &str, workload: &str, more: &str, what| {
        let places = kinds.map(|kind| (kind.into(), format!("--keys {keys} --key-kind {kind} {more}")));
        maker
            .over(title, Shape::Bars, shown(), workload, &places, what)
            .along("kind of keys")
    };
    let over_kinds =
        |title: &str, workload: &str, more: &str, what| with_keys(maker.keys, title, workload, more, what);
    let shaped = shaped_like_the_papers(maker.keys);
    let each = ["wort", "woart", "art-cow"];
    // Of each index and kind of keys.
    let nine = |panel, counts: [[&'static str; 3]; 3], source, why| {
        let of = move |(index, counts): (_, [&'static str; 3])| {
            let counts = kinds.into_iter().zip(counts);
            counts.map(move |(kind, count)| value(panel, kind, index, count, source, why))
        };
        each.into_iter().zip(counts).flat_map(of)
    };
    let clustered = each.into_iter().flat_map(|index| {
        ["dense", "sparse"]
            .map(|kind| between(0, ("clustered", kind), index, "1.5", "§5.1, roughly", FRAGMENTED))
    });
    let write_backs = [
        ["2.2", "2.4", "2.3"],
        ["2.4", "3.5", "3.7"],
        ["2.4", "3.8", "3.9"],
    ];
    let insert_misses = [
        ["6.3", "7.2", "17.0"],
        ["5.7", "7.9", "11.2"],
        ["5.0", "12.7", "12.9"],
    ];
    let lookup_misses = [
        ["6.5", "7.6", "11.5"],
        ["4.8", "7.9", "8.9"],
        ["3.8", "6.2", "8.8"],
    ];
    let delays = |kind: &str| {
        // What a write-back takes, and what it is called on the command line.
        let latencies = [("100 ns", "dram"), ("300 ns", "wort-300"), ("500 ns", "wort-500")];
        let places = latencies.map(|(latency, delay)| {
            let more = format!(
                "--keys {} --key-kind {kind} --media delay --delay {delay} --no-counts",
                maker.keys
            );
            (latency.to_owned(), more)
        });
        maker
            .over(
                &format!("{kind} keys"),
                Shape::Lines,
                shown(),
                "load",
                &places,
                MICROS,
            )
            .along("write latency")
    };
    let scans = |share: &str| {
        over_kinds(
            &format!("{share} of the keys"),
            "scan100",
            &format!(
                "--scan-length {share} --ops {} --no-counts",
                (maker.keys / 500).max(20)
            ),
            MICROS,
        )
    };
    vec![
        Figure {
            id: "wort-7",
            title: "WORT Fig. 7: inserts at DRAM's latency",
            ours: false,
            paper: "128 M keys, one thread: clustered keys take about 1.5 times as long as dense and sparse ones.",
            panels: vec![over_kinds("inserts", "load", "--no-counts", MICROS)],
            claims: clustered.collect(),
            differs: "Allocation is part of an insert here.",
        },
        Figure {
            id: "wort-8",
            title: "WORT Fig. 8: inserts as writes get slower",
            ours: false,
            paper: "Plot only. Radix trees stay ahead of B+-trees as the write latency grows from 100 to 500 ns; the paper delays \
                every write-back.",
            panels: kinds.map(delays).into(),
            claims: vec![],
            differs: "The delay comes with the fence, once for each distinct line. Slower reads are not emulated.",
        },
        Figure {
            id: "wort-9",
            title: "WORT Fig. 9: lookups",
            ours: false,
            paper: "Plot only. ART+CoW is fastest; WORT's depth costs it most when reads are slow.",
            panels: vec![over_kinds("lookups", "get", "--no-counts", MICROS)],
            claims: vec![],
            differs: "Read latency is this memory's; the paper's 300 ns reads are not emulated.",
        },
        Figure {
            id: "wort-10",
            title: "WORT Fig. 10: range queries",
            ours: false,
            paper: "Plot only for radix trees beside each other. 0.001% and 0.01% of 128 M keys: the radix trees take 5.8 and 6.4 times as long as a B+-tree.",
            panels: vec![scans("0.01%"), scans("0.1%")],
            claims: vec![],
            differs: "Shares are ten times the paper's, since there are fewer keys.",
        },
        Figure {
            id: "wort-table-1",
            title: "WORT Table 1: write-backs an insert, cache misses",
            ours: false,
            paper: "Write-backs for dense, sparse, clustered keys: WORT 2.2, 2.4, 2.3; WOART 2.4, 3.5, 3.7; ART+CoW 2.4, \
                3.8, 3.9. What the allocator persists is not counted. Cache misses an insert: WORT 6.3, 7.2, 17.0; WOART \
                5.7, 7.9, 11.2; ART+CoW 5.0, 12.7, 12.9; a lookup: 6.5, 7.6, 11.5; 4.8, 7.9, 8.9; 3.8, 6.2, 8.8. \
                Depth of leaves (d): WORT 7.0, 7.0, 8.2; WOART and ART+CoW 4.0, 4.0, 4.2.",
            panels: vec![
                with_keys(
                    shaped,
                    "(b) write-backs for nodes and leaves",
                    "load",
                    "",
                    (
                        "per insert",
                        Measure::Path(&["persists_per_op", "node", "write_backs"]),
                    ),
                ),
                with_keys(
                    shaped,
                    "fences",
                    "load",
                    "",
                    ("per insert", Measure::Field("fences_per_op")),
                ),
                over_kinds(
                    "(a) cache misses an insert",
                    "load",
                    "--no-counts",
                    ("per insert", CACHE_MISSES.1),
                ),
                over_kinds(
                    "(c) cache misses a lookup",
                    "get",
                    "--no-counts",
                    ("per lookup", CACHE_MISSES.1),
                ),
            ],
            claims: nine(0, write_backs, "Table 1b", SHAPE)
                .chain(nine(2, insert_misses, "Table 1a", OTHER_CACHE))
                .chain(nine(3, lookup_misses, "Table 1c", OTHER_CACHE))
                .collect(),
            differs: "Depths are no panel here: docs/deviations.md has ours beside the paper's. Fewer keys. An insert makes 1/15 of a node for dense keys, 2/15 for sparse ones, as in the paper's \
                trees. The fences are of all that an insert does, pages that the heap takes among it.",
        },
    ]
}
