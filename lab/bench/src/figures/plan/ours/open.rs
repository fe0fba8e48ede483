//! What opening takes.

use crate::figures::cell::Cell;
use crate::figures::plan::{Figure, Measure, Panel, Point, maker::Maker};
use crate::figures::svg::{Shape, short};
use wollemi::indexes::IndexKind;

pub fn figure(maker: &Maker) -> Figure {
    let sizes = [maker.keys / 100, maker.keys / 10, maker.keys, maker.keys * 10];
    let panel = |index: IndexKind, until: &str, series: &[(&str, &str, &'static str)]| {
        let points = sizes.iter().flat_map(|&keys| {
            series.iter().map(move |&(name, after, field)| Point {
                series: name.into(),
                place: short(keys as f64),
                cell: Cell(format!(
                    "open --index {index} --keys {keys} --rounds 3 --pool {{pool}}"
                )),
                pick: vec![("after", after.into())],
                measure: Measure::Field(field),
            })
        });
        Panel {
            title: format!("{index}: until {until}"),
            shape: Shape::Lines,
            x: "keys",
            unit: "ms",
            points: points.collect(),
            runs: 1,
        }
    };
    let panels = [IndexKind::default(), IndexKind::DpTree]
        .into_iter()
        .flat_map(|index| {
            [
                panel(
                    index,
                    "the first answer",
                    &[
                        ("after kill -9", "kill", "first_get_ms"),
                        ("after a clean close", "close", "first_get_ms"),
                    ],
                ),
                panel(
                    index,
                    "the background has reclaimed what the kill left",
                    &[("after kill -9", "kill", "recovered_ms")],
                ),
            ]
        });
    maker.figure("open", panels.collect())
}
