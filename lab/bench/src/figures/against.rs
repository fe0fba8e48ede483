//! One whole measurement held against another: whether it finds the ratios within the spread that the first one states.

use super::draw::{Drawn, DrawnPanel};
use super::ratio::{Interval, NOMINAL, Ratio};
use crate::table;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What came of it.
#[derive(Debug, Serialize)]
pub struct Against {
    /// The first measurement's directory.
    pub first: PathBuf,
    /// The share of the ratios that is to lie within what was stated.
    pub nominal: f64,
    /// The share that does; none if nothing could be held against anything.
    pub share: Option<f64>,
    /// How many do, of how many ratios of times.
    pub met: usize,
    pub of: usize,
    /// The same of ratios of counts, most of which are as they were.
    pub counts_met: usize,
    pub counts_of: usize,
    /// The same of those of times in whose runs the memory kept its pace.
    pub met_undrifted: usize,
    pub of_undrifted: usize,
    /// How far what was stated goes to either side: the middle one.
    pub half_width: Option<f64>,
    /// Ratios of which the first measurement states no spread, for it has but one round of their panel.
    pub unstated: usize,
    /// Ratios that only one of the two has.
    pub missing: usize,
    pub ratios: Vec<Held>,
}

/// A ratio in both.
#[derive(Debug, Serialize)]
pub struct Held {
    pub figure: &'static str,
    pub panel: String,
    pub place: String,
    pub over: String,
    pub under: String,
    pub first: f64,
    /// Within which the first lets as many rounds as the second has find it.
    pub stated: Interval,
    pub second: f64,
    pub met: bool,
    /// Whether it is of times, not of counts.
    pub timed: bool,
    /// Whether the calibration of a run behind either drifted.
    pub drifted: bool,
}

/// Holds the second against the first.
pub fn hold(directory: &Path, first: &[Drawn], second: &[Drawn]) -> Against {
    let (mut ratios, mut unstated, mut missing) = (Vec::new(), 0, 0);
    for (figure, panel, ratio) in all(second) {
        let same = all(first).find(|(id, other, first)| {
            *id == figure
                && other.title == panel.title
                && (&first.place, &first.over, &first.under) == (&ratio.place, &ratio.over, &ratio.under)
        });
        let Some((.., first)) = same else {
            missing += 1;
            continue;
        };
        let Some(stated) = first.interval(ratio.rounds) else {
            unstated += 1;
            continue;
        };
        ratios.push(Held {
            figure,
            panel: panel.title.clone(),
            place: ratio.place.clone(),
            over: ratio.over.clone(),
            under: ratio.under.clone(),
            first: first.ratio,
            stated,
            second: ratio.ratio,
            met: stated.contains(ratio.ratio),
            timed: panel.timed,
            drifted: first.drifted + ratio.drifted > 0,
        });
    }
    missing += all(first).count() - ratios.len() - unstated;
    let count = |wanted: &dyn Fn(&Held) -> bool| ratios.iter().filter(|held| wanted(held)).count();
    let (met, of) = (count(&|held| held.timed && held.met), count(&|held| held.timed));
    let timed = ratios.iter().filter(|held| held.timed);
    let mut widths: Vec<f64> = timed.map(|held| held.stated.half_width()).collect();
    widths.sort_by(f64::total_cmp);
    Against {
        first: directory.to_owned(),
        nominal: NOMINAL,
        share: (of > 0).then(|| met as f64 / of as f64),
        met,
        of,
        counts_met: count(&|held| !held.timed && held.met),
        counts_of: count(&|held| !held.timed),
        met_undrifted: count(&|held| held.timed && held.met && !held.drifted),
        of_undrifted: count(&|held| held.timed && !held.drifted),
        half_width: widths.get(of / 2).copied(),
        unstated,
        missing,
        ratios,
    }
}

/// Those that are to be found again.
fn all(figures: &[Drawn]) -> impl Iterator<Item = (&'static str, &DrawnPanel, &Ratio)> {
    let panels = figures
        .iter()
        .flat_map(|figure| figure.panels.iter().map(|panel| (figure.id, panel)))
        .filter(|(_, panel)| panel.promised);
    panels.flat_map(|(id, panel)| panel.ratios.iter().map(move |ratio| (id, panel, ratio)))
}

