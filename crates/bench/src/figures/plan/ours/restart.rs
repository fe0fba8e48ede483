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
    Figure {
        id: "restart",
        title: "Restart beside what people use today: from a process's start to its first answer after kill -9, by keys",
        ours: true,
        paper: "What a restart takes does not depend on the keys of ours. What the engines promise when an operation returns is near to \
            our level process: see docs/benchmarks.md.",
        panels: vec![Panel {
            title: "until the first answer".into(),
            shape: Shape::Lines,
            x: "keys",
            unit: "ms",
            points: points.collect(),
            runs: 1,
        }],
        claims: vec![],
        differs: "Each engine is filled by another process, one key a transaction, which is killed; the time runs from the start of the \
            next process until it has answered one get. Files lie in the page cache. The start of the process is in it, the same one for all.",
    }
}
