//! Measures synced commits: the raw loop, ours and peers.

use super::Plan;
use super::ours::{self, LOAD_BATCH, Ours};
use super::pairs::Shape;
use super::raw::{self, Raw};
use super::report::Record;
use super::timed::{Sample, measure};
use crate::Error;
use crate::peers::kept::{Commits, SyncedStore};
use crate::peers::syncing::SYNCING;
use crate::progress::Progress;
use crate::random::Random;
use crate::summary::Summary;
use crate::turns::order;
use std::collections::BTreeMap;
use wollemi::Level;

/// The name of the bound.
const RAW: &str = "raw";

/// Threads, and pairs per commit.
const CASES: [(usize, usize); 4] = [(1, 1), (8, 1), (64, 1), (1, 64)];

/// Keys checked at the end.
const CHECKED_KEYS: usize = 1000;

/// The result of a round: the commits, and pairs per sync if known.
type Figure = (Sample, Option<f64>);

/// The measured engines.
struct Sides {
    raw: Raw,
    ours: Ours,
    peers: Vec<(&'static str, Box<dyn SyncedStore>)>,
}

impl Sides {
    fn open(plan: &Plan, shape: Shape, progress: &Progress) -> Result<Sides, Error> {
        let raw = Raw::create(&plan.directory)?;
        progress.say("filling wollemi");
        let ours = Ours::open(&plan.place(ours::NAME)?, Level::Disk)?;
        ours.fill(shape, plan.keys)?;
        let mut peers = Vec::new();
        for peer in SYNCING {
            progress.say(format_args!("filling {}", peer.name));
            let engine = (peer.open)(&plan.place(peer.name)?)?;
            shape.all(plan.keys, LOAD_BATCH, |pairs| engine.commit(pairs))?;
            peers.push((peer.name, engine));
        }
        Ok(Sides { raw, ours, peers })
    }

    fn count(&self) -> usize {
        2 + self.peers.len()
    }

    fn name(&self, side: usize) -> &'static str {
        match side {
            0 => RAW,
            1 => ours::NAME,
            peer => self.peers[peer - 2].0,
        }
    }

    fn get(&self, side: usize) -> &dyn Commits {
        match side {
            0 => &self.raw,
            1 => &self.ours,
            peer => &*self.peers[peer - 2].1,
        }
    }

    /// Returns the number of disk syncs so far, if counted.
    fn syncs(&self, side: usize) -> Option<u64> {
        match side {
            0 => Some(self.raw.syncs()),
            1 => Some(self.ours.log().syncs),
            _ => None,
        }
    }

    /// Checks that sampled keys have values of their own.
    fn check(&self, shape: Shape, plan: &Plan) -> Result<(), Error> {
        let engines = self.peers.iter().map(|(name, engine)| (*name, &**engine));
        for (name, engine) in engines.chain([(ours::NAME, &self.ours as &dyn SyncedStore)]) {
            let mut random = Random::new(plan.seed);
            for number in (0..CHECKED_KEYS).map(|_| random.below(plan.keys as u64)) {
                shape.check(name, number, engine.get(&shape.key(number))?.as_deref())?;
            }
        }
        Ok(())
    }
}

/// Measures all engines in turn, round by round.
pub fn run(plan: &Plan, progress: &Progress) -> Result<Vec<Record>, Error> {
    let shape = Shape::usual(plan.seed);
    let sides = Sides::open(plan, shape, progress)?;
    let mut figures: BTreeMap<(usize, usize), Vec<Figure>> = BTreeMap::new();
    for round in 0..plan.rounds {
        for (case, (threads, each)) in CASES.into_iter().enumerate() {
            for side in order(round, sides.count()) {
                progress.say(format_args!(
                    "{}, threads: {threads}, pairs of a commit: {each}, round {} of {}",
                    sides.name(side),
                    round + 1,
                    plan.rounds
                ));
                let (engine, before) = (sides.get(side), sides.syncs(side));
                let sample = measure(threads, each, plan.time, plan.seed + round as u64, |random| {
                    shape.draw(random, plan.keys, each, |pairs| engine.commit(pairs))
                })?;
                let syncs = sides
                    .syncs(side)
                    .zip(before)
                    .map(|(after, before)| after - before);
                let records = sample.rate * 1e3 * plan.time.as_secs_f64();
                let group = syncs.map(|syncs| records / syncs.max(1) as f64);
                figures.entry((case, side)).or_default().push((sample, group));
            }
        }
    }
    sides.check(shape, plan)?;
    let records = figures.iter().filter_map(|(&(case, side), rounds)| {
        let ours = figures.get(&(case, 1)).filter(|_| side != 1);
        let ratio = ours.and_then(|ours| {
            let both = ours.iter().zip(rounds);
            Summary::of(both.map(|((ours, _), (its, _))| ours.rate / its.rate))
        });
        let of = |figure: fn(&Figure) -> Option<f64>| Summary::of(rounds.iter().filter_map(figure));
        Some(Record::Writes {
            engine: sides.name(side),
            threads: CASES[case].0,
            pairs_a_commit: CASES[case].1,
            krps: of(|(sample, _)| Some(sample.rate))?,
            p50_us: of(|(sample, _)| Some(sample.p50_us))?,
            p99_us: of(|(sample, _)| Some(sample.p99_us))?,
            pairs_a_sync: of(|(_, group)| *group),
            ratio,
        })
    });
    let settings = SYNCING.iter().map(|peer| (peer.name, peer.setting));
    let settings = [(RAW, raw::SETTING), (ours::NAME, ours::SETTING)]
        .into_iter()
        .chain(settings);
    let about = settings.map(|(engine, setting)| Record::About { engine, setting });
    Ok(records.chain(about).collect())
}
