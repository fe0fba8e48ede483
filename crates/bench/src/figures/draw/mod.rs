//! A figure with the numbers that its runs gave.

use super::build::Build;
use super::cell::{Kept, Outcome};
use super::plan::{Figure, Measure, Panel, Point};
use super::svg::{self, Series, Shape};
use crate::summary::Summary;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// A figure with its numbers.
#[derive(Debug, Serialize)]
pub struct Drawn {
    pub id: &'static str,
    pub title: &'static str,
    pub paper: &'static str,
    pub differs: &'static str,
    pub panels: Vec<DrawnPanel>,
    pub claims: Vec<DrawnClaim>,
    /// Rounds of the run that has fewest, and of the one that has most.
    pub rounds: (usize, usize),
    /// When and with what they were run.
    pub builds: BTreeSet<Build>,
    /// Runs that gave nothing, and why.
    pub failed: Vec<(String, String)>,
    /// The command lines behind it.
    pub cells: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct DrawnPanel {
    pub title: String,
    pub unit: &'static str,
    pub places: Vec<String>,
    pub series: Vec<DrawnSeries>,
    /// Why there is no plot, if there is none for a reason.
    pub left_out: Option<&'static str>,
    #[serde(skip)]
    shape: Shape,
}

#[derive(Debug, Serialize)]
pub struct DrawnSeries {
    pub name: String,
    pub values: Vec<Option<Summary>>,
}

/// A paper's number beside ours.
#[derive(Debug, Serialize)]
pub struct DrawnClaim {
    pub what: String,
    pub paper: f64,
    pub ours: Option<Summary>,
    /// Why the paper's lies outside of ours, spread and a tenth more considered, if it does.
    pub differs: Option<&'static str>,
}

/// Places and series in the order of their first use, and what the runs gave for them.
pub fn draw(figure: Figure, kept: &Kept) -> Drawn {
    let (mut failed, mut cells) = (Vec::new(), Vec::new());
    let (mut least, mut most, mut builds) = (usize::MAX, 0, BTreeSet::new());
    for point in figure.panels.iter().flat_map(|panel| &panel.points) {
        let command = &point.cell.0;
        if cells.contains(command) {
            continue;
        }
        cells.push(command.clone());
        let rounds = kept.outcomes(&point.cell).count();
        (least, most) = (least.min(rounds), most.max(rounds));
        builds.extend(kept.builds(&point.cell).cloned());
        for outcome in kept.outcomes(&point.cell) {
            if let Outcome::Failed(why) = outcome {
                failed.push((command.clone(), why.clone()));
                break;
            }
        }
    }
    let rounds_of = |panel: usize, place: &str, series: &str| -> Vec<f64> {
        let points = figure.panels.get(panel).map_or(&[][..], |panel| &panel.points);
        let point = points
            .iter()
            .find(|point| point.place == place && point.series == series);
        point.map_or(Vec::new(), |point| values(point, kept))
    };
    let claims = figure.claims.iter().map(|claim| {
        let over = rounds_of(claim.panel, &claim.place, claim.over);
        let panel = figure.panels.get(claim.panel).map_or("", |panel| &panel.title);
        let (ours, to) = match claim.under {
            Some(under) => {
                let rounds = rounds_of(claim.panel, &claim.place, under);
                let ratios = over.iter().zip(&rounds).map(|(over, under)| over / under);
                (Summary::of(ratios), format!(" to {under}"))
            }
            None => (Summary::of(over), String::new()),
        };
        let what = format!("{panel}, {}: {}{to}", claim.place, claim.over);
        let differs = ours.is_some_and(|ours| !(ours.least * 0.9..=ours.most * 1.1).contains(&claim.paper));
        let differs = differs.then_some(claim.why);
        DrawnClaim {
            what,
            paper: claim.paper,
            ours,
            differs,
        }
    });
    Drawn {
        id: figure.id,
        title: figure.title,
        paper: figure.paper,
        differs: figure.differs,
        claims: claims.collect(),
        panels: figure
            .panels
            .iter()
            .map(|panel| draw_panel(panel, kept))
            .collect(),
        rounds: (least.min(most), most),
        builds,
        failed,
        cells,
    }
}

fn draw_panel(panel: &Panel, kept: &Kept) -> DrawnPanel {
    let mut places: Vec<String> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for point in &panel.points {
        if !places.contains(&point.place) {
            places.push(point.place.clone());
        }
        if !names.contains(&point.series) {
            names.push(point.series.clone());
        }
    }
    let value = |name: &str, place: &str| {
        let point = panel
            .points
            .iter()
            .find(|point| point.series == name && point.place == place)?;
        Summary::of(values(point, kept))
    };
    let series = names.into_iter().map(|name| DrawnSeries {
        values: places.iter().map(|place| value(&name, place)).collect(),
        name,
    });
    let mut series: Vec<DrawnSeries> = series.collect();
    let empty = series.iter().all(|one| one.values.iter().all(Option::is_none));
    let left_out = (empty && panel.points.iter().any(|point| point.measure.is_hardware()))
        .then_some("left out: this machine gives no counters");
    if left_out.is_some() {
        series.clear();
    }
    DrawnPanel {
        title: panel.title.clone(),
        unit: panel.unit,
        series,
        places,
        left_out,
        shape: panel.shape,
    }
}

/// A point's value in each round.
fn values(point: &Point, kept: &Kept) -> Vec<f64> {
    let picked = |object: &&Value| {
        let mut fields = point.pick.iter();
        fields.all(|(field, wanted)| object[*field] == wanted.as_str())
    };
    let of = |outcome: &Outcome| match outcome {
        Outcome::Printed(objects) => objects
            .iter()
            .find(picked)
            .and_then(|object| value(object, point.measure)),
        Outcome::Failed(_) => None,
    };
    kept.outcomes(&point.cell).filter_map(of).collect()
}

fn value(object: &Value, measure: Measure) -> Option<f64> {
    match measure {
        Measure::Mops => object["mops"].as_f64(),
        Measure::MicrosPerOp => Some(object["seconds"].as_f64()? * 1e6 / object["ops"].as_f64()?),
        Measure::Field(field) => object[field].as_f64(),
        Measure::Path(path) => path.iter().fold(object, |object, field| &object[*field]).as_f64(),
        Measure::Micros(field) => Some(object[field].as_f64()? / 1e3),
    }
}

impl DrawnPanel {
    /// As SVG.
    pub fn plot(&self) -> String {
        let series: Vec<Series> = self
            .series
            .iter()
            .map(|one| Series {
                name: one.name.clone(),
                values: one.values.clone(),
            })
            .collect();
        svg::plot(self.shape, self.unit, &self.places, &series)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers are found where the runs put them.
    #[test]
    fn measures() {
        let object = serde_json::json!({
            "mops": 2.0, "seconds": 3.0, "ops": 1_000_000, "p99_ns": 1500, "persists_per_op": {"log": {"fences": 0.5}}
        });
        assert_eq!(value(&object, Measure::Mops), Some(2.0));
        assert_eq!(value(&object, Measure::MicrosPerOp), Some(3.0));
        assert_eq!(value(&object, Measure::Micros("p99_ns")), Some(1.5));
        assert_eq!(
            value(&object, Measure::Path(&["persists_per_op", "log", "fences"])),
            Some(0.5)
        );
        assert_eq!(value(&object, Measure::Field("nothing")), None);
    }

    /// What differs from the paper by more than a tenth says why, ratios and values alike; a panel of counters that no run
    /// had is left out; a figure says in how many rounds and with what it was measured.
    #[test]
    fn figures_say_what_differs_and_what_is_left_out() {
        use super::super::cell::Cell;
        use super::super::plan::Claim;
        let directory = tempfile::tempdir().unwrap();
        let mut kept = Kept::open(&directory.path().join("cells")).unwrap();
        let build = Build {
            date: "2026-11-22".into(),
            commit: "x".into(),
        };
        for (name, rounds) in [("a", [2.0, 2.0]), ("b", [1.0, 1.0])] {
            for (round, mops) in (1..).zip(rounds) {
                let object = serde_json::json!({ "mops": mops, "hardware_per_op": null });
                let outcome = Outcome::Printed(vec![object]);
                kept.keep(Cell(name.into()), round, build.clone(), outcome)
                    .unwrap();
            }
        }
        let panel = |measure| Panel {
            title: "panel".into(),
            shape: Shape::Bars,
            unit: "",
            points: ["a", "b"]
                .map(|name| Point {
                    series: name.into(),
                    place: "place".into(),
                    cell: Cell(name.into()),
                    pick: vec![],
                    measure,
                })
                .into(),
        };
        let claim = |under, paper| Claim {
            panel: 0,
            place: "place".into(),
            over: "a",
            under,
            paper,
            why: "why",
        };
        let drawn = draw(
            Figure {
                id: "id",
                title: "title",
                paper: "",
                panels: vec![
                    panel(Measure::Mops),
                    panel(Measure::Path(&["hardware_per_op", "cycles"])),
                ],
                claims: vec![
                    claim(None, 2.1),
                    claim(None, 3.0),
                    claim(Some("b"), 2.0),
                    claim(Some("b"), 1.0),
                ],
                differs: "",
            },
            &kept,
        );
        let differs: Vec<_> = drawn.claims.iter().map(|claim| claim.differs).collect();
        assert_eq!(differs, [None, Some("why"), None, Some("why")]);
        assert_eq!((drawn.rounds, drawn.builds), ((2, 2), BTreeSet::from([build])));
        assert!(drawn.panels[0].left_out.is_none() && drawn.panels[0].series.len() == 2);
        assert!(drawn.panels[1].left_out.is_some() && drawn.panels[1].series.is_empty());
    }
}
