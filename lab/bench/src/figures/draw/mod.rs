//! A figure with the numbers that its runs gave.

mod claim;
mod panel;

pub use claim::{DrawnClaim, Ours, Verdict};
pub use panel::{DrawnPanel, NamedTimeline};

use super::build::Build;
use super::cell::{Kept, Outcome};
use super::plan::{Claim, Figure};
use super::sample;
use crate::limit::{Misses, Pace};
use crate::summary::Summary;
use serde::Serialize;
use std::collections::BTreeSet;

/// A figure with its numbers.
#[derive(Debug, Serialize)]
pub struct Drawn {
    pub id: &'static str,
    pub title: &'static str,
    /// Whether no paper plots it: then `paper` says what it shows, and `differs` how it was measured.
    pub ours: bool,
    pub paper: &'static str,
    pub differs: &'static str,
    pub panels: Vec<DrawnPanel>,
    /// But for those of panels that are left out.
    pub claims: Vec<DrawnClaim>,
    /// Rounds, failures apart, of the run that has fewest, and of the one that has most.
    pub rounds: (usize, usize),
    /// When and with what they were run.
    pub builds: BTreeSet<Build>,
    pub calibration: Calibration,
    /// Runs that gave nothing, and why.
    pub failed: Vec<(String, String)>,
    /// The command lines behind it.
    pub cells: Vec<String>,
}

/// What misses took around a figure's runs.
#[derive(Debug, Default, Serialize)]
pub struct Calibration {
    /// Runs, each round's for itself.
    pub runs: usize,
    /// Of these, how many were calibrated.
    pub calibrated: usize,
    /// And in how many that changed meanwhile.
    pub drifted: usize,
    pub dependent_ns: Option<Summary>,
    pub parallel_ns: Option<Summary>,
}

/// Places and series in the order of their first use, and what the runs gave for them.
pub fn draw(figure: &Figure, kept: &Kept) -> Drawn {
    let mut cells = Vec::new();
    for point in figure.panels.iter().flat_map(|panel| &panel.points) {
        if !cells.contains(&point.cell) {
            cells.push(point.cell.clone());
        }
    }
    let printed = |outcome: &&Outcome| matches!(outcome, Outcome::Printed(_));
    let rounds = || {
        cells
            .iter()
            .map(|cell| kept.outcomes(cell).filter(printed).count())
    };
    let why = |outcome: &Outcome| match outcome {
        Outcome::Failed(why) => Some(why.clone()),
        Outcome::Printed(_) => None,
    };
    let failed = |cell| Some((cell, kept.outcomes(cell).find_map(why)?));
    let panels: Vec<DrawnPanel> = figure
        .panels
        .iter()
        .map(|panel| DrawnPanel::new(panel, kept))
        .collect();
    let draw_claim = |claim: &Claim| {
        let shown = panels.get(claim.panel)?.left_out.is_none();
        shown.then(|| DrawnClaim::new(claim, &figure.panels[claim.panel], kept))
    };
    Drawn {
        id: figure.id,
        title: figure.title,
        ours: figure.ours,
        paper: figure.paper,
        differs: figure.differs,
        claims: figure.claims.iter().filter_map(draw_claim).collect(),
        panels,
        rounds: (rounds().min().unwrap_or(0), rounds().max().unwrap_or(0)),
        builds: cells.iter().flat_map(|cell| kept.builds(cell).cloned()).collect(),
        calibration: Calibration::of(cells.iter().flat_map(|cell| kept.outcomes(cell))),
        failed: cells
            .iter()
            .filter_map(failed)
            .map(|(cell, why)| (cell.0.clone(), why))
            .collect(),
        cells: cells.into_iter().map(|cell| cell.0).collect(),
    }
}

