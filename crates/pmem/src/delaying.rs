//! A media whose fences take as long as on persistent memory.
//!
//! On DRAM a fence does not take the time that persistent memory needs to make its lines safe. After each fence this
//! media spins for the difference: an amount for each distinct line, one for each distinct block of 256 bytes (Optane
//! writes nothing smaller, so scattered lines cost up to four times as much), and one for each fence that waits at
//! all. Reads are not delayed.

use crate::recent::Recent;
use crate::watched::{ObservedStep, Observer, StepKind, Watched};
use crate::{Hardware, Media, Purpose};
use std::time::{Duration, Instant};

/// The cost of a fence beyond its cost on the actual memory, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// For each fence that has a line to wait for.
    pub fence_ns: u64,
    /// For each distinct line of 64 bytes.
    pub line_ns: u64,
    /// For each distinct block of 256 bytes.
    pub block_ns: u64,
}

impl Latency {
    /// Optane DC: a `clwb` and fence takes 62 ns instead of DRAM's 57, and one module writes 2.3 GB/s, which is 111 ns
    /// a block (Yang et al., FAST 2020, §3: one thread on one module).
    pub const OPTANE: Latency = Latency {
        fence_ns: 5,
        line_ns: 0,
        block_ns: 111,
    };

    /// Battery-backed memory behind CXL: some 90 ns more per round trip than local memory (Li et al., ASPLOS 2023,
    /// small pools), which write-backs share, and 64 bytes at 32 GB/s.
    pub const CXL: Latency = Latency {
        fence_ns: 90,
        line_ns: 2,
        block_ns: 0,
    };

    /// The cost of a fence that waits for this many distinct lines and blocks.
    pub const fn of_fence(&self, lines: u64, blocks: u64) -> Duration {
        if lines == 0 {
            return Duration::ZERO;
        }
        let lines_ns = lines.saturating_mul(self.line_ns);
        let blocks_ns = blocks.saturating_mul(self.block_ns);
        Duration::from_nanos(self.fence_ns.saturating_add(lines_ns).saturating_add(blocks_ns))
    }
}

/// Passes calls on to `M`, and prolongs each fence that has a line to wait for.
pub type Delaying<M = Hardware> = Watched<Delay, M>;

/// The observer that prolongs the fences of a [`Delaying`] media.
#[derive(Debug)]
pub struct Delay {
    latency: Latency,
    recent: Recent,
}

impl<M: Media> Delaying<M> {
    /// Adds `latency` to the fences of `inner`.
    pub fn new(inner: M, latency: Latency) -> Delaying<M> {
        let recent = Recent::new();
        Watched::around(inner, Delay { latency, recent })
    }

    /// The added latency.
    pub fn latency(&self) -> Latency {
        self.watch().latency
    }
}

impl Delay {
    /// Returns how much longer this thread's next fence must take, and clears its list of lines.
    fn settle(&self) -> Duration {
        let (mut lines, mut blocks) = (0, 0);
        self.recent.fence(|_, new_block| {
            lines += 1;
            blocks += u64::from(new_block);
        });
        self.latency.of_fence(lines, blocks)
    }
}

impl Observer for Delay {
    #[inline(always)]
    fn after(&self, step: &ObservedStep) {
        match step.what {
            StepKind::StoreNt => self.recent.note(step.start, Purpose::Node),
            StepKind::WriteBack(purpose) | StepKind::WriteBackJoined(purpose) => {
                self.recent.note(step.start, purpose);
            }
            StepKind::Fence(_) => {
                let owed = self.settle();
                if owed > Duration::ZERO {
                    let start = Instant::now();
                    while start.elapsed() < owed {
                        std::hint::spin_loop();
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Counting;
    use std::sync::atomic::AtomicU64;

    const ODD: Latency = Latency {
        fence_ns: 1000,
        line_ns: 100,
        block_ns: 10,
    };

    fn at(line: usize) -> &'static AtomicU64 {
        #[repr(align(256))]
        struct Lines([AtomicU64; 128]);
        static LINES: Lines = Lines([const { AtomicU64::new(0) }; 128]);
        &LINES.0[8 * line]
    }

    /// A fence is charged once for each line and each block, and for itself only if there was anything to wait for.
    #[test]
    fn a_fence_owes_for_what_it_waits_for() {
        let media = Delaying::new(Hardware::detect(), ODD);
        assert_eq!(media.watch().settle(), Duration::ZERO);
        for line in [0, 1, 1, 4, 0] {
            media.write_back(at(line), Purpose::Node);
        }
        assert_eq!(
            media.watch().settle(),
            Duration::from_nanos(1000 + 3 * 100 + 2 * 10)
        );
        assert_eq!(media.watch().settle(), Duration::ZERO, "the debt is paid once");
        media.store_nt(&AtomicU64::new(0), 1);
        assert_eq!(media.watch().settle(), Duration::from_nanos(1110));
    }

    /// A thread's write-backs are not charged to another thread.
    #[test]
    fn each_thread_owes_its_own() {
        let media = Delaying::new(Hardware::detect(), ODD);
        media.write_back(at(0), Purpose::Node);
        let others =
            std::thread::scope(|scope| scope.spawn(|| media.watch().settle()).join().expect("no panic"));
        assert_eq!(
            (others, media.watch().settle()),
            (Duration::ZERO, Duration::from_nanos(1110))
        );
    }

    /// All calls reach the wrapped media.
    #[test]
    fn everything_is_passed_on() {
        let media = Delaying::new(Counting::new(Hardware::detect()), Latency::OPTANE);
        let word = AtomicU64::new(0);
        media.store(&word, 1);
        assert_eq!(media.compare_exchange(&word, 1, 2), Ok(1));
        media.store_nt(&word, 3);
        media.write_back(at(0), Purpose::Node);
        media.fence(Purpose::Node);
        assert_eq!(media.load(&word), 3);
        let counts = media.inner().counts();
        assert_eq!(
            (counts.node.write_backs, counts.node.fences, counts.bytes),
            (1, 1, 24)
        );
        assert_eq!(media.watch().settle(), Duration::ZERO, "the fence has settled it");
    }
}
