//! Panels of runs at one scale.

use super::{MOPS, Measure, Panel, Point, Scale, shown};
use crate::alloc;
use crate::figures::cell::Cell;
use crate::figures::svg::{Shape, short};
use wollemi::indexes::IndexKind;

/// Makes cells and points at one scale.
pub(super) struct Maker {
    pub(super) scale: Scale,
    pub(super) keys: usize,
    pub(super) cores: usize,
}

impl Maker {
    pub(super) fn threads(&self, wanted: usize) -> usize {
        wanted.min(self.cores)
    }

    pub(super) fn run(&self, index: IndexKind, workloads: &str, keys: usize, more: &str) -> Cell {
        let more = if more.is_empty() {
            String::new()
        } else {
            format!(" {more}")
        };
        Cell(format!(
            "run --index {index} --workload {workloads} --keys {keys}{more}"
        ))
    }

    /// A panel with a series for each index and a place for each workload, all workloads in one cell.
    pub(super) fn workloads(
        &self,
        title: &str,
        indexes: impl Iterator<Item = IndexKind>,
        workloads: &[&str],
        more: &str,
        unit: &'static str,
        measure: Measure,
    ) -> Panel {
        let points = indexes.flat_map(|index| {
            let cell = self.run(index, &workloads.join(","), self.keys, more);
            workloads
                .iter()
                .map(move |workload| point(index, workload, &cell, workload, measure))
                .collect::<Vec<_>>()
        });
        panel(title, Shape::Bars, "workload", unit, points)
    }

    /// Throughput of workloads that share a cell: those that scan in a panel of their own, for their other scale.
    pub(super) fn throughputs(
        &self,
        title: &str,
        indexes: impl Iterator<Item = IndexKind>,
        workloads: &[&str],
        more: &str,
    ) -> Vec<Panel> {
        let mut points = self.workloads(title, indexes, workloads, more, MOPS.0, MOPS.1);
        let scans = |point: &Point| point.place == "scan100" || point.place.ends_with("-e");
        let scanning = points
            .points
            .iter()
            .filter(|point| scans(point))
            .cloned()
            .collect();
        points.points.retain(|point| !scans(point));
        let scanning = Panel {
            title: format!("{title}: scans"),
            points: scanning,
            ..points
        };
        vec![points, scanning]
    }

    /// A panel of one workload over places, each with arguments of its own: numbers of keys, if it is not said what else
    /// they are ([`Panel::along`]).
    pub(super) fn over(
        &self,
        title: &str,
        shape: Shape,
        indexes: impl Iterator<Item = IndexKind>,
        workload: &str,
        places: &[(String, String)],
        (unit, measure): (&'static str, Measure),
    ) -> Panel {
        let points = indexes.flat_map(|index| {
            let point = |(place, more): &(String, String)| {
                let cell = Cell(format!(
                    "run --index {index} --workload {workload} {}",
                    more.trim_end()
                ));
                let pick = workload.rsplit(',').next().unwrap_or(workload);
                point(index, place, &cell, pick, measure)
            };
            places.iter().map(point).collect::<Vec<_>>()
        });
        panel(title, shape, "keys", unit, points)
    }

    /// The allocators that this machine has, by threads.
    pub(super) fn allocators(&self) -> Panel {
        let installed = &alloc::installed();
        let threads = [1, 2, 4, 8, 16]
            .into_iter()
            .filter(|threads| *threads <= self.cores);
        let point = |threads: usize, allocator: &str| Point {
            series: allocator.into(),
            place: threads.to_string(),
            cell: Cell(format!("alloc --chunks {} --threads {threads}", self.keys)),
            pick: vec![("allocator", allocator.into())],
            measure: Measure::Path(&["mops", "median"]),
        };
        let points = threads.flat_map(|threads| installed.iter().map(move |name| point(threads, name)));
        panel("by threads", Shape::Lines, "threads", "M chunks/s", points)
    }

    /// Openings after a kill and after a close, recovered by this many threads.
    pub(super) fn opening(&self, index: IndexKind, keys: usize, threads: usize) -> Cell {
        let more = match threads {
            1 => String::new(),
            threads => format!(" --recovery-threads {threads}"),
        };
        Cell(format!(
            "open --index {index} --keys {keys} --rounds 1 --pool {{pool}}{more}"
        ))
    }

    /// What an opening after a kill takes, of each index over its keys.
    pub(super) fn openings(&self, title: &str, field: &'static str) -> Panel {
        let of = |index: IndexKind| {
            self.parts()
                .map(|keys| self.killed(index.name(), index, keys, 1, Measure::Field(field)))
        };
        panel(title, Shape::Lines, "keys", "ms", shown().flat_map(of))
    }

    /// A series' point of an opening after a kill.
    fn killed(&self, series: &str, index: IndexKind, keys: usize, threads: usize, measure: Measure) -> Point {
        Point {
            series: series.into(),
            place: short(keys as f64),
            cell: self.opening(index, keys, threads),
            pick: vec![("after", "kill".into())],
            measure,
        }
    }

    /// The same when one thread recovers, and when two do.
    fn by_threads(&self, index: IndexKind, sizes: &[usize], measure: Measure) -> Vec<Point> {
        let threads = [(1, "1 thread"), (2, "2 threads")];
        let here = threads.into_iter().filter(|(threads, _)| *threads <= self.cores);
        here.flat_map(|(threads, series)| {
            let point = move |&keys| self.killed(series, index, keys, threads, measure);
            sizes.iter().map(point)
        })
        .collect()
    }

    /// What an opening after a kill takes when one thread recovers, and when two do.
    pub(super) fn recoveries(&self, index: IndexKind, title: &str, field: &'static str) -> Panel {
        let points = self.by_threads(index, &self.parts(), Measure::Field(field));
        panel(title, Shape::Lines, "keys", "ms", points.into_iter())
    }

    /// Calls from the first answer after a kill until recovery by one thread has ended, and by two.
    pub(super) fn calls_beside_recovery(&self, index: IndexKind, title: &str) -> Panel {
        let points = self.by_threads(index, &[self.keys], Measure::Longest);
        panel(
            title,
            Shape::Timeline,
            "time",
            "longest call, ms",
            points.into_iter(),
        )
    }

    /// Numbers of keys up to the scale's.
    fn parts(&self) -> [usize; 4] {
        [8, 4, 2, 1].map(|part| (self.keys / part).max(1))
    }

    /// The same as places.
    pub(super) fn sizes(&self, more: &str) -> Vec<(String, String)> {
        let place = |keys: usize| (short(keys as f64), format!("--keys {keys} {more}"));
        self.parts().map(place).into()
    }
}

fn panel(
    title: &str,
    shape: Shape,
    x: &'static str,
    unit: &'static str,
    points: impl Iterator<Item = Point>,
) -> Panel {
    Panel {
        title: title.into(),
        shape,
        x,
        unit,
        points: points.collect(),
        runs: 1,
    }
}

fn point(index: IndexKind, place: &str, cell: &Cell, workload: &str, measure: Measure) -> Point {
    Point {
        series: index.name().into(),
        place: place.into(),
        cell: cell.clone(),
        pick: vec![("workload", workload.into())],
        measure,
    }
}
