//! The memory's pace before and after each round: figures of a round in which it changed are less reliable.

use super::Section;
use crate::keys::KeyKind;
use crate::limit::Pace;
use serde::Serialize;

/// Cache-miss time before and after one round.
#[derive(Debug, Serialize)]
pub struct RoundPace {
    pub section: Section,
    pub key_kind: KeyKind,
    pub round: usize,
    #[serde(flatten)]
    pub pace: Pace,
}
