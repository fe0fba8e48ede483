//! The timed loops.
//!
//! I1 The loops make no keys and allocate almost nothing.
//! I2 In a closed loop every [`SAMPLE_EVERY`]th call is timed, and every read of a batch of keys; other calls run
//!    without reading the clock. In an open loop every call is timed from when it was due, so that a stall shows in
//!    every call that it delayed.
//! I3 Values read are compared with those written: a wrong value is an error.
//!
//! Key number `i` is loaded with the value `i`; an update sets the bit [`UPDATED`]. `tally` counts and compares
//! results.

mod tally;

use crate::engine::{BATCH, Engine};
use crate::keys::Part;
use crate::latency::{Latencies, Recorder, Timeline};
use crate::script::{Actions, Lengths, Share};
use crate::workload::Step;
use crate::{Error, machine};
use std::sync::{Barrier, OnceLock};
use std::time::{Duration, Instant};
use tally::{Tally, UPDATED};

/// In a closed loop, one call in this many is timed, but each read of a batch of keys.
pub const SAMPLE_EVERY: u32 = 32;

/// When a pass ends, and at which rate it runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// The maximum duration; the pass ends earlier if its steps do. In an open loop, the last call is the last one due
    /// within this time.
    pub time: Option<Duration>,
    /// Repeats the steps until the time is over.
    pub repeat: bool,
    /// Open loop: calls due per second, over all threads.
    pub rate: Option<f64>,
}

/// The results of a pass over a script.
#[derive(Debug)]
pub struct Pass {
    /// The number of operations: keys, or for scans, scans.
    pub ops: u64,
    /// Seconds from the common start to the last thread's end.
    pub seconds: f64,
    /// Latencies of the timed calls.
    pub latencies: Latencies,
    /// The progress over time.
    pub timeline: Timeline,
    /// The sum of the values read; engines with the same content must agree on it.
    #[cfg_attr(not(feature = "peers"), expect(dead_code, reason = "only peers must agree"))]
    pub sum: u64,
}

impl Pass {
    /// Returns the throughput in millions of operations per second.
    pub fn mops(&self) -> f64 {
        self.ops as f64 / self.seconds / 1e6
    }
}

/// The result of a step.
type StepResult = Result<(), Error>;

/// When a thread's operations are due in an open loop. The operations of all threads together are spaced as evenly as
/// those of one thread would be.
#[derive(Clone, Copy, Debug)]
struct Due {
    /// Nanoseconds between two operations of this thread.
    interval: f64,
    /// The delay of the first operation as a share of the interval: `i / n` for thread `i` of `n`.
    phase: f64,
}

impl Due {
    /// Creates the schedule of thread `thread` of `threads`, which together run `rate` operations per second.
    fn new(rate: f64, thread: usize, threads: usize) -> Due {
        Due {
            interval: 1e9 * threads as f64 / rate,
            phase: thread as f64 / threads as f64,
        }
    }

    /// Returns when the `turn`th call of `ops` operations each is due, since the beginning.
    fn at(self, turn: u64, ops: usize) -> Duration {
        Duration::from_nanos(((turn as f64 + self.phase) * self.interval * ops as f64) as u64)
    }
}

/// A thread running its share.
struct Runner<'r> {
    recorder: &'r mut Recorder,
    start: Instant,
    deadline: Option<Instant>,
    repeat: bool,
    /// Open loop: when the calls of this thread are due.
    due: Option<Due>,
    tally: Tally,
}

