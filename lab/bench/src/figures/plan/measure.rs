//! Numbers that runs print, and what they are called.

use serde_json::Value;

/// Which number of a cell's output a point shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Millions of operations a second.
    Mops,
    /// Microseconds an operation, of all threads.
    MicrosPerOp,
    /// A field of the output, as it is.
    Field(&'static str),
    /// A field within a field, and so on.
    Path(&'static [&'static str]),
    /// A field in nanoseconds, in microseconds.
    Micros(&'static str),
    /// A share, in percent.
    Percent(&'static [&'static str]),
    /// Milliseconds of the longest call of a timeline.
    Longest,
}

impl Measure {
    /// Whether it is of the processor's counters, which not every machine gives.
    pub fn is_hardware(self) -> bool {
        matches!(self, Measure::Path(["hardware_per_op", ..]))
    }

    /// Whether it is of the few longest calls alone: what held up one call is not to be found again.
    pub fn is_extreme(self) -> bool {
        matches!(self, Measure::Micros("p999_ns") | Measure::Longest)
    }

    /// Whether it is a time, or made of times: counts do not depend on the memory's pace.
    pub fn is_timed(self) -> bool {
        match self {
            Measure::Mops | Measure::MicrosPerOp | Measure::Micros(_) => true,
            Measure::Longest => true,
            Measure::Percent(path) => !path.contains(&"cached"),
            Measure::Field(field) => field.ends_with("_ms"),
            Measure::Path(path) => {
                let timed = |field: &&str| ["mops", "limit"].contains(field) || field.ends_with("_ms");
                path.iter().any(timed) && !path.contains(&"path")
            }
        }
    }

    /// Where the run printed it.
    pub fn of(self, object: &Value) -> Option<f64> {
        let at = |path: &[&str]| path.iter().fold(object, |object, field| &object[*field]).as_f64();
        match self {
            Measure::Mops => at(&["mops"]),
            Measure::MicrosPerOp => Some(at(&["seconds"])? * 1e6 / at(&["ops"])?),
            Measure::Field(field) => at(&[field]),
            Measure::Path(path) => at(path),
            Measure::Micros(field) => Some(at(&[field])? / 1e3),
            Measure::Percent(path) => Some(at(path)? * 100.0),
            Measure::Longest => {
                let longest = object["timeline"]["max_us"].as_array()?.iter();
                Some(longest.filter_map(Value::as_f64).fold(0.0, f64::max) / 1e3)
            }
        }
    }
}

pub(super) const MOPS: (&str, Measure) = ("Mops/s", Measure::Mops);
pub(super) const MICROS: (&str, Measure) = ("µs per operation", Measure::MicrosPerOp);

/// Hardware counters, which the page leaves out where the machine gives none.
pub(super) const HARDWARE: [(&str, Measure); 4] = [
    ("cycles", Measure::Path(&["hardware_per_op", "cycles"])),
    (
        "instructions",
        Measure::Path(&["hardware_per_op", "instructions"]),
    ),
    CACHE_MISSES,
    (
        "mispredicted branches",
        Measure::Path(&["hardware_per_op", "branch_misses"]),
    ),
];
pub(super) const CACHE_MISSES: (&str, Measure) = (
    "last-level cache misses",
    Measure::Path(&["hardware_per_op", "cache_misses"]),
);

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers are found where the runs put them.
    #[test]
    fn measures() {
        let object = serde_json::json!({
            "mops": 2.0, "seconds": 3.0, "ops": 1_000_000, "p99_ns": 1500, "persists_per_op": {"log": {"fences": 0.5}},
            "limit": {"of_chain": 0.25}, "timeline": {"slot_ms": 1, "ops": [2, 2], "max_us": [400, 30]}
        });
        for (measure, number) in [
            (Measure::Mops, 2.0),
            (Measure::MicrosPerOp, 3.0),
            (Measure::Micros("p99_ns"), 1.5),
            (Measure::Path(&["persists_per_op", "log", "fences"]), 0.5),
            (Measure::Percent(&["limit", "of_chain"]), 25.0),
            (Measure::Longest, 0.4),
        ] {
            assert_eq!(measure.of(&object), Some(number));
        }
        assert_eq!(Measure::Field("nothing").of(&object), None);
        for (measure, timed) in [
            (Measure::Longest, true),
            (Measure::Field("open_ms"), true),
            (Measure::Field("fences_per_op"), false),
            (Measure::Path(&["limit", "chain_ns"]), true),
            (Measure::Path(&["limit", "path", "cold"]), false),
            (Measure::Percent(&["limit", "of_chain"]), true),
            (Measure::Percent(&["limit", "cached"]), false),
            (Measure::Path(&["first_get_ms", "median"]), true),
            (Measure::Path(&["hardware_per_op", "cycles"]), false),
        ] {
            assert_eq!(measure.is_timed(), timed, "{measure:?}");
        }
        for (measure, extreme) in [
            (Measure::Longest, true),
            (Measure::Micros("p999_ns"), true),
            (Measure::Micros("p99_ns"), false),
            (Measure::Field("open_ms"), false),
        ] {
            assert_eq!(measure.is_extreme(), extreme, "{measure:?}");
        }
    }
}
