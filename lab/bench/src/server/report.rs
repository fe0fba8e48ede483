//! The results of the rounds, for people and as JSON.

use super::started::{OURS, Started};
use super::words::{Operation, Protocol};
use super::{Endpoint, ServerArgs};
use crate::Error;
use crate::limit::Pace;
use crate::machine::Machine;
use crate::records;
use crate::summary::Summary;
use serde::Serialize;

/// The pipeline length for which targets are set.
const TARGET: usize = 16;

/// The results of one measurement.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Thousands of answered requests per second.
    pub kops: f64,
    /// Latency of a turn, from sending it to its last answer.
    pub p50_us: f64,
    pub p99_us: f64,
}

/// The results of all measurements, in order.
#[derive(Default)]
pub struct Figures {
    cases: Vec<Case>,
    /// Cache-miss time before and after each round.
    pub paces: Vec<Pace>,
}

struct Case {
    endpoint: Endpoint,
    operation: Operation,
    pipeline: usize,
    rounds: Vec<Figure>,
}

impl Figures {
    /// Records a measurement.
    pub fn note(&mut self, endpoint: Endpoint, operation: Operation, pipeline: usize, figure: Figure) {
        match self.position(endpoint, operation, pipeline) {
            Some(at) => self.cases[at].rounds.push(figure),
            None => self.cases.push(Case {
                endpoint,
                operation,
                pipeline,
                rounds: vec![figure],
            }),
        }
    }

    fn position(&self, endpoint: Endpoint, operation: Operation, pipeline: usize) -> Option<usize> {
        self.cases.iter().position(|case| {
            (case.endpoint, case.operation, case.pipeline) == (endpoint, operation, pipeline)
        })
    }
}

impl Case {
    fn summary(&self, of: impl Fn(&Figure) -> f64) -> Option<Summary> {
        Summary::of(self.rounds.iter().map(of))
    }

    /// Returns the ratio of ours to this case, formed round by round.
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
    /// The results of one server.
    Server {
        server: &'r str,
        protocol: Protocol,
        operation: Operation,
        pipeline: usize,
        kops: Summary,
        p50_us: Summary,
        p99_us: Summary,
    },
    /// The ratio of ours to a peer, in the peer's protocol.
    Ratio {
        peer: &'r str,
        operation: Operation,
        pipeline: usize,
        throughput: Summary,
        p99: Summary,
        /// The required throughput ratio, and whether it was reached with a p99 that is no worse.
        #[serde(skip_serializing_if = "Option::is_none")]
        asked: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        met: Option<bool>,
    },
    /// The description of a server.
    About {
        server: &'r str,
        version: &'r str,
        promise: &'r str,
    },
    /// The conditions of the run.
    Conditions {
        keys: usize,
        value: usize,
        connections: usize,
        seconds: f64,
        rounds: usize,
        /// Cache-miss time before and after each round.
        pace: &'r [Pace],
        machine: &'r Machine,
    },
}

/// Prints the records in the requested format.
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

/// Returns a record for each case, and after a peer's case the ratio of ours to it.
fn cases(figures: &Figures) -> Vec<Record<'_>> {
    let mut records = Vec::new();
    for case in &figures.cases {
        let (name, protocol) = case.endpoint;
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
