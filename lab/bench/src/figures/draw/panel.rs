//! A plot with its numbers.

use crate::figures::cell::Kept;
use crate::figures::plan::{Panel, Point};
use crate::figures::ratio::{self, Of, Ratio, Row};
use crate::figures::sample::{Value, samples, timeline};
use crate::figures::svg::{self, Labels, Series, Shape};
use crate::latency::Timeline;
use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct DrawnPanel {
    pub title: String,
    /// What the places are.
    pub x: &'static str,
    pub unit: &'static str,
    pub places: Vec<String>,
    pub series: Vec<Series>,
    /// Of each series to the first one at each place, where all are of one measure and say something.
    pub ratios: Vec<Ratio>,
    /// Whether it shows times, or what is made of them; else it shows counts.
    pub timed: bool,
    /// Whether its ratios are to be found again by another measurement: those of the longest calls are not.
    pub promised: bool,
    /// What was done when, where that is what is plotted; of the first round.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timelines: Vec<NamedTimeline>,
    /// Why there is no plot, if there is none for a reason.
    pub left_out: Option<&'static str>,
    #[serde(skip)]
    shape: Shape,
}

/// A series' timeline.
#[derive(Debug, Serialize)]
pub struct NamedTimeline {
    pub name: String,
    pub timeline: Timeline,
}

impl DrawnPanel {
    /// With what the runs gave.
    pub fn new(panel: &Panel, kept: &Kept) -> DrawnPanel {
        let rows = rows(panel, kept, |point| &point.place, |point| &point.series);
        let names = rows.first().map_or(&[][..], |row| &row.series[..]);
        let values = |i: usize| rows.iter().map(|row| Value::of(&row.series[i].1)).collect();
        let mut series: Vec<Series> = (0..)
            .zip(names)
            .map(|(i, (name, _))| Series {
                name: (*name).to_owned(),
                values: values(i),
            })
            .collect();
        let of = panel.of();
        let ratios = match panel.is_of_one_measure() {
            true => ratio::ratios(&rows, of),
            false => Vec::new(),
        };
        let empty = series.iter().all(|one| one.values.iter().all(Option::is_none));
        let left_out = (empty && panel.points.iter().any(|point| point.measure.is_hardware()))
            .then_some("left out: this machine gives no counters");
        if left_out.is_some() {
            series.clear();
        }
        let named = |point: &Point| {
            let name = point.series.clone();
            timeline(point, kept).map(|timeline| NamedTimeline { name, timeline })
        };
        let timelines = match panel.shape {
            Shape::Timeline => panel.points.iter().filter_map(named).collect(),
            Shape::Bars | Shape::Lines => Vec::new(),
        };
        DrawnPanel {
            title: panel.title.clone(),
            x: panel.x,
            unit: panel.unit,
            places: rows.iter().map(|row| row.place.to_owned()).collect(),
            series,
            ratios,
            timed: of != Of::Counts,
            promised: of != Of::Extremes,
            timelines,
            left_out,
            shape: panel.shape,
        }
    }

    /// As SVG, to stand on a page that says what it is, or alone, with its figure's title.
    pub fn plot(&self, alone: Option<&str>) -> String {
        let labels = Labels {
            title: &self.title,
            heading: alone.map(|figure| (figure, &*self.title)),
            x: self.x,
            y: self.unit,
        };
        match self.shape {
            Shape::Timeline => svg::timelines(&labels, &self.timelines),
            Shape::Bars | Shape::Lines => svg::plot(self.shape, &labels, &self.places, &self.series),
        }
    }
}

/// A panel's numbers, in rows and columns in the order of their first use.
pub fn rows<'p>(
    panel: &'p Panel,
    kept: &'p Kept,
    row: fn(&Point) -> &str,
    column: fn(&Point) -> &str,
) -> Vec<Row<'p>> {
    let columns = distinct(panel.points.iter().map(column));
    let of = |name: &'p str| {
        let here = || panel.points.iter().filter(move |point| row(point) == name);
        let at = |of: &&'p str| {
            let point = here().find(|point| column(point) == *of);
            (*of, point.map_or(Vec::new(), |point| samples(point, kept)))
        };
        Row {
            place: name,
            series: columns.iter().map(at).collect(),
            cells: distinct(here().map(|point| &point.cell)),
        }
    };
    distinct(panel.points.iter().map(row))
        .into_iter()
        .map(of)
        .collect()
}

/// In the order of their first use.
fn distinct<'p, T: PartialEq + ?Sized>(all: impl Iterator<Item = &'p T>) -> Vec<&'p T> {
    let mut once: Vec<&T> = Vec::new();
    for one in all {
        if !once.contains(&one) {
            once.push(one);
        }
    }
    once
}
