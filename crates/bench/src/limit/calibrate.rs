//! What a miss takes on this memory, over as many bytes and on the same pages as the index under test.

use super::Misses;
use crate::Error;
use crate::random::{Random, mix};
use crate::store::Place;
use pmem::{Fault, Hardware, LINE, Offset, Pool, VWord};
use std::time::Instant;

/// Memory to miss in: each line holds the number of another one, all of them in one cycle.
#[derive(Debug)]
pub struct Calibrator {
    pool: Pool<Hardware>,
    media: Hardware,
    first: u64,
    lines: u64,
    random: Random,
    path: Option<std::path::PathBuf>,
}

/// Lines missed in each measurement.
const STEPS: u64 = 200_000;

impl Calibrator {
    /// About `footprint` bytes (a power of two, at least 1 MiB), in memory or in a file beside the pool's.
    pub fn new(footprint: u64, place: &Place) -> Result<Calibrator, Error> {
        let lines = (footprint.max(1 << 20) / LINE as u64).next_power_of_two();
        let beside = match place {
            Place::Anonymous => Place::Anonymous,
            Place::File(path) => {
                let mut name = path.clone().into_os_string();
                name.push(".calibration");
                Place::File(name.into())
            }
        };
        let pool = beside.pool(Hardware::detect())?;
        let first = pool.len();
        pool.grow(first + lines * LINE as u64)?;
        let calibrator = Calibrator {
            pool,
            media: Hardware::detect(),
            first,
            lines,
            random: Random::new(footprint),
            path: match beside {
                Place::Anonymous => None,
                Place::File(path) => Some(path),
            },
        };
        for line in 0..lines {
            // Of full period modulo a power of two: every line comes once before any again.
            let next = line
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f)
                & (lines - 1);
            calibrator
                .word(line)
                .map_err(fault)?
                .store(next, &calibrator.media);
        }
        Ok(calibrator)
    }

    /// Over so many bytes.
    pub fn footprint(&self) -> u64 {
        self.lines * LINE as u64
    }

    /// What a miss takes now.
    pub fn misses(&mut self) -> Result<Misses, Error> {
        let steps = STEPS.min(self.lines);
        let start = self.random.next() & (self.lines - 1);
        let timed = Instant::now();
        let mut line = start;
        for _ in 0..steps {
            line = self.word(line).map_err(fault)?.load(&self.media) & (self.lines - 1);
        }
        std::hint::black_box(line);
        let dependent_ns = timed.elapsed().as_nanos() as f64 / steps as f64;

        let seed = self.random.next();
        let timed = Instant::now();
        let mut sum = 0u64;
        for step in 0..steps {
            let line = mix(seed.wrapping_add(step)) & (self.lines - 1);
            sum = sum.wrapping_add(self.word(line).map_err(fault)?.load(&self.media));
        }
        std::hint::black_box(sum);
        let parallel_ns = timed.elapsed().as_nanos() as f64 / steps as f64;
        Ok(Misses {
            dependent_ns,
            parallel_ns,
        })
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

impl Drop for Calibrator {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Nobody else knows this file; if it cannot be removed, it stays.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn fault(fault: Fault) -> Error {
    Error::Heap(fault.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cycle leads over every line, and misses take some time, a dependent one no less than an overlapped one by far.
    #[test]
    fn cycles_are_whole() {
        let mut calibrator = Calibrator::new(1 << 20, &Place::Anonymous).unwrap();
        let (mut line, mut steps) = (0, 0u64);
        loop {
            line = calibrator.word(line).unwrap().load(&calibrator.media);
            steps += 1;
            if line == 0 {
                break;
            }
        }
        assert_eq!(steps * 64, calibrator.footprint());
        let misses = calibrator.misses().unwrap();
        assert!(misses.dependent_ns > 0.0 && misses.parallel_ns > 0.0);
    }

    /// In a file, the file goes when the measurement ends.
    #[test]
    fn files_go() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::File(directory.path().join("pool"));
        let calibrator = Calibrator::new(1 << 20, &place).unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        drop(calibrator);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
