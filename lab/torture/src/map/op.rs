//! The operations on a map and their sequential specification.

use super::scan::Scan;
use super::{Bytes, Map, shown};
use std::fmt;

/// An operation.
#[derive(Clone, PartialEq, Eq)]
pub enum Op {
    /// Put the key, if it is absent.
    Insert(Bytes, Bytes),
    /// Put the key.
    Upsert(Bytes, Bytes),
    /// Put the key, if it is present.
    Update(Bytes, Bytes),
    /// Remove the key.
    Remove(Bytes),
    /// Read the key.
    Get(Bytes),
    /// Visit the keys between two bounds.
    Scan(Scan),
    /// One of the writes above, in one call with the `Together` operations next to it.
    Together(Box<Op>),
}

impl Op {
    /// Returns its key; for a scan, one of its bounds.
    pub fn key(&self) -> Option<&Bytes> {
        match self {
            Op::Insert(key, _) | Op::Upsert(key, _) | Op::Update(key, _) | Op::Remove(key) | Op::Get(key) => {
                Some(key)
            }
            Op::Scan(scan) => scan.bound(),
            Op::Together(op) => op.key(),
        }
    }

    /// Wraps a write in [`Together`](Op::Together); returns a read unchanged.
    #[must_use]
    pub fn together(self) -> Op {
        match self {
            Op::Get(_) | Op::Scan(_) | Op::Together(_) => self,
            write => Op::Together(Box::new(write)),
        }
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Insert(key, value) => write!(f, "insert {} = {}", shown(key), shown(value)),
            Op::Upsert(key, value) => write!(f, "upsert {} = {}", shown(key), shown(value)),
            Op::Update(key, value) => write!(f, "update {} = {}", shown(key), shown(value)),
            Op::Remove(key) => write!(f, "remove {}", shown(key)),
            Op::Get(key) => write!(f, "get {}", shown(key)),
            Op::Scan(scan) => write!(f, "scan {scan:?}"),
            Op::Together(op) => write!(f, "together: {op:?}"),
        }
    }
}

/// The answer to an operation.
#[derive(Clone, PartialEq, Eq)]
pub enum Answer {
    /// Whether anything changed.
    Changed(bool),
    /// The value read.
    Value(Option<Bytes>),
    /// The entries that a scan visited, in order.
    Visited(Vec<(Bytes, Bytes)>),
    /// The pool is full; nothing changed.
    Full,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Changed(changed) => write!(f, "{changed}"),
            Answer::Value(None) => f.write_str("nothing"),
            Answer::Value(Some(value)) => f.write_str(&shown(value)),
            Answer::Visited(entries) => {
                let entry = |(key, value): &(Bytes, Bytes)| format!("{} = {}", shown(key), shown(value));
                let entries: Vec<String> = entries.iter().map(entry).collect();
                write!(f, "[{}]", entries.join(", "))
            }
            Answer::Full => f.write_str("the pool is full"),
        }
    }
}

/// Applies an operation to a map, and returns its answer.
pub(super) fn specify(state: &mut Map, op: &Op) -> Answer {
    match op {
        Op::Insert(key, value) => {
            let absent = !state.contains_key(key);
            if absent {
                state.insert(key.clone(), value.clone());
            }
            Answer::Changed(absent)
        }
        Op::Upsert(key, value) => {
            state.insert(key.clone(), value.clone());
            Answer::Changed(true)
        }
        Op::Update(key, value) => match state.get_mut(key) {
            Some(place) => {
                *place = value.clone();
                Answer::Changed(true)
            }
            None => Answer::Changed(false),
        },
        Op::Remove(key) => Answer::Changed(state.remove(key).is_some()),
        Op::Get(key) => Answer::Value(state.get(key).cloned()),
        Op::Scan(scan) => Answer::Visited(scan.of(state)),
        Op::Together(op) => specify(state, op),
    }
}
