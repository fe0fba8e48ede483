//! The memory's pace: the time of a cache miss, before and after a run.

use serde::Serialize;

/// The time of a cache miss, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Misses {
    /// Each address depends on the previous line.
    pub dependent_ns: f64,
    /// Addresses are known beforehand, so that misses overlap.
    pub parallel_ns: f64,
}

/// Cache-miss times before and after a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pace {
    /// Bytes over which misses were measured.
    pub footprint: u64,
    pub before: Misses,
    pub after: Misses,
    /// Whether the two differ by more than a tenth, so that the memory changed its pace meanwhile.
    pub drifted: bool,
}

/// The share by which two calibrations may differ.
const DRIFT: f64 = 0.1;

impl Pace {
    /// Compares misses over `footprint` bytes.
    pub fn new(footprint: u64, before: Misses, after: Misses) -> Pace {
        let drift = |of: fn(&Misses) -> f64| (of(&after) / of(&before) - 1.0).abs() > DRIFT;
        Pace {
            footprint,
            before,
            after,
            drifted: drift(|misses| misses.dependent_ns) || drift(|misses| misses.parallel_ns),
        }
    }

    /// Returns the mean of the times before and after.
    pub fn mean(&self) -> Misses {
        let mean = |of: fn(&Misses) -> f64| (of(&self.before) + of(&self.after)) / 2.0;
        Misses {
            dependent_ns: mean(|misses| misses.dependent_ns),
            parallel_ns: mean(|misses| misses.parallel_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change of pace is marked, in either direction and for either kind of miss.
    #[test]
    fn drift_is_marked() {
        let misses = |dependent_ns, parallel_ns| Misses {
            dependent_ns,
            parallel_ns,
        };
        let pace = |dependent, parallel| Pace::new(64, misses(100.0, 10.0), misses(dependent, parallel));
        assert!(!pace(109.0, 9.1).drifted);
        assert!(pace(100.0, 12.0).drifted && pace(85.0, 10.0).drifted);
        assert_eq!(pace(104.0, 9.0).mean(), misses(102.0, 9.5));
    }
}
