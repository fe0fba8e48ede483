//! The memory's pace before and after each round: figures of a round in which it changed mean less.

use super::Section;
use crate::Error;
use crate::keys::KeyKind;
use crate::limit::{Calibrator, Misses};
use crate::store::Place;
use crate::table;
use serde::Serialize;

/// What a miss took around one round.
#[derive(Debug, Serialize)]
pub struct Pace {
    pub section: Section,
    pub key_kind: KeyKind,
    pub round: usize,
    pub before: Misses,
    pub after: Misses,
    /// Whether the two differ by more than a tenth.
    pub drifted: bool,
}

/// Over at most so many bytes: larger than caches, small beside what is compared.
const MOST: usize = 256 << 20;

/// To calibrate with around rounds of so many keys, a line each.
pub fn calibrator(keys: usize) -> Result<Calibrator, Error> {
    let bytes = keys.saturating_mul(pmem::LINE).min(MOST);
    Calibrator::new(bytes as u64, &Place::Anonymous)
}

/// A line for each round.
pub fn render<'p>(rounds: impl Iterator<Item = &'p Pace>) -> String {
    let rows: Vec<Vec<String>> = rounds
        .map(|pace| {
            let Pace {
                section,
                key_kind,
                before,
                after,
                ..
            } = pace;
            vec![
                format!("{section:?} {}", crate::name(*key_kind)).to_lowercase(),
                pace.round.to_string(),
                format!("{:.1}", before.dependent_ns),
                format!("{:.1}", after.dependent_ns),
                format!("{:.1}", before.parallel_ns),
                format!("{:.1}", after.parallel_ns),
                if pace.drifted { "DRIFTED" } else { "" }.to_owned(),
            ]
        })
        .collect();
    let header = ["", "round", "a miss, ns", "after", "overlapped, ns", "after", ""];
    table::render(&header, &rows)
}
