//! The phases of a run: the load, then one workload after the other on the same index.

use super::RunArgs;
use crate::Error;
use crate::counters::{self, Counters};
use crate::engine::Ours;
use crate::keys::{KeyKind, Keys};
use crate::latency::clock_ns;
use crate::limit::{Cache, Calibrator, Misses, Pace, Path};
use crate::machine::HugePages;
use crate::pass::{self, Pass};
use crate::progress::Progress;
use crate::script::{Script, ScriptOptions, Share, Steps};
use crate::store::{self, Place, Space};
use crate::workload::Workload;
use index::Index;
use pmem::{Counting, Counts, Hardware, Observed, Tracing};
use wollemi::indexes::Compiled;

/// The keys of a run, and the scripts of the workloads after the load.
pub struct Input {
    all: Keys,
    loaded: usize,
    warm_up: Keys,
    /// One per workload, except the load, which needs none.
    scripts: Vec<(&'static Workload, Script)>,
    /// Whether the first workload is the load itself.
    fills: bool,
}

impl Input {
    /// Creates the keys and scripts of the run.
    pub fn new(args: &RunArgs) -> Result<Input, Error> {
        let workloads = &args.workload;
        let unfit = |what: &str| Err(Error::Workloads(what.to_owned()));
        if workloads.iter().skip(1).any(|workload| workload.fills()) {
            return unfit("a workload that fills the index must be the first workload");
        }
        if !args.index.is_ordered() && workloads.iter().any(|workload| workload.scans_keys()) {
            return unfit("the index keeps no key order, so it cannot scan");
        }
        let removes = |workload: &&Workload| workload.name == "remove";
        if workloads.iter().rev().skip(1).any(removes) {
            return unfit("'remove' must be last: later workloads would find no keys");
        }
        let phases = workloads.iter().filter(|workload| !workload.fills());
        let steps: Vec<(&'static Workload, usize, Steps)> = phases
            .map(|&workload| {
                let ops = args.ops.unwrap_or(workload.default_ops(args.keys));
                let ops = if removes(&workload) {
                    ops.min(args.keys)
                } else {
                    ops
                };
                (workload, ops, Steps::new(workload, ops, args.seed))
            })
            .collect();
        let inserts: usize = steps.iter().map(|(.., steps)| steps.inserts()).sum();
        let absent = match workloads.iter().any(|workload| workload.misses()) {
            true => args.keys,
            false => 0,
        };
        let more = inserts + absent;
        let all = match (&args.keys_from, args.key_kind) {
            (Some(path), KeyKind::File) => Keys::read(path, Some(args.keys + more))?,
            (_, kind) => Keys::generate_more(kind, args.keys, more, args.seed),
        };
        let mut fresh = args.keys;
        let mut scripts = Vec::new();
        for (workload, ops, steps) in steps {
            let next = fresh + steps.inserts();
            let options = ScriptOptions {
                ops,
                threads: args.threads,
                distribution: args.distribution.unwrap_or(workload.distribution),
                theta: args.theta,
                scans: args.scan_length.unwrap_or(workload.scans),
                seed: args.seed,
            };
            scripts.push((
                workload,
                Script::new(workload, steps, &all, args.keys, fresh, &options),
            ));
            fresh = next;
        }
        let order: Vec<u32> = (0..args.warm_up)
            .map(|i| crate::random::permute((i % args.keys) as u64, args.keys as u64, args.seed ^ 1) as u32)
            .collect();
        Ok(Input {
            warm_up: all.chosen(&order),
            all,
            loaded: args.keys,
            scripts,
            fills: workloads.first().is_some_and(|workload| workload.fills()),
        })
    }
}

/// Reads a media's counts so far.
pub type Count<M> = fn(&M) -> Counts;

fn counted(media: &Observed) -> Counts {
    match media {
        Observed::Counting(counting) => counting.counts(),
        _ => Counts::default(),
    }
}

/// One workload's measurement.
pub struct Phase {
    pub workload: &'static Workload,
    pub pass: Pass,
    pub counts: Counts,
    pub hardware: counters::Hardware,
    /// The memory's pace; set for timing runs.
    pub pace: Option<Pace>,
}

/// The results of a run.
pub struct Measured {
    pub phases: Vec<Phase>,
    /// Space used after loading.
    pub space: Space,
    pub level: String,
    pub huge_pages: bool,
    pub huge_page_memory: HugePages,
    /// The cost of a clock reading in nanoseconds. Every latency includes it.
    pub clock_ns: f64,
}

/// Loads the keys and runs the workloads.
struct Measure<'r> {
    args: &'r RunArgs,
    input: &'r Input,
    progress: Progress,
    index: &'r dyn Index,
    /// Set on media that count.
    counts: Option<&'r dyn Fn() -> Counts>,
    /// Set for timing runs.
    calibrator: Option<Calibrator>,
    /// Cache-miss time after the previous workload; serves as the "before" value of the next.
    misses: Option<Misses>,
}

impl Measure<'_> {
    /// Runs one workload, and measures the memory's pace before it (and its warm-up) and after it.
    fn phase(
        &mut self,
        workload: &'static Workload,
        warm_up: impl FnOnce() -> Result<(), Error>,
        run: impl FnOnce() -> Result<Pass, Error>,
    ) -> Result<Phase, Error> {
        self.progress.say(format_args!(
            "{} on {}: {workload}",
            self.args.index, self.args.keys
        ));
        let misses = match (self.misses, &mut self.calibrator) {
            (None, Some(calibrator)) => Some(calibrator.misses()?),
            (known, _) => known,
        };
        warm_up()?;
        let before = self.counts()?;
        let counters = Counters::start();
        let pass = run()?;
        let (hardware, counts) = (counters.read(), self.counts()? - before);
        let mut pace = None;
        if let (Some(misses), Some(calibrator)) = (misses, &mut self.calibrator) {
            let since = calibrator.since(misses)?;
            self.misses = Some(since.after);
            pace = Some(since);
        }
        Ok(Phase {
            workload,
            pass,
            counts,
            hardware,
            pace,
        })
    }

