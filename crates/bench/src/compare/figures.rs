//! What the rounds gave, by operation and engine.

use super::rounds::Operation;
use crate::summary::Summary;

/// Millions of operations a second, by operation and engine, a value a round. The first engine of an operation is
/// ours.
#[derive(Clone, Debug, Default)]
pub struct Figures(Vec<(Operation, &'static str, Vec<f64>)>);

/// What our index is called among the engines.
pub const OURS: &str = "ours";

impl Figures {
    /// Notes a round of one engine.
    pub fn note(&mut self, operation: Operation, engine: &'static str, mops: f64) {
        match self
            .0
            .iter_mut()
            .find(|(of, by, _)| (*of, *by) == (operation, engine))
        {
            Some((.., rounds)) => rounds.push(mops),
            None => self.0.push((operation, engine, vec![mops])),
        }
    }

    /// Adds another round, or rounds.
    pub fn add(&mut self, other: Figures) {
        for (operation, engine, rounds) in other.0 {
            for mops in rounds {
                self.note(operation, engine, mops);
            }
        }
    }

    fn rounds(&self, operation: Operation, engine: &str) -> &[f64] {
        let found = self
            .0
            .iter()
            .find(|(of, by, _)| (*of, *by) == (operation, engine));
        found.map_or(&[], |(.., rounds)| rounds)
    }

    /// What each engine did.
    pub fn throughputs(&self) -> impl Iterator<Item = (Operation, &'static str, Summary)> {
        let summary = |(operation, engine, rounds): &(Operation, &'static str, Vec<f64>)| {
            Some((*operation, *engine, Summary::of(rounds.iter().copied())?))
        };
        self.0.iter().filter_map(summary)
    }

    /// The ratio of one series of rounds to another, formed round by round.
    pub fn ratio(&self, over: (Operation, &str), under: (Operation, &str)) -> Option<Summary> {
        let over = self.rounds(over.0, over.1);
        let under = self.rounds(under.0, under.1);
        Summary::of(over.iter().zip(under).map(|(over, under)| over / under))
    }

    /// Ours to each peer, operation by operation.
    pub fn ratios(&self) -> impl Iterator<Item = (Operation, &'static str, Summary)> {
        let peers = self.0.iter().filter(|(_, engine, _)| *engine != OURS);
        peers.filter_map(|(operation, peer, _)| {
            Some((
                *operation,
                *peer,
                self.ratio((*operation, OURS), (*operation, peer))?,
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ratios are formed within a round, not between medians.
    #[test]
    fn ratios_pair_rounds() {
        let mut figures = Figures::default();
        for (ours, peer) in [(2.0, 1.0), (1.0, 0.25), (9.0, 3.0)] {
            figures.note(Operation::Get, OURS, ours);
            figures.note(Operation::Get, "peer", peer);
        }
        let ratios: Vec<_> = figures.ratios().collect();
        assert_eq!(
            ratios,
            [(
                Operation::Get,
                "peer",
                Summary {
                    median: 3.0,
                    least: 2.0,
                    most: 4.0
                }
            )]
        );
        assert_eq!(
            figures.ratio((Operation::Get, OURS), (Operation::Get, "nobody")),
            None
        );
    }
}
