//! What DPTree plots (VLDB 2020, §4).

use super::{Figure, HARDWARE, MICROS, MOPS, Maker, Measure, shown};
use crate::figures::svg::Shape;
use wollemi::indexes::IndexKind;

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
    vec![
        maker.figure(
            "dptree-8",
            vec![
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
        ),
        maker.figure(
            "dptree-table-1",
            vec![
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
        ),
        maker.figure(
            "dptree-10",
            vec![
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
        ),
        maker.figure(
            "dptree-threshold",
            vec![
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
        ),
        maker.figure("dptree-12", mixes.into()),
        maker.figure(
            "dptree-table-2",
            ["dptree-read-update", "dptree-read"]
                .into_iter()
                .flat_map(per_op)
                .collect(),
        ),
        maker.figure(
            "dptree-13",
            vec![
                maker.openings("until the first answer after a kill", "first_get_ms"),
                maker.recoveries(
                    IndexKind::DpTree,
                    "DPTree's first answer, by threads that replay",
                    "first_get_ms",
                ),
            ],
        ),
    ]
}
