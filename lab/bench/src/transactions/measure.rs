//! The timed loop.

use crate::Error;
use crate::distribution::{Chooser, Distribution, THETA};
use crate::latency::Latencies;
use crate::peers::transactional::Ledger;
use crate::random::Random;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Transactions per thread that are prepared beforehand; a thread repeats them when it is through.
const SCRIPT_LEN: usize = 1 << 16;

/// One transaction in this many is timed; its clock reading also shows whether the time is over.
const SAMPLE_EVERY: u32 = 8;

/// The results of one measurement.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Thousands of committed transactions per second.
    pub ktps: f64,
    /// Retries per thousand committed transactions.
    pub conflicts: f64,
    /// Latency from the beginning of a transaction's first run to the end of its commit.
    pub p50_us: f64,
    pub p99_us: f64,
}

/// For each thread, the key numbers of its transactions, one in each map.
pub struct Scripts(Vec<Vec<[u32; 2]>>);

impl Scripts {
    /// Creates scripts over `keys` keys. Threads share the popular keys of a map; the maps have different ones.
    pub fn new(distribution: Distribution, keys: usize, threads: usize, seed: u64) -> Scripts {
        let script = |thread: usize| {
            let mut random = Random::new(seed ^ ((thread as u64 + 1) << 32));
            let start = (keys / threads * thread) as u64;
            let chooser = |map: u64| Chooser::new(distribution, THETA, keys as u64, seed ^ map, start);
            let mut choosers = [chooser(1), chooser(2)];
            let transaction = |_| choosers.each_mut().map(|map| map.choose(&mut random) as u32);
            (0..SCRIPT_LEN).map(transaction).collect()
        };
        Scripts((0..threads).map(script).collect())
    }
}

/// The results of a thread.
struct ThreadResult {
    committed: u64,
    conflicts: u64,
    latencies: Latencies,
    ended: Instant,
}

/// Runs transactions for this time, and checks that none was lost.
pub fn measure(
    name: &str,
    ledger: &dyn Ledger,
    keys: &[[u8; 8]],
    scripts: &Scripts,
    time: Duration,
) -> Result<Sample, Error> {
    let before = ledger.sums()?;
    let start = Barrier::new(scripts.0.len() + 1);
    let (begun, ended) = std::thread::scope(|scope| {
        let threads: Vec<_> = scripts
            .0
            .iter()
            .map(|script| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    run(ledger, keys, script, Instant::now() + time)
                })
            })
            .collect();
        let begun = Instant::now();
        start.wait();
        let ended: Result<Vec<ThreadResult>, Error> = threads
            .into_iter()
            .map(|thread| {
                let panicked = |_| Error::Wrong(format!("{name}: a thread has panicked"));
                thread.join().map_err(panicked)?
            })
            .collect();
        (begun, ended)
    });
    let (mut committed, mut conflicts, mut latencies, mut end) = (0, 0, Latencies::new(), begun);
    for done in ended? {
        committed += done.committed;
        conflicts += done.conflicts;
        latencies.add(&done.latencies);
        end = end.max(done.ended);
    }
    let [one, two] = before;
    if ledger.sums()? != [one.wrapping_sub(committed), two.wrapping_add(committed)] {
        return Err(Error::Wrong(format!(
            "{name}: the sums do not match the {committed} committed transactions"
        )));
    }
    Ok(Sample {
        ktps: committed as f64 / (end - begun).as_secs_f64() / 1e3,
        conflicts: conflicts as f64 / committed.max(1) as f64 * 1e3,
        p50_us: latencies.quantile(0.5) as f64 / 1e3,
        p99_us: latencies.quantile(0.99) as f64 / 1e3,
    })
}

fn run(
    ledger: &dyn Ledger,
    keys: &[[u8; 8]],
    script: &[[u32; 2]],
    deadline: Instant,
) -> Result<ThreadResult, Error> {
    let mut done = ThreadResult {
        committed: 0,
        conflicts: 0,
        latencies: Latencies::new(),
        ended: deadline,
    };
    for ([from, to], turn) in script.iter().cycle().zip((0..SAMPLE_EVERY).cycle()) {
        let began = (turn == 0).then(Instant::now);
        if began.is_some_and(|now| now >= deadline) {
            break;
        }
        done.conflicts += ledger.transfer(&keys[*from as usize], &keys[*to as usize])?;
        done.committed += 1;
        if let Some(began) = began {
            done.latencies.note(began.elapsed());
        }
    }
    done.ended = Instant::now();
    Ok(done)
}
