//! The answers that a process got, and the states that a crash may leave.

use super::state::State;
use std::fmt;
use std::sync::Arc;

/// The states that a crash may leave, in the order in which the writes of the log lead from one to the next.
#[derive(Clone, Debug)]
pub struct Allowed {
    /// `None`: it cannot be, since what led to it was refused.
    pub states: Vec<Option<Arc<State>>>,
    /// The first that a kill may leave; a loss of power may leave any.
    pub kept: usize,
}

impl Allowed {
    /// This alone.
    pub fn only(state: State) -> Allowed {
        Allowed {
            states: vec![Some(Arc::new(state))],
            kept: 0,
        }
    }

    /// Whether a crash may leave this state, which a loss of power has not taken from `kept` on if `is_kept`.
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

/// What is known at a moment: indices into the states.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    /// The newest state that is durable.
    pub durable: usize,
    /// The newest state that has been reached.
    pub done: usize,
    /// The newest state to which an operation under way may lead.
    pub max: usize,
}

/// The answers that a process got.
#[derive(Debug, Default)]
pub struct Notes {
    pub states: Vec<Option<Arc<State>>>,
    pub now: Bounds,
}

impl Notes {
    /// An operation begins, which leads through these states; the number of the last one.
    pub fn begin(&mut self, states: impl IntoIterator<Item = State>) -> usize {
        self.states
            .extend(states.into_iter().map(|state| Some(Arc::new(state))));
        self.now.max = self.states.len() - 1;
        self.now.max
    }

    /// An operation has returned that has led to this state.
    pub fn end(&mut self, reached: usize, is_durable: bool) {
        self.now.done = self.now.done.max(reached);
        if is_durable {
            self.now.durable = self.now.durable.max(reached);
        }
    }

    /// What a crash may leave when this is known.
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

/// Why something was not what it must be.
#[derive(Debug)]
pub enum Trouble {
    /// The database said so.
    Refused(wollemi::Error),
    /// It holds something else, or answers something else.
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
            Trouble::Refused(error) => write!(f, "it is refused: {error}"),
            Trouble::Wrong(what) => what.fmt(f),
        }
    }
}
