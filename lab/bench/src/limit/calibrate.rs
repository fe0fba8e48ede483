//! The time of a cache miss on this memory, over as many bytes as the index under test and on pages of a kind.
//!
//! I1 Every calibration begins with the caches in the same state, whatever ran before it: all of the memory has been
//!    read once, in order.
//! I2 Calibration runs on the same core as the run that it accompanies, or as that run's first thread: cores differ in
//!    what they share. Openings and restarts are not pinned (pinning would change what is timed); their calibration
//!    runs on the first core.
//!
//! Whether the pages are those of the pool is up to the caller: `server` asks for anonymous memory, which is what its
//! peers use, also beside our pools in files.

use super::{Misses, Pace};
use crate::random::{Random, mix};
use crate::store::Place;
use crate::summary::Summary;
use crate::{Error, machine};
use pmem::{Fault, Hardware, LINE, Offset, Pool, VWord};
use std::time::Instant;

/// Memory to miss in: each line holds the number of another one, all of them in one cycle in no order.
#[derive(Debug)]
pub struct Calibrator {
    pool: Pool<Hardware>,
    media: Hardware,
    first: u64,
    lines: u64,
    random: Random,
    core: usize,
}

/// A measurement is the median of this many laps, each much shorter than a thread's turn on its core: those that were
/// interrupted count for nothing.
const LAPS: usize = 25;

/// Lines missed in each lap.
const STEPS: u64 = 2_000;

/// Over this many times the third-level cache, and no less than [`BEYOND_CACHES`] bytes, if an index is smaller and
/// nothing else is said: of less, that cache holds what its other users leave, and that changes all the time. But no
/// more than [`MAX_LINES`] a key, lest small runs take longer to calibrate than to run.
const CACHES: u64 = 4;
const BEYOND_CACHES: u64 = 64 << 20;
const MAX_LINES: u64 = 32;

/// Over at most this many bytes, if nothing else is said and the caches are no larger: made within a tenth of a second.
const MAX: u64 = 256 << 20;

/// However large the caches are.
const MAX_EVER: u64 = 1 << 30;

/// The bytes to measure over beside this many keys, with a third-level cache of this many bytes, where that is known.
fn footprint(keys: usize, cache: Option<u64>) -> u64 {
    let lines = |each: u64| (keys as u64).saturating_mul(each * LINE as u64);
    let beyond = cache.map_or(0, |bytes| bytes.saturating_mul(CACHES));
    let beyond = beyond.clamp(BEYOND_CACHES, MAX_EVER);
    lines(2).min(MAX).max(beyond.min(lines(MAX_LINES)))
}

impl Calibrator {
    /// About as much memory as an index of this many keys takes, two lines each, up to 256 MiB; but four times what the
    /// third-level cache holds, and 64 MiB, if that is more and not more than 32 lines a key.
    pub fn for_keys(keys: usize, place: &Place, huge_pages: bool) -> Result<Calibrator, Error> {
        Calibrator::new(footprint(keys, machine::cache(3)), place, huge_pages)
    }

    /// To run on this core, counted among those that this process may use; else on the first.
    pub fn on_core(self, core: usize) -> Calibrator {
        Calibrator { core, ..self }
    }

    /// `footprint` bytes (at least 1 MiB), in memory or in a file beside the pool's.
    pub fn new(footprint: u64, place: &Place, huge_pages: bool) -> Result<Calibrator, Error> {
        let lines = footprint.max(1 << 20) / LINE as u64;
        let beside = match place {
            Place::Anonymous => Place::Anonymous,
            Place::File(path) => {
                let mut name = path.clone().into_os_string();
                name.push(".calibration");
                Place::File(name.into())
            }
        };
        let pool = beside.pool(Hardware::detect(), huge_pages)?;
        // The mapping is all that is needed: whatever becomes of this process, no file is left behind.
        let _remove = beside.remove_at_end();
        let first = pool.len();
        pool.grow(first + lines * LINE as u64)?;
        let calibrator = Calibrator {
            pool,
            media: Hardware::detect(),
            first,
            lines,
            random: Random::new(footprint),
            core: 0,
        };
        for line in 0..lines {
            // Leads through all numbers below a power of two; those that are no line's are passed over.
            let after = |number: u64| {
                let next = number.wrapping_mul(0x5851_f42d_4c95_7f2d);
                next.wrapping_add(0x1405_7b7e_f767_814f) & (lines.next_power_of_two() - 1)
            };
            let mut next = after(line);
            while next >= lines {
                next = after(next);
            }
            calibrator
                .word(line)
                .map_err(fault)?
                .store(next, &calibrator.media);
        }
        Ok(calibrator)
    }

    /// What misses took before, and take now, over how many bytes.
    pub fn since(&mut self, before: Misses) -> Result<Pace, Error> {
        let after = self.misses()?;
        Ok(Pace::new(self.lines * LINE as u64, before, after))
    }

    /// What a miss takes now.
    pub fn misses(&mut self) -> Result<Misses, Error> {
        self.on_its_core(|calibrator| {
            calibrator.read_all()?;
            Ok(Misses {
                dependent_ns: calibrator.laps(Calibrator::dependent)?,
                parallel_ns: calibrator.laps(Calibrator::parallel)?,
            })
        })
    }

