//! How ratios vary from round to round, and from one measurement to another.
//!
//! The model: a run's logarithm is its series' at that place, and what meets all series of the place in that round, and
//! noise of its own. So the noise is what is left once the means of each series and of each round are taken away
//! (analysis of variance in two ways): of `k` series in `r` rounds `(k - 1) (r - 1)` degrees of freedom, of whichever
//! series the ratios are to. A ratio is made of two runs and has twice that variance. It is pooled over the places of a
//! panel, which are of one measure, taken in the same minutes, and for times over its series, since they share a
//! machine (most counts are exact, whatever others do); places whose numbers come from the same processes count their
//! degrees once, since what slows a process slows all that it does.
//!
//! Another measurement differs by its own noise, and by what is the same in all rounds of one measurement ([`BETWEEN`]),
//! which these rounds cannot show. With the variance `v` of a ratio's logarithm in `d` degrees, `n` rounds here and `m`
//! there, the difference has the variance `v (1/n + 1/m) + 2 BETWEEN²`, of which only the first part is estimated:
//! Welch and Satterthwaite's degrees of freedom are those of the whole.

use super::{LEAST_BASE, Of, Row, mean};
use crate::figures::sample::Sample;
use std::collections::HashSet;

/// Deviation of a ratio's logarithm from one measurement to another, beyond what rounds show: how memory came to be
/// placed, who else is on the machine. Three rounds on a shared virtual machine gave it: each held against what the two
/// others state, 1707 of 1794 ratios of times (95.2%) lie within it.
const BETWEEN: f64 = 0.07;

/// The share of cases in which an interval is to be met.
pub const NOMINAL: f64 = 0.95;

/// Numbers are shown to a hundredth; what differs by less than half a thousandth is the same.
const LEAST_DEVIATION: f64 = 0.0005;

/// How logarithms of a panel's ratios vary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// From round to round.
    variance: f64,
    /// Of freedom, of that.
    degrees: usize,
    /// From measurement to measurement.
    between: f64,
}

impl Spread {
    /// Of the panel's places; `None` where none has two rounds of two series, and of extremes. Counts do not depend on
    /// when they are made.
    pub fn of(rows: &[Row<'_>], of: Of) -> Option<Spread> {
        let between = match of {
            Of::Times => BETWEEN * BETWEEN,
            Of::Counts => 0.0,
            Of::Extremes => return None,
        };
        let (mut squares, mut all_degrees, mut degrees) = (0.0, 0, 0);
        let mut processes = HashSet::new();
        for row in rows {
            let Some((noise, of)) = noise(row) else { continue };
            squares += noise;
            all_degrees += of;
            // Without runs that are known, each place is of its own.
            if row.cells.is_empty() || processes.insert(&row.cells) {
                degrees += of;
            }
        }
        (degrees > 0).then(|| Spread {
            variance: (2.0 * squares / all_degrees as f64).max(LEAST_DEVIATION * LEAST_DEVIATION),
            degrees,
            between,
        })
    }

    /// Of the interval around the mean of this many rounds for the mean of as many of another measurement.
    pub fn half_width(&self, rounds: usize, further: usize) -> f64 {
        let within = self.variance * (1.0 / rounds as f64 + 1.0 / further as f64);
        let all = within + 2.0 * self.between;
        let degrees = (all / within).powi(2) * self.degrees as f64;
        student(degrees as usize) * all.sqrt()
    }
}

/// The squares of what is left of a place's logarithms without the means of its series and of its rounds, of the rounds
/// that all its series have, and of how many degrees of freedom; `None` for less than two of either.
fn noise(row: &Row<'_>) -> Option<(f64, usize)> {
    let mut series: Vec<Vec<Sample<'_>>> = Vec::new();
    for (i, (_, samples)) in row.series.iter().enumerate() {
        let says_something = |number: f64| {
            if i == 0 {
                number >= LEAST_BASE
            } else {
                number > 0.0
            }
        };
        let said = samples.iter().filter(|sample| says_something(sample.number));
        let logarithms: Vec<Sample<'_>> = said
            .map(|sample| Sample {
                number: sample.number.ln(),
                ..*sample
            })
            .collect();
        if !logarithms.is_empty() {
            series.push(logarithms);
        }
    }
    let (first, others) = series.split_first()?;
    let in_all = |one: &Sample<'_>| {
        let mut others = others.iter();
        others.all(|other| other.iter().any(|other| one.pairs_with(other)))
    };
    let rounds: Vec<usize> = first
        .iter()
        .filter(|one| in_all(one))
        .map(|one| one.round)
        .collect();
    let degrees = others.len() * rounds.len().checked_sub(1)?;
    if degrees == 0 {
        return None;
    }
    for one in &mut series {
        one.retain(|one| rounds.contains(&one.round));
        let own = mean(one.iter().map(|one| one.number))?;
        one.iter_mut().for_each(|one| one.number -= own);
    }
    let mut squares = 0.0;
    for round in 0..rounds.len() {
        let common = mean(series.iter().map(|one| one[round].number))?;
        squares += series
            .iter()
            .map(|one| (one[round].number - common).powi(2))
            .sum::<f64>();
    }
    Some((squares, degrees))
}

