//! The timed loop: threads repeat one operation, and record its latencies; and a thread that repeats another one
//! meanwhile.

use crate::Error;
use crate::latency::Latencies;
use crate::random::Random;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The results of one measurement.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Turns of all threads.
    pub turns: u64,
    /// Thousands of operations per second.
    pub rate: f64,
    /// Latency of a turn.
    pub p50_us: f64,
    pub p99_us: f64,
}

/// Runs turns of `each` operations in several threads for this time.
pub fn measure(
    threads: usize,
    each: usize,
    time: Duration,
    seed: u64,
    turn: impl Fn(&mut Random) -> Result<(), Error> + Sync,
) -> Result<Sample, Error> {
    let (start, failed) = (Barrier::new(threads + 1), AtomicBool::new(false));
    let work = |thread: usize| -> Result<(Latencies, Instant, Instant), Error> {
        let mut random = Random::new(seed ^ ((thread as u64 + 1) << 32));
        let mut latencies = Latencies::new();
        start.wait();
        let begin = Instant::now();
        let (mut now, end) = (begin, begin + time);
        while now < end && !failed.load(Relaxed) {
            turn(&mut random).inspect_err(|_| failed.store(true, Relaxed))?;
            let began = std::mem::replace(&mut now, Instant::now());
            latencies.note(now - began);
        }
        Ok((latencies, begin, now))
    };
    let (latencies, begin, end) = std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..threads).map(|i| scope.spawn(move || work(i))).collect();
        start.wait();
        // Uses the threads' own clock readings: this thread may wake from the barrier long after them.
        let released = Instant::now();
        let (mut all, mut first, mut last) = (Latencies::new(), released, released);
        for thread in threads {
            let panicked = |_| Error::Wrong("a thread has panicked".into());
            let (latencies, begin, end) = thread.join().map_err(panicked)??;
            all.add(&latencies);
            (first, last) = (first.min(begin), last.max(end));
        }
        Ok::<_, Error>((all, first, last))
    })?;
    let elapsed = end - begin;
    Ok(Sample {
        turns: latencies.count(),
        rate: (latencies.count() * each as u64) as f64 / elapsed.as_secs_f64() / 1e3,
        p50_us: latencies.quantile(0.5) as f64 / 1e3,
        p99_us: latencies.quantile(0.99) as f64 / 1e3,
    })
}

/// Calls `run` while another thread repeats `turn`, at least once. Returns the result and the number of these turns.
pub fn repeat_beside<T>(
    mut turn: impl FnMut() -> Result<(), Error> + Send,
    run: impl FnOnce() -> Result<T, Error>,
) -> Result<(T, u64), Error> {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let repeated = scope.spawn(|| {
            let mut turns = 0;
            loop {
                turn()?;
                turns += 1;
                if ended.load(Relaxed) {
                    return Ok::<u64, Error>(turns);
                }
            }
        });
        let result = run();
        ended.store(true, Relaxed);
        let panicked = |_| Error::Wrong("a thread has panicked".into());
        let turns = repeated.join().map_err(panicked)??;
        Ok((result?, turns))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    /// The turns beside a run are counted until it ends, and an error of either is returned.
    #[test]
    fn turns_beside_a_run_are_counted() {
        let (turns, wrong) = (AtomicU64::new(0), || Error::Wrong("so".into()));
        let turn = || {
            turns.fetch_add(1, Relaxed);
            Ok(())
        };
        let third = || {
            while turns.load(Relaxed) < 3 {
                std::thread::yield_now();
            }
            Ok("done")
        };
        let (result, counted) = repeat_beside(turn, third).unwrap();
        assert_eq!((result, counted), ("done", turns.load(Relaxed)));
        assert!(repeat_beside(turn, || Err::<(), _>(wrong())).is_err());
        assert!(repeat_beside(|| Err(wrong()), || Ok(())).is_err());
    }

    /// Every turn counts, over at least the requested time, and a failed turn ends all threads.
    #[test]
    fn turns_are_counted() {
        let turns = AtomicU64::new(0);
        let time = Duration::from_millis(20);
        let begun = Instant::now();
        let sample = measure(3, 5, time, 1, |_| {
            turns.fetch_add(1, Relaxed);
            Ok(())
        });
        let max = turns.into_inner() as f64 * 5.0 / time.as_secs_f64() / 1e3;
        let least = max * time.as_secs_f64() / begun.elapsed().as_secs_f64();
        let rate = sample.unwrap().rate;
        assert!((least..=max).contains(&rate), "{least} {rate} {max}");
        let wrong = measure(2, 1, Duration::from_secs(3600), 1, |_| {
            Err(Error::Wrong("so".into()))
        });
        assert!(wrong.is_err());
    }
}
