//! Hardware counters, where the machine has them.
//!
//! Virtual machines often have none, and containers may lack the permission: the affected counters are then absent, and
//! nothing else changes. The counters cover the thread that opens them and the threads that it starts while they are
//! open. If there are more counters than the processor can run at once, the kernel multiplexes them, and counts are
//! scaled to the whole time.

use serde::Serialize;
#[cfg(any(target_os = "linux", test))]
use std::time::Duration;

/// The counts of a whole pass; `None` for events that this machine does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Hardware {
    /// Core cycles in user space.
    pub cycles: Option<u64>,
    /// Instructions in user space.
    pub instructions: Option<u64>,
    /// Last-level cache misses.
    pub cache_misses: Option<u64>,
    /// Mispredicted branches.
    pub branch_misses: Option<u64>,
    /// Loads that missed the data TLB.
    pub tlb_misses: Option<u64>,
}

impl Hardware {
    /// Returns whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == Hardware::default()
    }
}

/// Scales a count to the time that its counter was enabled; `None` if the counter never ran.
#[cfg(any(target_os = "linux", test))]
fn scaled(count: u64, enabled: Duration, running: Duration) -> Option<u64> {
    let all = u128::from(count) * enabled.as_nanos();
    u64::try_from(all.checked_div(running.as_nanos())?).ok()
}

#[cfg(target_os = "linux")]
mod linux {
    use super::{Hardware, scaled};
    use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Hardware as Event};
    use perf_event::{Builder, Counter};

    /// Counters that run from their creation.
    pub struct Counters([Option<Counter>; 5]);

    impl Counters {
        /// Starts the counters that the machine has.
        pub fn start() -> Counters {
            let translations = Cache {
                which: CacheId::DTLB,
                operation: CacheOp::READ,
                result: CacheResult::MISS,
            };
            let open = |builder: &mut Builder<'_>| {
                let mut counter = builder.inherit(true).build().ok()?;
                counter.enable().ok()?;
                Some(counter)
            };
            Counters([
                open(&mut Builder::new(Event::CPU_CYCLES)),
                open(&mut Builder::new(Event::INSTRUCTIONS)),
                open(&mut Builder::new(Event::CACHE_MISSES)),
                open(&mut Builder::new(Event::BRANCH_MISSES)),
                open(&mut Builder::new(translations)),
            ])
        }

        /// Returns the counts.
        pub fn read(mut self) -> Hardware {
            let count = |counter: &mut Option<Counter>| {
                let read = counter.as_mut()?.read_full().ok()?;
                scaled(read.count(), read.time_enabled()?, read.time_running()?)
            };
            let [cycles, instructions, cache_misses, branch_misses, tlb_misses] =
                self.0.each_mut().map(count);
            Hardware {
                cycles,
                instructions,
                cache_misses,
                branch_misses,
                tlb_misses,
            }
        }
    }
}

#[cfg(target_os = "linux")]
pub use linux::Counters;

/// No counters.
#[cfg(not(target_os = "linux"))]
pub struct Counters;

#[cfg(not(target_os = "linux"))]
impl Counters {
    /// Counts nothing.
    pub fn start() -> Counters {
        Counters
    }

    /// Returns no counts.
    pub fn read(self) -> Hardware {
        Hardware::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reading never fails, whatever the machine supports; a count of instructions is positive.
    #[test]
    fn counters_are_there_or_not() {
        let counters = Counters::start();
        let sum: u64 = std::thread::spawn(|| (0..100_000u64).map(std::hint::black_box).sum())
            .join()
            .unwrap();
        assert_eq!(sum, 4_999_950_000);
        let counted = counters.read();
        assert!(counted.instructions.is_none_or(|count| count > 0));
    }

    /// The count of a counter that ran a third of the time is tripled; one that never ran has no count.
    #[test]
    fn counts_are_of_the_whole_time() {
        let time = Duration::from_millis;
        assert_eq!(scaled(1000, time(30), time(10)), Some(3000));
        assert_eq!(scaled(1000, time(30), time(30)), Some(1000));
        assert_eq!(scaled(0, time(30), time(30)), Some(0));
        assert_eq!(scaled(0, time(30), time(0)), None);
        assert_eq!(scaled(u64::MAX, time(2), time(1)), None);
    }

    /// A result with one count is not empty, even if that count is zero.
    #[test]
    fn one_count_is_some() {
        assert!(Hardware::default().is_empty());
        let counted = Hardware {
            tlb_misses: Some(0),
            ..Hardware::default()
        };
        assert!(!counted.is_empty());
    }
}
