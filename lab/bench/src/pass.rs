//! The timed loops.
//!
//! I1 No key is made inside them, and next to nothing allocated.
//! I2 In a closed loop every [`SAMPLE_EVERY`]th call is timed; the others run without a clock. In an open loop every
//!    call is timed, from when it was due, so that a stall is seen by all the calls that it held up.
//! I3 Values read are compared with those written: a loop that finds wrong values is an error.
//!
//! Key number `i` is loaded with the value `i`; an update sets [`UPDATED`] in it. What is counted and compared:
//! `tally`.

mod tally;

use crate::engine::{BATCH, Engine};
use crate::keys::Part;
use crate::latency::{Latencies, Recorder, Timeline};
use crate::script::{Lengths, Share, What};
use crate::workload::Step;
use crate::{Error, machine};
use std::sync::{Barrier, OnceLock};
use std::time::{Duration, Instant};
use tally::{Tally, UPDATED};

/// Between calls that are timed in a closed loop.
pub const SAMPLE_EVERY: u32 = 32;

/// When a pass ends, and how it is paced.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// Ends after this time, or when the steps end before; in an open loop, with the last call that is due within it.
    pub time: Option<Duration>,
    /// Begins again when the steps are done, until the time is over.
    pub repeat: bool,
    /// Open loop: calls a second that are due, of all threads together.
    pub rate: Option<f64>,
}

/// What one pass over a script gave.
#[derive(Debug)]
pub struct Pass {
    /// Keys (for scans: scans).
    pub ops: u64,
    /// From the first thread's start to the last one's end.
    pub seconds: f64,
    /// Of the calls timed.
    pub latencies: Latencies,
    /// What was done when.
    pub timeline: Timeline,
    /// The sum of what was read, which engines that hold the same must agree on.
    #[cfg_attr(not(feature = "peers"), expect(dead_code, reason = "only peers must agree"))]
    pub sum: u64,
}

impl Pass {
    /// Millions of operations a second.
    pub fn mops(&self) -> f64 {
        self.ops as f64 / self.seconds / 1e6
    }
}

type Done = Result<(), Error>;

/// When a thread's operations are due in an open loop: all threads' together come as evenly as one thread's would.
#[derive(Clone, Copy, Debug)]
struct Due {
    /// Between two operations of this thread, in nanoseconds.
    interval: f64,
    /// The part of that which the first waits for: thread `i` of `n` has `i / n`.
    phase: f64,
}

impl Due {
    /// Of this many operations a second, those of thread `thread` of `threads`.
    fn new(rate: f64, thread: usize, threads: usize) -> Due {
        Due {
            interval: 1e9 * threads as f64 / rate,
            phase: thread as f64 / threads as f64,
        }
    }

    /// The `turn`th call, of this many operations each, since the beginning.
    fn at(self, turn: u64, ops: usize) -> Duration {
        Duration::from_nanos(((turn as f64 + self.phase) * self.interval * ops as f64) as u64)
    }
}

/// A thread's way through its share.
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
    fn each(&mut self, keys: Part<'_>, mut call: impl FnMut(&mut Tally, usize, &[u8], u64) -> Done) -> Done {
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

    /// Calls when they are due, or as soon as the calls before them have ended. What is due before the deadline is done
    /// however late: left out, it would hide the longest waits.
    fn paced(
        &mut self,
        keys: Part<'_>,
        schedule: Due,
        mut call: impl FnMut(&mut Tally, usize, &[u8], u64) -> Done,
    ) -> Done {
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

    /// Reads of [`BATCH`] keys at once.
    fn batches<E: Engine + ?Sized>(&mut self, engine: &E, keys: Part<'_>) -> Done {
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

    fn run<E: Engine + ?Sized>(&mut self, engine: &E, share: Share<'_>) -> Done {
        let Share {
            keys,
            what,
            lengths,
            last,
        } = share;
        let length = |i: usize| match lengths {
            Lengths::Same(keys) => keys,
            Lengths::Each(lengths) => lengths[i],
        };
        let step = |tally: &mut Tally, step, i, key: &[u8], number| -> Done {
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
        // A loop of its own for each kind of steps, as an application has it, and one for mixtures.
        match what {
            What::Batches => self.batches(engine, keys),
            What::Only(Step::Read) => self.each(keys, |t, i, k, n| step(t, Step::Read, i, k, n)),
            What::Only(Step::Miss) => self.each(keys, |t, i, k, n| step(t, Step::Miss, i, k, n)),
            What::Only(Step::Update) => self.each(keys, |t, i, k, n| step(t, Step::Update, i, k, n)),
            What::Only(Step::Insert) => self.each(keys, |t, i, k, n| step(t, Step::Insert, i, k, n)),
            What::Only(Step::Remove) => self.each(keys, |t, i, k, n| step(t, Step::Remove, i, k, n)),
            What::Only(Step::Scan) => self.each(keys, |t, i, k, n| step(t, Step::Scan, i, k, n)),
            What::Only(Step::Modify) => self.each(keys, |t, i, k, n| step(t, Step::Modify, i, k, n)),
            What::Mixed(steps) => self.each(keys, |t, i, k, n| step(t, steps[i], i, k, n)),
        }
    }
}

/// Runs each share in a pinned thread of its own, and checks what they read. `what` names the pass in errors.
pub fn pass<E: Engine + ?Sized>(
    engine: &E,
    what: &str,
    shares: &[Share<'_>],
    pace: Pace,
) -> Result<Pass, Error> {
    let barrier = &Barrier::new(shares.len());
    // One beginning for all threads, lest what is due to them drift apart.
    let beginning = &OnceLock::new();
    let results: Vec<_> = std::thread::scope(|scope| {
        let run = |thread: usize, share: Share<'_>| {
            machine::pin_thread(thread);
            let mut recorder = Recorder::new();
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
            let done = runner.run(engine, share);
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
            "{what}: {} of {} operations were not as they should be",
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

/// Inserts these keys, shared out among this many threads.
pub fn load<E: Engine + ?Sized>(engine: &E, keys: Part<'_>, threads: usize) -> Result<Pass, Error> {
    let shares: Vec<_> = (0..threads)
        .map(|i| Share::only(Step::Insert, keys.part(i, threads)))
        .collect();
    pass(engine, "load", &shares, Pace::default())
}

/// Reads these keys, shared out among this many threads.
pub fn read<E: Engine + ?Sized>(engine: &E, keys: Part<'_>, threads: usize) -> Result<Pass, Error> {
    let shares: Vec<_> = (0..threads)
        .map(|i| Share::only(Step::Read, keys.part(i, threads)))
        .collect();
    pass(engine, "warm-up", &shares, Pace::default())
}

#[cfg(test)]
mod tests;
