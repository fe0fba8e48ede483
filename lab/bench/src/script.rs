//! The steps of a pass, made before anything is timed.
//!
//! I1 A script is correct for any interleaving of its threads' shares: a thread reads only keys that were loaded or
//!    that it has itself inserted before, and removes only its own share of keys; no thread inserts keys that must be
//!    absent.
//! I2 Keys, steps and scan lengths are flat arrays in the order of their use.

mod last;

use crate::distribution::{Chooser, Distribution};
use crate::keys::{Keys, Part};
use crate::random::Random;
use crate::workload::{Mix, ScanLength, Step, Workload};
pub use last::Last;
#[cfg(test)]
pub use last::greatest;

/// The steps of all threads, one per key.
#[derive(Debug)]
pub struct Script {
    keys: Keys,
    actions: Actions<Vec<Step>>,
    /// The number of keys that scans read.
    lengths: Lengths<Vec<u32>>,
    /// The greatest of the loaded keys, as many as the longest scan reads.
    last: Vec<Box<[u8]>>,
    threads: usize,
}

/// The steps to take with the keys of a script.
#[derive(Clone, Copy, Debug)]
pub enum Actions<S> {
    /// The same step with each key.
    Only(Step),
    /// Reads of 32 keys at once.
    Batches,
    /// One step for each key.
    Mixed(S),
}

/// The number of keys that scans read.
#[derive(Clone, Copy, Debug)]
pub enum Lengths<L> {
    /// The same for all scans.
    Same(u32),
    /// A length for each step.
    Each(L),
}

/// A thread's share of a script.
#[derive(Clone, Copy, Debug)]
pub struct Share<'s> {
    /// The keys.
    pub keys: Part<'s>,
    /// The steps to take with them.
    pub actions: Actions<&'s [Step]>,
    /// The number of keys that scans read.
    pub lengths: Lengths<&'s [u32]>,
    /// The greatest keys, where scans may end early.
    pub last: Last<'s>,
}

