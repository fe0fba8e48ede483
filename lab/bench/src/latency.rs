//! The latencies of calls, by time.
//!
//! A recorded latency includes one reading of the clock ([`clock_ns`]): the end of the first and the beginning of the
//! second.

use crate::summary::Summary;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::time::{Duration, Instant};

/// Latencies of calls in nanoseconds, to three digits.
#[derive(Clone, Debug)]
pub struct Latencies(Option<Histogram<u64>>);

impl Latencies {
    /// Creates an empty histogram. A latency of more than a minute counts as a minute.
    pub fn new() -> Latencies {
        // These bounds are right ones; without a histogram nothing would be noted.
        Latencies(Histogram::new_with_bounds(1, 60_000_000_000, 3).ok())
    }

    /// Records a call.
    #[inline]
    pub fn note(&mut self, took: Duration) {
        if let Some(histogram) = &mut self.0 {
            histogram.saturating_record(took.as_nanos().min(u64::MAX.into()) as u64);
        }
    }

    /// Adds the latencies of another thread.
    pub fn add(&mut self, other: &Latencies) {
        if let (Some(all), Some(other)) = (&mut self.0, &other.0) {
            // Both have the same bounds.
            let _ = all.add(other);
        }
    }

    /// Returns the latency, in nanoseconds, that this share of the calls does not exceed.
    pub fn quantile(&self, share: f64) -> u64 {
        match &self.0 {
            Some(histogram) if !histogram.is_empty() => histogram.value_at_quantile(share).max(1),
            _ => 0,
        }
    }

    /// Returns the number of recorded calls.
    #[cfg(feature = "peers")]
    pub fn count(&self) -> u64 {
        self.0.as_ref().map_or(0, Histogram::len)
    }

    /// Returns the mean, in nanoseconds.
    pub fn mean(&self) -> f64 {
        self.0.as_ref().map_or(0.0, Histogram::mean)
    }

    /// Returns the maximum, in nanoseconds.
    pub fn max(&self) -> u64 {
        self.0.as_ref().map_or(0, Histogram::max)
    }
}

/// What a reading of the clock takes, in nanoseconds: the median of some laps.
pub fn clock_ns() -> f64 {
    const LAPS: usize = 25;
    const READINGS: u32 = 1_000;
    let lap = |_| {
        let timed = Instant::now();
        for _ in 0..READINGS {
            std::hint::black_box(Instant::now());
        }
        timed.elapsed().as_nanos() as f64 / f64::from(READINGS)
    };
    Summary::of((0..LAPS).map(lap)).map_or(0.0, |laps| laps.median)
}

/// Slots of a [`Timeline`] at most.
const SLOTS: usize = 512;

/// What was done when: operations, and the longest call noted, in slots of equal length.
///
/// Slots begin short, and whenever a run outlasts them each two become one; so it never grows.
#[derive(Clone, Debug, Serialize)]
pub struct Timeline {
    /// The length of a slot.
    pub slot_ms: u64,
    /// Operations that ended in each slot.
    pub ops: Vec<u64>,
    /// The longest of the calls timed that ended in each slot, in microseconds.
    pub max_us: Vec<u64>,
}

impl Timeline {
    /// Empty, in slots of a millisecond.
    pub fn new() -> Timeline {
        Timeline {
            slot_ms: 1,
            ops: Vec::with_capacity(SLOTS),
            max_us: Vec::with_capacity(SLOTS),
        }
    }

    /// Notes that `ops` operations were done since the last note, `since` the beginning, and how long the last one
    /// took.
    pub fn note(&mut self, since: Duration, ops: u64, took: Duration) {
        let ms = since.as_millis().min(u64::MAX.into()) as u64;
        while ms / self.slot_ms >= SLOTS as u64 {
            self.fold();
        }
        let slot = (ms / self.slot_ms) as usize;
        if self.ops.len() <= slot {
            self.ops.resize(slot + 1, 0);
            self.max_us.resize(slot + 1, 0);
        }
        self.ops[slot] += ops;
        self.max_us[slot] = self.max_us[slot].max(took.as_micros().min(u64::MAX.into()) as u64);
    }

