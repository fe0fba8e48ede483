//! What a miss takes on this memory, over as many bytes and on the same pages as the index under test.
//!
//! I1 Every calibration begins with the caches in the same state, whatever ran before it: all of the memory has been read
//!    once, in order.
//! I2 It runs on the core on which the first thread of a run does: cores differ, in what they share with whom.

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
}

/// A measurement is the median of so many laps, each much shorter than a thread's turn on its core: those that were
/// interrupted count for nothing.
const LAPS: usize = 25;

/// Lines missed in each lap.
const STEPS: u64 = 2_000;

/// Over so many bytes, if an index is smaller and nothing else is said: of less, a shared cache holds what its other users
/// leave, and that changes all the time. But no more than [`MOST_LINES`] a key, lest small runs take longer to calibrate than
/// to run.
const BEYOND_CACHES: u64 = 64 << 20;
const MOST_LINES: u64 = 32;

/// Over at most so many bytes, if nothing else is said: made within a tenth of a second.
const MOST: u64 = 256 << 20;

impl Calibrator {
    /// About as much memory as an index of so many keys takes, two lines each, up to 256 MiB; for small ones more.
    pub fn for_keys(keys: usize, place: &Place, huge_pages: bool) -> Result<Calibrator, Error> {
        let lines = |each: u64| (keys as u64).saturating_mul(each * LINE as u64);
        let beyond_caches = lines(MOST_LINES).min(BEYOND_CACHES);
        let footprint = lines(2).max(beyond_caches).min(MOST);
        Calibrator::new(footprint, place, huge_pages)
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
        let measure = || {
            machine::pin_thread(0);
            self.read_all()?;
            Ok(Misses {
                dependent_ns: self.laps(Calibrator::dependent)?,
                parallel_ns: self.laps(Calibrator::parallel)?,
            })
        };
        let measured = std::thread::scope(|scope| scope.spawn(measure).join());
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
        self.pool.at(offset)
    }
}

fn fault(fault: Fault) -> Error {
    Error::Heap(fault.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cycle leads over every line of as many bytes as asked for, and misses take some time, a dependent one no less than an overlapped one by far.
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
