//! The steps of a pass, made before anything is timed.
//!
//! I1 A script is right however its threads' shares interleave: a thread reads keys that were loaded or that it has
//!    itself inserted before, and removes only its own keys; no thread inserts keys that are to be missed.
//! I2 Keys, steps and scan lengths lie in flat runs in the order of their use.

mod last;

use crate::distribution::{Chooser, Distribution};
use crate::keys::{Keys, Part};
use crate::random::Random;
use crate::workload::{Mix, ScanLength, Step, Workload};
pub use last::Last;
#[cfg(test)]
pub use last::greatest;

/// The steps of all threads, one a key.
#[derive(Debug)]
pub struct Script {
    keys: Keys,
    what: What<Vec<Step>>,
    /// Keys each scan reads, or all of them do.
    lengths: Lengths<Vec<u32>>,
    /// The last keys of those loaded, as many as the longest scan reads.
    last: Vec<Box<[u8]>>,
    threads: usize,
}

/// What is done with the keys of a script.
#[derive(Clone, Copy, Debug)]
pub enum What<S> {
    /// The same with each.
    Only(Step),
    /// Reads of 32 at once.
    Batches,
    /// A step each.
    Mixed(S),
}

/// How far scans go.
#[derive(Clone, Copy, Debug)]
pub enum Lengths<L> {
    /// All as far.
    Same(u32),
    /// A length a step.
    Each(L),
}

/// A thread's share of a script.
#[derive(Clone, Copy, Debug)]
pub struct Share<'s> {
    /// The keys.
    pub keys: Part<'s>,
    /// What to do with them.
    pub what: What<&'s [Step]>,
    /// How far scans go.
    pub lengths: Lengths<&'s [u32]>,
    /// Where they may end sooner.
    pub last: Last<'s>,
}

impl<'s> Share<'s> {
    /// One step with each of these keys; of where the keys of the index end nothing is known.
    pub fn only(step: Step, keys: Part<'s>) -> Share<'s> {
        let (what, lengths) = (What::Only(step), Lengths::Same(100));
        Share {
            keys,
            what,
            lengths,
            last: Last::default(),
        }
    }

    /// Reads of 32 of these keys at once.
    #[cfg(feature = "peers")]
    pub fn batches(keys: Part<'s>) -> Share<'s> {
        let what = What::Batches;
        Share {
            what,
            ..Share::only(Step::Read, keys)
        }
    }
}

/// What a script is made by.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Steps of all threads together.
    pub ops: usize,
    /// Threads that share them.
    pub threads: usize,
    /// Which keys are asked for.
    pub distribution: Distribution,
    /// The exponent of zipfian distributions.
    pub theta: f64,
    /// How far scans go.
    pub scans: ScanLength,
    /// The seed of all choices.
    pub seed: u64,
}

/// The steps of a workload in order, before the keys are known.
#[derive(Debug)]
pub struct Steps(Vec<Step>);

impl Steps {
    /// `ops` steps in the workload's proportions.
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

    /// How many of them insert.
    pub fn inserts(&self) -> usize {
        self.0.iter().filter(|&&step| step == Step::Insert).count()
    }
}

impl Script {
    /// These steps over keys of which the first `loaded` are there; inserts take new ones from number `fresh` on. In a
    /// workload that [misses](Workload::misses), the last `loaded` keys serve that: where others ask for the first of
    /// those loaded, it does for the first of these.
    pub fn new(
        workload: &Workload,
        steps: Steps,
        all: &Keys,
        loaded: usize,
        fresh: usize,
        wanted: &Wanted,
    ) -> Script {
        let Wanted {
            ops,
            threads,
            distribution,
            theta,
            scans,
            seed,
        } = *wanted;
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
            // Those of a permutation that this thread may remove: one for each of its steps, and no other thread's.
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
                // There are as many new keys as inserts, and never more removals than keys.
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
        let those_loaded = all.first(loaded).iter().map(|(key, _)| key);
        Script {
            keys: all.chosen(&order),
            what: match workload.mix {
                Mix::Batches => What::Batches,
                Mix::Only(step) => What::Only(step),
                _ => What::Mixed(steps),
            },
            lengths: match scans {
                ScanLength::Keys(keys) => Lengths::Same(keys),
                _ => Lengths::Each(lengths),
            },
            last: last::greatest(those_loaded, longest as usize),
            threads,
        }
    }

    /// How many steps it has.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// What each thread does.
    pub fn shares(&self) -> Vec<Share<'_>> {
        let slice = |i: usize| self.len() * i / self.threads..self.len() * (i + 1) / self.threads;
        let share = |i: usize| Share {
            keys: self.keys.part(i, self.threads),
            what: match &self.what {
                What::Only(step) => What::Only(*step),
                What::Batches => What::Batches,
                What::Mixed(steps) => What::Mixed(&steps[slice(i)]),
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

    /// However threads interleave: what is read or removed is there, what is inserted is not, and proportions hold.
    #[test]
    fn scripts_are_right() {
        const LOADED: usize = 2000;
        for workload in ALL {
            let ops = 1500;
            let steps = Steps::new(workload, ops, 3);
            let fresh = steps.inserts();
            let absent = if workload.misses() { LOADED } else { 0 };
            let keys = Keys::generate_more(KeyKind::U64, LOADED, fresh + absent, 3);
            let wanted = Wanted {
                ops,
                threads: 3,
                distribution: workload.distribution,
                theta: 0.99,
                scans: workload.scans,
                seed: 3,
            };
            let script = Script::new(workload, steps, &keys, LOADED, LOADED, &wanted);
            assert_eq!(script.len(), ops, "{workload}");
            let (mut inserted, mut removed) = (HashSet::new(), HashSet::new());
            for share in script.shares() {
                let mut own = HashSet::new();
                for (i, (_, number)) in share.keys.iter().enumerate() {
                    let step = match share.what {
                        What::Only(step) => step,
                        What::Batches => Step::Read,
                        What::Mixed(steps) => steps[i],
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

    /// All keys can be removed, each once, by any number of threads.
    #[test]
    fn all_keys_are_removed_once() {
        const KEYS: usize = 10;
        let workload = Workload::named("remove").unwrap();
        let keys = Keys::generate(KeyKind::U64, KEYS, 3);
        for threads in 1..=KEYS + 1 {
            let wanted = Wanted {
                ops: KEYS,
                threads,
                distribution: workload.distribution,
                theta: 0.99,
                scans: workload.scans,
                seed: 3,
            };
            let steps = Steps::new(workload, KEYS, 3);
            let script = Script::new(workload, steps, &keys, KEYS, KEYS, &wanted);
            let shares = script.shares();
            let removed: HashSet<u64> = shares
                .iter()
                .flat_map(|share| share.keys.iter().map(|(_, number)| number))
                .collect();
            assert_eq!((removed.len(), script.len()), (KEYS, KEYS), "{threads} threads");
        }
    }
}