    fn fold(&mut self) {
        self.slot_ms *= 2;
        self.ops = self.ops.chunks(2).map(|two| two.iter().sum()).collect();
        self.max_us = self
            .max_us
            .chunks(2)
            .map(|two| two.iter().copied().max().unwrap_or(0))
            .collect();
    }

    /// Adds what another thread did from the same beginning on.
    pub fn add(&mut self, mut other: Timeline) {
        while self.slot_ms < other.slot_ms {
            self.fold();
        }
        while other.slot_ms < self.slot_ms {
            other.fold();
        }
        let slots = self.ops.len().max(other.ops.len());
        self.ops.resize(slots, 0);
        self.max_us.resize(slots, 0);
        for (slot, (ops, max)) in other.ops.iter().zip(&other.max_us).enumerate() {
            self.ops[slot] += ops;
            self.max_us[slot] = self.max_us[slot].max(*max);
        }
    }

    /// So coarse that there are at most this many slots.
    pub fn coarser(mut self, slots: usize) -> Timeline {
        while self.ops.len() > slots.max(1) {
            self.fold();
        }
        self
    }
}

/// What one thread notes of its calls.
#[derive(Debug)]
pub struct Recorder {
    start: Instant,
    /// Of the calls timed.
    pub latencies: Latencies,
    /// Of all calls.
    pub timeline: Timeline,
}

impl Recorder {
    /// From now on.
    pub fn new() -> Recorder {
        Recorder {
            start: Instant::now(),
            latencies: Latencies::new(),
            timeline: Timeline::new(),
        }
    }

    /// The calls began at `start`.
    pub fn begin(&mut self, start: Instant) {
        self.start = start;
    }

    /// A call that was due at `from` has ended; `ops` have been done since the last note.
    #[inline]
    pub fn note(&mut self, from: Instant, ops: u64) {
        let now = Instant::now();
        let took = now.saturating_duration_since(from);
        self.latencies.note(took);
        self.timeline.note(now - self.start, ops, took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quantiles are right to three digits.
    #[test]
    fn quantiles() {
        let mut latencies = Latencies::new();
        assert_eq!((latencies.quantile(0.5), latencies.max()), (0, 0));
        let mut upper = Latencies::new();
        for ns in 1..=1000 {
            let to = if ns <= 500 { &mut latencies } else { &mut upper };
            to.note(Duration::from_nanos(ns));
        }
        latencies.add(&upper);
        assert_eq!((latencies.quantile(0.5), latencies.quantile(0.99)), (500, 990));
        assert_eq!((latencies.max(), latencies.mean()), (1000, 500.5));
    }

    /// A reading of the clock takes some time, or else it would not tell calls apart.
    #[test]
    fn the_clock_takes_time() {
        assert!(clock_ns() > 0.0);
    }

    /// However long it gets, a timeline keeps every operation and the longest call, in few slots.
    #[test]
    fn timelines_fold() {
        let mut timeline = Timeline::new();
        for ms in 0..10_000 {
            timeline.note(Duration::from_millis(ms), 2, Duration::from_micros(ms));
        }
        let mut other = Timeline::new();
        other.note(Duration::from_millis(3), 5, Duration::from_millis(20));
        timeline.add(other);
        assert!(timeline.ops.len() <= SLOTS && timeline.ops.len() == timeline.max_us.len());
        assert_eq!(timeline.ops.iter().sum::<u64>(), 20_005);
        assert_eq!(
            (timeline.max_us[0], *timeline.max_us.last().unwrap()),
            (20_000, 9_999)
        );
        assert!(timeline.coarser(10).ops.len() <= 10);
    }
}