impl Against {
    /// In words.
    pub fn verdict(&self) -> String {
        let percent = |met: usize, of: usize| match of {
            0 => String::new(),
            _ => format!(" ({:.1}%)", met as f64 / of as f64 * 100.0),
        };
        let Against {
            met,
            of,
            counts_met,
            counts_of,
            met_undrifted,
            of_undrifted,
            unstated,
            missing,
            ..
        } = self;
        let width = self.half_width.map_or(String::new(), |width| {
            format!(" (half of the spreads are narrower than ±{:.1}%)", width * 100.0)
        });
        format!(
            "{met} of {of} ratios of times{} lie within the spread stated before, which {:.0}% are to{width}; \
             {met_undrifted} of {of_undrifted}{} where no calibration drifted; {counts_met} of {counts_of} ratios of counts; \
             {unstated} without a stated spread, {missing} in one measurement only",
            percent(*met, *of),
            self.nominal * 100.0,
            percent(*met_undrifted, *of_undrifted),
        )
    }

    /// Those that lie outside.
    pub fn outside(&self) -> impl Iterator<Item = &Held> {
        self.ratios.iter().filter(|held| !held.met)
    }
}

impl std::fmt::Display for Against {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rows: Vec<Vec<String>> = self
            .outside()
            .map(|held| {
                vec![
                    format!("{} {}, {}", held.figure, held.panel, held.place),
                    format!("{} to {}", held.over, held.under),
                    format!("{:.3}", held.first),
                    format!("{:.3}-{:.3}", held.stated.low, held.stated.high),
                    format!("{:.3}", held.second),
                    if held.drifted { "DRIFTED" } else { "" }.to_owned(),
                ]
            })
            .collect();
        if !rows.is_empty() {
            let header = ["outside", "ratio", "before", "stated", "now", ""];
            writeln!(f, "{}", table::render(&header, &rows))?;
        }
        f.write_str(&self.verdict())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::build::Build;
    use crate::figures::cell::{Cell, Kept, Outcome};
    use crate::figures::draw::draw;
    use crate::figures::plan::{Figure, Measure, Panel, Point};
    use crate::figures::svg::Shape;

    /// A figure of `b` to `a` at two places, and the same of their longest calls, and of either beside another measure.
    fn figure() -> Figure {
        let panel = |title: &str, measures: [Measure; 2]| {
            let points = ["x", "y"].map(|place| {
                [("a", measures[0]), ("b", measures[1])].map(|(series, measure)| Point {
                    series: series.into(),
                    place: place.into(),
                    cell: Cell(format!("{series}{place}")),
                    pick: vec![],
                    measure,
                })
            });
            Panel {
                title: title.into(),
                shape: Shape::Bars,
                x: "",
                unit: "",
                points: points.concat(),
                runs: 1,
            }
        };
        Figure {
            id: "id",
            title: "",
            ours: false,
            paper: "",
            panels: vec![
                panel("panel", [Measure::Mops; 2]),
                panel("longest", [Measure::Micros("p999_ns"); 2]),
                panel("mixed", [Measure::Mops, Measure::Micros("p999_ns")]),
            ],
            claims: vec![],
            differs: "",
        }
    }

    /// Measured with these speeds of `b` at either place in each round; `a` has 1.
    fn measured(rounds: &[[f64; 2]]) -> Vec<Drawn> {
        let directory = tempfile::tempdir().unwrap();
        let mut kept = Kept::open(&directory.path().join("cells")).unwrap();
        for (round, [x, y]) in (1..).zip(rounds) {
            for (cell, mops) in [("ax", 1.0), ("ay", 1.0), ("bx", *x), ("by", *y)] {
                let outcome =
                    Outcome::Printed(vec![serde_json::json!({ "mops": mops, "p999_ns": mops * 1e3 })]);
                let build = Build {
                    date: String::new(),
                    commit: String::new(),
                };
                kept.keep(Cell(cell.into()), round, build, outcome).unwrap();
            }
        }
        vec![draw(&figure(), &kept)]
    }

    /// A second run meets what the first one states, or is said not to; a single round states nothing. Of longest calls
    /// ratios are shown and not held, and of different measures there are none.
    #[test]
    fn ratios_are_held_against_what_was_stated() {
        let first = measured(&[[2.0, 4.0], [2.02, 3.98]]);
        let shown = first[0].panels.iter().map(|panel| panel.ratios.len());
        assert_eq!(shown.collect::<Vec<_>>(), [2, 2, 0]);
        let against = hold(Path::new("a"), &first, &measured(&[[2.01, 4.0], [2.0, 8.0]]));
        assert_eq!((against.met, against.of, against.share), (1, 2, Some(0.5)));
        let outside: Vec<&Held> = against.outside().collect();
        assert_eq!((outside.len(), &*outside[0].place), (1, "y"));
        assert!(against.to_string().contains("1 of 2 ratios of times (50.0%)"));
        let against = hold(Path::new("a"), &measured(&[[2.0, 4.0]]), &first);
        assert_eq!((against.of, against.unstated, against.share), (0, 2, None));
        let against = hold(Path::new("a"), &first, &measured(&[]));
        assert_eq!((against.of, against.missing), (0, 2));
    }
}
