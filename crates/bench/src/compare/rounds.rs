//! A round: everything loaded anew, then read, a slice at a time by each engine in turn.

use super::peers::{BTree, Congee, Skip};
use super::summary::{Figures, OURS};
use crate::Error;
use crate::engine::{Engine, Ours};
use crate::keys::{KeyKind, Keys, Part};
use crate::machine::HugePages;
use crate::progress::Progress;
use crate::store::Space;
use crate::workload::{self, Pass, Workload};
use heap::Heap;
use index::Index;
use indexes::WithIndex;
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

    fn workload(self) -> Workload {
        match self {
            Operation::Insert => Workload::Load,
            Operation::Get => Workload::Get,
            Operation::MultiGet => Workload::MultiGet,
            Operation::Scan100 => Workload::Scan100,
        }
    }
}

/// An engine behind one virtual call a slice; the loop over the slice is compiled for its type.
trait Measured {
    fn pass(&self, workload: Workload, keys: &[Part<'_>]) -> Result<Pass, Error>;
}

impl<E: Engine> Measured for E {
    fn pass(&self, workload: Workload, keys: &[Part<'_>]) -> Result<Pass, Error> {
        workload::pass(self, workload, keys)
    }
}

/// One round, to be run with our index.
pub struct Round<'r> {
    /// Our index's heap.
    pub heap: &'r Heap<Hardware>,
    /// Which peers can take the keys.
    pub kind: KeyKind,
    /// What is inserted.
    pub load: &'r Keys,
    /// What is read.
    pub reads: &'r Keys,
    /// Where scans begin.
    pub scans: &'r Keys,
    /// Threads of each loop.
    pub threads: usize,
    /// Without peers.
    pub alone: bool,
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
type Candidate<'c> = (&'static str, Box<dyn Measured + 'c>);

impl WithIndex for Round<'_> {
    type Out = Result<Outcome, Error>;

    fn with<I: Index + 'static>(self, index: I) -> Self::Out {
        let mut candidates: Vec<Candidate<'_>> = vec![(OURS, Box::new(Ours(&index)))];
        if !self.alone {
            candidates.extend(self.peers());
        }
        let mut figures = Figures::default();
        self.measure(Operation::Insert, self.load, &candidates, &mut figures)?;
        let (space, memory) = (Space::of(self.heap), HugePages::now());
        self.measure(Operation::Get, self.reads, &candidates, &mut figures)?;
        self.measure(Operation::MultiGet, self.reads, &candidates[..1], &mut figures)?;
        self.measure(Operation::Scan100, self.scans, &candidates, &mut figures)?;
        self.progress.say(format_args!("{}: clearing up", self.label));
        Ok(Outcome {
            figures,
            space,
            memory,
        })
    }
}

/// Into how many slices a pass is cut.
const SLICES: usize = 20;

impl Round<'_> {
    fn peers(&self) -> Vec<Candidate<'static>> {
        match self.kind {
            KeyKind::U64 | KeyKind::Print8 => vec![
                ("congee", Box::new(Congee::new())),
                ("crossbeam-skiplist", Box::new(Skip::<u64>::new())),
                ("BTreeMap+RwLock", Box::new(BTree::<u64>::new())),
            ],
            KeyKind::Str => vec![
                ("crossbeam-skiplist", Box::new(Skip::<Box<[u8]>>::new())),
                ("BTreeMap+RwLock", Box::new(BTree::<Box<[u8]>>::new())),
            ],
        }
    }

    /// Passes over all the keys with each candidate, in turn slice by slice. What they read must agree.
    fn measure(
        &self,
        operation: Operation,
        keys: &Keys,
        candidates: &[Candidate<'_>],
        figures: &mut Figures,
    ) -> Result<(), Error> {
        self.progress
            .say(format_args!("{}: {}", self.label, operation.name()));
        let mut seconds = vec![0.0; candidates.len()];
        for slice in 0..SLICES {
            let parts: Vec<Part<'_>> = (0..self.threads)
                .map(|i| keys.part(slice * self.threads + i, SLICES * self.threads))
                .collect();
            let mut agreed = None;
            // Each goes first as often as the others.
            for turn in 0..candidates.len() {
                let i = (slice + turn) % candidates.len();
                let (name, candidate) = &candidates[i];
                let pass = candidate.pass(operation.workload(), &parts)?;
                if *agreed.get_or_insert(pass.sum) != pass.sum {
                    return Err(Error::Wrong(format!(
                        "{}: {name} reads otherwise than the others",
                        operation.name()
                    )));
                }
                seconds[i] += pass.seconds;
            }
        }
        for ((name, _), seconds) in candidates.iter().zip(seconds) {
            figures.note(operation, name, keys.len() as f64 / seconds / 1e6);
        }
        Ok(())
    }
}