impl Runner<'_> {
    fn over(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| now >= deadline)
    }

    #[inline]
    fn each(
        &mut self,
        keys: Part<'_>,
        mut call: impl FnMut(&mut Tally, usize, &[u8], u64) -> StepResult,
    ) -> StepResult {
        if let Some(due) = self.due {
            return self.paced(keys, due, call);
        }
        let mut until_sample = 0;
        loop {
            for (i, (key, number)) in keys.iter().enumerate() {
                if until_sample == 0 {
                    until_sample = SAMPLE_EVERY;
                    let start = Instant::now();
                    if self.over(start) {
                        return Ok(());
                    }
                    call(&mut self.tally, i, key, number)?;
                    self.recorder.note(start, SAMPLE_EVERY.into());
                } else {
                    call(&mut self.tally, i, key, number)?;
                }
                self.tally.ops += 1;
                until_sample -= 1;
            }
            if !self.repeat || keys.len() == 0 {
                return Ok(());
            }
        }
    }

    /// Makes each call when it is due, or as soon as the previous calls have ended. Calls due before the deadline are
    /// made however late: leaving them out would hide the longest waits.
    fn paced(
        &mut self,
        keys: Part<'_>,
        schedule: Due,
        mut call: impl FnMut(&mut Tally, usize, &[u8], u64) -> StepResult,
    ) -> StepResult {
        let mut turn = 0u64;
        loop {
            for (i, (key, number)) in keys.iter().enumerate() {
                let due = self.start + schedule.at(turn, 1);
                turn += 1;
                if self.over(due) {
                    return Ok(());
                }
                while Instant::now() < due {
                    std::hint::spin_loop();
                }
                call(&mut self.tally, i, key, number)?;
                self.recorder.note(due, 1);
                self.tally.ops += 1;
            }
            if !self.repeat || keys.len() == 0 {
                return Ok(());
            }
        }
    }

    /// Reads [`BATCH`] keys at a time.
    fn batches<E: Engine + ?Sized>(&mut self, engine: &E, keys: Part<'_>) -> StepResult {
        let mut batch: [&[u8]; BATCH] = [&[]; BATCH];
        let mut turn = 0u64;
        loop {
            let mut left = keys.iter();
            loop {
                let (mut filled, mut numbers) = (0, 0u64);
                for (place, (key, number)) in batch.iter_mut().zip(&mut left) {
                    *place = key;
                    numbers = numbers.wrapping_add(number);
                    filled += 1;
                }
                if filled == 0 {
                    break;
                }
                let due = match self.due {
                    Some(schedule) => self.start + schedule.at(turn, BATCH),
                    None => Instant::now(),
                };
                turn += 1;
                if self.over(due) {
                    return Ok(());
                }
                while Instant::now() < due {
                    std::hint::spin_loop();
                }
                let (sum, found) = engine.multi_get(&batch[..filled])?;
                self.recorder.note(due, filled as u64);
                self.tally.ops += filled as u64;
                self.tally.batch(sum, numbers, filled - found);
            }
            if !self.repeat || keys.len() == 0 {
                return Ok(());
            }
        }
    }

    fn run<E: Engine + ?Sized>(&mut self, engine: &E, share: Share<'_>) -> StepResult {
        let Share {
            keys,
            actions,
            lengths,
            last,
        } = share;
        let length = |i: usize| match lengths {
            Lengths::Same(keys) => keys,
            Lengths::Each(lengths) => lengths[i],
        };
        let step = |tally: &mut Tally, step, i, key: &[u8], number| -> StepResult {
            match step {
                Step::Read => tally.read(number, engine.get(key)?),
                Step::Miss => tally.done(engine.get(key)?.is_none()),
                Step::Update => tally.done(engine.update(key, number | UPDATED)?),
                Step::Insert => tally.done(engine.insert(key, number)?),
                Step::Remove => tally.done(engine.remove(key)?),
                Step::Scan => {
                    let length = length(i) as usize;
                    tally.scan(engine.scan(key, length)?, key, number, length, last);
                }
                Step::Modify => {
                    let value = engine.get(key)?;
                    tally.read(number, value);
                    tally.done(engine.update(key, value.unwrap_or(number) ^ UPDATED)?);
                }
            }
            Ok(())
        };
        // A separate loop for each kind of step, as in an application, and one for mixtures.
        match actions {
            Actions::Batches => self.batches(engine, keys),
            Actions::Only(Step::Read) => self.each(keys, |t, i, k, n| step(t, Step::Read, i, k, n)),
            Actions::Only(Step::Miss) => self.each(keys, |t, i, k, n| step(t, Step::Miss, i, k, n)),
            Actions::Only(Step::Update) => self.each(keys, |t, i, k, n| step(t, Step::Update, i, k, n)),
            Actions::Only(Step::Insert) => self.each(keys, |t, i, k, n| step(t, Step::Insert, i, k, n)),
            Actions::Only(Step::Remove) => self.each(keys, |t, i, k, n| step(t, Step::Remove, i, k, n)),
            Actions::Only(Step::Scan) => self.each(keys, |t, i, k, n| step(t, Step::Scan, i, k, n)),
            Actions::Only(Step::Modify) => self.each(keys, |t, i, k, n| step(t, Step::Modify, i, k, n)),
            Actions::Mixed(steps) => self.each(keys, |t, i, k, n| step(t, steps[i], i, k, n)),
        }
    }
}

