//! What a restart takes, beside what people use today.

use crate::figures::cell::Cell;
use crate::figures::plan::{Figure, Measure, Panel, Point, maker::Maker};
use crate::figures::svg::{Shape, short};
use crate::restart;

pub fn figure(maker: &Maker) -> Figure {
    let sizes = [100, 10, 1].map(|part| (maker.keys / part).max(1));
    let point = |engine: &'static str, keys: usize| Point {
        series: engine.into(),
        place: short(keys as f64),
        cell: Cell(format!("restart --engine {engine} --keys {keys} --rounds 1")),
        pick: vec![("engine", engine.into())],
        measure: Measure::Path(&["first_get_ms", "median"]),
    };
    let points = restart::everyone()
        .into_iter()
        .flat_map(|engine| sizes.map(|keys| point(engine, keys)));
    maker.figure(
        "restart",
        vec![Panel {
            title: "until the first answer".into(),
            shape: Shape::Lines,
            x: "keys",
            unit: "ms",
            points: points.collect(),
            runs: 1,
        }],
    )
}
