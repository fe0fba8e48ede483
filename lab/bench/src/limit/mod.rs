//! Compares lookups with the limits of this memory.
//!
//! A lookup has two bounds, computed from the lines on its path that no cache is likely to hold (`path`) and from the
//! time of a cache miss over the same footprint and page size (`calibrate`):
//!
//! * *chain*: every cold line is read after the previous one, as in a single lookup;
//! * *overlapped*: cold lines are read at the rate of independent misses, which no loop of lookups can exceed.
//!
//! The report also gives the overlapped bound of one cold line, the minimum for an index larger than the caches. If the
//! third-level cache holds a good part of the pool, both bounds include misses that hit in it; the report states how
//! large that part can be.

mod calibrate;
mod pace;
mod path;

pub use calibrate::Calibrator;
pub use pace::{Misses, Pace};
pub use path::{Cache, Path};

use serde::Serialize;

/// Lookups compared with the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// Cache-miss times; if they drifted, the fractions below mean little.
    #[serde(flatten)]
    pub pace: Pace,
    /// The lines that a lookup touches, and how many of them are cold.
    pub path: Path,
    /// The time per lookup in one thread.
    pub ns_per_op: f64,
    /// The bounds for this path, each with its share of the time per lookup.
    pub chain_ns: f64,
    pub of_chain: f64,
    pub overlapped_ns: f64,
    pub of_overlapped: f64,
    /// The overlapped bound of a single cold line, and its share.
    pub one_line_ns: f64,
    pub of_one_line: f64,
    /// The share of the footprint that the third-level cache can hold, if its size is known: up to this share of the
    /// measured misses may have hit in it.
    pub cached: Option<f64>,
}

impl Limit {
    /// Compares lookups that took `ns_per_op` each, on a machine with a third-level cache of this many bytes.
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

    /// Bounds are cold lines times cache-miss times.
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