    /// Returns the counts so far. Merges buffered writes first, so that they are counted.
    fn counts(&self) -> Result<Counts, Error> {
        let Some(counts) = self.counts else {
            return Ok(Counts::default());
        };
        self.index.settle()?;
        Ok(counts())
    }

    /// Runs all phases, and returns the space used after loading.
    fn phases(&mut self, engine: &Ours<'_>, space: &dyn Fn() -> Space) -> Result<(Vec<Phase>, Space), Error> {
        let (args, input) = (self.args, self.input);
        let load = || pass::load(engine, input.all.first(input.loaded), args.threads);
        let mut phases = Vec::new();
        match args.workload.first() {
            Some(workload) if input.fills => {
                phases.push(self.phase(workload, || Ok(()), load)?);
            }
            _ => {
                self.progress
                    .say(format_args!("{}: loading {} keys", args.index, input.loaded));
                load()?;
            }
        }
        let space = space();
        for (workload, script) in &input.scripts {
            let pace = match self.calibrator {
                Some(_) => args.pace(workload),
                None => pass::Pace::default(),
            };
            let run = || pass::pass(engine, workload.name, &script.shares(), pace);
            let warm_up = || pass::read(engine, input.warm_up.all(), args.threads).map(drop);
            phases.push(self.phase(workload, warm_up, run)?);
        }
        Ok((phases, space))
    }
}

impl RunArgs {
    /// Runs the workloads on `media`. With `counts` it counts persists. With a calibrator it measures cache misses, and
    /// the workloads run at the rate and for the time that the options say.
    pub fn measure<M: Compiled>(
        &self,
        media: M,
        place: &Place,
        input: &Input,
        counts: Option<Count<M>>,
        calibrator: Option<Calibrator>,
    ) -> Result<Measured, Error> {
        let heap = &place.create(media)?;
        let _remove = place.remove_at_end();
        let index = store::create(self.index, heap)?;
        let counts = counts.map(|counts| move || counts(heap.media()));
        let mut measure = Measure {
            args: self,
            input,
            progress: Progress::new(),
            index: &*index,
            counts: counts.as_ref().map(|counts| counts as &dyn Fn() -> Counts),
            calibrator,
            misses: None,
        };
        let (phases, space) = measure.phases(&Ours(&*index), &|| Space::of(heap))?;
        Ok(Measured {
            phases,
            space,
            level: heap.pool().level().to_string(),
            huge_pages: heap.pool().huge_pages(),
            huge_page_memory: HugePages::now(),
            clock_ns: clock_ns(),
        })
    }

    /// Loads the keys on the tracing media, and looks up the first keys of each workload that only looks up. Also
    /// returns the space used.
    pub fn paths(&self, input: &Input) -> Result<(Vec<Option<Path>>, Space), Error> {
        const LOOKUPS: usize = 100_000;
        let heap = &Place::Anonymous.create(Observed::Tracing(Tracing::new(Hardware::detect())))?;
        let Observed::Tracing(tracing) = heap.media() else {
            return Ok((Vec::new(), Space::default()));
        };
        let index = store::create(self.index, heap)?;
        let engine = &Ours(&*index);
        pass::load(engine, input.all.first(input.loaded), self.threads)?;
        let mut paths = vec![None; usize::from(input.fills)];
        for (workload, script) in &input.scripts {
            let share = script.shares().into_iter().next().filter(|_| workload.looks_up());
            let path = |share: Share<'_>| {
                let keys = share.keys.first(LOOKUPS);
                Path::of(engine, keys, tracing, &mut Cache::second_level())
            };
            paths.push(share.map(path).transpose()?);
        }
        Ok((paths, Space::of(heap)))
    }

    /// Runs the workloads on the counting media.
    pub fn counted(
        &self,
        place: &Place,
        input: &Input,
        calibrator: Option<Calibrator>,
    ) -> Result<Measured, Error> {
        let media = Observed::Counting(Counting::new(Hardware::as_persistent()));
        self.measure(media, place, input, Some(counted), calibrator)
    }
}