impl<'s> Share<'s> {
    /// Creates a share of the same step with each of these keys. The greatest keys of the index are unknown to it.
    pub fn only(step: Step, keys: Part<'s>) -> Share<'s> {
        let (actions, lengths) = (Actions::Only(step), Lengths::Same(100));
        Share {
            keys,
            actions,
            lengths,
            last: Last::default(),
        }
    }

    /// Creates a share that reads 32 of these keys at once.
    #[cfg(feature = "peers")]
    pub fn batches(keys: Part<'s>) -> Share<'s> {
        let actions = Actions::Batches;
        Share {
            actions,
            ..Share::only(Step::Read, keys)
        }
    }
}

/// The parameters of a script.
#[derive(Clone, Copy, Debug)]
pub struct ScriptOptions {
    /// The number of steps, over all threads.
    pub ops: usize,
    /// The number of threads.
    pub threads: usize,
    /// The distribution of requested keys.
    pub distribution: Distribution,
    /// The exponent of zipfian distributions.
    pub theta: f64,
    /// The number of keys that scans read.
    pub scans: ScanLength,
    /// The seed of all random choices.
    pub seed: u64,
}

/// The steps of a workload in order, before the keys are known.
#[derive(Debug)]
pub struct Steps(Vec<Step>);

impl Steps {
    /// Draws `ops` steps in the workload's proportions.
    pub fn new(workload: &Workload, ops: usize, seed: u64) -> Steps {
        let shares = workload.shares();
        let mut random = Random::new(seed ^ 0x57e9);
        let step = |percent: u64| {
            let mut below = 0;
            let found = shares.iter().find(|&&(share, _)| {
                below += u64::from(share);
                percent < below
            });
            found.map_or(Step::Read, |&(_, step)| step)
        };
        Steps((0..ops).map(|_| step(random.below(100))).collect())
    }

    /// Returns the number of inserts.
    pub fn inserts(&self) -> usize {
        self.0.iter().filter(|&&step| step == Step::Insert).count()
    }
}

impl Script {
    /// Creates a script of these steps over `all` keys, the first `loaded` of which are in the index; inserts use the
    /// keys from number `fresh` on. A workload that [misses](Workload::misses) looks up the last `loaded` keys of
    /// `all`, which are absent, as another would the first `loaded`.
    pub fn new(
        workload: &Workload,
        steps: Steps,
        all: &Keys,
        loaded: usize,
        fresh: usize,
        options: &ScriptOptions,
    ) -> Script {
        let ScriptOptions {
            ops,
            threads,
            distribution,
            theta,
            scans,
            seed,
        } = *options;
        let steps = steps.0;
        let mut order: Vec<u32> = Vec::with_capacity(ops);
        let mut lengths = Vec::new();
        let scanning = steps.contains(&Step::Scan);
        let each_length = scanning && !matches!(scans, ScanLength::Keys(_));
        let absent = all.len().saturating_sub(loaded);
        let mut fresh = fresh..all.len();
        for thread in 0..threads {
            let (from, to) = (
                steps.len() * thread / threads,
                steps.len() * (thread + 1) / threads,
            );
            let mut random = Random::new(seed.wrapping_add(thread as u64));
            let mut chooser = Chooser::new(distribution, theta, loaded as u64, seed, from as u64);
            // The positions in a permutation that this thread may remove: one for each of its steps, none shared with
            // another thread.
            let mut removable = from..to;
            for &step in &steps[from..to] {
                let number = match step {
                    Step::Insert => fresh.next().inspect(|&number| chooser.inserted(number as u64)),
                    Step::Remove => removable
                        .next()
                        .map(|i| crate::random::permute(i as u64, loaded as u64, seed) as usize),
                    Step::Miss => Some(absent + chooser.choose(&mut random) as usize),
                    _ => Some(chooser.choose(&mut random) as usize),
                };
                // There are enough new keys for the inserts, and at most as many removals as keys.
                order.push(number.unwrap_or(0) as u32);
                if each_length {
                    lengths.push(if step == Step::Scan {
                        length(scans, loaded, &mut random)
                    } else {
                        0
                    });
                }
            }
        }
        let longest = match scans {
            ScanLength::Keys(keys) if scanning => keys,
            _ => lengths.iter().copied().max().unwrap_or(0),
        };
        let loaded_keys = all.first(loaded).iter().map(|(key, _)| key);
        Script {
            keys: all.chosen(&order),
            actions: match workload.mix {
                Mix::Batches => Actions::Batches,
                Mix::Only(step) => Actions::Only(step),
                _ => Actions::Mixed(steps),
            },
            lengths: match scans {
                ScanLength::Keys(keys) => Lengths::Same(keys),
                _ => Lengths::Each(lengths),
            },
            last: last::greatest(loaded_keys, longest as usize),
            threads,
        }
    }

    /// Returns the number of steps.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the share of each thread.
    pub fn shares(&self) -> Vec<Share<'_>> {
        let slice = |i: usize| self.len() * i / self.threads..self.len() * (i + 1) / self.threads;
        let share = |i: usize| Share {
            keys: self.keys.part(i, self.threads),
            actions: match &self.actions {
                Actions::Only(step) => Actions::Only(*step),
                Actions::Batches => Actions::Batches,
                Actions::Mixed(steps) => Actions::Mixed(&steps[slice(i)]),
            },
            lengths: match &self.lengths {
                Lengths::Same(keys) => Lengths::Same(*keys),
                Lengths::Each(lengths) if lengths.is_empty() => Lengths::Same(0),
                Lengths::Each(lengths) => Lengths::Each(&lengths[slice(i)]),
            },
            last: Last::new(&self.last),
        };
        (0..self.threads).map(share).collect()
    }
}

fn length(scans: ScanLength, loaded: usize, random: &mut Random) -> u32 {
    match scans {
        ScanLength::Keys(keys) => keys,
        ScanLength::UpTo(max) => 1 + random.below(max.into()) as u32,
        ScanLength::Share(mean, deviation) => {
            let share = mean + deviation * random.normal();
            (share * loaded as f64).round().max(1.0) as u32
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::KeyKind;
    use crate::workload::ALL;
    use std::collections::HashSet;

    /// For any interleaving of threads, keys read or removed are present and keys inserted are absent; proportions
    /// hold.
    #[test]
    fn scripts_are_right() {
        const LOADED: usize = 2000;
        for workload in ALL {
            let ops = 1500;
            let steps = Steps::new(workload, ops, 3);
            let fresh = steps.inserts();
            let absent = if workload.misses() { LOADED } else { 0 };
            let keys = Keys::generate_more(KeyKind::U64, LOADED, fresh + absent, 3);
            let options = ScriptOptions {
                ops,
                threads: 3,
                distribution: workload.distribution,
                theta: 0.99,
                scans: workload.scans,
                seed: 3,
            };
            let script = Script::new(workload, steps, &keys, LOADED, LOADED, &options);
            assert_eq!(script.len(), ops, "{workload}");
            let (mut inserted, mut removed) = (HashSet::new(), HashSet::new());
            for share in script.shares() {
                let mut own = HashSet::new();
                for (i, (_, number)) in share.keys.iter().enumerate() {
                    let step = match share.actions {
                        Actions::Only(step) => step,
                        Actions::Batches => Step::Read,
                        Actions::Mixed(steps) => steps[i],
                    };
                    match step {
                        Step::Insert => {
                            assert!(number as usize >= LOADED && inserted.insert(number), "{workload}");
                            own.insert(number);
                        }
                        Step::Miss => assert!(number as usize >= LOADED + fresh, "{workload}"),
                        Step::Remove => {
                            assert!((number as usize) < LOADED && removed.insert(number), "{workload}")
                        }
                        _ => assert!((number as usize) < LOADED || own.contains(&number), "{workload}"),
                    }
                    if let (Step::Scan, Lengths::Each(lengths)) = (step, share.lengths) {
                        assert!((1..=100).contains(&lengths[i]), "{workload}");
                    }
                }
            }
            let share = workload
                .shares()
                .iter()
                .find(|(_, step)| *step == Step::Insert)
                .map_or(0, |&(share, _)| share);
            assert!(
                (inserted.len() as f64 / 15.0 - f64::from(share)).abs() < 5.0,
                "{workload}"
            );
        }
    }

    /// Any number of threads removes all keys, each once.
    #[test]
    fn all_keys_are_removed_once() {
        const KEYS: usize = 10;
        let workload = Workload::named("remove").unwrap();
        let keys = Keys::generate(KeyKind::U64, KEYS, 3);
        for threads in 1..=KEYS + 1 {
            let options = ScriptOptions {
                ops: KEYS,
                threads,
                distribution: workload.distribution,
                theta: 0.99,
                scans: workload.scans,
                seed: 3,
            };
            let steps = Steps::new(workload, KEYS, 3);
            let script = Script::new(workload, steps, &keys, KEYS, KEYS, &options);
            let shares = script.shares();
            let removed: HashSet<u64> = shares
                .iter()
                .flat_map(|share| share.keys.iter().map(|(_, number)| number))
                .collect();
            assert_eq!((removed.len(), script.len()), (KEYS, KEYS), "{threads} threads");
        }
    }
}
