//! The results of the rounds, for people and as JSON.

use super::started::{OURS, Started};
use super::words::{Operation, Protocol};
use super::{ServerArgs, Who};
use crate::Error;
use crate::limit::Pace;
use crate::machine::Machine;
use crate::records;
use crate::summary::Summary;
use serde::Serialize;

/// The pipeline at which there are targets.
const TARGET: usize = 16;

/// What one measurement gave.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Thousands of requests answered in a second.
    pub kops: f64,
    /// Of a turn: from its sending to its last answer.
    pub p50_us: f64,
    pub p99_us: f64,
}

/// What all measurements gave, in their order.
#[derive(Default)]
pub struct Figures {
    cases: Vec<Case>,
    /// What a miss took around each round.
    pub paces: Vec<Pace>,
}

struct Case {
    who: Who,
    operation: Operation,
    pipeline: usize,
    rounds: Vec<Figure>,
}

impl Figures {
    pub fn note(&mut self, who: Who, operation: Operation, pipeline: usize, figure: Figure) {
        match self.position(who, operation, pipeline) {
            Some(at) => self.cases[at].rounds.push(figure),
            None => self.cases.push(Case {
                who,
                operation,
                pipeline,
                rounds: vec![figure],
            }),
        }
    }

    fn position(&self, who: Who, operation: Operation, pipeline: usize) -> Option<usize> {
        self.cases
            .iter()
            .position(|case| (case.who, case.operation, case.pipeline) == (who, operation, pipeline))
    }
}

impl Case {
    fn summary(&self, of: impl Fn(&Figure) -> f64) -> Option<Summary> {
        Summary::of(self.rounds.iter().map(of))
    }

    /// Ours by this one's, within each round.
    fn ratio(&self, ours: &Case, of: impl Fn(&Figure) -> f64) -> Option<Summary> {
        Summary::of(
            ours.rounds
                .iter()
                .zip(&self.rounds)
                .map(|(ours, its)| of(ours) / of(its)),
        )
    }
}

/// A line of the result.
#[derive(Serialize)]
#[serde(tag = "record", rename_all = "snake_case")]
enum Record<'r> {
    /// What one server did.
    Server {
        server: &'r str,
        protocol: Protocol,
        operation: Operation,
        pipeline: usize,
        kops: Summary,
        p50_us: Summary,
        p99_us: Summary,
    },
    /// How ours stands to a peer, in the peer's protocol.
    Ratio {
        peer: &'r str,
        operation: Operation,
        pipeline: usize,
        throughput: Summary,
        p99: Summary,
        /// The least throughput ratio that was asked for, and whether it was reached with a p99 no worse.
        #[serde(skip_serializing_if = "Option::is_none")]
        asked: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        met: Option<bool>,
    },
    /// What a server is.
    About {
        server: &'r str,
        version: &'r str,
        promise: &'r str,
    },
    /// What the run was made on.
    Conditions {
        keys: usize,
        value: usize,
        connections: usize,
        seconds: f64,
        rounds: usize,
        /// What a miss took before and after each round.
        pace: &'r [Pace],
        machine: &'r Machine,
    },
}

/// Prints what was asked for.
pub fn print(
    args: &ServerArgs,
    servers: &[Started],
    figures: &Figures,
    machine: &Machine,
) -> Result<(), Error> {
    let about = servers.iter().map(|server| Record::About {
        server: server.name,
        version: &server.version,
        promise: &server.promise,
    });
    let conditions = Record::Conditions {
        keys: args.keys,
        value: args.value,
        connections: args.connections,
        seconds: args.seconds,
        rounds: args.rounds,
        pace: &figures.paces,
        machine,
    };
    let records: Vec<Record<'_>> = cases(figures)
        .into_iter()
        .chain(about)
        .chain([conditions])
        .collect();
    records::print(args.json, &records)
}

/// Each case, and behind a peer's how ours stands to it.
fn cases(figures: &Figures) -> Vec<Record<'_>> {
    let mut records = Vec::new();
    for case in &figures.cases {
        let (name, protocol) = case.who;
        let (operation, pipeline) = (case.operation, case.pipeline);
        if let (Some(kops), Some(p50_us), Some(p99_us)) = (
            case.summary(|figure| figure.kops),
            case.summary(|figure| figure.p50_us),
            case.summary(|figure| figure.p99_us),
        ) {
            records.push(Record::Server {
                server: name,
                protocol,
                operation,
                pipeline,
                kops,
                p50_us,
                p99_us,
            });
        }
        let ours = figures.position((OURS, protocol), operation, pipeline);
        let Some(ours) = ours.map(|at| &figures.cases[at]).filter(|_| name != OURS) else {
            continue;
        };
        if let (Some(throughput), Some(p99)) = (
            case.ratio(ours, |figure| figure.kops),
            case.ratio(ours, |figure| figure.p99_us),
        ) {
            let asked = (pipeline == TARGET).then_some(match protocol {
                Protocol::Memcached => 1.0,
                Protocol::Redis => 1.5,
            });
            records.push(Record::Ratio {
                peer: name,
                operation,
                pipeline,
                throughput,
                p99,
                asked,
                met: asked.map(|asked| throughput.median >= asked && p99.median <= 1.0),
            });
        }
    }
    records
}
