//! A plot with its numbers.

use crate::figures::cell::Kept;
use crate::figures::plan::{Panel, Point};
use crate::figures::ratio::{self, Of, Ratio, Row};
use crate::figures::sample::{Sample, Value, samples, timeline};
use crate::figures::svg::{self, Series, Shape};
use crate::latency::Timeline;
use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct DrawnPanel {
    pub title: String,
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
    pub fn new<'p>(panel: &'p Panel, kept: &'p Kept) -> DrawnPanel {
        let places = distinct(panel.points.iter().map(|point| &point.place));
        let names = distinct(panel.points.iter().map(|point| &point.series));
        let at = |name: &str, place: &str| -> Vec<Sample<'p>> {
            let mut points = panel.points.iter();
            let point = points.find(|point| point.series == name && point.place == place);
            point.map_or(Vec::new(), |point| samples(point, kept))
        };
        let mut series: Vec<Series> = names
            .iter()
            .map(|name| Series {
                name: (*name).clone(),
                values: places.iter().map(|place| Value::of(&at(name, place))).collect(),
            })
            .collect();
        let row = |place: &&'p String| Row {
            place,
            series: names
                .iter()
                .map(|name| (name.as_str(), at(name, place)))
                .collect(),
            cells: distinct(
                panel
                    .points
                    .iter()
                    .filter(|point| point.place == **place)
                    .map(|point| &point.cell),
            ),
        };
        let rows: Vec<Row<'_>> = places.iter().map(row).collect();
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
            unit: panel.unit,
            places: places.into_iter().cloned().collect(),
            series,
            ratios,
            timed: of != Of::Counts,
            promised: of != Of::Extremes,
            timelines,
            left_out,
            shape: panel.shape,
        }
    }

    /// As SVG.
    pub fn plot(&self) -> String {
        match self.shape {
            Shape::Timeline => svg::timelines(&self.timelines),
            Shape::Bars | Shape::Lines => svg::plot(self.shape, self.unit, &self.places, &self.series),
        }
    }
}

/// In the order of their first use.
fn distinct<'p, T: PartialEq>(all: impl Iterator<Item = &'p T>) -> Vec<&'p T> {
    let mut once: Vec<&T> = Vec::new();
    for one in all {
        if !once.contains(&one) {
            once.push(one);
        }
    }
    once
}
