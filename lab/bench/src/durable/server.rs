//! Measures the server at levels `disk` and `process`, beside Redis with its append-only file.

use super::report::Record;
use super::{DurableArgs, Plan};
use crate::progress::Progress;
use crate::server::client::{self, Client};
use crate::server::report::Figure;
use crate::server::started::{self, Started};
use crate::server::words::{Operation, Protocol};
use crate::summary::Summary;
use crate::turns::order;
use crate::{Error, machine, server};
use std::collections::BTreeMap;

/// When an answer is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SyncPolicy {
    Always,
    Everysec,
    /// Level `process`.
    None,
}

impl SyncPolicy {
    fn name(self) -> &'static str {
        match self {
            SyncPolicy::Always => "always",
            SyncPolicy::Everysec => "everysec",
            SyncPolicy::None => "level process",
        }
    }
}

/// Requests that a connection sends before it waits for their answers.
const PIPELINES: [usize; 2] = [1, 16];

/// Bytes per value; keys have 16.
const VALUE_BYTES: usize = 100;

const REDIS: &str = "redis";

/// Measures all servers in turn, round by round.
pub fn run(args: &DurableArgs, plan: &Plan, progress: &Progress) -> Result<Vec<Record>, Error> {
    let beside = || std::env::current_exe().map(|program| program.with_file_name(started::OURS));
    let program = match &args.wollemi {
        Some(program) => program.clone(),
        None => beside().map_err(Error::Filler)?,
    };
    let mut servers = Vec::new();
    for sync in [SyncPolicy::Always, SyncPolicy::Everysec, SyncPolicy::None] {
        let place = plan.place(&format!("wollemi {}", sync.name()))?;
        let more: &[&str] = match sync {
            SyncPolicy::None => &["--level", "process"],
            some => &["--level", "disk", "--sync", some.name()],
        };
        servers.push((sync, started::ours(&program, &place, more, 0)?));
    }
    let mut records = Vec::new();
    for sync in [SyncPolicy::Always, SyncPolicy::Everysec] {
        let place = plan.place(&format!("redis {}", sync.name()))?;
        let log = ["--appendonly", "yes", "--appendfsync", sync.name()];
        match started::redis(&args.redis, &log, &place, 0)? {
            Some(redis) => servers.push((sync, redis)),
            None => {
                let (what, why) = (REDIS, "no such program (--redis)");
                records.push(Record::LeftOut { what, why });
                break;
            }
        }
    }
    records.extend(measure(args, plan, progress, &servers)?);
    Ok(records)
}

/// Measures each server with a client on its own core.
fn measure(
    args: &DurableArgs,
    plan: &Plan,
    progress: &Progress,
    servers: &[(SyncPolicy, Started)],
) -> Result<Vec<Record>, Error> {
    let ask = || {
        machine::pin_thread(1);
        let mut clients = Vec::new();
        for (sync, server) in servers {
            let redis = server
                .listens
                .iter()
                .find(|(protocol, _)| *protocol == Protocol::Redis);
            let Some(&(protocol, address)) = redis else {
                return Err(Error::Wrong(format!(
                    "{} does not speak Redis's protocol",
                    server.name
                )));
            };
            let mut client = Client::connect(server.name, protocol, address, args.connections)?;
            progress.say(format_args!("filling {} {}", server.name, sync.name()));
            server::load(plan.keys, VALUE_BYTES, &mut client)?;
            clients.push(client);
        }
        let mut figures: BTreeMap<(usize, usize), Vec<Figure>> = BTreeMap::new();
        for round in 0..plan.rounds {
            for pipeline in PIPELINES {
                for side in order(round, clients.len()) {
                    let (sync, server) = (servers[side].0, servers[side].1.name);
                    progress.say(format_args!(
                        "{server} {}, pipeline {pipeline}, round {} of {}",
                        sync.name(),
                        round + 1,
                        plan.rounds
                    ));
                    let what = client::Plan {
                        operation: Operation::Set,
                        pipeline,
                        length: VALUE_BYTES,
                    };
                    let seed = plan.seed + round as u64;
                    let figure = server::measure(what, plan.keys, plan.time, seed, &mut clients[side])?;
                    figures.entry((pipeline, side)).or_default().push(figure);
                }
            }
        }
        Ok(figures)
    };
    // Only the client's thread is pinned; this one keeps its affinity.
    let figures = std::thread::scope(|scope| {
        let panicked = |_| Error::Wrong("a thread has panicked".into());
        scope.spawn(ask).join().map_err(panicked)?
    })?;
    Ok(report(servers, &figures))
}

fn report(servers: &[(SyncPolicy, Started)], figures: &BTreeMap<(usize, usize), Vec<Figure>>) -> Vec<Record> {
    let ours = |sync, pipeline| {
        let is_it = |(of, server): &(SyncPolicy, Started)| *of == sync && server.name == started::OURS;
        figures.get(&(pipeline, servers.iter().position(is_it)?))
    };
    let records = figures.iter().filter_map(|(&(pipeline, side), rounds)| {
        let (sync, server) = &servers[side];
        let ratio = |to: Option<&Vec<Figure>>, flip: bool| {
            let both = to?.iter().zip(rounds).map(|(one, its)| one.kops / its.kops);
            Summary::of(both.map(|ratio| if flip { 1.0 / ratio } else { ratio }))
        };
        let is_ours = server.name == started::OURS;
        let of = |figure: fn(&Figure) -> f64| Summary::of(rounds.iter().map(figure));
        Some(Record::Server {
            server: server.name,
            version: server.version.clone(),
            sync: sync.name(),
            pipeline,
            kops: of(|figure| figure.kops)?,
            p50_us: of(|figure| figure.p50_us)?,
            p99_us: of(|figure| figure.p99_us)?,
            ratio: ratio(ours(*sync, pipeline).filter(|_| !is_ours), false),
            to_process: ratio(
                ours(SyncPolicy::None, pipeline).filter(|_| is_ours && *sync != SyncPolicy::None),
                true,
            ),
        })
    });
    records.collect()
}
