//! A round: everything loaded anew, then read, a slice at a time by each engine in turn.

use super::figures::{Figures, OURS};
use crate::Error;
use crate::engine::{Engine, Ours};
use crate::keys::{Keys, Part};
use crate::machine::HugePages;
use crate::pass::{self, Pace};
use crate::peers;
use crate::progress::Progress;
use crate::script::Share;
use crate::store::Space;
use crate::turns::order;
use crate::workload::Step;
use heap::Heap;
use index::Index;
use pmem::Hardware;
use serde::Serialize;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Inserts of keys that are not there; ours are durable when they return.
    Insert,
    /// Single reads.
    Get,
    /// Reads of 32 keys at once.
    MultiGet,
    /// Reads of the values of 100 keys.
    Scan100,
}

impl Operation {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Insert => "insert",
            Operation::Get => "get",
            Operation::MultiGet => "multi_get",
            Operation::Scan100 => "scan100",
        }
    }

    fn share(self, keys: Part<'_>) -> Share<'_> {
        match self {
            Operation::Insert => Share::only(Step::Insert, keys),
            Operation::Get => Share::only(Step::Read, keys),
            Operation::MultiGet => Share::batches(keys),
            Operation::Scan100 => Share::only(Step::Scan, keys),
        }
    }
}

/// One round, to be run with our index.
pub struct Round<'r> {
    /// Our index's heap.
    pub heap: &'r Heap<Hardware>,
    /// Its peers, empty.
    pub peers: Vec<peers::Named>,
    /// What is inserted.
    pub load: &'r Keys,
    /// What is read.
    pub reads: &'r Keys,
    /// Where scans begin.
    pub scans: &'r Keys,
    /// Threads of each loop.
    pub threads: usize,
    /// Where to say what is going on.
    pub progress: &'r Progress,
    /// What this round is called there.
    pub label: String,
}

/// What a round gave.
pub struct Outcome {
    /// A value for each operation and engine.
    pub figures: Figures,
    /// What our index takes.
    pub space: Space,
    /// With all engines loaded.
    pub memory: HugePages,
}

/// An engine and its name.
type Candidate<'c> = (&'static str, Box<dyn Engine + 'c>);

impl Round<'_> {
    /// Runs it.
    pub fn run(mut self, index: &dyn Index) -> Result<Outcome, Error> {
        let mut candidates: Vec<Candidate<'_>> = vec![(OURS, Box::new(Ours(index)))];
        let peers = self.peers.drain(..);
        candidates.extend(peers.map(|(name, peer)| -> Candidate<'_> { (name, peer) }));
        let mut figures = Figures::default();
        let all = |operation| {
            candidates
                .iter()
                .map(move |one| (operation, one))
                .collect::<Vec<_>>()
        };
        self.measure(self.load, &all(Operation::Insert), &mut figures)?;
        let (space, memory) = (Space::of(self.heap), HugePages::now());
        let mut lookups = all(Operation::Get);
        lookups.push((Operation::MultiGet, &candidates[0]));
        self.measure(self.reads, &lookups, &mut figures)?;
        self.measure(self.scans, &all(Operation::Scan100), &mut figures)?;
        self.progress.say(format_args!("{}: clearing up", self.label));
        Ok(Outcome {
            figures,
            space,
            memory,
        })
    }
}

/// How often each of those that take turns goes first. A pass is cut into so many slices for each of them.
const FIRST: usize = 4;

/// What one of those that take turns does.
type Turn<'c> = (Operation, &'c Candidate<'c>);

impl Round<'_> {
    /// Each turn passes over all the keys, in turn slice by slice. What those read that do the same must agree.
    fn measure(&self, keys: &Keys, turns: &[Turn<'_>], figures: &mut Figures) -> Result<(), Error> {
        if let Some((operation, _)) = turns.first() {
            let what = operation.name();
            self.progress.say(format_args!("{}: {what}", self.label));
        }
        let mut seconds = vec![0.0; turns.len()];
        let slices = FIRST * turns.len();
        for slice in 0..slices {
            let mut agreed = None;
            for i in order(slice, turns.len()) {
                let (operation, (name, candidate)) = turns[i];
                // Not keys that single gets of the same engine have just brought into the cache.
                let slice = match operation {
                    Operation::MultiGet => (slice + slices / 2) % slices,
                    _ => slice,
                };
                let shares: Vec<Share<'_>> = (0..self.threads)
                    .map(|i| operation.share(keys.part(slice * self.threads + i, slices * self.threads)))
                    .collect();
                let pass = pass::pass(&**candidate, operation.name(), &shares, Pace::default())?;
                if operation != Operation::MultiGet && *agreed.get_or_insert(pass.sum) != pass.sum {
                    return Err(Error::Wrong(format!(
                        "{}: {name} reads otherwise than the others",
                        operation.name()
                    )));
                }
                seconds[i] += pass.seconds;
            }
        }
        for ((operation, (name, _)), seconds) in turns.iter().zip(seconds) {
            figures.note(*operation, name, keys.len() as f64 / seconds / 1e6);
        }
        Ok(())
    }
}
