//! What WORT plots (FAST 2017, §5).

use super::{Figure, MICROS, Maker, Measure, claim, shown};
use crate::figures::svg::Shape;

pub fn figures(maker: &Maker) -> Vec<Figure> {
    let kinds = ["dense", "sparse", "clustered"];
    let over_kinds = |title: &str, workload: &str, more: &str, what| {
        let places = kinds.map(|kind| {
            (
                kind.into(),
                format!("--keys {} --key-kind {kind} {more}", maker.keys),
            )
        });
        maker.over(title, Shape::Bars, shown(), workload, &places, what)
    };
    let delays = |kind: &str| {
        let places = ["dram", "wort-300", "wort-500"].map(|delay| {
            let more = format!(
                "--keys {} --key-kind {kind} --media delay --delay {delay} --no-counts",
                maker.keys
            );
            (delay.to_owned(), more)
        });
        maker.over(
            &format!("{kind} keys"),
            Shape::Lines,
            shown(),
            "load",
            &places,
            MICROS,
        )
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
            paper: "128 M keys, one thread: clustered keys take about 1.5 times as long as dense and sparse ones.",
            panels: vec![over_kinds("inserts", "load", "--no-counts", MICROS)],
            claims: vec![],
            differs: "Allocation is part of an insert here.",
        },
        Figure {
            id: "wort-8",
            title: "WORT Fig. 8: inserts as writes get slower",
            paper: "Radix trees stay ahead of B+-trees as the write latency grows from 100 to 500 ns; the paper delays \
                every write-back.",
            panels: kinds.map(delays).into(),
            claims: vec![],
            differs: "The delay comes with the fence, once for each distinct line. Slower reads are not emulated.",
        },
        Figure {
            id: "wort-9",
            title: "WORT Fig. 9: lookups",
            paper: "ART+CoW is fastest; WORT's depth costs it most when reads are slow.",
            panels: vec![over_kinds("lookups", "get", "--no-counts", MICROS)],
            claims: vec![],
            differs: "Read latency is this memory's; the paper's 300 ns reads are not emulated.",
        },
        Figure {
            id: "wort-10",
            title: "WORT Fig. 10: range queries",
            paper: "0.001% and 0.01% of 128 M keys; the radix trees take 5.8 and 6.4 times as long as a B+-tree.",
            panels: vec![scans("0.01%"), scans("0.1%")],
            claims: vec![],
            differs: "Shares are ten times the paper's, since there are fewer keys.",
        },
        Figure {
            id: "wort-table-1",
            title: "WORT Table 1 (b): write-backs an insert",
            paper: "Dense, sparse, clustered: WORT 2.2, 2.4, 2.3; WOART 2.4, 3.5, 3.7; ART+CoW 2.4, 3.8, 3.9. What \
                the allocator persists is not counted.",
            panels: vec![
                over_kinds(
                    "write-backs for nodes and leaves",
                    "load",
                    "",
                    (
                        "write-backs",
                        Measure::Path(&["persists_per_op", "node", "write_backs"]),
                    ),
                ),
                over_kinds("fences", "load", "", ("fences", Measure::Field("fences_per_op"))),
            ],
            claims: vec![
                claim(0, "dense", "woart", "wort", 2.4 / 2.2),
                claim(0, "sparse", "woart", "wort", 3.5 / 2.4),
                claim(0, "clustered", "woart", "wort", 3.7 / 2.3),
                claim(0, "sparse", "art-cow", "wort", 3.8 / 2.4),
                claim(0, "clustered", "art-cow", "wort", 3.9 / 2.3),
            ],
            differs: "A leaf longer than a line is written back in more than one piece.",
        },
    ]
}
