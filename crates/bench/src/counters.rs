//! Hardware counters, where the machine gives them.
//!
//! A virtual machine often has none, and a container may not be allowed to ask: then they are absent, each for
//! itself, and nothing else changes. They count this process with the threads that it starts while they are open.

use serde::Serialize;

/// What was counted, for a whole pass; `None` for what this machine does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Hardware {
    /// Core cycles in user space.
    pub cycles: Option<u64>,
    /// Instructions in user space.
    pub instructions: Option<u64>,
    /// Misses of the last-level cache.
    pub cache_misses: Option<u64>,
    /// Branches mispredicted.
    pub branch_misses: Option<u64>,
    /// Loads that the data TLB could not translate.
    pub tlb_misses: Option<u64>,
}

impl Hardware {
    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == Hardware::default()
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use super::Hardware;
    use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Hardware as Event};
    use perf_event::{Builder, Counter};

    /// Counters that run from their making on.
    pub struct Counters([Option<Counter>; 5]);

    impl Counters {
        /// Begins to count what can be counted.
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

        /// What has been counted.
        pub fn read(mut self) -> Hardware {
            let [cycles, instructions, cache_misses, branch_misses, tlb_misses] =
                self.0.each_mut().map(|counter| counter.as_mut()?.read().ok());
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

    /// Nothing.
    pub fn read(self) -> Hardware {
        Hardware::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the machine gives, asking is no error; instructions that are counted are some.
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

    /// What has one count is not empty, be that count zero.
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
