//! A round: loads all keys again, then reads, updates, inserts and removes, a slice at a time by each engine in turn.

use super::figures::{Figures, Sample};
use super::operation::Operation;
use crate::Error;
use crate::engine::{Engine, Ours};
use crate::keys::{self, Keys};
use crate::machine::HugePages;
use crate::pass::{self, Pace, Pass};
use crate::peers;
use crate::progress::Progress;
use crate::script::{Script, ScriptOptions, Share, Steps};
use crate::store::Space;
use crate::turns::order;
use crate::workload::{Step, Workload};
use heap::Heap;
use index::Index;
use pmem::Hardware;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// One of our indexes, empty.
pub struct Own {
    /// Its name among the engines.
    pub name: &'static str,
    /// Whether it has ordered scans.
    pub is_ordered: bool,
    pub heap: Heap<Hardware>,
    pub index: Box<dyn Index>,
}

/// One round of our indexes and their peers.
pub struct Round<'r> {
    /// Our indexes.
    pub own: &'r [Own],
    /// The peers, empty.
    pub peers: Vec<peers::Named>,
    /// The keys to load.
    pub load: &'r Keys,
    /// The keys to read.
    pub reads: &'r Keys,
    /// The first keys of scans.
    pub scans: &'r Keys,
    /// The keys to update; YCSB A has as many operations.
    pub updates: &'r Keys,
    /// Absent keys, inserted after that.
    pub inserts: &'r Keys,
    /// Loaded keys, removed at the end.
    pub removes: &'r Keys,
    /// The directory of the engines' files, each under the engine's name.
    pub files: Option<&'r Path>,
    /// The seed of this round's choices.
    pub seed: u64,
    /// Threads of each loop.
    pub threads: usize,
    /// Shows the progress.
    pub progress: &'r Progress,
    /// The round's name in progress messages.
    pub label: String,
}

/// The results of a round.
pub struct Outcome {
    /// A value for each operation and engine.
    pub figures: Figures,
    /// The space that each of our indexes uses after loading.
    pub space: Vec<(&'static str, Space)>,
    /// Bytes of each engine's files, after loading and settling.
    pub files: Vec<(&'static str, u64)>,
    /// Huge pages with all engines loaded.
    pub memory: HugePages,
}

/// An engine and its name.
type Candidate<'c> = (&'static str, Box<dyn Engine + 'c>);

impl Round<'_> {
    /// Runs the round.
    pub fn run(mut self) -> Result<Outcome, Error> {
        let own = self.own.iter();
        let own = own.map(|own| -> Candidate<'_> { (own.name, Box::new(Ours(&*own.index))) });
        let peers = self.peers.drain(..);
        let candidates: &Vec<_> = &own
            .chain(peers.map(|(name, peer)| -> Candidate<'_> { (name, peer) }))
            .collect();
        let mut figures = Figures::default();
        let shares = self.shares(candidates.len());
        let all = |operation, step, keys, figures: &mut _| {
            let shares = only(step, keys, shares);
            self.measure(&turns(operation, candidates, &shares), figures)
        };
        all(Operation::Load, Step::Insert, self.load, &mut figures)?;
        let space = self.own.iter().map(|own| (own.name, Space::of(&own.heap)));
        let (space, memory) = (space.collect(), HugePages::now());
        let mut files = Vec::new();
        for (name, candidate) in candidates.iter().filter(|_| self.files.is_some()) {
            candidate.settle()?;
            let own = self.files.map(|directory| directory.join(name));
            files.extend(own.map(|path| (*name, bytes_on_disk(&path))));
        }
        self.lookups(candidates, &mut figures)?;
        self.scans(candidates, &mut figures)?;
        all(Operation::Update, Step::Update, self.updates, &mut figures)?;
        let mixed = ycsb_a(self.load, self.updates.len(), shares, self.seed)?;
        self.measure(
            &turns(Operation::YcsbA, candidates, &mixed.shares()),
            &mut figures,
        )?;
        all(Operation::Insert, Step::Insert, self.inserts, &mut figures)?;
        all(Operation::Remove, Step::Remove, self.removes, &mut figures)?;
        self.progress.say(format_args!("{}: clearing up", self.label));
        Ok(Outcome {
            figures,
            space,
            files,
            memory,
        })
    }

    /// Measures the scans of each engine that has them.
    fn scans(&self, candidates: &[Candidate<'_>], figures: &mut Figures) -> Result<(), Error> {
        let unordered = |name| self.own.iter().any(|own| own.name == name && !own.is_ordered);
        let ordered = candidates.iter().filter(|(name, _)| !unordered(*name));
        let shares = only(Step::Scan, self.scans, self.shares(ordered.clone().count()));
        self.measure(&turns(Operation::Scan100, ordered, &shares), figures)
    }

    /// Measures single gets of each engine, and `multi_get` of ours in turn with them.
    fn lookups(&self, candidates: &[Candidate<'_>], figures: &mut Figures) -> Result<(), Error> {
        let own = self.own.len();
        let shares = self.shares(candidates.len() + own);
        let gets = only(Step::Read, self.reads, shares);
        let mut batches: Vec<Share<'_>> = (0..shares)
            .map(|i| Share::batches(self.reads.part(i, shares)))
            .collect();
        // Avoids the keys that single gets of the same engine have just brought into the cache.
        batches.rotate_left(shares / 2);
        let mut lookups = turns(Operation::Get, candidates, &gets);
        lookups.extend(turns(Operation::MultiGet, &candidates[..own], &batches));
        self.measure(&lookups, figures)
    }
}

/// YCSB's exponent.
const THETA: f64 = 0.99;

/// How often each participant goes first. Operations are measured in this many slices per participant.
const FIRST_TURNS: usize = 4;

/// Gets of each participant before a slice of anything but the load.
const WARM_UP: usize = 20_000;

/// The work of one participant: a share for each slice and thread.
#[derive(Clone, Copy)]
struct Turn<'c> {
    operation: Operation,
    candidate: &'c Candidate<'c>,
    shares: &'c [Share<'c>],
}

/// Creates a turn of the same operation for each candidate.
fn turns<'c>(
    operation: Operation,
    candidates: impl IntoIterator<Item = &'c Candidate<'c>>,
    shares: &'c [Share<'c>],
) -> Vec<Turn<'c>> {
    let turn = |candidate| Turn {
        operation,
        candidate,
        shares,
    };
    candidates.into_iter().map(turn).collect()
}

/// Splits the keys into this many shares of the same step.
fn only(step: Step, keys: &Keys, shares: usize) -> Vec<Share<'_>> {
    (0..shares)
        .map(|i| Share::only(step, keys.part(i, shares)))
        .collect()
}