/// Runs each share in its own pinned thread, and checks what the threads read. `what` names the pass in errors.
pub fn pass<E: Engine + ?Sized>(
    engine: &E,
    what: &str,
    shares: &[Share<'_>],
    pace: Pace,
) -> Result<Pass, Error> {
    warmed_pass(engine, what, None, shares, pace)
}

/// Like [`pass`], but each thread first looks up its part of the keys of `warm_up`, present or not, unmeasured. Then
/// the upper nodes are in the caches, as they are while an engine runs alone.
pub fn warmed_pass<E: Engine + ?Sized>(
    engine: &E,
    what: &str,
    warm_up: Option<Part<'_>>,
    shares: &[Share<'_>],
    pace: Pace,
) -> Result<Pass, Error> {
    let barrier = &Barrier::new(shares.len());
    // One beginning for all threads, so that their schedules do not drift apart.
    let beginning = &OnceLock::new();
    let results: Vec<_> = std::thread::scope(|scope| {
        let run = |thread: usize, share: Share<'_>| {
            machine::pin_thread(thread);
            let mut recorder = Recorder::new();
            let others = warm_up.map(|keys| keys.part(thread, shares.len()));
            let warm = others.map_or(Ok(()), |keys| {
                keys.iter().try_for_each(|(key, _)| engine.get(key).map(|_| ()))
            });
            barrier.wait();
            let start = *beginning.get_or_init(Instant::now);
            recorder.begin(start);
            let mut runner = Runner {
                recorder: &mut recorder,
                start,
                deadline: pace.time.map(|time| start + time),
                repeat: pace.repeat && pace.time.is_some(),
                due: pace.rate.map(|rate| Due::new(rate, thread, shares.len())),
                tally: Tally::default(),
            };
            let done = warm.and_then(|()| runner.run(engine, share));
            let tally = runner.tally;
            (Instant::now(), done.map(|()| tally), recorder)
        };
        let threads: Vec<_> = shares
            .iter()
            .enumerate()
            .map(|(i, &share)| scope.spawn(move || run(i, share)))
            .collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });

    let mut all = Tally::default();
    let (mut latencies, mut timeline) = (Latencies::new(), Timeline::new());
    let mut last = None;
    for result in results {
        let (end, tally, recorder) = result.map_err(|_| Error::Wrong("a thread panicked".into()))?;
        let tally = tally?;
        all.ops += tally.ops;
        all.sum = all.sum.wrapping_add(tally.sum);
        all.wrong += tally.wrong;
        latencies.add(&recorder.latencies);
        timeline.add(recorder.timeline);
        last = last.max(Some(end));
    }
    if all.wrong > 0 {
        let what = format!(
            "{what}: {} of {} operations had wrong results",
            all.wrong, all.ops
        );
        return Err(Error::Wrong(what));
    }
    Ok(Pass {
        ops: all.ops,
        seconds: beginning
            .get()
            .zip(last)
            .map_or(0.0, |(first, last)| (last - *first).as_secs_f64()),
        latencies,
        timeline,
        sum: all.sum,
    })
}

/// Inserts these keys, split among this many threads.
pub fn load<E: Engine + ?Sized>(engine: &E, keys: Part<'_>, threads: usize) -> Result<Pass, Error> {
    let shares: Vec<_> = (0..threads)
        .map(|i| Share::only(Step::Insert, keys.part(i, threads)))
        .collect();
    pass(engine, "load", &shares, Pace::default())
}

/// Reads these keys, split among this many threads.
pub fn read<E: Engine + ?Sized>(engine: &E, keys: Part<'_>, threads: usize) -> Result<Pass, Error> {
    let shares: Vec<_> = (0..threads)
        .map(|i| Share::only(Step::Read, keys.part(i, threads)))
        .collect();
    pass(engine, "warm-up", &shares, Pace::default())
}

#[cfg(test)]
mod tests;
