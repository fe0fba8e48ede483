//! An index beside what people use today.

use crate::figures::cell::Cell;
use crate::figures::plan::{Figure, Measure, Panel, Point, maker::Maker};
use crate::figures::svg::{Shape, short};
use crate::keys::KeyKind;
use crate::peers;
use wollemi::indexes::IndexKind;

pub fn figure(maker: &Maker) -> Figure {
    let keys = maker.keys;
    let cell = Cell(format!(
        "compare --rounds 1 --keys {keys} --str-keys {} --durable-keys {} --ops {keys}",
        keys / 2,
        keys / 10
    ));
    let panel = |title: String, section: &str, kind: &str, names: &[&'static str], operations: &[&str]| {
        let point = |operation: &str, engine: &str| Point {
            series: engine.into(),
            place: operation.into(),
            cell: cell.clone(),
            pick: vec![
                ("record", "throughput".into()),
                ("section", section.into()),
                ("key_kind", kind.into()),
                ("operation", operation.into()),
                ("engine", engine.into()),
            ],
            measure: Measure::Path(&["mops", "median"]),
        };
        let engines = || {
            [IndexKind::default().name()]
                .into_iter()
                .chain(names.iter().copied())
        };
        Panel {
            title,
            shape: Shape::Bars,
            x: "operation",
            unit: "Mops/s",
            points: operations
                .iter()
                .flat_map(|operation| engines().map(move |engine| point(operation, engine)))
                .collect(),
            runs: 1,
        }
    };
    let of = |keys: usize, what: &str| format!("{} keys of {what}", short(keys as f64));
    // Scans apart, for their other scale.
    let panels = |title: &str, section: &str, kind: &str, names: &[&'static str]| {
        [
            panel(title.into(), section, kind, names, &["get", "insert"]),
            panel(format!("{title}: scans"), section, kind, names, &["scan100"]),
        ]
    };
    let memory =
        |kind| -> Vec<&'static str> { peers::in_memory(kind).into_iter().map(|(name, _)| name).collect() };
    let durable = || -> Vec<&'static str> { peers::DURABLE.iter().map(|peer| peer.name).collect() };
    maker.figure(
        "peers",
        [
            panels(
                &of(keys, "8 random bytes, in memory"),
                "memory",
                "u64",
                &memory(KeyKind::U64),
            ),
            panels(
                &of(keys / 2, "4 to 128 characters, in memory"),
                "memory",
                "str",
                &memory(KeyKind::Str),
            ),
            panels(
                &of(keys / 10, "8 random bytes, in files"),
                "durable",
                "u64",
                &durable(),
            ),
            panels(
                &of(keys / 10, "4 to 128 characters, in files"),
                "durable",
                "str",
                &durable(),
            ),
        ]
        .concat(),
    )
}
