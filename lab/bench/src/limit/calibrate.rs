//! Measures the time of a cache miss on this memory, over as many bytes as the index under test and on the same kind of
//! pages.
//!
//! I1 Every calibration begins with the caches in the same state, whatever ran before it: all of the memory has been
//!    read once, in order.
//! I2 Calibration runs on the same core as the run that it accompanies, or as that run's first thread: cores differ in
//!    what they share. Openings, restarts and transactions are not pinned (pinning would change what is timed); their
//!    calibration runs on the first core.
//!
//! The caller chooses the pages: `server` uses anonymous memory, as its peers do, even if our pool is in a file.

use super::{Misses, Pace};
use crate::random::{Random, mix};
use crate::store::Place;
use crate::summary::Summary;
use crate::{Error, machine};
use pmem::{Fault, Hardware, LINE, Offset, Pool, VWord};
use std::time::Instant;

/// Memory to miss in: each line holds the number of the next one, in one unordered cycle over all lines.
#[derive(Debug)]
pub struct Calibrator {
    pool: Pool<Hardware>,
    media: Hardware,
    first: u64,
    lines: u64,
    random: Random,
    core: usize,
}

/// A measurement is the median of this many laps. A lap is much shorter than a scheduler's time slice, so interrupted
/// laps do not affect the median.
const LAPS: usize = 25;

/// Lines read in each lap.
const STEPS: u64 = 2_000;

/// For small indexes the footprint is this multiple of the third-level cache, and at least [`MIN_FOOTPRINT`]: of less
/// memory, a share that varies with the cache's other users would be cached. But it is at most [`MAX_LINES_PER_KEY`]
/// lines per key, so that small runs do not take longer to calibrate than to run.
const CACHE_MULTIPLE: u64 = 4;
const MIN_FOOTPRINT: u64 = 64 << 20;
const MAX_LINES_PER_KEY: u64 = 32;

/// The maximum footprint derived from the number of keys, unless the caches need more; filling it takes under 0.1 s.
const MAX_BY_KEYS: u64 = 256 << 20;

/// The maximum footprint derived from the caches.
const MAX_FOOTPRINT: u64 = 1 << 30;

/// Returns the footprint for this many keys and a third-level cache of this many bytes, if known.
fn footprint(keys: usize, cache: Option<u64>) -> u64 {
    let lines = |each: u64| (keys as u64).saturating_mul(each * LINE as u64);
    let beyond = cache.map_or(0, |bytes| bytes.saturating_mul(CACHE_MULTIPLE));
    let beyond = beyond.clamp(MIN_FOOTPRINT, MAX_FOOTPRINT);
    lines(2)
        .min(MAX_BY_KEYS)
        .max(beyond.min(lines(MAX_LINES_PER_KEY)))
}

impl Calibrator {
    /// Creates a calibrator over about as much memory as an index of this many keys uses: two lines per key, but at
    /// most 256 MiB. Takes instead the greater of 64 MiB and four times the third-level cache, but at most 1 GiB and at
    /// most 32 lines per key, if that is more.
    pub fn for_keys(keys: usize, place: &Place, huge_pages: bool) -> Result<Calibrator, Error> {
        Calibrator::new(footprint(keys, machine::cache(3)), place, huge_pages)
    }

    /// Sets the core to run on, an index among the cores that this process may use. The default is the first.
    pub fn on_core(self, core: usize) -> Calibrator {
        Calibrator { core, ..self }
    }

    /// Creates a calibrator over `footprint` bytes (at least 1 MiB), in memory or in a file beside the pool's.
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
        // Only the mapping is needed. Removing the file now leaves none behind, however this process ends.
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
            // A full-period generator below a power of two; numbers beyond the last line are skipped.
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

    /// Measures again, and returns the misses before and now with the footprint.
    pub fn since(&mut self, before: Misses) -> Result<Pace, Error> {
        let after = self.misses()?;
        Ok(Pace::new(self.lines * LINE as u64, before, after))
    }

    /// Measures the present time of a cache miss.
    pub fn misses(&mut self) -> Result<Misses, Error> {
        self.on_its_core(|calibrator| {
            calibrator.read_all()?;
            Ok(Misses {
                dependent_ns: calibrator.laps(Calibrator::dependent)?,
                parallel_ns: calibrator.laps(Calibrator::parallel)?,
            })
        })
    }

    /// Calls `measure` in a new thread, pinned to the calibrator's core.
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

    /// Returns the median time per step of a lap, in nanoseconds.
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

    /// Follows the cycle from line to line.
    fn dependent(&mut self, steps: u64) -> Result<(), Error> {
        let mut line = self.random.below(self.lines);
        for _ in 0..steps {
            line = self.word(line).map_err(fault)?.load(&self.media);
        }
        std::hint::black_box(line);
        Ok(())
    }

    /// Reads lines at random.
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
        // A sum of multiples of the line size, never zero.
        let what = "a line to calibrate with";
        let offset = Offset::new(at).ok_or(Fault { what, offset: at })?;
        // SAFETY: the pool is the calibrator's alone: no allocator makes drafts in it, and only words are stored in it.
        unsafe { self.pool.at(offset) }
    }
}

fn fault(fault: Fault) -> Error {
    Error::Heap(fault.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cycle visits every line of the requested footprint, and misses take a positive time.
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

    /// Small runs are calibrated over at most 32 lines per key, others over four times the third-level cache (64 MiB if
    /// that is more or the size unknown), large ones over two lines per key up to 256 MiB.
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

    /// A calibration runs on the given core.
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

    /// A calibration in a file leaves no file behind.
    #[test]
    fn files_go() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::File(directory.path().join("pool"));
        let mut calibrator = Calibrator::for_keys(1, &place, true).unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        assert!(calibrator.misses().unwrap().dependent_ns > 0.0);
    }
}