/// Student's t for this many degrees of freedom that holds [`NOMINAL`] between its negative and itself: tabulated, from
/// five on by its expansion around the normal distribution's (Abramowitz and Stegun, 26.7.5).
fn student(degrees: usize) -> f64 {
    const NORMAL: f64 = 1.959_964;
    match degrees {
        0 => f64::INFINITY,
        1 => 12.706,
        2 => 4.303,
        3 => 3.182,
        4 => 2.776,
        _ => {
            let n = degrees as f64;
            let power = |exponent| NORMAL.powi(exponent);
            NORMAL
                + (power(3) + NORMAL) / (4.0 * n)
                + (5.0 * power(5) + 16.0 * power(3) + 3.0 * NORMAL) / (96.0 * n.powi(2))
                + (3.0 * power(7) + 19.0 * power(5) + 17.0 * power(3) - 15.0 * NORMAL) / (384.0 * n.powi(3))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::cell::Cell;
    use crate::figures::ratio::{Ratio, ratios};
    use crate::random::Random;

    /// As tables have it, to two thousandths.
    #[test]
    fn students_t() {
        for (degrees, t) in [(5, 2.571), (6, 2.447), (10, 2.228), (30, 2.042), (1_000, 1.962)] {
            assert!(
                (student(degrees) / t - 1.0).abs() < 0.002,
                "{degrees}: {}",
                student(degrees)
            );
        }
    }

    fn row<'p>(series: &[&[f64]], cells: Vec<&'p Cell>) -> Row<'p> {
        let sample = |(round, number): (usize, &f64)| Sample {
            round,
            commit: "x",
            number: *number,
            drifted: false,
        };
        let samples = |numbers: &&[f64]| ("series", (1..).zip(*numbers).map(sample).collect());
        Row {
            place: "place",
            series: series.iter().map(samples).collect(),
            cells,
        }
    }

    /// What meets all series of a round is no noise; the series that the others are set in ratio to counts once; and
    /// places of the same processes have the degrees of one.
    #[test]
    fn degrees_are_counted_once() {
        let slower: &[f64] = &[1.0, 2.0, 4.0];
        let alike = row(&[slower, &[3.0, 6.0, 12.0], slower], vec![]);
        let (squares, degrees) = noise(&alike).unwrap();
        assert!(squares < 1e-12 && degrees == 4);
        // One series of three that doubles: half of ln 2 up and down, of which the rounds' mean takes a third.
        let one = || row(&[&[1.0, 2.0], &[1.0, 1.0], &[1.0, 1.0]], vec![]);
        let (squares, degrees) = noise(&one()).unwrap();
        assert!((squares - 2f64.ln().powi(2) / 3.0).abs() < 1e-12 && degrees == 2);
        let (cell, other) = (Cell("a".into()), Cell("b".into()));
        let of = |cells: [&Cell; 2]| {
            let rows = cells.map(|cell| Row {
                cells: vec![cell],
                ..one()
            });
            Spread::of(&rows, Of::Times).unwrap()
        };
        let (same, different) = (of([&cell, &cell]), of([&cell, &other]));
        assert_eq!((same.degrees, different.degrees), (2, 4));
        assert_eq!(same.variance, different.variance);
        assert_eq!(
            Spread::of(&[row(&[&[1.0], &[1.0, 2.0]], vec![])], Of::Times),
            None
        );
        // A round that another program went on with.
        let mut resumed = one();
        resumed.series[1].1[1].commit = "y";
        assert_eq!(noise(&resumed), None);
    }

    /// Measurements of two rounds: four places of five series each, which share the one that the others are set in ratio
    /// to. A measurement's series deviate by `between` alike in all its rounds, and each run by `noise`.
    fn measured(random: &mut Random, between: f64, noise: f64) -> Vec<Ratio> {
        let rows = [(); 4].map(|()| {
            let series = [(); 5].map(|()| {
                let own = random.normal() * between;
                [(); 2].map(|()| (own + random.normal() * noise).exp())
            });
            row(&series.each_ref().map(|rounds| &rounds[..]), vec![])
        });
        ratios(&rows, Of::Times)
    }

    /// Few rounds find too little noise as often as too much: within one model, of intervals that are narrow by chance
    /// fewer are met than of those that are wide, and over all as many as they say.
    #[test]
    fn narrow_intervals_are_met_less_often() {
        let mut random = Random::new(1);
        let mut all: Vec<(f64, bool)> = Vec::new();
        for _ in 0..1_000 {
            let first = measured(&mut random, BETWEEN / 2f64.sqrt(), 0.15);
            let second = measured(&mut random, BETWEEN / 2f64.sqrt(), 0.15);
            all.extend(first.iter().zip(&second).map(|(first, second)| {
                let stated = first.stated.unwrap();
                (stated.half_width(), stated.contains(second.ratio))
            }));
        }
        all.sort_by(|one, other| one.0.total_cmp(&other.0));
        let fifth = all.len() / 5;
        let met = |of: &[(f64, bool)]| of.iter().filter(|(_, met)| *met).count() as f64 / of.len() as f64;
        let (narrowest, widest) = (met(&all[..fifth]), met(&all[4 * fifth..]));
        assert!(narrowest < NOMINAL - 0.02, "{narrowest}");
        assert!(widest > NOMINAL + 0.02, "{widest}");
    }

    /// The interval is met as often as it says, of measurements of a seed that vary as the model has it: much from round
    /// to round, little, and hardly. One that knew nothing of what lies between measurements would be met less often.
    #[test]
    fn intervals_are_met_as_often_as_they_say() {
        let mut random = Random::new(1);
        // A ratio is made of two.
        let between = BETWEEN / 2f64.sqrt();
        for (deviation, most_without) in [(0.15, 1.0), (0.05, 0.95), (0.01, 0.5)] {
            let (mut met, mut met_without, mut of) = (0.0, 0.0, 0.0);
            for _ in 0..1_000 {
                let first = measured(&mut random, between, deviation);
                let second = measured(&mut random, between, deviation);
                for (first, second) in first.iter().zip(&second) {
                    let within = |spread: Spread| {
                        let distance = (first.ratio / second.ratio).ln().abs();
                        f64::from(u8::from(distance <= spread.half_width(2, 2)))
                    };
                    let spread = first.spread.unwrap();
                    met += within(spread);
                    met_without += within(Spread {
                        between: 0.0,
                        ..spread
                    });
                    of += 1.0;
                }
            }
            assert!((met / of - NOMINAL).abs() < 0.01, "{deviation}: {}", met / of);
            assert!(
                met_without < met * most_without,
                "{deviation}: {}",
                met_without / of
            );
        }
    }
}