impl Calibration {
    fn of<'o>(outcomes: impl Iterator<Item = &'o Outcome>) -> Calibration {
        let (mut calibration, mut all) = (Calibration::default(), Vec::new());
        for outcome in outcomes {
            let Outcome::Printed(objects) = outcome else {
                continue;
            };
            let paces: Vec<Pace> = objects.iter().flat_map(sample::paces).collect();
            calibration.runs += 1;
            calibration.calibrated += usize::from(!paces.is_empty());
            calibration.drifted += usize::from(paces.iter().any(|pace| pace.drifted));
            all.extend(paces.iter().map(Pace::mean));
        }
        let summary = |of: fn(&Misses) -> f64| Summary::of(all.iter().map(of));
        calibration.dependent_ns = summary(|misses| misses.dependent_ns);
        calibration.parallel_ns = summary(|misses| misses.parallel_ns);
        calibration
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::cell::Cell;
    use crate::figures::plan::{Measure, Panel, Point};
    use crate::figures::svg::Shape;

    /// A panel of counters that no run had is left out, and what the paper says of it; a figure says in how many rounds
    /// and with what it was measured, and where the memory's pace drifted.
    #[test]
    fn figures_say_what_differs_and_what_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let mut kept = Kept::open(&directory.path().join("cells")).unwrap();
        let build = Build {
            date: "2026-11-22".into(),
            commit: "x".into(),
        };
        for (name, rounds) in [("a", [2.0, 2.0]), ("b", [1.0, 1.0])] {
            for (round, mops) in (1..).zip(rounds) {
                let misses = |ns| serde_json::json!({ "dependent_ns": ns, "parallel_ns": 10.0 });
                let after = if (name, round) == ("b", 2) { 120.0 } else { 100.0 };
                let pace = serde_json::json!({
                    "footprint": 64, "before": misses(100.0), "after": misses(after), "drifted": after > 110.0
                });
                let object = serde_json::json!({ "mops": mops, "hardware_per_op": null, "pace": pace });
                let outcome = Outcome::Printed(vec![object]);
                kept.keep(Cell(name.into()), round, build.clone(), outcome)
                    .unwrap();
            }
        }
        let panel = |measure| Panel {
            title: "panel".into(),
            shape: Shape::Bars,
            x: "",
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
            runs: 1,
        };
        let drawn = draw(
            &Figure {
                id: "id",
                title: "title",
                ours: false,
                paper: "",
                panels: vec![
                    panel(Measure::Mops),
                    panel(Measure::Path(&["hardware_per_op", "cycles"])),
                ],
                claims: vec![
                    Claim::of(0, "place", "a", Some(("b", "place")), "2"),
                    Claim::of(1, "place", "a", None, "2"),
                ],
                differs: "",
            },
            &kept,
        );
        let verdicts: Vec<_> = drawn.claims.iter().map(|claim| claim.verdict).collect();
        assert_eq!(verdicts, [Some(Verdict::Agrees)]);
        assert_eq!((drawn.rounds, drawn.builds), ((2, 2), BTreeSet::from([build])));
        assert!(drawn.panels[0].left_out.is_none() && drawn.panels[0].series.len() == 2);
        let calibration = &drawn.calibration;
        assert_eq!(
            (calibration.runs, calibration.calibrated, calibration.drifted),
            (4, 4, 1)
        );
        assert_eq!(
            calibration.dependent_ns.map(|ns| (ns.least, ns.most)),
            Some((100.0, 110.0))
        );
        let drifted = |series: &crate::figures::svg::Series| series.values[0].map(|value| value.drifted);
        assert!(drawn.panels[0].series.iter().map(drifted).eq([Some(0), Some(1)]));
        let [ratio] = &drawn.panels[0].ratios[..] else {
            panic!("{:?}", drawn.panels[0].ratios)
        };
        assert_eq!(
            (&*ratio.over, &*ratio.under, ratio.ratio, ratio.drifted),
            ("b", "a", 0.5, 1)
        );
        assert!(drawn.panels[1].left_out.is_some() && drawn.panels[1].series.is_empty());
    }
}
