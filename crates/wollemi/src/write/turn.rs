//! Turns: a number of operations of a thread that wait once, all together, until they are durable.
//!
//! A turn is the thread's, and of one database. While it is under way, [`Journal::settle`] of that database notes what
//! must be durable, rather than wait for it.
//!
//! I1 A thread may have several turns, which end in any order. An operation is noted for the newest turn of its
//!    database.
//! I2 A turn that ends within an older turn of its database has that one wait for it, and else waits itself. Newer
//!    turns do not wait for it.

use crate::write::journal::Journal;
use log::Lsn;
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    static TURNS: RefCell<Turns> = const { RefCell::new(Turns { next: 0, under_way: Vec::new() }) };
}

/// The turns of a thread.
struct Turns {
    /// The id of the next one.
    next: u64,
    /// From the oldest to the newest.
    under_way: Vec<UnderWay>,
}

/// A turn of the thread's.
struct UnderWay {
    id: TurnId,
    of: Arc<Journal>,
    /// The position that must be durable before the turn's results may be acknowledged.
    end: Lsn,
}

/// The name of a turn, on its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TurnId(u64);

impl Turns {
    fn push(&mut self, of: Arc<Journal>, end: Lsn) -> TurnId {
        let id = TurnId(self.next);
        self.next += 1;
        self.under_way.push(UnderWay { id, of, end });
        id
    }

    fn position(&self, id: TurnId) -> Option<usize> {
        self.under_way.iter().rposition(|turn| turn.id == id)
    }
}

impl UnderWay {
    fn is_of(&self, journal: &Journal) -> bool {
        std::ptr::eq(&*self.of, journal)
    }
}

/// The newest of these turns that is of this journal.
fn newest_of<'t>(turns: &'t [UnderWay], journal: &Journal) -> Option<&'t UnderWay> {
    turns.iter().rev().find(|turn| turn.is_of(journal))
}

/// Looks at the thread's turns. A thread that is ending has none.
fn with<R>(look: impl FnOnce(&mut Turns) -> R) -> Option<R> {
    TURNS.try_with(|turns| look(&mut turns.borrow_mut())).ok()
}

/// The thread's newest turn of this journal.
pub(crate) fn newest(journal: &Journal) -> Option<TurnId> {
    with(|turns| newest_of(&turns.under_way, journal).map(|turn| turn.id)).flatten()
}

/// Has a turn of the thread's wait for this position at its end.
pub(crate) fn note(id: TurnId, end: Lsn) {
    with(|turns| {
        if let Some(at) = turns.position(id) {
            let turn = &mut turns.under_way[at];
            turn.end = turn.end.max(end);
        }
    });
}

/// The position that must be durable before results of the thread's newest turn of this journal may be acknowledged.
#[inline]
pub(crate) fn end(journal: &Journal) -> Lsn {
    with(|turns| newest_of(&turns.under_way, journal).map(|turn| turn.end))
        .flatten()
        .unwrap_or_default()
}

/// A [turn](Turn) that its thread has left, to go on with it later: see [`Turn::pause`].
#[derive(Debug, Default)]
#[must_use = "results of the turn must not be acknowledged before it has ended"]
pub struct PausedTurn {
    /// The turn's database, if that has a journal.
    journal: Option<Arc<Journal>>,
    end: Lsn,
}

/// A number of operations of this thread that are to be durable together: see [`Db::turn`](crate::Db::turn).
///
/// Turns of a thread end in any order. An operation is part of the newest turn of its database.
#[derive(Debug)]
#[must_use = "its results must not be acknowledged before it has ended"]
pub struct Turn<'d> {
    /// `None` where the database has no journal, and when the turn was left.
    id: Option<TurnId>,
    /// It ends on the thread on which it began.
    _here: std::marker::PhantomData<(*const (), &'d ())>,
}

/// What is left of a turn when its thread has left it.
struct Left {
    journal: Arc<Journal>,
    end: Lsn,
    /// The older turn of the same journal that it was within.
    around: Option<TurnId>,
}

impl Turn<'_> {
    /// A paused turn stays its own database's. One that has none yet becomes this journal's.
    pub(crate) fn resume(
        journal: Option<&Arc<Journal>>,
        PausedTurn { journal: own, end }: PausedTurn,
    ) -> Self {
        let journal = own.or_else(|| journal.cloned());
        Turn {
            id: journal.map(|journal| TURNS.with_borrow_mut(|turns| turns.push(journal, end))),
            _here: std::marker::PhantomData,
        }
    }

    /// Leaves the turn without waiting, for [`Db::resume`](crate::Db::resume) to go on with: so that several turns of a
    /// thread, those of tasks, say, can take turns themselves.
    pub fn pause(mut self) -> PausedTurn {
        match self.leave() {
            Some(Left { journal, end, .. }) => PausedTurn {
                journal: Some(journal),
                end,
            },
            None => PausedTurn::default(),
        }
    }

    fn leave(&mut self) -> Option<Left> {
        let id = self.id.take()?;
        with(|turns| {
            let at = turns.position(id)?;
            let UnderWay { of: journal, end, .. } = turns.under_way.remove(at);
            let around = newest_of(&turns.under_way[..at], &journal).map(|turn| turn.id);
            Some(Left { journal, end, around })
        })
        .flatten()
    }

    /// Returns when all is durable that the thread has done and seen in this turn. Within an older turn of the same
    /// database it returns at once, and that one waits.
    ///
    /// # Errors
    ///
    /// [`Error::Index`](crate::Error::Index), where it is not known whether it is.
    pub fn end(mut self) -> Result<(), crate::Error> {
        Ok(self.leave().map_or(Ok(()), Left::settle)?)
    }
}

impl Left {
    fn settle(self) -> Result<(), index::Error> {
        self.journal.settle_in(self.end, self.around)
    }
}

impl Drop for Turn<'_> {
    /// A turn that is given up waits as one that ends, and has no way to tell of an error.
    fn drop(&mut self) {
        let _ = self.leave().map(Left::settle);
    }
}
