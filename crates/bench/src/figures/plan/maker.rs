//! Panels of runs at one scale.

use super::{MOPS, Measure, Panel, Point};
use crate::figures::cell::Cell;
use crate::figures::svg::Shape;
use indexes::IndexKind;

/// Makes cells and points at one scale.
pub(super) struct Maker {
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
        panel(title, Shape::Bars, unit, points)
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

    /// A panel of one workload over places, each with arguments of its own.
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
        panel(title, shape, unit, points)
    }

    /// The allocators, by threads.
    pub(super) fn allocators(&self) -> Panel {
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
        let points =
            threads.flat_map(|threads| ["dcmm", "libpmemobj", "malloc"].map(|name| point(threads, name)));
        panel("by threads", Shape::Lines, "M chunks/s", points)
    }

    /// An opening after a kill, recovered by so many threads.
    fn recovery(&self, index: IndexKind, keys: usize, threads: usize) -> Cell {
        let more = match threads {
            1 => String::new(),
            threads => format!(" --recovery-threads {threads}"),
        };
        Cell(format!(
            "open --index {index} --keys {keys} --rounds 1 --pool {{pool}}{more}"
        ))
    }

    fn recovery_points(&self, index: IndexKind, parts: &[usize], measure: Measure) -> Vec<Point> {
        let threads = [1, 2].into_iter().filter(|threads| *threads <= self.cores);
        let point = |threads: usize, part: usize| {
            let keys = (self.keys / part).max(1);
            Point {
                series: if threads == 1 {
                    "1 thread".into()
                } else {
                    format!("{threads} threads")
                },
                place: crate::figures::svg::short(keys as f64),
                cell: self.recovery(index, keys, threads),
                pick: vec![("after", "kill".into())],
                measure,
            }
        };
        threads
            .flat_map(|threads| parts.iter().map(move |&part| point(threads, part)))
            .collect()
    }

    /// What an opening after a kill takes when one thread recovers, and when two do.
    pub(super) fn recoveries(&self, index: IndexKind, title: &str, field: &'static str) -> Panel {
        let points = self.recovery_points(index, &[8, 4, 2, 1], Measure::Field(field));
        panel(title, Shape::Lines, "ms", points.into_iter())
    }

    /// Calls from the first answer after a kill until recovery by one thread has ended, and by two.
    pub(super) fn calls_beside_recovery(&self, index: IndexKind, title: &str) -> Panel {
        let points = self.recovery_points(index, &[1], Measure::Longest);
        panel(title, Shape::Timeline, "longest call, ms", points.into_iter())
    }

    /// Numbers of keys up to the scale's, as places.
    pub(super) fn sizes(&self, more: &str) -> Vec<(String, String)> {
        let sizes = [8, 4, 2, 1].map(|part| (self.keys / part).max(1));
        sizes
            .iter()
            .map(|keys| {
                (
                    crate::figures::svg::short(*keys as f64),
                    format!("--keys {keys} {more}"),
                )
            })
            .collect()
    }
}

fn panel(title: &str, shape: Shape, unit: &'static str, points: impl Iterator<Item = Point>) -> Panel {
    Panel {
        title: title.into(),
        shape,
        unit,
        points: points.collect(),
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
