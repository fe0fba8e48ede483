//! Compares lookups with the limit of this memory.
//!
//! Two bounds per lookup, from the lines on its path that no cache is likely to hold (`path`) and from the time of a
//! cache miss over the same footprint and page size (`calibrate`):
//!
//! * *chain*: every cold line after the one before it, as a single lookup must;
//! * *overlapped*: every cold line at the rate at which independent misses come in, which no loop of lookups beats.
//!
//! The same for one cold line, the least that an index larger than the caches can do. If the third-level cache holds a
//! good part of the pool, both count misses that end there as often: the report says how large that part can be.

mod calibrate;
mod pace;
mod path;

pub use calibrate::Calibrator;
pub use pace::{Misses, Pace};
pub use path::{Cache, Path};

use serde::Serialize;

/// Lookups beside the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// What misses took; where that drifted, the fractions below mean little.
    #[serde(flatten)]
    pub pace: Pace,
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
    /// The share of the footprint that the third-level cache can hold, where its size is known: the bounds are of
    /// misses of which this share may have been none.
    pub cached: Option<f64>,
}

impl Limit {
    /// Of lookups that took `ns_per_op` each, on a machine with a third-level cache of this many bytes.
    pub fn new(pace: Pace, path: Path, ns_per_op: f64, cache: Option<u64>) -> Limit {
        let Misses {
            dependent_ns,
            parallel_ns,
        } = pace.mean();
        let share = |bound: f64| if ns_per_op > 0.0 { bound / ns_per_op } else { 0.0 };
        let (chain_ns, overlapped_ns) = (path.cold * dependent_ns, path.cold * parallel_ns);
        Limit {
            pace,
            path,
            ns_per_op,
            chain_ns,
            of_chain: share(chain_ns),
            overlapped_ns,
            of_overlapped: share(overlapped_ns),
            one_line_ns: parallel_ns,
            of_one_line: share(parallel_ns),
            cached: cache.map(|bytes| (bytes as f64 / pace.footprint.max(1) as f64).min(1.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bounds are lines times misses.
    #[test]
    fn bounds() {
        let misses = |dependent_ns, parallel_ns| Misses {
            dependent_ns,
            parallel_ns,
        };
        let pace = Pace::new(1 << 20, misses(100.0, 10.0), misses(102.0, 10.0));
        let path = Path {
            lines: 9.0,
            cold: 2.0,
        };
        let limit = Limit::new(pace, path, 404.0, Some(1 << 18));
        assert_eq!(
            (limit.chain_ns, limit.overlapped_ns, limit.one_line_ns),
            (202.0, 20.0, 10.0)
        );
        assert_eq!((limit.of_chain, limit.cached), (0.5, Some(0.25)));
        assert_eq!(Limit::new(pace, path, 404.0, Some(1 << 30)).cached, Some(1.0));
    }
}