    /// In a thread of its own, on the core that it is to run on.
    fn on_its_core<T: Send>(
        &mut self,
        measure: impl FnOnce(&mut Calibrator) -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        let here = || {
            machine::pin_thread(self.core);
            measure(self)
        };
        let measured = std::thread::scope(|scope| scope.spawn(here).join());
        measured.unwrap_or_else(|_| Err(Error::Wrong("a calibration panicked".into())))
    }

    /// Reads each line once, in order.
    fn read_all(&self) -> Result<(), Error> {
        let mut sum = 0u64;
        for line in 0..self.lines {
            sum = sum.wrapping_add(self.word(line).map_err(fault)?.load(&self.media));
        }
        std::hint::black_box(sum);
        Ok(())
    }

    /// What each step of a lap takes, in nanoseconds.
    fn laps(&mut self, lap: fn(&mut Calibrator, u64) -> Result<(), Error>) -> Result<f64, Error> {
        let steps = STEPS.min(self.lines);
        let mut laps = Vec::with_capacity(LAPS);
        for _ in 0..LAPS {
            let timed = Instant::now();
            lap(self, steps)?;
            laps.push(timed.elapsed().as_nanos() as f64 / steps as f64);
        }
        Ok(Summary::of(laps).map_or(0.0, |laps| laps.median))
    }

    /// From line to line.
    fn dependent(&mut self, steps: u64) -> Result<(), Error> {
        let mut line = self.random.below(self.lines);
        for _ in 0..steps {
            line = self.word(line).map_err(fault)?.load(&self.media);
        }
        std::hint::black_box(line);
        Ok(())
    }

    /// Any lines.
    fn parallel(&mut self, steps: u64) -> Result<(), Error> {
        let (seed, mut sum) = (self.random.next(), 0u64);
        for step in 0..steps {
            let word = mix(seed.wrapping_add(step));
            let line = ((u128::from(word) * u128::from(self.lines)) >> u64::BITS) as u64;
            sum = sum.wrapping_add(self.word(line).map_err(fault)?.load(&self.media));
        }
        std::hint::black_box(sum);
        Ok(())
    }

    #[inline]
    fn word(&self, line: u64) -> Result<&VWord, Fault> {
        let at = self.first + line * LINE as u64;
        // A sum of multiples of a line, and never zero.
        let what = "a line to calibrate with";
        let offset = Offset::new(at).ok_or(Fault { what, offset: at })?;
        // SAFETY: the pool is the calibrator's alone: no allocator makes drafts in it, and all that is stored are
        // words.
        unsafe { self.pool.at(offset) }
    }
}

fn fault(fault: Fault) -> Error {
    Error::Heap(fault.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cycle leads over every line of as many bytes as asked for, and misses take some time, a dependent one no
    /// less than an overlapped one by far.
    #[test]
    fn cycles_are_whole() {
        let footprint = (1 << 20) + 100 * LINE as u64;
        let mut calibrator = Calibrator::new(footprint, &Place::Anonymous, true).unwrap();
        let (mut line, mut steps) = (0, 0u64);
        loop {
            line = calibrator.word(line).unwrap().load(&calibrator.media);
            steps += 1;
            if line == 0 {
                break;
            }
        }
        let misses = calibrator.misses().unwrap();
        assert!(misses.dependent_ns > 0.0 && misses.parallel_ns > 0.0);
        assert_eq!(steps * LINE as u64, footprint);
        assert_eq!(calibrator.since(misses).unwrap().footprint, footprint);
    }

    /// Small runs are calibrated over at most 32 lines a key, all others over four times the third-level cache, or 64
    /// MiB where that is more or not known, and large ones over two lines a key up to 256 MiB.
    #[test]
    fn footprints_go_beyond_the_caches() {
        const MIB: u64 = 1 << 20;
        for (keys, cache, mib) in [
            (1 << 14, Some(32 * MIB), 32),
            (1 << 20, Some(32 * MIB), 128),
            (1 << 20, Some(8 * MIB), 128),
            (1 << 19, Some(8 * MIB), 64),
            (1 << 19, None, 64),
            (1 << 24, Some(32 * MIB), 256),
            (1 << 24, Some(96 * MIB), 384),
            (1 << 30, Some(1024 * MIB), 1024),
        ] {
            assert_eq!(footprint(keys, cache), mib * MIB, "{keys} keys, {cache:?}");
        }
    }

    /// It runs on the given core.
    #[test]
    fn calibrations_have_a_core() {
        use rustix::thread::sched_getaffinity;
        for core in [0, 1] {
            let pinned = std::thread::spawn(move || {
                machine::pin_thread(core);
                sched_getaffinity(None)
            });
            let calibrator = Calibrator::new(0, &Place::Anonymous, true).unwrap();
            let own = calibrator
                .on_core(core)
                .on_its_core(|_| Ok(sched_getaffinity(None)));
            assert_eq!(own.unwrap().unwrap(), pinned.join().unwrap().unwrap());
        }
    }

    /// In a file, no file is left to be seen.
    #[test]
    fn files_go() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::File(directory.path().join("pool"));
        let mut calibrator = Calibrator::for_keys(1, &place, true).unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        assert!(calibrator.misses().unwrap().dependent_ns > 0.0);
    }
}
