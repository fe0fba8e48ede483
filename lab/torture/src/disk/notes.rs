//! The answers that a process got, and the states that a crash may leave.

use super::state::State;
use super::trouble::Trouble;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A state, and a hash of its content.
#[derive(Clone, Debug)]
pub struct Noted {
    pub state: Arc<State>,
    hash: u64,
}

impl Noted {
    pub fn new(state: State) -> Noted {
        let mut hasher = DefaultHasher::new();
        state.hash(&mut hasher);
        Noted {
            state: Arc::new(state),
            hash: hasher.finish(),
        }
    }

    /// Returns whether it is this state.
    pub fn is(&self, state: &State) -> bool {
        *self.state == *state
    }
}

/// The states that a crash may leave, in the order of the log's writes.
#[derive(Clone, Debug)]
pub struct Allowed {
    /// `None`: a state that cannot occur, since the write that leads to it was refused.
    pub states: Vec<Option<Noted>>,
    /// The first state that a kill may leave; a loss of power may leave any.
    pub kept: usize,
}

impl Allowed {
    /// Allows this state alone.
    pub fn only(state: State) -> Allowed {
        Allowed {
            states: vec![Some(Noted::new(state))],
            kept: 0,
        }
    }

    /// Returns the states that a crash may leave. `is_kept`: the pool survived, so states before `kept` are not allowed.
    fn after(&self, is_kept: bool) -> &[Option<Noted>] {
        let first = if is_kept { self.kept } else { 0 };
        &self.states[first..]
    }

    /// Returns a hash of these states: which they are, and in which order.
    pub fn hash(&self, is_kept: bool) -> u64 {
        let mut hasher = DefaultHasher::new();
        let hashes = self.after(is_kept).iter();
        hashes.for_each(|noted| noted.as_ref().map(|noted| noted.hash).hash(&mut hasher));
        hasher.finish()
    }

    /// Checks that a crash may leave this state.
    pub fn check(&self, found: &State, is_kept: bool) -> Result<(), Trouble> {
        let allowed = self.after(is_kept).iter().flatten();
        if allowed.clone().any(|noted| noted.is(found)) {
            return Ok(());
        }
        let states: Vec<_> = allowed.map(|noted| format!("{:?}", noted.state)).collect();
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
    pub states: Vec<Option<Noted>>,
    pub now: Bounds,
}

impl Notes {
    /// Notes the start of an operation that leads through these states. Returns the number of the last one.
    pub fn begin(&mut self, states: impl IntoIterator<Item = State>) -> usize {
        self.states
            .extend(states.into_iter().map(|state| Some(Noted::new(state))));
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
        let newest = self.states.last().and_then(Option::as_ref);
        newest.map(|noted| noted.state.clone()).unwrap_or_default()
    }
}
