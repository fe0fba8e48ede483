//! Ratios between series, and within what a further measurement is to find them.
//!
//! A ratio is formed within each round, whose runs follow each other closely, between runs of one program. What is
//! stated of it is a prediction interval: where the mean of as many rounds of another measurement lies in 95 of 100
//! cases (`spread`).

mod spread;

pub use spread::NOMINAL;

use super::cell::Cell;
use super::sample::Sample;
use serde::Serialize;
use spread::Spread;

/// A series' ratio to another one at a place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratio {
    pub place: String,
    pub over: String,
    pub under: String,
    /// The geometric mean of the rounds' ratios.
    pub ratio: f64,
    pub rounds: usize,
    /// In how many of the rounds the calibration of either run drifted.
    pub drifted: usize,
    /// Within which a measurement of as many rounds is to find it; one round states nothing.
    pub stated: Option<Interval>,
    #[serde(skip)]
    spread: Option<Spread>,
}

/// From the least to the most that is to be found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

/// What one place of a panel compares: its series; or what one series does: its places.
#[derive(Debug)]
pub struct Row<'p> {
    pub place: &'p str,
    /// The others are set in ratio to the first.
    pub series: Vec<(&'p str, Vec<Sample<'p>>)>,
    /// The runs behind it.
    pub cells: Vec<&'p Cell>,
}

/// A ratio to less says nothing.
const LEAST_BASE: f64 = 0.01;

/// What ratios are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    Times,
    Counts,
    /// The few longest calls: nothing is stated of their ratios.
    Extremes,
}

/// The ratios of a panel, with what they state.
pub fn ratios(rows: &[Row<'_>], of: Of) -> Vec<Ratio> {
    let spreads = Spreads::of(rows, of);
    let mut all = Vec::new();
    for row in rows {
        if let Some(((under, base), others)) = row.series.split_first() {
            let to_base = |(over, samples): &(&str, Vec<Sample<'_>>)| {
                let spread = spreads.between(over, under);
                Ratio::of(row.place, (over, samples), (under, base), spread)
            };
            all.extend(others.iter().filter_map(to_base));
        }
    }
    all
}

/// Two of a row's, which vary as all of the rows do.
pub fn between(rows: &[Row<'_>], row: &str, (over, under): (&str, &str), of: Of) -> Option<Ratio> {
    let row = rows.iter().find(|one| one.place == row)?;
    let samples = |name: &str| row.series.iter().find(|(of, _)| *of == name);
    let ((_, over_samples), (_, under_samples)) = (samples(over)?, samples(under)?);
    let spread = Spreads::of(rows, of).between(over, under);
    Ratio::of(row.place, (over, over_samples), (under, under_samples), spread)
}

/// How the ratios of a panel vary: of times, all alike; of counts, which mostly do not, each pair of series by itself.
enum Spreads<'r, 'p> {
    Alike(Option<Spread>),
    Each(&'r [Row<'p>]),
}

impl<'r, 'p> Spreads<'r, 'p> {
    fn of(rows: &'r [Row<'p>], of: Of) -> Spreads<'r, 'p> {
        match of {
            Of::Counts => Spreads::Each(rows),
            Of::Times | Of::Extremes => Spreads::Alike(Spread::of(rows, of)),
        }
    }

    fn between(&self, over: &str, under: &str) -> Option<Spread> {
        let rows = match self {
            Spreads::Alike(spread) => return *spread,
            Spreads::Each(rows) => rows,
        };
        let pair = |row: &Row<'p>| Row {
            place: row.place,
            series: [under, over]
                .iter()
                .filter_map(|name| row.series.iter().find(|(of, _)| of == name))
                .cloned()
                .collect(),
            cells: row.cells.clone(),
        };
        Spread::of(&rows.iter().map(pair).collect::<Vec<_>>(), Of::Counts)
    }
}

