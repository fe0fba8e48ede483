//! The states that durable linearizability allows: an acknowledged operation has happened, unless it was refused, and
//! so has every operation whose effect it has seen; any other operation in flight may have.
//!
//! The set of configurations is updated along the history (an incremental form of Wing and Gong's search): each is a
//! state of the sequential specification and the operations in flight that it already contains. An acknowledgement
//! keeps the configurations that contain the operation with the answer it gave. A crash may leave any reachable
//! configuration.
//!
//! An operation that reads piece by piece has no place in that order. It is judged by all states that any configuration
//! could be in while it was in flight. If it could not have read its answer without an operation in flight, that
//! operation has happened.

use crate::Subject;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

pub(crate) struct Expectation<S: Subject> {
    configurations: Vec<Configuration<S>>,
    in_flight: Vec<InFlight<S>>,
    readings: Vec<Reading<S>>,
}

/// An operation in flight that takes effect at one moment.
struct InFlight<S: Subject> {
    id: u32,
    op: S::Op,
    thread: u32,
    /// Operations of the same call that happen before it.
    after: Vec<u32>,
    /// Whether it will be refused: then it never happens, and later operations of its call do not wait for it.
    refused: bool,
}

/// An operation in flight that reads piece by piece.
struct Reading<S: Subject> {
    id: u32,
    op: S::Op,
    /// Configurations of which it may have seen a part.
    seen: Vec<Configuration<S>>,
}

impl<S: Subject> Reading<S> {
    fn may_see(&mut self, configurations: &[Configuration<S>]) {
        for one in configurations {
            if !self.seen.contains(one) {
                self.seen.push(one.clone());
            }
        }
    }

    /// Checks the answer against the seen configurations that `pass` accepts.
    fn check(
        &self,
        subject: &S,
        answer: &S::Answer,
        pass: impl Fn(&Configuration<S>) -> bool,
    ) -> Result<(), String> {
        let mut states: Vec<&S::State> = Vec::new();
        for one in self.seen.iter().filter(|one| pass(one)) {
            // Equal states are usually one object.
            if !states.iter().any(|state| std::ptr::eq(*state, &*one.state)) {
                states.push(&one.state);
            }
        }
        subject.check_reading(&self.op, answer, &states)
    }
}

struct Configuration<S: Subject> {
    state: Rc<S::State>,
    /// Hash of the state: a quick test for inequality.
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
            && self.has_same_state(other)
    }
}

impl<S: Subject> Configuration<S> {
    fn has_happened(&self, id: u32) -> bool {
        self.happened.iter().any(|(happened, _)| *happened == id)
    }

    fn has_same_state(&self, other: &Self) -> bool {
        self.hash == other.hash && (Rc::ptr_eq(&self.state, &other.state) || self.state == other.state)
    }
}

impl<S: Subject> Expectation<S> {
    /// Starts from these states: the empty one for a new structure, or those that a crash may have left.
    pub(crate) fn from(states: impl IntoIterator<Item = S::State>) -> Expectation<S> {
        let configurations = states.into_iter().map(|state| Configuration {
            hash: hash(&state),
            state: Rc::new(state),
            happened: Vec::new(),
        });
        Expectation {
            configurations: configurations.collect(),
            in_flight: Vec::new(),
            readings: Vec::new(),
        }
    }

    /// Records that a thread begins an operation, and whether this run refuses it. Operations that the thread already
    /// has in flight belong to the same call.
    pub(crate) fn invoke(&mut self, subject: &S, id: u32, (thread, refused): (u32, bool), op: S::Op) {
        if subject.reads_piecemeal(&op) {
            self.readings.push(Reading {
                id,
                op,
                seen: Vec::new(),
            });
        } else {
            let own = self
                .in_flight
                .iter()
                .filter(|one| one.thread == thread && !one.refused);
            let before = own.filter(|one| subject.keeps_order(&one.op, &op));
            let after = before.map(|one| one.id).collect();
            self.in_flight.push(InFlight {
                id,
                op,
                thread,
                after,
                refused,
            });
        }
        // Acknowledgements make no new state reachable, so readings are updated only here.
        if !self.readings.is_empty() {
            let reachable = self.reachable(subject);
            for reading in &mut self.readings {
                reading.may_see(&reachable);
            }
        }
    }

