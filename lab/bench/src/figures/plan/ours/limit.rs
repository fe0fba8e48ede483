//! Lookups beside what memory allows.

use crate::figures::plan::{Figure, Measure, Panel, Point, maker::Maker, shown};
use crate::figures::svg::{Shape, short};

/// The least that a lookup can take, and what that is of what it took, by `bench run --limit`.
const BOUNDS: [(&str, Measure, Measure); 3] = [
    (
        "its path's cold lines, one after the other",
        Measure::Path(&["limit", "chain_ns"]),
        Measure::Percent(&["limit", "of_chain"]),
    ),
    (
        "its path's cold lines, overlapped",
        Measure::Path(&["limit", "overlapped_ns"]),
        Measure::Percent(&["limit", "of_overlapped"]),
    ),
    (
        "one cold line, overlapped",
        Measure::Path(&["limit", "one_line_ns"]),
        Measure::Percent(&["limit", "of_one_line"]),
    ),
];

/// Keys of eight bytes whose pools are several times as large as most third-level caches.
const ENOUGH: usize = 10_000_000;

const CACHED: [(&str, Measure); 1] = [("cached at most", Measure::Percent(&["limit", "cached"]))];
const LINES: [(&str, Measure); 2] = [
    ("all", Measure::Path(&["limit", "path", "lines"])),
    ("cold", Measure::Path(&["limit", "path", "cold"])),
];

pub fn figure(maker: &Maker) -> Figure {
    // Pools of short keys are as small as a third-level cache, so there are more of these.
    let enough = maker.keys.max(ENOUGH.min(maker.keys * 10));
    let panel = |(kind, keys): (&str, usize), what: &str, unit, measures: &[(&str, Measure)]| {
        let more = format!("--ops {} --key-kind {kind} --no-counts --limit", maker.keys);
        let points = shown().flat_map(|index| {
            let cell = maker.run(index, "get", keys, &more);
            measures
                .iter()
                .map(move |&(series, measure)| Point {
                    series: series.into(),
                    place: index.name().into(),
                    cell: cell.clone(),
                    pick: vec![("workload", "get".into())],
                    measure,
                })
                .collect::<Vec<_>>()
        });
        Panel {
            title: format!("{} {kind} keys: {what}", short(keys as f64)),
            shape: Shape::Bars,
            x: "index",
            unit,
            points: points.collect(),
            runs: 1,
        }
    };
    let lookup = ("a lookup", Measure::Path(&["limit", "ns_per_op"]));
    let nanoseconds: Vec<_> = [lookup]
        .into_iter()
        .chain(BOUNDS.map(|(name, ns, _)| (name, ns)))
        .collect();
    let percent = BOUNDS.map(|(name, _, percent)| (name, percent));
    let panels = [("u64", enough), ("str", maker.keys)]
        .into_iter()
        .flat_map(|kind| {
            [
                panel(kind, "a lookup and its bounds", "ns", &nanoseconds),
                panel(kind, "what the bounds are of a lookup", "%", &percent),
                panel(kind, "lines of the pool on a lookup's path", "lines", &LINES),
                panel(
                    kind,
                    "the share of the pool that the third-level cache can hold",
                    "%",
                    &CACHED,
                ),
            ]
        });
    maker.figure("limit", panels.collect())
}
