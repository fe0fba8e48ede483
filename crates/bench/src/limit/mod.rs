//! How far a lookup is from what this memory allows.
//!
//! Two bounds a lookup, from the lines on its path that no cache is likely to hold (`path`) and from what this memory
//! takes for a miss over the same footprint and page size (`calibrate`):
//!
//! * *chain*: every cold line after the one before it, as a single lookup must;
//! * *overlapped*: every cold line at the rate at which independent misses come in, which no loop of lookups beats.
//!
//! The same for one cold line, the least that an index larger than the caches can do.

mod calibrate;
mod path;

pub use calibrate::Calibrator;
pub use path::{Cache, Path};

use serde::Serialize;

/// What a miss takes, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Misses {
    /// Each address known only when the line before it is there.
    pub dependent_ns: f64,
    /// Addresses known beforehand, so that misses overlap.
    pub parallel_ns: f64,
}

/// How much two calibrations may differ.
const DRIFT: f64 = 0.1;

impl Misses {
    /// Whether they took another time afterwards, by more than a tenth: then the memory changed its pace meanwhile.
    pub fn drifted(&self, after: &Misses) -> bool {
        let drift = |of: fn(&Misses) -> f64| (of(after) / of(self) - 1.0).abs() > DRIFT;
        drift(|misses| misses.dependent_ns) || drift(|misses| misses.parallel_ns)
    }
}

/// Lookups beside the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// Bytes over which misses were measured.
    pub footprint: u64,
    pub before: Misses,
    pub after: Misses,
    /// Whether the two differ by more than a tenth: then the fractions below mean little.
    pub drifted: bool,
    /// Lines that a lookup touches, and how many of them are cold.
    pub path: Path,
    /// What a lookup took, one thread's share.
    pub ns_per_op: f64,
    /// The bounds of the own path and their share of what a lookup took.
    pub chain_ns: f64,
    pub of_chain: f64,
    pub overlapped_ns: f64,
    pub of_overlapped: f64,
    /// The overlapped bound of a single cold line, and its share.
    pub one_line_ns: f64,
    pub of_one_line: f64,
}

impl Limit {
    /// Of lookups that took `ns_per_op` each.
    pub fn new(footprint: u64, before: Misses, after: Misses, path: Path, ns_per_op: f64) -> Limit {
        let mean = |of: fn(&Misses) -> f64| (of(&before) + of(&after)) / 2.0;
        let (dependent, parallel) = (
            mean(|misses| misses.dependent_ns),
            mean(|misses| misses.parallel_ns),
        );
        let share = |bound: f64| if ns_per_op > 0.0 { bound / ns_per_op } else { 0.0 };
        let (chain_ns, overlapped_ns) = (path.cold * dependent, path.cold * parallel);
        Limit {
            footprint,
            before,
            after,
            drifted: before.drifted(&after),
            path,
            ns_per_op,
            chain_ns,
            of_chain: share(chain_ns),
            overlapped_ns,
            of_overlapped: share(overlapped_ns),
            one_line_ns: parallel,
            of_one_line: share(parallel),
        }
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Limit {
            path, before, after, ..
        } = self;
        write!(
            f,
            "limit: {:.0} ns a lookup, {:.2} of {:.1} lines cold; a miss takes {:.0} ns (after: {:.0}), overlapped \
             {:.1} ns (after: {:.1}); one after the other {:.0} ns = {:.0}%, overlapped {:.0} ns = {:.0}%, one line \
             {:.0} ns = {:.0}%{}",
            self.ns_per_op,
            path.cold,
            path.lines,
            before.dependent_ns,
            after.dependent_ns,
            before.parallel_ns,
            after.parallel_ns,
            self.chain_ns,
            self.of_chain * 100.0,
            self.overlapped_ns,
            self.of_overlapped * 100.0,
            self.one_line_ns,
            self.of_one_line * 100.0,
            if self.drifted {
                "; DRIFTED: the memory changed its pace meanwhile"
            } else {
                ""
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bounds are lines times misses; a machine that changes its pace is marked.
    #[test]
    fn bounds() {
        let misses = |dependent_ns, parallel_ns| Misses {
            dependent_ns,
            parallel_ns,
        };
        let path = Path {
            lines: 9.0,
            cold: 2.0,
        };
        let limit = Limit::new(1 << 20, misses(100.0, 10.0), misses(102.0, 10.0), path, 404.0);
        assert_eq!(
            (limit.chain_ns, limit.overlapped_ns, limit.one_line_ns),
            (202.0, 20.0, 10.0)
        );
        assert_eq!((limit.of_chain, limit.drifted), (0.5, false));
        assert!(Limit::new(1 << 20, misses(100.0, 10.0), misses(100.0, 12.0), path, 404.0).drifted);
    }
}
