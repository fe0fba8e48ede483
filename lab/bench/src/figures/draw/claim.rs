//! A paper's number beside ours, and whether they agree.
//!
//! A ratio of ours is known as near as it promises (`ratio`), a paper's as near as its digits say. They agree where
//! these meet, unless ours could as well be no difference at all, and differ where they do not meet. What a paper has
//! as the greatest of its places is held against the greatest of ours, where these lie on a line, and is not
//! contradicted by a smaller one: its places are others. A value that does not depend on the memory's pace is known
//! within the rounds' extremes. A time by itself is not judged: it is another machine's.

use super::panel::rows;
use crate::figures::cell::Kept;
use crate::figures::plan::{At, Claim, Panel, Said};
use crate::figures::ratio::{self, Interval, Of, Row};
use crate::figures::sample;
use crate::figures::svg::Shape;
use crate::summary::Summary;
use serde::Serialize;

/// A paper's number beside ours.
#[derive(Debug, Serialize)]
pub struct DrawnClaim {
    pub what: String,
    /// In the paper's digits.
    pub says: String,
    pub source: &'static str,
    /// Where what the paper rounded can lie.
    pub paper: Interval,
    pub ours: Option<Ours>,
    /// None where there is nothing to judge.
    pub verdict: Option<Verdict>,
    /// Why they may differ.
    pub why: &'static str,
}

/// What the runs gave.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ours {
    Value(Summary),
    Ratio {
        /// The geometric mean of the rounds' ratios.
        ratio: f64,
        /// Within which a measurement of as many rounds is to find it.
        stated: Option<Interval>,
    },
}

/// What is to be said of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Agrees,
    Differs,
    /// Too few rounds, or rounds too different: another measurement may find this, that, or no difference.
    CannotBeTold,
}

impl Verdict {
    /// In a table.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Agrees => "agrees",
            Verdict::Differs => "differs",
            Verdict::CannotBeTold => "cannot be told",
        }
    }
}

impl DrawnClaim {
    /// With what the runs gave.
    pub fn new(claim: &Claim, panel: &Panel, kept: &Kept) -> DrawnClaim {
        let paper = claim.paper.interval();
        let ours = match &claim.to {
            Some(to) if is_greatest(claim, panel) => greatest(&claim.of, to, panel, kept),
            Some(to) => ratio(&claim.of, to, panel, kept),
            None => value(&claim.of, panel, kept).map(Ours::Value),
        };
        let verdict = match &ours {
            Some(Ours::Ratio { stated, .. }) => Some(judge(*stated, claim.paper)),
            Some(Ours::Value(ours)) if panel.of() == Of::Counts => Some(judge_value(ours, paper)),
            Some(Ours::Value(_)) | None => None,
        };
        DrawnClaim {
            what: what(claim, panel),
            says: claim.paper.to_string(),
            source: claim.source,
            paper,
            ours,
            verdict,
            why: claim.why,
        }
    }
}

/// Whether it is of whichever of the panel's places has most.
fn is_greatest(claim: &Claim, panel: &Panel) -> bool {
    matches!(claim.paper, Said::UpTo(_)) && panel.shape == Shape::Lines
}

/// In words.
fn what(claim: &Claim, panel: &Panel) -> String {
    let At { series, place } = &claim.of;
    match &claim.to {
        Some(to) if is_greatest(claim, panel) => {
            format!("{}, most of all places: {series} to {}", panel.title, to.series)
        }
        Some(to) if to.place == *place => format!("{}, {place}: {series} to {}", panel.title, to.series),
        Some(to) => format!("{}, {series}: {place} to {}", panel.title, to.place),
        None => format!("{}, {place}: {series}", panel.title),
    }
}

fn judge(stated: Option<Interval>, said: Said) -> Verdict {
    let paper = said.interval();
    // Ours may have fewer places, or others; but who is ahead in the paper is not to be behind.
    let is_less = |ours: Interval| ours.high < paper.low && (ours.high >= 1.0 || paper.low <= 1.0);
    match stated {
        Some(ours) if matches!(said, Said::UpTo(_)) && is_less(ours) => Verdict::CannotBeTold,
        None => Verdict::CannotBeTold,
        Some(ours) if !ours.meets(paper) => Verdict::Differs,
        Some(ours) if ours.half_width() > 1.0 => Verdict::CannotBeTold,
        Some(ours) if ours.contains(1.0) && !paper.contains(1.0) => Verdict::CannotBeTold,
        Some(_) => Verdict::Agrees,
    }
}

