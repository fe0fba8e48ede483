//! Ratios between series, and within what a further run is to find them.
//!
//! A ratio is formed within each round, whose runs follow each other closely. Its logarithm over the rounds is taken as
//! normal. Few rounds say little of one ratio's deviation; so it is pooled over all ratios of a panel, which are of one
//! measure, taken in the same minutes. The interval stated is the one in which the mean of so many further rounds lies in
//! 95 of 100 cases (Student's prediction interval).

use super::sample::Sample;
use serde::Serialize;

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
    /// Within which as many further rounds are to find it; one round states nothing.
    pub stated: Option<Interval>,
    /// Of the rounds' ratios.
    #[serde(skip)]
    logarithms: Vec<f64>,
    /// Of all ratios of the panel.
    #[serde(skip)]
    spread: Option<Spread>,
}

/// From the least to the most that is to be found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

/// A ratio to less says nothing.
const LEAST_BASE: f64 = 0.01;

impl Ratio {
    /// Of the rounds that both series have; `None` if there are none, or if it says nothing. It states no interval yet.
    pub fn of(place: &str, over: (&str, &[Sample]), under: (&str, &[Sample])) -> Option<Ratio> {
        let in_both = |one: &Sample| {
            let other = under.1.iter().find(|other| other.round == one.round)?;
            (one.number > 0.0 && other.number >= LEAST_BASE)
                .then(|| ((one.number / other.number).ln(), one.drifted || other.drifted))
        };
        let rounds: Vec<(f64, bool)> = over.1.iter().filter_map(in_both).collect();
        let logarithms: Vec<f64> = rounds.iter().map(|(logarithm, _)| *logarithm).collect();
        Some(Ratio {
            place: place.to_owned(),
            over: over.0.to_owned(),
            under: under.0.to_owned(),
            ratio: mean(&logarithms)?.exp(),
            rounds: rounds.len(),
            drifted: rounds.iter().filter(|(_, drifted)| *drifted).count(),
            stated: None,
            logarithms,
            spread: None,
        })
    }

    /// Within which the mean of so many further rounds is to lie.
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

    /// How far it goes to either side, as a share.
    pub fn half_width(&self) -> f64 {
        (self.high / self.low).sqrt() - 1.0
    }
}

/// Lets the ratios of one panel state their intervals.
pub fn state(ratios: &mut [Ratio]) {
    let spread = Spread::of(ratios.iter().map(|ratio| &*ratio.logarithms));
    for ratio in ratios {
        ratio.spread = spread;
        ratio.stated = ratio.interval(ratio.rounds);
    }
}

/// How logarithms of ratios deviate from round to round.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    deviation: f64,
    /// Of freedom: rounds beyond the first of each ratio.
    degrees: usize,
}

/// Numbers are shown to a hundredth; what differs by less than half a thousandth is the same.
const LEAST_DEVIATION: f64 = 0.0005;

impl Spread {
    /// Pooled over groups; `None` if none has two.
    fn of<'g>(groups: impl Iterator<Item = &'g [f64]>) -> Option<Spread> {
        let (mut squares, mut degrees) = (0.0, 0);
        for group in groups {
            let Some(mean) = mean(group) else { continue };
            squares += group.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
            degrees += group.len() - 1;
        }
        (degrees > 0).then(|| Spread {
            deviation: (squares / degrees as f64).sqrt().max(LEAST_DEVIATION),
            degrees,
        })
    }

    /// Of the interval around the mean of so many rounds for the mean of so many further ones.
    fn half_width(&self, rounds: usize, further: usize) -> f64 {
        student(self.degrees) * self.deviation * (1.0 / rounds as f64 + 1.0 / further as f64).sqrt()
    }
}

fn mean(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

/// The share of cases in which an interval is to be met.
pub const NOMINAL: f64 = 0.95;

/// Student's t for so many degrees of freedom that holds [`NOMINAL`] between its negative and itself: tabulated, from five
/// on by its expansion around the normal distribution's (Abramowitz and Stegun, 26.7.5).
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
    use crate::random::Random;

    fn samples(numbers: &[f64]) -> Vec<Sample> {
        let sample = |(round, &number)| Sample {
            round,
            number,
            drifted: round == 2,
        };
        (1..).zip(numbers).map(sample).collect()
    }

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

    /// Rounds are paired by their numbers, drift of either counts, and what one round gives states nothing.
    #[test]
    fn ratios_are_formed_within_rounds() {
        let (over, under) = (samples(&[2.0, 8.0]), samples(&[1.0, 2.0, 9.0]));
        let ratio = Ratio::of("place", ("a", &over), ("b", &under)).unwrap();
        assert!((ratio.ratio - 8f64.sqrt()).abs() < 1e-9);
        assert_eq!((ratio.rounds, ratio.drifted), (2, 1));
        assert_eq!(Ratio::of("place", ("a", &over[1..]), ("b", &under[..1])), None);
        assert_eq!(Ratio::of("place", ("a", &over), ("b", &samples(&[0.001]))), None);
        let mut one = [Ratio::of("place", ("a", &over[..1]), ("b", &under)).unwrap()];
        state(&mut one);
        assert_eq!(one[0].stated, None);
    }

    /// What never varies is to be found again as it is; what varies, within the spread of the whole panel.
    #[test]
    fn intervals_are_of_the_panels_spread() {
        let ratio = |numbers: &[f64]| {
            let ones = vec![1.0; numbers.len()];
            Ratio::of("place", ("a", &samples(numbers)), ("b", &samples(&ones))).unwrap()
        };
        let mut counts = [ratio(&[3.0, 3.0]), ratio(&[2.0, 2.0])];
        state(&mut counts);
        let stated = counts[0].stated.unwrap();
        assert!(stated.contains(3.0) && !stated.contains(3.03) && !stated.contains(2.97));
        let mut times = [ratio(&[3.0, 3.3]), ratio(&[2.0, 2.0])];
        state(&mut times);
        assert!(times[1].stated.unwrap().contains(2.1));
        assert_eq!(times[0].stated, times[0].interval(2));
        assert!(times[0].interval(1).unwrap().half_width() > times[0].interval(2).unwrap().half_width());
    }

    /// The interval is met as often as it says: ratios of two rounds, of a seed, that deviate alike.
    #[test]
    fn intervals_are_met_as_often_as_they_say() {
        let mut random = Random::new(1);
        let mut rounds = || [(); 2].map(|()| (random.normal() * 0.05).exp());
        let (mut met, mut of) = (0, 0);
        for _ in 0..200 {
            let ones = samples(&[1.0, 1.0]);
            let mut run = |_| Ratio::of("place", ("a", &samples(&rounds())), ("b", &ones)).unwrap();
            let mut first: Vec<Ratio> = (0..10).map(&mut run).collect();
            let second: Vec<Ratio> = (0..10).map(&mut run).collect();
            state(&mut first);
            for (first, second) in first.iter().zip(&second) {
                met += usize::from(first.stated.unwrap().contains(second.ratio));
                of += 1;
            }
        }
        let share = f64::from(met as u32) / f64::from(of as u32);
        assert!((share - NOMINAL).abs() < 0.02, "{share}");
    }
}
