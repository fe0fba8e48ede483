//! The answers that a process got, and the states that a crash may leave.

use super::state::State;
use std::fmt;
use std::sync::Arc;

/// The states that a crash may leave, in the order of the log's writes.
#[derive(Clone, Debug)]
pub struct Allowed {
    /// `None`: a state that cannot occur, since the write that leads to it was refused.
    pub states: Vec<Option<Arc<State>>>,
    /// The first state that a kill may leave; a loss of power may leave any.
    pub kept: usize,
}

impl Allowed {
    /// Allows this state alone.
    pub fn only(state: State) -> Allowed {
        Allowed {
            states: vec![Some(Arc::new(state))],
            kept: 0,
        }
    }

    /// Checks that a crash may leave this state. `is_kept`: the pool survived, so states before `kept` are not allowed.
    pub fn check(&self, found: &State, is_kept: bool) -> Result<(), Trouble> {
        let first = if is_kept { self.kept } else { 0 };
        let allowed = &self.states[first..];
        if allowed.iter().flatten().any(|state| **state == *found) {
            return Ok(());
        }
        let states: Vec<_> = allowed
            .iter()
            .flatten()
            .map(|state| format!("{state:?}"))
            .collect();
        let mut shown = states;
        shown.dedup();
        Err(Trouble::Wrong(format!(
            "it holds\n    {found:?}\n  instead of one of\n    {}",
            shown.join("\n    ")
        )))
    }
}

/// The bounds at a moment, as indices of states.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    /// The newest state that is durable.
    pub durable: usize,
    /// The newest state that has been reached.
    pub done: usize,
    /// The newest state to which an operation in flight may lead.
    pub max: usize,
}

/// The answers that a process got.
#[derive(Debug, Default)]
pub struct Notes {
    pub states: Vec<Option<Arc<State>>>,
    pub now: Bounds,
}

impl Notes {
    /// Notes the start of an operation that leads through these states. Returns the number of the last one.
    pub fn begin(&mut self, states: impl IntoIterator<Item = State>) -> usize {
        self.states
            .extend(states.into_iter().map(|state| Some(Arc::new(state))));
        self.now.max = self.states.len() - 1;
        self.now.max
    }

    /// Notes that an operation that leads to this state has returned.
    pub fn end(&mut self, reached: usize, is_durable: bool) {
        self.now.done = self.now.done.max(reached);
        if is_durable {
            self.now.durable = self.now.durable.max(reached);
        }
    }

    /// Returns the states that a crash may leave within these bounds.
    pub fn allowed(&self, bounds: Bounds) -> Allowed {
        Allowed {
            states: self.states[bounds.durable..=bounds.max].to_vec(),
            kept: bounds.done - bounds.durable,
        }
    }

    pub fn newest(&self) -> Arc<State> {
        self.states.last().cloned().flatten().unwrap_or_default()
    }
}

/// Why a run or a judgement failed.
#[derive(Debug)]
pub enum Trouble {
    /// The database returned an error.
    Refused(wollemi::Error),
    /// The database holds or answers something wrong.
    Wrong(String),
}

impl From<wollemi::Error> for Trouble {
    fn from(error: wollemi::Error) -> Trouble {
        Trouble::Refused(error)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Refused(error) => write!(f, "the database returned an error: {error}"),
            Trouble::Wrong(what) => what.fmt(f),
        }
    }
}
