//! Medians and extremes over rounds.

use serde::Serialize;

/// The median and the range of the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The median: the middle round, or the mean of the two middle ones.
    pub median: f64,
    /// The smallest round.
    pub min: f64,
    /// The largest round.
    pub max: f64,
}

impl Summary {
    /// Summarizes a figure that is the same in all rounds.
    #[cfg(feature = "peers")]
    pub fn same(figure: f64) -> Summary {
        Summary {
            median: figure,
            min: figure,
            max: figure,
        }
    }

    /// Changes each figure by a function that keeps their order.
    #[cfg(feature = "peers")]
    pub fn map(self, mut change: impl FnMut(f64) -> f64) -> Summary {
        Summary {
            median: change(self.median),
            min: change(self.min),
            max: change(self.max),
        }
    }

    /// Summarizes these rounds; `None` if there are none.
    pub fn of(rounds: impl IntoIterator<Item = f64>) -> Option<Summary> {
        let mut rounds: Vec<f64> = rounds.into_iter().collect();
        rounds.sort_by(f64::total_cmp);
        let (&min, &max) = (rounds.first()?, rounds.last()?);
        let (low, high) = (rounds[(rounds.len() - 1) / 2], rounds[rounds.len() / 2]);
        Some(Summary {
            median: (low + high) / 2.0,
            min,
            max,
        })
    }
}
