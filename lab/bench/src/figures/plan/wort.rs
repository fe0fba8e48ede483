//! What WORT plots (FAST 2017, §5).

use super::{CACHE_MISSES, Figure, MICROS, Maker, Measure, shown};
use crate::figures::svg::Shape;

/// As many keys as a tree has with the lowest nodes of the paper's 2^27 keys, in which 8 evenly spaced keys meet: fewer
/// by whole levels of a byte, one or two.
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
        maker.figure(
            "wort-7",
            vec![over_kinds("inserts", "load", "--no-counts", MICROS)],
        ),
        maker.figure("wort-8", kinds.map(delays).into()),
        maker.figure(
            "wort-9",
            vec![over_kinds("lookups", "get", "--no-counts", MICROS)],
        ),
        maker.figure("wort-10", vec![scans("0.01%"), scans("0.1%")]),
        maker.figure(
            "wort-table-1",
            vec![
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
        ),
    ]
}
