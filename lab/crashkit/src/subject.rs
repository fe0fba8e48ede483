//! The subject of a test: a persistent structure, its sequential specification, and a judge of its content after a
//! crash.

use crate::coverage::Shape;
use crate::{Crash, Forgiven, Random};
use pmem::Pool;
use std::fmt::Debug;
use std::hash::Hash;

/// How thoroughly a recovered structure is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The judge reads everything and writes a little: for every image.
    Shallow,
    /// The judge also validates the structure, fills it until everything has grown, and empties it: for a share of the
    /// images.
    Deep,
}

/// What a judge knows about an image.
#[derive(Debug)]
pub struct Verdict<'v, S: Subject> {
    /// The states that durable linearizability allows: acknowledged operations are in all of them, those in flight in
    /// some.
    pub allowed: &'v [&'v S::State],
    /// The operations in flight at the crash.
    pub in_flight: &'v [&'v S::Op],
    /// All operations of the run that crashed, also those that have not begun; of a run after a crash, those since.
    /// They name what was removed and what was never there, which the judge should not find.
    pub ops: &'v [S::Op],
    /// How thorough to be.
    pub depth: Depth,
    /// A random source, the same for the same image.
    pub random: Random,
}

/// A persistent structure under test.
///
/// Its behaviour must depend on nothing but its arguments and what it reads from the pool.
pub trait Subject: Send + Sync + 'static {
    /// An operation.
    type Op: Clone + Debug + Send + Sync;
    /// The answer of an operation.
    type Answer: Clone + Debug + PartialEq + Send;
    /// A state of its sequential specification.
    type State: Clone + Debug + Default + Eq + Hash;
    /// The structure in use.
    type Live: Send + Sync;

    /// Returns the name that reports use.
    fn name(&self) -> String;

    /// Creates the structure in a pool that is empty but for what a crash during an earlier attempt may have left.
    fn create(&self, pool: Pool<Crash>) -> Result<Self::Live, String>;

    /// Opens the structure in a pool, ready for use; `None` if its creation had not reached its commit point.
    fn open(&self, pool: Pool<Crash>) -> Result<Option<Self::Live>, String>;

    /// Performs, in the calling thread, the part of recovery that runs beside the use of an opened structure.
    fn recover(&self, live: &Self::Live) -> Result<(), String> {
        let _ = live;
        Ok(())
    }

    /// Carries out an operation. Everything that its answer shows is durable when it returns.
    fn apply(&self, live: &Self::Live, op: &Self::Op) -> Result<Self::Answer, String>;

    /// Returns whether one call may carry out `next` together with `ops`, operations of the same thread. A crash may
    /// find them done in any order.
    fn goes_with(&self, ops: &[&Self::Op], next: &Self::Op) -> bool {
        let _ = (ops, next);
        false
    }

    /// Carries out operations that [go together](Subject::goes_with) and returns their answers. All are durable when it
    /// returns; a crash during it may find any of them done.
    fn apply_together(&self, live: &Self::Live, ops: &[&Self::Op]) -> Result<Vec<Self::Answer>, String> {
        ops.iter().map(|op| self.apply(live, op)).collect()
    }

    /// Checks the structure at the end of an uninterrupted history, when all threads have ended: for faults that no
    /// image shows because an opening rebuilds the state anew, such as memory freed twice.
    ///
    /// # Errors
    ///
    /// What is wrong.
    fn check_end(&self, live: &Self::Live) -> Result<(), String> {
        let _ = live;
        Ok(())
    }

    /// Applies the operation to the specification's state and returns the answer that it should give.
    fn specify(&self, state: &mut Self::State, op: &Self::Op) -> Self::Answer;

    /// Returns whether `next` is done after `before` where one call carries out both.
    fn keeps_order(&self, before: &Self::Op, next: &Self::Op) -> bool {
        let _ = (before, next);
        false
    }

    /// Returns whether the answer is a refusal, for lack of room for example: nothing was done, whatever the
    /// specification makes of the operation.
    fn is_refusal(&self, answer: &Self::Answer) -> bool {
        let _ = answer;
        false
    }

    /// Returns whether the operation reads piece by piece while others write, as a scan does. Such an operation does
    /// not take effect at one moment, and [`check_reading`](Subject::check_reading) judges its answer.
    fn reads_piecemeal(&self, op: &Self::Op) -> bool {
        let _ = op;
        false
    }

    /// Checks the answer of such an operation against the states, in no order, that the structure may have been in
    /// while it was in flight.
    ///
    /// # Errors
    ///
    /// What is wrong with the answer.
    fn check_reading(
        &self,
        op: &Self::Op,
        answer: &Self::Answer,
        states: &[&Self::State],
    ) -> Result<(), String> {
        let _ = (op, answer, states);
        Ok(())
    }

    /// Checks that the recovered structure is sound and in one of the allowed states. Returns the index of that state,
    /// or what is wrong. It may change the structure: the image is discarded.
    fn judge(&self, live: &Self::Live, verdict: Verdict<'_, Self>) -> Result<usize, String>
    where
        Self: Sized;

    /// Returns operations to run after a crash, for histories that a second crash interrupts. Reads of what was
    /// `in_flight` are of use here: they may see what is not durable.
    fn follow_up(&self, state: &Self::State, in_flight: &[&Self::Op], random: &mut Random) -> Vec<Self::Op>;

    /// Returns persists of the structure that a hunt may forgive, beside those of [pools and the
    /// heap](crate::forgiven::HEAP).
    fn forgiven(&self) -> &'static [Forgiven] {
        &[]
    }

    /// Returns the named objects, from which reports derive the coverage; none by default.
    ///
    /// # Errors
    ///
    /// If the structure is damaged.
    fn shape(&self, live: &Self::Live) -> Result<Shape, String> {
        let _ = live;
        Ok(Shape::default())
    }
}