    /// Records an answer. Fails if no order of the operations explains it.
    pub(crate) fn acknowledge(&mut self, subject: &S, id: u32, answer: &S::Answer) -> Result<(), String> {
        if let Some(at) = self.readings.iter().position(|reading| reading.id == id) {
            let reading = self.readings.swap_remove(at);
            let wrong = |why| format!("{:?} answers {answer:?}: {why}", reading.op);
            reading.check(subject, answer, |_| true).map_err(wrong)?;
            let ids = self.in_flight.iter().map(|one| one.id);
            let needed = ids.filter(|&id| {
                let without = reading.check(subject, answer, |one| !one.has_happened(id));
                without.is_err()
            });
            let needed: Vec<u32> = needed.collect();
            if !needed.is_empty() {
                self.configurations = self.reachable(subject);
                self.configurations
                    .retain(|one| needed.iter().all(|&id| one.has_happened(id)));
            }
            return match self.configurations.is_empty() {
                true => Err(wrong("no order of the other operations explains it".into())),
                false => Ok(()),
            };
        }
        let refused = subject.is_refusal(answer);
        let mut kept: Vec<Configuration<S>> = Vec::new();
        for mut configuration in self.reachable(subject) {
            let happened = configuration
                .happened
                .iter()
                .position(|(happened, _)| *happened == id);
            let fits = match happened {
                Some(at) => configuration.happened.swap_remove(at).1 == *answer && !refused,
                None => refused,
            };
            if fits && !kept.contains(&configuration) {
                kept.push(configuration);
            }
        }
        self.configurations = kept;
        let at = self.in_flight.iter().position(|one| one.id == id);
        let op = at.map(|at| self.in_flight.swap_remove(at).op);
        if self.configurations.is_empty() {
            return Err(match op {
                Some(op) => format!("no order of the operations explains that {op:?} answers {answer:?}"),
                None => format!("operation {id} answers twice"),
            });
        }
        Ok(())
    }

    /// Returns the states that a crash may leave now.
    pub(crate) fn allowed(&self, subject: &S) -> Vec<Rc<S::State>> {
        let mut distinct: Vec<Configuration<S>> = Vec::new();
        for configuration in self.reachable(subject) {
            if !distinct.iter().any(|one| one.has_same_state(&configuration)) {
                distinct.push(configuration);
            }
        }
        distinct.into_iter().map(|one| one.state).collect()
    }

    /// Returns the operations in flight.
    pub(crate) fn in_flight(&self) -> Vec<&S::Op> {
        let readings = self.readings.iter().map(|reading| &reading.op);
        self.in_flight.iter().map(|one| &one.op).chain(readings).collect()
    }

