//! The results of the rounds, by operation and engine.

use super::operation::Operation;
use crate::latency::Latencies;
use crate::pass::{Pass, SAMPLE_EVERY};
use crate::summary::Summary;

/// The result of one operation of one engine in one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Millions of operations per second.
    pub mops: f64,
    /// Latencies of the timed calls; `None` if too few were timed.
    pub p50_ns: Option<f64>,
    pub p99_ns: Option<f64>,
}

impl Sample {
    /// Summarizes the passes of a round, each by this many threads.
    ///
    /// The first call of each thread in a pass is timed, and finds the caches as the previous engine left them. A
    /// quantile is `None` if such calls could be more than half of those beyond it.
    pub fn of(passes: &[Pass], threads: usize) -> Sample {
        let mut latencies = Latencies::new();
        let (mut ops, mut seconds) = (0, 0.0);
        for pass in passes {
            latencies.add(&pass.latencies);
            ops += pass.ops;
            seconds += pass.seconds;
        }
        let (timed, first) = (ops / u64::from(SAMPLE_EVERY), (passes.len() * threads) as u64);
        let quantile = |percent: u64| {
            let enough = timed * (100 - percent) >= 2 * 100 * first;
            enough.then(|| latencies.quantile(percent as f64 / 100.0) as f64)
        };
        Sample {
            mops: ops as f64 / seconds / 1e6,
            p50_ns: quantile(50),
            p99_ns: quantile(99),
        }
    }
}

/// The samples by operation and engine, one per round. The first engine of an operation is ours.
#[derive(Clone, Debug, Default)]
pub struct Figures(Vec<(Operation, &'static str, Vec<Sample>)>);

/// The results of an engine over the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EngineSummary {
    pub operation: Operation,
    pub engine: &'static str,
    pub mops: Summary,
    pub p50_ns: Option<Summary>,
    pub p99_ns: Option<Summary>,
}

/// The name of our index among the engines.
pub const OURS: &str = "ours";

impl Figures {
    /// Records a round of one engine.
    pub fn note(&mut self, operation: Operation, engine: &'static str, sample: Sample) {
        match self
            .0
            .iter_mut()
            .find(|(of, by, _)| (*of, *by) == (operation, engine))
        {
            Some((.., rounds)) => rounds.push(sample),
            None => self.0.push((operation, engine, vec![sample])),
        }
    }

    /// Adds the samples of other rounds.
    pub fn add(&mut self, other: Figures) {
        for (operation, engine, rounds) in other.0 {
            for sample in rounds {
                self.note(operation, engine, sample);
            }
        }
    }

    fn rounds(&self, operation: Operation, engine: &str) -> &[Sample] {
        let found = self
            .0
            .iter()
            .find(|(of, by, _)| (*of, *by) == (operation, engine));
        found.map_or(&[], |(.., rounds)| rounds)
    }

    /// Returns the results of each engine.
    pub fn done(&self) -> impl Iterator<Item = EngineSummary> {
        self.0.iter().filter_map(|(operation, engine, rounds)| {
            let summary = |of: fn(&Sample) -> Option<f64>| Summary::of(rounds.iter().filter_map(of));
            Some(EngineSummary {
                operation: *operation,
                engine,
                mops: summary(|sample| Some(sample.mops))?,
                p50_ns: summary(|sample| sample.p50_ns),
                p99_ns: summary(|sample| sample.p99_ns),
            })
        })
    }

    /// Returns the ratio of two throughputs, formed round by round.
    pub fn ratio(&self, over: (Operation, &str), under: (Operation, &str)) -> Option<Summary> {
        let over = self.rounds(over.0, over.1);
        let under = self.rounds(under.0, under.1);
        Summary::of(over.iter().zip(under).map(|(over, under)| over.mops / under.mops))
    }

    /// Returns the ratios of ours to each peer, by operation.
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
pub(super) mod tests {
    use super::*;
    use crate::latency::Timeline;

    /// Returns a sample of this many million operations per second.
    pub fn sample(mops: f64) -> Sample {
        Sample {
            mops,
            p50_ns: Some(10.0 * mops),
            p99_ns: None,
        }
    }

    /// Ratios are formed within a round, not between medians.
    #[test]
    fn ratios_pair_rounds() {
        let mut figures = Figures::default();
        for (ours, peer) in [(2.0, 1.0), (1.0, 0.25), (9.0, 3.0)] {
            figures.note(Operation::Get, OURS, sample(ours));
            figures.note(Operation::Get, "peer", sample(peer));
        }
        let summary = |median, min, max| Summary { median, min, max };
        let ratios: Vec<_> = figures.ratios().collect();
        assert_eq!(ratios, [(Operation::Get, "peer", summary(3.0, 2.0, 4.0))]);
        assert_eq!(
            figures.ratio((Operation::Get, OURS), (Operation::Get, "nobody")),
            None
        );
        let done: Vec<_> = figures
            .done()
            .map(|done| (done.engine, done.p50_ns, done.p99_ns))
            .collect();
        let medians = [summary(20.0, 10.0, 90.0), summary(10.0, 2.5, 30.0)].map(Some);
        assert_eq!(done, [(OURS, medians[0], None), ("peer", medians[1], None)]);
    }

    /// A quantile that mostly covers first calls of a turn is `None`.
    #[test]
    fn first_calls_are_not_the_rule() {
        let sample = |ops: u64| {
            let pass = || Pass {
                ops,
                seconds: 1.0,
                latencies: Latencies::new(),
                timeline: Timeline::new(),
                sum: 0,
            };
            let sample = Sample::of(&[pass(), pass()], 3);
            (sample.p50_ns.is_some(), sample.p99_ns.is_some())
        };
        let each = 3 * u64::from(SAMPLE_EVERY);
        assert_eq!(sample(4 * each - 1), (false, false));
        assert_eq!(sample(4 * each), (true, false));
        assert_eq!(sample(200 * each - 1), (true, false));
        assert_eq!(sample(200 * each), (true, true));
    }
}