impl Round<'_> {
    /// Returns the number of shares of an operation that this many participants run in turn.
    fn shares(&self, turns: usize) -> usize {
        FIRST_TURNS * turns * self.threads
    }

    /// Some of the loaded keys, others for each of the following slices.
    fn warm_up(&self, slice: usize) -> keys::Part<'_> {
        let parts = self.load.len().div_ceil(WARM_UP).max(1);
        self.load.part(slice % parts, parts)
    }

    /// Runs the turns slice by slice until each has run all its shares. Engines that run the same operation must read
    /// the same values.
    fn measure(&self, turns: &[Turn<'_>], figures: &mut Figures) -> Result<(), Error> {
        if let Some(turn) = turns.first() {
            let what = turn.operation.name();
            self.progress.say(format_args!("{}: {what}", self.label));
        }
        let mut passes: Vec<Vec<Pass>> = turns.iter().map(|_| Vec::new()).collect();
        for slice in 0..FIRST_TURNS * turns.len() {
            let mut agreed = None;
            let loads = turns.iter().any(|turn| turn.operation == Operation::Load);
            let warm_up = (!loads).then(|| self.warm_up(slice));
            for i in order(slice, turns.len()) {
                let Turn {
                    operation,
                    candidate: (name, candidate),
                    shares,
                } = turns[i];
                let shares = &shares[slice * self.threads..(slice + 1) * self.threads];
                let what = operation.name();
                let pass = pass::warmed_pass(&**candidate, what, warm_up, shares, Pace::default())?;
                if operation.agrees() && *agreed.get_or_insert(pass.sum) != pass.sum {
                    return Err(Error::Wrong(format!(
                        "{}: {name} read other values than the other engines",
                        operation.name()
                    )));
                }
                passes[i].push(pass);
            }
        }
        for (turn, passes) in turns.iter().zip(passes) {
            figures.note(
                turn.operation,
                turn.candidate.0,
                Sample::of(&passes, self.threads),
            );
        }
        Ok(())
    }
}

/// Creates YCSB A over these keys, all of them loaded, in this many shares.
pub fn ycsb_a(keys: &Keys, ops: usize, shares: usize, seed: u64) -> Result<Script, Error> {
    let workload =
        Workload::named("ycsb-a").ok_or_else(|| Error::Wrong("no workload is called 'ycsb-a'".into()))?;
    let options = ScriptOptions {
        ops,
        threads: shares,
        distribution: workload.distribution,
        theta: THETA,
        scans: workload.scans,
        seed,
    };
    let steps = Steps::new(workload, ops, seed);
    Ok(Script::new(
        workload,
        steps,
        keys,
        keys.len(),
        keys.len(),
        &options,
    ))
}

/// Returns the bytes on disk of a file, or of all files below a directory, without holes. Files that cannot be read or
/// that vanish meanwhile count as zero.
fn bytes_on_disk(path: &Path) -> u64 {
    let Ok(metadata) = path.symlink_metadata() else {
        return 0;
    };
    let own = metadata.blocks() * 512;
    let below = path.read_dir().into_iter().flatten().flatten();
    own + below.map(|entry| bytes_on_disk(&entry.path())).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files at any depth are counted, holes are not.
    #[test]
    fn files_are_summed() {
        let directory = tempfile::tempdir().unwrap();
        let empty = bytes_on_disk(directory.path());
        let below = directory.path().join("below");
        std::fs::create_dir(&below).unwrap();
        std::fs::write(directory.path().join("one"), [1; 100_000]).unwrap();
        std::fs::write(below.join("two"), [1; 200_000]).unwrap();
        let hole = std::fs::File::create(below.join("hole")).unwrap();
        hole.set_len(1 << 30).unwrap();
        let all = bytes_on_disk(directory.path());
        assert!((300_000..2_000_000).contains(&(all - empty)), "{all}");
        assert_eq!(bytes_on_disk(&directory.path().join("none")), 0);
    }
}
