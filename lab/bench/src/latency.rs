//! The latencies of calls, and when they occurred.
//!
//! In a closed loop, a recorded latency includes the cost of one clock reading ([`clock_ns`]): the end of the first
//! reading and the beginning of the last. That of a read of a batch of keys includes one more, between the two. In an
//! open loop, it includes all that passes between the time when the call was due and the call, and the beginning of
//! the last reading.

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
        // These bounds are valid; without a histogram nothing would be recorded.
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

/// Returns the cost of a clock reading in nanoseconds, the median of several laps.
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

/// The maximum number of slots of a [`Timeline`].
const SLOTS: usize = 512;

/// The progress over time: operations and the longest recorded call, in slots of equal length.
///
/// Slots begin short. Whenever a run outlasts them, each two are merged into one, so the number of slots stays bounded.
#[derive(Clone, Debug, Serialize)]
pub struct Timeline {
    /// The length of a slot.
    pub slot_ms: u64,
    /// Operations recorded in each slot. Where only one call in 32 is timed, each timed call records 32: itself and
    /// those up to the next timed one.
    pub ops: Vec<u64>,
    /// The longest timed call that ended in each slot, in microseconds.
    pub max_us: Vec<u64>,
}

impl Timeline {
    /// Creates an empty timeline with slots of a millisecond.
    pub fn new() -> Timeline {
        Timeline {
            slot_ms: 1,
            ops: Vec::with_capacity(SLOTS),
            max_us: Vec::with_capacity(SLOTS),
        }
    }

    /// Records `ops` operations at the time `since` the beginning, and the duration of the timed call.
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

    /// Adds the timeline of another thread with the same beginning.
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

    /// Merges slots until at most `slots` remain.
    pub fn coarser(mut self, slots: usize) -> Timeline {
        while self.ops.len() > slots.max(1) {
            self.fold();
        }
        self
    }
}

/// Records the calls of one thread.
#[derive(Debug)]
pub struct Recorder {
    start: Instant,
    /// Latencies of the timed calls.
    pub latencies: Latencies,
    /// The timeline of all calls.
    pub timeline: Timeline,
}

impl Recorder {
    /// Creates a recorder that starts now.
    pub fn new() -> Recorder {
        Recorder {
            start: Instant::now(),
            latencies: Latencies::new(),
            timeline: Timeline::new(),
        }
    }

    /// Sets the beginning of the calls to `start`.
    pub fn begin(&mut self, start: Instant) {
        self.start = start;
    }

    /// Records that a call that began or was due at `from` has ended, and counts `ops` operations.
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

    /// A clock reading takes a positive time.
    #[test]
    fn the_clock_takes_time() {
        assert!(clock_ns() > 0.0);
    }

    /// However long a run lasts, a timeline keeps every operation and the longest call, in a bounded number of slots.
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
