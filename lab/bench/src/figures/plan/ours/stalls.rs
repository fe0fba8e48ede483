//! What merges and recovery hold up, over time.

use crate::figures::cell::Cell;
use crate::figures::plan::{Figure, Measure, Panel, Point, maker::Maker};
use crate::figures::svg::Shape;
use wollemi::indexes::IndexKind;

/// Operations due in a second: a fraction of what the indexes can do, so that what falls behind has been held up.
const RATE: usize = 200_000;

pub fn figure(maker: &Maker) -> Figure {
    let keys = maker.keys;
    let panel = |title: &str, cell: &dyn Fn(IndexKind) -> Cell, pick: (&'static str, &str)| Panel {
        title: title.into(),
        shape: Shape::Timeline,
        x: "time",
        unit: "longest call, ms",
        points: [IndexKind::default(), IndexKind::DpTree]
            .map(|index| Point {
                series: index.name().into(),
                place: "longest call".into(),
                cell: cell(index),
                pick: vec![(pick.0, pick.1.into())],
                measure: Measure::Longest,
            })
            .into(),
        runs: 1,
    };
    maker.figure(
        "stalls",
        vec![
            panel(
                "inserts, while DPTree merges",
                &|index| maker.run(index, "insert", keys, &format!("--rate {RATE} --no-counts")),
                ("workload", "insert"),
            ),
            panel(
                "lookups and updates in turn, from the first answer after a kill until recovery has ended",
                &|index| maker.opening(index, keys, 1),
                ("after", "kill"),
            ),
        ],
    )
}
