//! What a figure is made of.

use super::{Claim, Measure};
use crate::figures::cell::Cell;
use crate::figures::ratio::Of;
use crate::figures::svg::Shape;

/// How large runs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// A look at every figure within minutes; its times mean little.
    Smoke,
    /// A million keys.
    Laptop,
    /// Thirty million keys, as ROART had; the others had up to 128 million. Needs tens of gigabytes and hours.
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
    /// What its places are: the name of the axis below.
    pub x: &'static str,
    /// The name of the axis beside.
    pub unit: &'static str,
    pub points: Vec<Point>,
    /// How many runs of each point a round has: each counts as a round of the panel's own.
    pub runs: usize,
}

impl Panel {
    /// The same over places that are these.
    pub fn along(self, x: &'static str) -> Panel {
        Panel { x, ..self }
    }

    /// What its ratios are of.
    pub fn of(&self) -> Of {
        let any = |is: fn(Measure) -> bool| self.points.iter().any(|point| is(point.measure));
        match (any(Measure::is_extreme), any(Measure::is_timed)) {
            (true, _) => Of::Extremes,
            (false, true) => Of::Times,
            (false, false) => Of::Counts,
        }
    }

    /// Whether its series are what is compared. Bounds beside what they are bounds of are not: their ratios are made of
    /// one run, and stand as shares where they say something.
    pub fn is_of_one_measure(&self) -> bool {
        self.points.windows(2).all(|two| two[0].measure == two[1].measure)
    }
}

/// A figure of a paper, or one of ours.
#[derive(Clone, Debug)]
pub struct Figure {
    pub id: &'static str,
    pub title: &'static str,
    /// Whether no paper plots it: then `paper` says what it shows, and `differs` how it was measured.
    pub ours: bool,
    /// What the paper ran and found, in short.
    pub paper: &'static str,
    pub panels: Vec<Panel>,
    pub claims: Vec<Claim>,
    /// Why ours may differ.
    pub differs: &'static str,
}
