//! What durable linearizability expects: acknowledged operations happened, those in flight may have, and what an
//! acknowledged operation has seen did happen.
//!
//! The set of configurations is followed as the history is (Wing and Gong's search, kept up to date): each is a state of
//! the sequential specification and the operations in flight that it contains already. An acknowledgement keeps the
//! configurations that contain the operation with the answer it gave. After a crash any configuration that can be
//! reached may be what is left.

use crate::Subject;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

pub(crate) struct Expectation<S: Subject> {
    configurations: Vec<Configuration<S>>,
    in_flight: Vec<(u32, S::Op)>,
}

struct Configuration<S: Subject> {
    state: Rc<S::State>,
    /// Of the state: most that differ are told apart by this.
    hash: u64,
    /// Operations in flight that have happened, with their answers.
    happened: Vec<(u32, S::Answer)>,
}

impl<S: Subject> Clone for Configuration<S> {
    fn clone(&self) -> Self {
        Configuration {
            state: Rc::clone(&self.state),
            hash: self.hash,
            happened: self.happened.clone(),
        }
    }
}

impl<S: Subject> PartialEq for Configuration<S> {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
            && self.happened.len() == other.happened.len()
            && other.happened.iter().all(|one| self.happened.contains(one))
            && self.holds_what(other)
    }
}

impl<S: Subject> Configuration<S> {
    fn holds_what(&self, other: &Self) -> bool {
        self.hash == other.hash && (Rc::ptr_eq(&self.state, &other.state) || self.state == other.state)
    }
}

impl<S: Subject> Expectation<S> {
    /// What is expected of something just created, or of what one of these states was left of.
    pub(crate) fn from(states: impl IntoIterator<Item = S::State>) -> Expectation<S> {
        let configurations = states.into_iter().map(|state| Configuration {
            hash: hash(&state),
            state: Rc::new(state),
            happened: Vec::new(),
        });
        Expectation {
            configurations: configurations.collect(),
            in_flight: Vec::new(),
        }
    }

    pub(crate) fn invoke(&mut self, id: u32, op: S::Op) {
        self.in_flight.push((id, op));
    }

    /// Whether the answer is one that the specification can give.
    pub(crate) fn acknowledge(&mut self, subject: &S, id: u32, answer: &S::Answer) -> bool {
        let mut kept: Vec<Configuration<S>> = Vec::new();
        for mut configuration in self.reachable(subject) {
            let Some(at) = configuration
                .happened
                .iter()
                .position(|(happened, _)| *happened == id)
            else {
                continue;
            };
            let (_, given) = configuration.happened.swap_remove(at);
            if given == *answer && !kept.contains(&configuration) {
                kept.push(configuration);
            }
        }
        self.configurations = kept;
        self.in_flight.retain(|(open, _)| *open != id);
        !self.configurations.is_empty()
    }

    /// The states that a crash may leave now.
    pub(crate) fn allowed(&self, subject: &S) -> Vec<Rc<S::State>> {
        let mut distinct: Vec<Configuration<S>> = Vec::new();
        for configuration in self.reachable(subject) {
            if !distinct.iter().any(|one| one.holds_what(&configuration)) {
                distinct.push(configuration);
            }
        }
        distinct.into_iter().map(|one| one.state).collect()
    }

    /// What is in flight now.
    pub(crate) fn in_flight(&self) -> Vec<&S::Op> {
        self.in_flight.iter().map(|(_, op)| op).collect()
    }

    /// All that the configurations can become by operations in flight.
    fn reachable(&self, subject: &S) -> Vec<Configuration<S>> {
        let mut all: Vec<Configuration<S>> = self.configurations.clone();
        let mut next = 0;
        while next < all.len() {
            for (id, op) in &self.in_flight {
                if all[next].happened.iter().any(|(happened, _)| happened == id) {
                    continue;
                }
                let mut one = all[next].clone();
                let mut state = S::State::clone(&one.state);
                let answer = subject.specify(&mut state, op);
                let hash = hash(&state);
                if hash != one.hash || state != *one.state {
                    (one.hash, one.state) = (hash, Rc::new(state));
                }
                one.happened.push((*id, answer));
                if !all.contains(&one) {
                    all.push(one);
                }
            }
            next += 1;
        }
        all
    }
}

/// Of the states, whatever their order.
pub(crate) fn hash_of_states<T: Hash>(states: &[Rc<T>]) -> u64 {
    states
        .iter()
        .map(|state| hash(&**state))
        .fold(0, u64::wrapping_add)
}

fn hash(state: &impl Hash) -> u64 {
    let mut hasher = std::collections::hash_map::DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}