    /// Returns all configurations that operations in flight can lead to.
    fn reachable(&self, subject: &S) -> Vec<Configuration<S>> {
        let mut all: Vec<Configuration<S>> = self.configurations.clone();
        let mut next = 0;
        while next < all.len() {
            for InFlight { id, op, after, .. } in self.in_flight.iter().filter(|one| !one.refused) {
                let is_open = |id: &&u32| self.in_flight.iter().any(|one| one.id == **id);
                let mut before = after.iter().filter(is_open);
                if all[next].has_happened(*id) || before.any(|&id| !all[next].has_happened(id)) {
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

/// Hashes the states, independently of their order.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Crash, Random, Verdict};
    use pmem::Pool;

    /// Two words. One call may write a word several times, and reads are piece by piece.
    struct Words;

    #[derive(Clone, Debug, PartialEq)]
    enum Op {
        /// Set the word of this number.
        Put(usize, u8),
        /// Set it if it is zero.
        Insert(usize, u8),
        /// Read both.
        Read,
    }

    #[derive(Clone, Debug, PartialEq)]
    enum Answer {
        Done,
        Full,
        Read([u8; 2]),
    }

    impl Subject for Words {
        type Op = Op;
        type Answer = Answer;
        type State = [u8; 2];
        type Live = ();

        fn name(&self) -> String {
            "words".into()
        }
        fn create(&self, _: Pool<Crash>) -> Result<(), String> {
            Ok(())
        }
        fn open(&self, _: Pool<Crash>) -> Result<Option<()>, String> {
            Ok(None)
        }
        fn apply(&self, (): &(), _: &Op) -> Result<Answer, String> {
            Ok(Answer::Done)
        }
        fn specify(&self, state: &mut [u8; 2], op: &Op) -> Answer {
            match *op {
                Op::Put(word, value) => state[word] = value,
                Op::Insert(word, value) if state[word] == 0 => state[word] = value,
                Op::Insert(..) => {}
                Op::Read => return Answer::Read(*state),
            }
            Answer::Done
        }
        fn keeps_order(&self, before: &Op, next: &Op) -> bool {
            let word = |op: &Op| match *op {
                Op::Put(word, _) | Op::Insert(word, _) => Some(word),
                Op::Read => None,
            };
            word(before).is_some() && word(before) == word(next)
        }
        fn is_refusal(&self, answer: &Answer) -> bool {
            *answer == Answer::Full
        }
        fn reads_piecemeal(&self, op: &Op) -> bool {
            *op == Op::Read
        }
        fn check_reading(&self, _: &Op, answer: &Answer, states: &[&[u8; 2]]) -> Result<(), String> {
            let Answer::Read(read) = answer else {
                return Err("not the answer of a read".into());
            };
            let seen = (0..2).all(|word| states.iter().any(|state| state[word] == read[word]));
            if seen {
                Ok(())
            } else {
                Err("a value was never there".into())
            }
        }
        fn judge(&self, (): &(), _: Verdict<'_, Words>) -> Result<usize, String> {
            Ok(0)
        }
        fn follow_up(&self, _: &[u8; 2], _: &[&Op], _: &mut Random) -> Vec<Op> {
            Vec::new()
        }
    }

    fn allowed(expectation: &Expectation<Words>) -> Vec<[u8; 2]> {
        let mut allowed: Vec<[u8; 2]> = expectation.allowed(&Words).iter().map(|state| **state).collect();
        allowed.sort_unstable();
        allowed
    }

    /// Two writes of one word keep their order within a call, but not between threads.
    #[test]
    fn writes_of_one_call_keep_their_order() {
        for (threads, expected) in [([0, 0], vec![[2, 0]]), ([0, 1], vec![[1, 0], [2, 0]])] {
            let mut expectation = Expectation::<Words>::from([[0, 0]]);
            expectation.invoke(&Words, 0, (threads[0], false), Op::Put(0, 1));
            expectation.invoke(&Words, 1, (threads[1], false), Op::Put(0, 2));
            assert_eq!(allowed(&expectation), [[0, 0], [1, 0], [2, 0]]);
            for id in [0, 1] {
                expectation
                    .acknowledge(&Words, id, &Answer::Done)
                    .expect("an allowed answer");
            }
            assert_eq!(allowed(&expectation), expected);
        }
    }

    /// A write that finds the pool full does not delay the next write of the same word in its call.
    #[test]
    fn refused_write_does_not_delay_the_next() {
        for (refused, expected) in [(false, vec![[0, 0], [1, 0]]), (true, vec![[0, 0], [2, 0]])] {
            let mut expectation = Expectation::<Words>::from([[0, 0]]);
            expectation.invoke(&Words, 0, (0, refused), Op::Insert(0, 1));
            expectation.invoke(&Words, 1, (0, false), Op::Insert(0, 2));
            assert_eq!(allowed(&expectation), expected);
        }
    }

    /// A refused operation has not happened.
    #[test]
    fn a_refusal_changes_nothing() {
        let mut expectation = Expectation::<Words>::from([[0, 0]]);
        expectation.invoke(&Words, 0, (0, false), Op::Put(0, 1));
        expectation.invoke(&Words, 1, (1, false), Op::Put(1, 1));
        expectation
            .acknowledge(&Words, 0, &Answer::Full)
            .expect("an allowed answer");
        assert_eq!(allowed(&expectation), [[0, 0], [0, 1]]);
    }

    /// A reading may mix states from the time when it was in flight, and no others.
    #[test]
    fn readings_may_mix_moments() {
        for (read, fits) in [([0, 2], true), ([1, 0], true), ([0, 3], false), ([9, 0], false)] {
            let mut expectation = Expectation::<Words>::from([[0, 0]]);
            expectation.invoke(&Words, 0, (0, false), Op::Read);
            for (id, word) in [(1, 0), (2, 1)] {
                expectation.invoke(&Words, id, (1, false), Op::Put(word, id as u8));
                expectation
                    .acknowledge(&Words, id, &Answer::Done)
                    .expect("an allowed answer");
            }
            let answer = Answer::Read(read);
            assert_eq!(
                expectation.acknowledge(&Words, 0, &answer).is_ok(),
                fits,
                "{read:?}"
            );
        }
    }

    /// A write that a reading has shown has happened, for all later operations.
    #[test]
    fn a_reading_decides_what_has_happened() {
        let mut expectation = Expectation::<Words>::from([[0, 0]]);
        expectation.invoke(&Words, 0, (0, false), Op::Put(0, 1));
        expectation.invoke(&Words, 1, (1, false), Op::Put(1, 1));
        expectation.invoke(&Words, 2, (2, false), Op::Read);
        expectation
            .acknowledge(&Words, 2, &Answer::Read([1, 0]))
            .expect("an allowed answer");
        assert_eq!(allowed(&expectation), [[1, 0], [1, 1]]);
    }
}
