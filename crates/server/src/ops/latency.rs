//! The durations of commands: a histogram per command and worker; a reader sums them.
//!
//! A duration counts from the end of the worker's previous command, or from the reading of the input: it includes
//! parsing, waiting for locks, and carrying out. Each command of several that are carried out together counts as having
//! taken as long as all of them.
//!
//! Histograms are log-linear with eight buckets per doubling, so that a duration is known to an eighth of itself. The
//! buckets end at 2^36 ns (69 s); longer durations count as that.

use crate::net::dialect::Dialect;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The last power of two, in nanoseconds.
const LAST: usize = 36;
const BUCKETS: usize = (LAST - 2) * 8;

/// A command, by its protocol and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    pub protocol: &'static Dialect,
    pub number: usize,
}

impl Command {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        (self.protocol.command)(self.number).unwrap_or_default()
    }

    /// Iterates over the commands of all these protocols.
    pub fn all(protocols: &'static [&'static Dialect]) -> impl Iterator<Item = Command> {
        let of = |&protocol: &&'static Dialect| {
            (0..count(protocol)).map(move |number| Command { protocol, number })
        };
        protocols.iter().flat_map(of)
    }
}

/// Returns the number of commands of a protocol.
fn count(protocol: &Dialect) -> usize {
    (0..).map_while(protocol.command).count()
}

/// One worker's histograms, by the protocols' places and the commands' numbers. Each is created when its command first
/// arrives.
#[derive(Debug)]
pub struct Latencies(Vec<Vec<OnceLock<Box<Histogram>>>>);

impl Latencies {
    /// Creates empty histograms for the commands of these protocols, which are in the order of their places.
    pub fn new(protocols: &[&Dialect]) -> Latencies {
        let empty = |&protocol: &&Dialect| {
            std::iter::repeat_with(OnceLock::new)
                .take(count(protocol))
                .collect()
        };
        Latencies(protocols.iter().map(empty).collect())
    }

    /// Records a command that came `times` times, and how long each took.
    #[inline]
    pub fn note(&self, command: Command, took: Duration, times: u64) {
        self.of(command).get_or_init(Box::default).note(took, times);
    }

    /// Sets all counts to zero.
    pub fn reset(&self) {
        let made = self.0.iter().flatten().filter_map(OnceLock::get);
        made.for_each(|histogram| histogram.reset());
    }

    fn of(&self, command: Command) -> &OnceLock<Box<Histogram>> {
        &self.0[command.protocol.place][command.number]
    }
}

#[derive(Debug)]
struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    /// Nanoseconds.
    sum: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            buckets: [const { AtomicU64::new(0) }; BUCKETS],
            sum: AtomicU64::new(0),
        }
    }
}

impl Histogram {
    fn note(&self, took: Duration, times: u64) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket(nanos)].fetch_add(times, Ordering::Relaxed);
        self.sum.fetch_add(nanos.saturating_mul(times), Ordering::Relaxed);
    }

    fn reset(&self) {
        self.buckets
            .iter()
            .chain([&self.sum])
            .for_each(|word| word.store(0, Ordering::Relaxed));
    }
}

/// Returns the bucket of a duration. Those up to 8 ns have one each. A bucket includes its upper end.
fn bucket(nanos: u64) -> usize {
    let below = nanos.saturating_sub(1);
    match below.checked_ilog2() {
        Some(power @ 3..) => {
            let eighth = (below >> (power - 3)) & 7;
            ((power as usize - 2) * 8 + eighth as usize).min(BUCKETS - 1)
        }
        _ => below as usize,
    }
}

/// Returns the upper end of a bucket, which it includes, in nanoseconds.
fn end(bucket: usize) -> u64 {
    match bucket {
        0..8 => bucket as u64 + 1,
        _ => (bucket as u64 % 8 + 9) << (bucket / 8 - 1),
    }
}

/// The distribution of a command's durations, over all workers.
#[derive(Clone, Debug)]
pub struct Distribution {
    counts: Vec<u64>,
    sum: u64,
}

impl Distribution {
    /// Sums the histograms of a command; `None` if the command has never come.
    pub fn of(command: Command, all: &[Latencies]) -> Option<Distribution> {
        let mut sum = Distribution {
            counts: vec![0; BUCKETS],
            sum: 0,
        };
        for histogram in all.iter().filter_map(|one| one.of(command).get()) {
            for (count, bucket) in sum.counts.iter_mut().zip(&histogram.buckets) {
                *count += bucket.load(Ordering::Relaxed);
            }
            sum.sum += histogram.sum.load(Ordering::Relaxed);
        }
        (sum.count() > 0).then_some(sum)
    }

    /// Returns how often it came.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of all durations.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum)
    }

    /// Returns how often it took at most this many nanoseconds, a power of two that is 8 or more.
    pub fn within(&self, nanos: u64) -> u64 {
        let ends = (0..BUCKETS).take_while(|&bucket| end(bucket) <= nanos);
        ends.map(|bucket| self.counts[bucket]).sum()
    }

    /// Returns the duration within which this share of all was done, to an eighth of itself.
    pub fn quantile(&self, share: f64) -> Duration {
        let wanted = (self.count() as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        let reached = |count: &u64| {
            seen += count;
            seen >= wanted
        };
        let bucket = self.counts.iter().position(reached).unwrap_or(BUCKETS - 1);
        Duration::from_nanos(end(bucket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static ONE: Dialect = Dialect {
        place: 0,
        name: "one",
        too_many: b"",
        not_durable: |why| why.into(),
        command: |number| (number == 0).then_some("get"),
    };

    const GET: Command = Command {
        protocol: &ONE,
        number: 0,
    };

    /// Each duration falls into a bucket that ends at or behind it, at most an eighth further on; buckets are in order.
    #[test]
    fn buckets_are_an_eighth_wide() {
        for nanos in (1..5000).chain((0..60).map(|shift| (1 << 36) >> shift).filter(|&nanos| nanos > 0)) {
            let end = end(bucket(nanos));
            assert!(
                nanos <= end && (end - nanos) * 8 <= nanos.max(8),
                "{nanos} in {end}"
            );
        }
        assert!((1..BUCKETS).all(|bucket| end(bucket - 1) < end(bucket)));
        assert_eq!((end(BUCKETS - 1), bucket(u64::MAX)), (1 << LAST, BUCKETS - 1));
        assert_eq!(bucket(0), 0);
    }

    /// The histograms of all workers are summed, until they are reset.
    #[test]
    fn workers_are_added_up() {
        let workers = [Latencies::new(&[&ONE]), Latencies::new(&[&ONE])];
        assert!(Distribution::of(GET, &workers).is_none());
        workers[0].note(GET, Duration::from_micros(1), 98);
        workers[1].note(GET, Duration::from_millis(1), 2);
        let all = Distribution::of(GET, &workers).expect("noted");
        assert_eq!(all.count(), 100);
        assert_eq!(all.sum(), Duration::from_micros(98 + 2000));
        assert_eq!((all.within(1 << 10), all.within(1 << 20)), (98, 100));
        let near = |share: f64, micros: u64| {
            let found = all.quantile(share).as_nanos() as u64;
            assert!(
                (micros * 1000..=micros * 1125).contains(&found),
                "{share}: {found}"
            );
        };
        near(0.5, 1);
        near(0.98, 1);
        near(0.99, 1000);
        near(1.0, 1000);
        workers.iter().for_each(Latencies::reset);
        assert!(Distribution::of(GET, &workers).is_none());
    }
}