/// Counts repeat: what the rounds have, rounded as the paper did.
fn judge_value(ours: &Summary, paper: Interval) -> Verdict {
    let ours = Interval {
        low: ours.least,
        high: ours.most,
    };
    match ours.meets(paper) {
        true => Verdict::Agrees,
        false => Verdict::Differs,
    }
}

fn value(at: &At, panel: &Panel, kept: &Kept) -> Option<Summary> {
    let mut points = panel.points.iter();
    let point = points.find(|point| point.place == at.place && point.series == at.series)?;
    Summary::of(sample::samples(point, kept).iter().map(|one| one.number))
}

/// The greatest ratio of two series over the panel's places.
fn greatest(over: &At, under: &At, panel: &Panel, kept: &Kept) -> Option<Ours> {
    let rows = rows(panel, kept, |point| &point.place, |point| &point.series);
    let of = |row: &Row<'_>| ratio::between(&rows, row.place, (over.series, under.series), panel.of());
    let most = rows
        .iter()
        .filter_map(of)
        .max_by(|one, other| one.ratio.total_cmp(&other.ratio))?;
    Some(Ours::Ratio {
        ratio: most.ratio,
        stated: most.stated,
    })
}

/// Two series at a place vary as the panel's series do beside each other at each place; two places of a series as the
/// panel's places do for each series. Either time what meets a whole row in a round is no noise.
fn ratio(over: &At, under: &At, panel: &Panel, kept: &Kept) -> Option<Ours> {
    let (rows, row, over, under) = if over.place == under.place {
        let rows = rows(panel, kept, |point| &point.place, |point| &point.series);
        (rows, &*over.place, over.series, under.series)
    } else {
        let rows = rows(panel, kept, |point| &point.series, |point| &point.place);
        (rows, over.series, &*over.place, &*under.place)
    };
    let ratio = ratio::between(&rows, row, (over, under), panel.of())?;
    Some(Ours::Ratio {
        ratio: ratio.ratio,
        stated: ratio.stated,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::build::Build;
    use crate::figures::cell::{Cell, Outcome};
    use crate::figures::plan::{Measure, Point, Said};
    use crate::figures::svg::Shape;

    const INTERVAL: fn(f64, f64) -> Interval = |low, high| Interval { low, high };

    /// What a ratio promises decides: they agree where the promise meets the paper's digits and rules out that there is
    /// no difference, and nothing can be told of what promises nothing, or too much.
    #[test]
    fn ratios_are_judged_by_what_they_promise() {
        let paper = Said::Number("1.3");
        for (stated, verdict) in [
            (Some(INTERVAL(1.2, 1.4)), Verdict::Agrees),
            (Some(INTERVAL(1.2, 1.26)), Verdict::Agrees),
            (Some(INTERVAL(0.9, 1.1)), Verdict::Differs),
            (Some(INTERVAL(1.4, 9.0)), Verdict::Differs),
            (Some(INTERVAL(0.9, 1.4)), Verdict::CannotBeTold),
            (Some(INTERVAL(1.1, 4.5)), Verdict::CannotBeTold),
            (None, Verdict::CannotBeTold),
        ] {
            assert_eq!(judge(stated, paper), verdict, "{stated:?}");
        }
        let none = Said::Range("0.9", "1.1");
        assert_eq!(judge(Some(INTERVAL(0.95, 1.2)), none), Verdict::Agrees);
        for (low, high, verdict) in [
            (0.8, 0.95, Verdict::Differs),
            (0.8, 1.05, Verdict::CannotBeTold),
            (1.1, 1.2, Verdict::CannotBeTold),
            (1.2, 1.4, Verdict::Agrees),
            (1.4, 1.6, Verdict::Differs),
        ] {
            assert_eq!(judge(Some(INTERVAL(low, high)), Said::UpTo("1.3")), verdict);
        }
    }

    /// `a` is twice as fast as `b`, and both twice as fast at `y`; at `x` both lose half in the second round.
    fn kept(directory: &std::path::Path) -> Kept {
        let mut kept = Kept::open(&directory.join("cells")).unwrap();
        for (cell, rounds) in [
            ("ax", [2.0, 1.0]),
            ("bx", [1.0, 0.5]),
            ("ay", [4.0, 4.0]),
            ("by", [2.0, 2.0]),
        ] {
            for (round, mops) in (1..).zip(rounds) {
                let build = Build {
                    date: String::new(),
                    commit: String::new(),
                };
                let object = serde_json::json!({ "mops": mops, "fences": mops });
                let outcome = Outcome::Printed(vec![object]);
                kept.keep(Cell(cell.into()), round, build, outcome).unwrap();
            }
        }
        kept
    }

    fn panel(measure: Measure) -> Panel {
        let points = ["ax", "bx", "ay", "by"].map(|name| Point {
            series: name[..1].into(),
            place: name[1..].into(),
            cell: Cell(name.into()),
            pick: vec![],
            measure,
        });
        Panel {
            title: "panel".into(),
            shape: Shape::Bars,
            x: "",
            unit: "",
            points: points.into(),
            runs: 1,
        }
    }

    /// Series are set in ratio within a place, places within a series: what met both sides alike is no noise of either,
    /// but what met one place in one round is of the other's.
    #[test]
    fn ratios_are_of_series_or_of_places() {
        let directory = tempfile::tempdir().unwrap();
        let kept = kept(directory.path());
        let panel = panel(Measure::Mops);
        let drawn = |claim| DrawnClaim::new(&claim, &panel, &kept);
        let series = drawn(Claim::of(0, "x", "a", Some(("b", "x")), "2"));
        assert_eq!(series.what, "panel, x: a to b");
        assert_eq!(series.verdict, Some(Verdict::Agrees));
        let places = drawn(Claim::of(0, "y", "a", Some(("a", "x")), "2"));
        assert_eq!(places.what, "panel, a: y to x");
        assert_eq!(places.verdict, Some(Verdict::CannotBeTold));
        let ratio = |drawn: &DrawnClaim| match drawn.ours {
            Some(Ours::Ratio { ratio, .. }) => ratio,
            _ => panic!("{drawn:?}"),
        };
        assert!((ratio(&series) - 2.0).abs() < 1e-9);
        assert!((ratio(&places) - 8f64.sqrt()).abs() < 1e-9);
    }

    /// The greatest of the paper's places is held against that of ours, where places lie on a line.
    #[test]
    fn greatest_ratios_are_of_any_place() {
        let directory = tempfile::tempdir().unwrap();
        let mut kept = kept(directory.path());
        let build = Build {
            date: String::new(),
            commit: String::new(),
        };
        for round in [1, 2] {
            let outcome = Outcome::Printed(vec![serde_json::json!({ "mops": 0.5 })]);
            kept.keep(Cell("by".into()), round, build.clone(), outcome)
                .unwrap();
        }
        for (shape, what, expected) in [
            (Shape::Lines, "panel, most of all places: a to b", 8.0),
            (Shape::Bars, "panel, x: a to b", 2.0),
        ] {
            let panel = Panel {
                shape,
                ..panel(Measure::Mops)
            };
            let claim = Claim::of(0, "x", "a", Some(("b", "x")), "up to 2");
            let drawn = DrawnClaim::new(&claim, &panel, &kept);
            assert_eq!(drawn.what, what);
            assert!(matches!(drawn.ours, Some(Ours::Ratio { ratio, .. }) if (ratio - expected).abs() < 1e-9));
        }
    }

    /// A count is judged by its rounds and the paper's digits, a time by itself not at all.
    #[test]
    fn counts_are_judged_and_times_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let kept = kept(directory.path());
        let verdict = |measure, place, paper: &'static str| {
            let claim = Claim::of(0, place, "a", None, paper);
            DrawnClaim::new(&claim, &panel(measure), &kept).verdict
        };
        let count = Measure::Field("fences");
        assert_eq!(verdict(count, "y", "3.96"), Some(Verdict::Differs));
        assert_eq!(verdict(count, "y", "4"), Some(Verdict::Agrees));
        assert_eq!(verdict(count, "x", "1.5"), Some(Verdict::Agrees));
        assert_eq!(verdict(Measure::Mops, "y", "4"), None);
        assert_eq!(verdict(count, "z", "4"), None);
    }
}
