//! The results of the rounds, for people and as JSON.

use super::measure::Sample;
use super::{Case, TransactionsArgs, ours};
use crate::distribution::Distribution;
use crate::limit::Pace;
use crate::machine::Machine;
use crate::peers::transactional::TRANSACTIONAL;
use crate::summary::Summary;
use crate::{Error, records};
use serde::Serialize;

/// A line of the result.
#[derive(Serialize)]
#[serde(tag = "record", rename_all = "snake_case")]
enum Record<'r> {
    /// The results of one engine.
    Transactions {
        engine: &'r str,
        distribution: Distribution,
        threads: usize,
        /// Thousands of committed transactions per second.
        ktps: Summary,
        /// Retries per thousand committed transactions.
        conflicts_per_1000: Summary,
        /// Latency of every eighth transaction, including its retries.
        p50_us: Summary,
        p99_us: Summary,
        /// The ratio of ours to this engine; `null` for ours.
        ratio: Option<Summary>,
    },
    /// How an engine isolates transactions, and what a commit guarantees.
    About { engine: &'r str, setting: &'r str },
    /// The conditions of the run.
    Conditions {
        index: &'r str,
        keys: usize,
        seconds: f64,
        rounds: usize,
        /// Cache-miss time before and after each round.
        pace: &'r [Pace],
        machine: &'r Machine,
    },
}

impl Case {
    fn summary(&self, of: impl Fn(&Sample) -> f64) -> Option<Summary> {
        Summary::of(self.rounds.iter().map(of))
    }

    /// Returns the ratio of ours to this case, formed round by round.
    fn ratio(&self, cases: &[Case]) -> Option<Summary> {
        let is_ours = |case: &&Case| {
            case.engine == ours::NAME
                && (case.distribution, case.threads) == (self.distribution, self.threads)
        };
        let ours = cases.iter().find(is_ours).filter(|_| self.engine != ours::NAME)?;
        let rounds = ours.rounds.iter().zip(&self.rounds);
        Summary::of(rounds.map(|(ours, its)| ours.ktps / its.ktps))
    }

    fn record(&self, cases: &[Case]) -> Option<Record<'_>> {
        Some(Record::Transactions {
            engine: self.engine,
            distribution: self.distribution,
            threads: self.threads,
            ktps: self.summary(|sample| sample.ktps)?,
            conflicts_per_1000: self.summary(|sample| sample.conflicts)?,
            p50_us: self.summary(|sample| sample.p50_us)?,
            p99_us: self.summary(|sample| sample.p99_us)?,
            ratio: self.ratio(cases),
        })
    }
}

/// Returns how each engine isolates transactions, and what a commit guarantees.
fn settings() -> impl Iterator<Item = (&'static str, &'static str)> {
    let peers = TRANSACTIONAL.iter().map(|peer| (peer.name, peer.setting));
    std::iter::once((ours::NAME, ours::SETTING)).chain(peers)
}

/// Prints the results in the order of the options, not of the measurements.
pub fn print(args: &TransactionsArgs, cases: &[Case], paces: &[Pace]) -> Result<(), Error> {
    let mut sorted: Vec<&Case> = cases.iter().collect();
    sorted.sort_by_key(|case| {
        let engine = settings().position(|(name, _)| name == case.engine);
        let distribution = args.distribution.iter().position(|one| *one == case.distribution);
        (distribution, case.threads, engine)
    });
    let machine = Machine::detect();
    let about = settings().map(|(engine, setting)| Record::About { engine, setting });
    let conditions = Record::Conditions {
        index: args.index.name(),
        keys: args.keys,
        seconds: args.seconds,
        rounds: args.rounds,
        pace: paces,
        machine: &machine,
    };
    let records = sorted.iter().filter_map(|case| case.record(cases));
    let records: Vec<Record<'_>> = records.chain(about).chain([conditions]).collect();
    records::print(args.json, &records)
}
