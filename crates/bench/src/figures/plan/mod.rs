//! What the papers plot, as runs of ours: which cells, which of their numbers, and what the paper says beside them.
//!
//! Indexes come from the list of indexes: a figure shows all that are no ablations, and the ablations where they are
//! what the figure is about.

mod dptree;
mod ours;
mod recipe;
mod roart;
mod wort;

use super::cell::Cell;
use super::svg::Shape;
use indexes::IndexKind;

/// How large runs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// A look at every figure within minutes; its times mean little.
    Smoke,
    /// A million keys.
    Laptop,
    /// As many keys as the papers had, or nearly; needs tens of gigabytes and hours.
    Paper,
}

impl Scale {
    pub fn keys(self) -> usize {
        match self {
            Scale::Smoke => 20_000,
            Scale::Laptop => 1_000_000,
            Scale::Paper => 30_000_000,
        }
    }

    /// The rounds, when nothing is said.
    pub fn rounds(self) -> usize {
        match self {
            Scale::Smoke => 1,
            Scale::Laptop | Scale::Paper => 3,
        }
    }
}

/// Which number of a cell's output a point shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Millions of operations a second.
    Mops,
    /// Microseconds an operation, of all threads.
    MicrosPerOp,
    /// A field of the output, as it is.
    Field(&'static str),
    /// A field within a field, and so on.
    Path(&'static [&'static str]),
    /// A field in nanoseconds, in microseconds.
    Micros(&'static str),
}

impl Measure {
    /// Whether it is of the processor's counters, which not every machine gives.
    pub fn is_hardware(self) -> bool {
        matches!(self, Measure::Path(["hardware_per_op", ..]))
    }
}

/// A point of a figure.
#[derive(Clone, Debug)]
pub struct Point {
    pub series: String,
    pub place: String,
    pub cell: Cell,
    /// Which of the objects that the cell prints: the one with these values in these fields.
    pub pick: Vec<(&'static str, String)>,
    pub measure: Measure,
}

/// One plot.
#[derive(Clone, Debug)]
pub struct Panel {
    pub title: String,
    pub shape: Shape,
    pub unit: &'static str,
    pub points: Vec<Point>,
}

/// What a paper gives in numbers: a series at a place of a panel, or its ratio to another.
#[derive(Clone, Debug)]
pub struct Claim {
    pub panel: usize,
    pub place: String,
    pub over: &'static str,
    /// The other series; none for the value itself.
    pub under: Option<&'static str>,
    /// What the paper has.
    pub paper: f64,
    /// Why ours is another where it is.
    pub why: &'static str,
}

/// A figure of a paper.
#[derive(Clone, Debug)]
pub struct Figure {
    pub id: &'static str,
    pub title: &'static str,
    /// What the paper ran and found, in short.
    pub paper: &'static str,
    pub panels: Vec<Panel>,
    pub claims: Vec<Claim>,
    /// Why ours may differ.
    pub differs: &'static str,
}

/// The indexes that are shown everywhere.
fn shown() -> impl Iterator<Item = IndexKind> {
    IndexKind::ALL
        .iter()
        .copied()
        .filter(|index| !index.is_ablation())
}

/// Makes cells and points at one scale.
struct Maker {
    keys: usize,
    cores: usize,
}

impl Maker {
    fn threads(&self, wanted: usize) -> usize {
        wanted.min(self.cores)
    }

    fn run(&self, index: IndexKind, workloads: &str, keys: usize, more: &str) -> Cell {
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
    fn workloads(
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
        let points = points.collect();
        Panel {
            title: title.into(),
            shape: Shape::Bars,
            unit,
            points,
        }
    }

    /// Throughput of workloads that share a cell: those that scan in a panel of their own, for their other scale.
    fn throughputs(
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
    fn over(
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
        let points = points.collect();
        Panel {
            title: title.into(),
            shape,
            unit,
            points,
        }
    }

    /// The allocators, by threads.
    fn allocators(&self) -> Panel {
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
        Panel {
            title: "by threads".into(),
            shape: Shape::Lines,
            unit: "M chunks/s",
            points: threads
                .flat_map(|threads| ["dcmm", "libpmemobj", "malloc"].map(|name| point(threads, name)))
                .collect(),
        }
    }

    /// Numbers of keys up to the scale's, as places.
    fn sizes(&self, more: &str) -> Vec<(String, String)> {
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

fn point(index: IndexKind, place: &str, cell: &Cell, workload: &str, measure: Measure) -> Point {
    Point {
        series: index.name().into(),
        place: place.into(),
        cell: cell.clone(),
        pick: vec![("workload", workload.into())],
        measure,
    }
}

/// A ratio that a paper gives.
fn ratio(
    panel: usize,
    place: &str,
    (over, under): (&'static str, &'static str),
    paper: f64,
    why: &'static str,
) -> Claim {
    Claim {
        under: Some(under),
        ..value(panel, place, over, paper, why)
    }
}

/// A value that a paper gives.
fn value(panel: usize, place: &str, of: &'static str, paper: f64, why: &'static str) -> Claim {
    Claim {
        panel,
        place: place.into(),
        over: of,
        under: None,
        paper,
        why,
    }
}

fn chain(mut panels: Vec<Panel>, more: impl IntoIterator<Item = Panel>) -> Vec<Panel> {
    panels.extend(more);
    panels
}

const MOPS: (&str, Measure) = ("Mops/s", Measure::Mops);
const MICROS: (&str, Measure) = ("µs an operation", Measure::MicrosPerOp);

/// All figures at this scale, on so many cores.
pub fn figures(scale: Scale, cores: usize) -> Vec<Figure> {
    let maker = Maker {
        keys: scale.keys(),
        cores,
    };
    let mut figures = ours::figures(&maker);
    figures.extend(roart::figures(&maker));
    figures.extend(recipe::figures(&maker));
    figures.extend(wort::figures(&maker));
    figures.extend(dptree::figures(&maker));
    figures
}

/// Hardware counters, which the page leaves out where the machine gives none.
const HARDWARE: [(&str, Measure); 4] = [
    ("cycles", Measure::Path(&["hardware_per_op", "cycles"])),
    (
        "instructions",
        Measure::Path(&["hardware_per_op", "instructions"]),
    ),
    CACHE_MISSES,
    (
        "mispredicted branches",
        Measure::Path(&["hardware_per_op", "branch_misses"]),
    ),
];
const CACHE_MISSES: (&str, Measure) = (
    "last-level cache misses",
    Measure::Path(&["hardware_per_op", "cache_misses"]),
);

const OTHER_MEMORY: &str = "The paper ran on Optane with many cores; here it is DRAM, where fences cost less beside \
    misses, and as many threads as there are cores.";

#[cfg(test)]
mod tests {
    use super::*;

    /// Each figure has panels, each claim names points that its panel has and says why ours may differ, and ids are unique.
    #[test]
    fn figures_are_well_formed() {
        let figures = figures(Scale::Smoke, 2);
        for figure in &figures {
            assert!(!figure.panels.is_empty(), "{}", figure.id);
            assert_eq!(figures.iter().filter(|other| other.id == figure.id).count(), 1);
            for claim in &figure.claims {
                let points = &figure.panels[claim.panel].points;
                for series in [Some(claim.over), claim.under].into_iter().flatten() {
                    let named = |point: &&Point| point.place == claim.place && point.series == series;
                    assert_eq!(points.iter().filter(named).count(), 1, "{}: {claim:?}", figure.id);
                }
                assert!(claim.why.len() > 10, "{}: {claim:?}", figure.id);
            }
        }
    }
}
