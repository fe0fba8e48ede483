//! The memory's pace before and after each round: figures of a round in which it changed mean less.

use super::Section;
use crate::keys::KeyKind;
use crate::limit::Pace;
use crate::table;
use serde::Serialize;

/// What a miss took around one round.
#[derive(Debug, Serialize)]
pub struct RoundPace {
    pub section: Section,
    pub key_kind: KeyKind,
    pub round: usize,
    #[serde(flatten)]
    pub pace: Pace,
}

/// A line for each round.
pub fn render<'p>(rounds: impl Iterator<Item = &'p RoundPace>) -> String {
    let rows: Vec<Vec<String>> = rounds
        .map(|round| {
            let Pace { before, after, .. } = round.pace;
            vec![
                format!("{:?} {}", round.section, crate::name(round.key_kind)).to_lowercase(),
                round.round.to_string(),
                format!("{:.1}", before.dependent_ns),
                format!("{:.1}", after.dependent_ns),
                format!("{:.1}", before.parallel_ns),
                format!("{:.1}", after.parallel_ns),
                if round.pace.drifted { "DRIFTED" } else { "" }.to_owned(),
            ]
        })
        .collect();
    let header = ["", "round", "a miss, ns", "after", "overlapped, ns", "after", ""];
    table::render(&header, &rows)
}