impl Ratio {
    /// Of the rounds that both series have; `None` if there are none, or if it says nothing.
    fn of(
        place: &str,
        over: (&str, &[Sample<'_>]),
        under: (&str, &[Sample<'_>]),
        spread: Option<Spread>,
    ) -> Option<Ratio> {
        let in_both = |one: &Sample<'_>| {
            let other = under.1.iter().find(|other| one.pairs_with(other))?;
            (one.number > 0.0 && other.number >= LEAST_BASE)
                .then(|| ((one.number / other.number).ln(), one.drifted || other.drifted))
        };
        let rounds: Vec<(f64, bool)> = over.1.iter().filter_map(in_both).collect();
        let mut ratio = Ratio {
            place: place.to_owned(),
            over: over.0.to_owned(),
            under: under.0.to_owned(),
            ratio: mean(rounds.iter().map(|(logarithm, _)| *logarithm))?.exp(),
            rounds: rounds.len(),
            drifted: rounds.iter().filter(|(_, drifted)| *drifted).count(),
            stated: None,
            spread,
        };
        ratio.stated = ratio.interval(ratio.rounds);
        Some(ratio)
    }

    /// Within which the mean of as many rounds of another measurement is to lie.
    pub fn interval(&self, further: usize) -> Option<Interval> {
        let factor = self.spread?.half_width(self.rounds, further).exp();
        Some(Interval {
            low: self.ratio / factor,
            high: self.ratio * factor,
        })
    }
}

impl Interval {
    /// Whether it was met.
    pub fn contains(&self, ratio: f64) -> bool {
        (self.low..=self.high).contains(&ratio)
    }

    /// Whether some ratio is in both.
    pub fn meets(&self, other: Interval) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    /// How far it goes to either side, as a share.
    pub fn half_width(&self) -> f64 {
        (self.high / self.low).sqrt() - 1.0
    }
}

/// None of none.
fn mean(numbers: impl ExactSizeIterator<Item = f64>) -> Option<f64> {
    let count = numbers.len();
    (count > 0).then(|| numbers.sum::<f64>() / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(numbers: &[f64]) -> Vec<Sample<'static>> {
        let sample = |(round, &number)| Sample {
            round,
            commit: "x",
            number,
            drifted: round == 2,
        };
        (1..).zip(numbers).map(sample).collect()
    }

    /// Ratios to ones at a place for each of these.
    fn to_ones(rows: &[&[f64]], of: Of) -> Vec<Ratio> {
        let row = |numbers: &&[f64]| Row {
            place: "place",
            series: vec![
                ("ones", samples(&vec![1.0; numbers.len()])),
                ("a", samples(numbers)),
            ],
            cells: vec![],
        };
        ratios(&rows.iter().map(row).collect::<Vec<_>>(), of)
    }

    /// Runs are paired by their rounds and programs, drift of either counts, and what one round gives states nothing;
    /// nor do extremes.
    #[test]
    fn ratios_are_formed_within_rounds() {
        let (over, under) = (samples(&[2.0, 8.0]), samples(&[1.0, 2.0, 9.0]));
        let of =
            |over: &[Sample<'_>], under: &[Sample<'_>]| Ratio::of("place", ("a", over), ("b", under), None);
        let ratio = of(&over, &under).unwrap();
        assert!((ratio.ratio - 8f64.sqrt()).abs() < 1e-9);
        assert_eq!((ratio.rounds, ratio.drifted), (2, 1));
        assert_eq!(of(&over[1..], &under[..1]), None);
        assert_eq!(of(&over, &samples(&[0.001])), None);
        let mut resumed = under.clone();
        resumed[1].commit = "y";
        let ratio = of(&over, &resumed).unwrap();
        assert_eq!((ratio.rounds, ratio.ratio), (1, 2.0));
        assert_eq!(to_ones(&[&[2.0]], Of::Times)[0].stated, None);
        let extremes = &to_ones(&[&[2.0, 2.0]], Of::Extremes)[0];
        assert_eq!((extremes.rounds, extremes.stated), (2, None));
    }

    /// Counts that never vary are to be found again as they are; times no nearer than measurements differ; what varies,
    /// within the spread of the whole panel, and more rounds nearer.
    #[test]
    fn intervals_are_of_the_panels_spread() {
        let steady: [&[f64]; 2] = [&[3.0, 3.0], &[2.0, 2.0]];
        let stated = to_ones(&steady, Of::Counts)[0].stated.unwrap();
        assert!(stated.contains(3.0) && !stated.contains(3.03) && !stated.contains(2.97));
        let stated = to_ones(&steady, Of::Times)[0].stated.unwrap();
        assert!(stated.contains(3.3) && stated.contains(2.7) && !stated.contains(4.0));
        let varying = to_ones(&[&[3.0, 3.3], &[2.0, 2.0]], Of::Counts);
        assert!(varying[1].stated.unwrap().contains(2.1));
        assert_eq!(varying[0].stated, varying[0].interval(2));
        assert!(varying[0].interval(1).unwrap().half_width() > varying[0].interval(2).unwrap().half_width());
    }

    /// Counts of one pair of series say nothing of another pair's.
    #[test]
    fn counts_vary_by_themselves() {
        let row = Row {
            place: "place",
            series: vec![
                ("base", samples(&[1.0, 1.0])),
                ("steady", samples(&[3.0, 3.0])),
                ("varying", samples(&[3.0, 3.3])),
            ],
            cells: vec![],
        };
        let of = |of| ratios(std::slice::from_ref(&row), of);
        let widths = |ratios: Vec<Ratio>| {
            ratios
                .iter()
                .map(|ratio| ratio.stated.unwrap().half_width())
                .collect::<Vec<_>>()
        };
        let counts = widths(of(Of::Counts));
        assert!(counts[0] < 0.01 && counts[1] > 0.3, "{counts:?}");
        let times = widths(of(Of::Times));
        assert!((times[0] / times[1] - 1.0).abs() < 1e-9, "{times:?}");
    }
}
