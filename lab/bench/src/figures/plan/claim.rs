//! What a paper gives in numbers.

use crate::figures::ratio::Interval;
use crate::figures::svg::short;

/// A number of a paper: a series at a place of a panel, or its ratio to another of the panel.
#[derive(Clone, Debug)]
pub struct Claim {
    pub panel: usize,
    pub of: At,
    /// What it is set in ratio to: another series at the same place, or the same series at another; none for the value
    /// itself.
    pub to: Option<At>,
    pub paper: Said,
    /// Where the paper says it, and how, where it is no plain number.
    pub source: &'static str,
    /// Why ours may be another.
    pub why: &'static str,
}

/// A series at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    pub series: &'static str,
    pub place: String,
}

/// A paper's words. Its numbers are written as it writes them, since they are as exact as their digits: 5.0 is not 5.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Said {
    /// A number.
    Number(&'static str),
    /// A number over another.
    Over(&'static str, &'static str),
    /// From one number to another.
    Range(&'static str, &'static str),
    /// The greatest of several places, which need not be ours.
    UpTo(&'static str),
}

impl Said {
    /// What `papers.toml` says: `1.3`, `2.5/2.1`, `1.1..1.3`, `up to 1.3`.
    pub fn read(says: &'static str) -> Said {
        if let Some(most) = says.strip_prefix("up to ") {
            return Said::UpTo(most);
        }
        match (says.split_once(".."), says.split_once('/')) {
            (Some((least, most)), _) => Said::Range(least, most),
            (_, Some((over, under))) => Said::Over(over, under),
            _ => Said::Number(says),
        }
    }

    /// Where the number can lie that was rounded to this.
    pub fn interval(self) -> Interval {
        match self {
            Said::Number(number) | Said::UpTo(number) => {
                let (number, half) = (value_of(number), half_a_digit(number));
                Interval {
                    low: number - half,
                    high: number + half,
                }
            }
            Said::Over(over, under) => {
                let (over, under) = (Said::Number(over).interval(), Said::Number(under).interval());
                Interval {
                    low: over.low / under.high,
                    high: over.high / under.low,
                }
            }
            Said::Range(least, most) => Interval {
                low: Said::Number(least).interval().low,
                high: Said::Number(most).interval().high,
            },
        }
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Said::Number(number) => f.write_str(number),
            Said::Over(over, under) => f.write_str(&short(value_of(over) / value_of(under))),
            Said::Range(least, most) => write!(f, "{least}–{most}"),
            Said::UpTo(most) => write!(f, "up to {most}"),
        }
    }
}

/// What the digits say; a test sees to it that all that figures claim are digits.
fn value_of(number: &str) -> f64 {
    number.parse().unwrap_or(f64::NAN)
}

/// Half of what the last digit stands for.
fn half_a_digit(number: &str) -> f64 {
    let digits = number.split_once('.').map_or(0, |(_, digits)| digits.len());
    0.5 * 0.1f64.powi(i32::try_from(digits).unwrap_or(i32::MAX))
}

#[cfg(test)]
impl Claim {
    /// A paper says this of a series at a place, or of its ratio to another.
    pub fn of(
        panel: usize,
        place: &str,
        series: &'static str,
        to: Option<(&'static str, &str)>,
        says: &'static str,
    ) -> Claim {
        let at = |series, place: &str| At {
            series,
            place: place.into(),
        };
        Claim {
            panel,
            of: at(series, place),
            to: to.map(|(series, place)| at(series, place)),
            paper: Said::read(says),
            source: "",
            why: "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number is as exact as its digits, and is shown with them.
    #[test]
    fn numbers_are_as_exact_as_their_digits() {
        for (said, shown, low, high) in [
            ("3", "3", 2.5, 3.5),
            ("5.0", "5.0", 4.95, 5.05),
            ("17.0", "17.0", 16.95, 17.05),
            ("2.50", "2.50", 2.495, 2.505),
            ("2.562", "2.562", 2.5615, 2.5625),
            ("1.2/1.5", "0.80", 1.15 / 1.55, 1.25 / 1.45),
            ("1.65..2", "1.65–2", 1.645, 2.5),
            ("up to 2.19", "up to 2.19", 2.185, 2.195),
        ] {
            let said = Said::read(said);
            assert_eq!(said.to_string(), shown);
            let Interval { low: from, high: to } = said.interval();
            assert!((from - low).abs() < 1e-9 && (to - high).abs() < 1e-9, "{said:?}");
        }
    }
}
