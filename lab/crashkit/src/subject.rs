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
    /// Everything it holds is read, and it is written to a little: for every image.
    Shallow,
    /// It is also validated, filled until everything has grown, and emptied: for a share of the images.
    Deep,
}

/// What is known to a judge.
#[derive(Debug)]
pub struct Verdict<'v, S: Subject> {
    /// The states that durable linearizability allows: what was acknowledged is in all of them, what was in flight in
    /// some.
    pub allowed: &'v [&'v S::State],
    /// The operations in flight at the crash.
    pub in_flight: &'v [&'v S::Op],
    /// How thorough to be.
    pub depth: Depth,
    /// A source of numbers, the same for the same image.
    pub random: Random,
}

/// A persistent structure under test.
///
/// Everything it does must depend on nothing but its arguments and what it reads from the pool.
pub trait Subject: Send + Sync + 'static {
    /// An operation.
    type Op: Clone + Debug + Send + Sync;
    /// What an operation answers.
    type Answer: Clone + Debug + PartialEq + Send;
    /// What its sequential specification makes of it.
    type State: Clone + Debug + Default + Eq + Hash;
    /// The structure in use.
    type Live: Send + Sync;

    /// What reports call it.
    fn name(&self) -> String;

    /// Makes it in a pool, where nothing is but what a crash during an earlier attempt may have left.
    fn create(&self, pool: Pool<Crash>) -> Result<Self::Live, String>;

    /// Finds it in a pool, ready for use; `None` if its creation has not come to its commit point.
    fn open(&self, pool: Pool<Crash>) -> Result<Option<Self::Live>, String>;

    /// Carries out, in the calling thread, what recovery does beside the use of a structure that was opened.
    fn recover(&self, live: &Self::Live) -> Result<(), String> {
        let _ = live;
        Ok(())
    }

    /// Carries out an operation. What it answers is durable when it returns.
    fn apply(&self, live: &Self::Live, op: &Self::Op) -> Result<Self::Answer, String>;

    /// Whether an operation is carried out at once with these before it, by the same thread. In which order they are
    /// done is left open to what a crash may find.
    fn goes_with(&self, ops: &[&Self::Op], next: &Self::Op) -> bool {
        let _ = (ops, next);
        false
    }

    /// Carries out operations that [go together](Subject::goes_with): what they answer. All are durable when it
    /// returns; during it a crash may find any of them done.
    fn apply_together(&self, live: &Self::Live, ops: &[&Self::Op]) -> Result<Vec<Self::Answer>, String> {
        ops.iter().map(|op| self.apply(live, op)).collect()
    }

    /// Whether it is sound at the end of a history that nothing interrupts, when all threads have ended: for what no
    /// image shows, since an opening finds it out anew, such as memory that was freed twice.
    ///
    /// # Errors
    ///
    /// What is wrong.
    fn check_end(&self, live: &Self::Live) -> Result<(), String> {
        let _ = live;
        Ok(())
    }

    /// What the operation does to the specification's state, and answers.
    fn specify(&self, state: &mut Self::State, op: &Self::Op) -> Self::Answer;

    /// Whether `next` is done after `before`, where one call carries out both.
    fn keeps_order(&self, before: &Self::Op, next: &Self::Op) -> bool {
        let _ = (before, next);
        false
    }

    /// Whether the answer says that nothing was done, for want of room say, whatever the specification makes of the
    /// operation.
    fn is_refusal(&self, answer: &Self::Answer) -> bool {
        let _ = answer;
        false
    }

    /// Whether the operation reads piece by piece while others write, as a scan does: it has no moment of its own, and
    /// [`check_reading`](Subject::check_reading) judges what it answers.
    fn reads_piecemeal(&self, op: &Self::Op) -> bool {
        let _ = op;
        false
    }

    /// Whether such an operation may answer this, if these are the states that the structure may have been in while it
    /// was under way, in no order.
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

    /// Whether the recovered structure is in one of the allowed states and in order; says in which, or what is wrong.
    /// It may be changed: the image is thrown away.
    fn judge(&self, live: &Self::Live, verdict: Verdict<'_, Self>) -> Result<usize, String>
    where
        Self: Sized;

    /// Operations to run after a crash, for histories that a second crash interrupts. A read of what was `in_flight`
    /// may see what is not durable.
    fn follow_up(&self, state: &Self::State, in_flight: &[&Self::Op], random: &mut Random) -> Vec<Self::Op>;

    /// Persists of the structure that a hunt may forgive, beside those of [pools and the heap](crate::forgiven::HEAP).
    fn forgiven(&self) -> &'static [Forgiven] {
        &[]
    }

    /// The objects that there are, for what reports say was reached; none by default.
    ///
    /// # Errors
    ///
    /// Where the structure makes no sense.
    fn shape(&self, live: &Self::Live) -> Result<Shape, String> {
        let _ = live;
        Ok(Shape::default())
    }
}
