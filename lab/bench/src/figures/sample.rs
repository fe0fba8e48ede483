//! What the runs gave for a point: a number in each round, and whether the memory kept its pace meanwhile, where that
//! matters to the number.

use super::build::Build;
use super::cell::{Kept, Outcome};
use super::plan::Point;
use crate::latency::Timeline;
use crate::limit::Pace;
use crate::summary::Summary;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// A round's number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample<'k> {
    pub round: usize,
    /// Of the program that was run.
    pub commit: &'k str,
    pub number: f64,
    /// Whether it depends on the memory's pace, and the run's calibration drifted.
    pub drifted: bool,
}

/// A number over rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Value {
    #[serde(flatten)]
    pub summary: Summary,
    /// In how many of the rounds the calibration drifted.
    pub drifted: usize,
}

impl Sample<'_> {
    /// Whether they are of one round and one program, so that one may be set in ratio to the other. A round that was
    /// interrupted and gone on with later may have runs of two.
    pub fn pairs_with(&self, other: &Sample<'_>) -> bool {
        (self.round, self.commit) == (other.round, other.commit)
    }
}

impl Value {
    /// Of these rounds; `None` if there are none.
    pub fn of(samples: &[Sample<'_>]) -> Option<Value> {
        Some(Value {
            summary: Summary::of(samples.iter().map(|sample| sample.number))?,
            drifted: samples.iter().filter(|sample| sample.drifted).count(),
        })
    }
}

/// The point's number in each round that has one.
pub fn samples<'k>(point: &Point, kept: &'k Kept) -> Vec<Sample<'k>> {
    let of = |(round, (build, outcome)): (usize, &'k (Build, Outcome))| {
        let object = picked(point, outcome)?;
        Some(Sample {
            round,
            commit: &build.commit,
            number: point.measure.of(object)?,
            drifted: point.measure.is_timed() && paces(object).iter().any(|pace| pace.drifted),
        })
    };
    (1..).zip(kept.rounds(&point.cell)).filter_map(of).collect()
}

/// The point's timeline in the first round that has one.
pub fn timeline(point: &Point, kept: &Kept) -> Option<Timeline> {
    let of = |outcome| Timeline::deserialize(&picked(point, outcome)?["timeline"]).ok();
    kept.outcomes(&point.cell).find_map(of)
}

/// The calibrations of what a run printed; none where it is from before they were made. One around each round, where the
/// run itself has rounds.
pub fn paces(object: &Json) -> Vec<Pace> {
    let read = |pace: &Json| Pace::deserialize(pace).ok();
    match &object["pace"] {
        Json::Array(rounds) => rounds.iter().filter_map(read).collect(),
        one => read(one).into_iter().collect(),
    }
}

fn picked<'o>(point: &Point, outcome: &'o Outcome) -> Option<&'o Json> {
    let Outcome::Printed(objects) = outcome else {
        return None;
    };
    objects.iter().find(|object| {
        let mut fields = point.pick.iter();
        fields.all(|(field, wanted)| object[*field] == wanted.as_str())
    })
}
