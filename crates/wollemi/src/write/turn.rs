//! Waiting for durability, and turns: operations of a thread that wait for it once, together.
//!
//! A turn belongs to a thread and to one database. While it is active, [`Journal::settle`] of that database notes the
//! position that must be durable, instead of waiting for it.
//!
//! I1 A thread may have several turns, which may end in any order. An operation is noted for the newest turn of its
//! database.
//! I2 If a turn ends while an older turn of its database is active, the older turn waits for it; otherwise the ending
//! turn waits itself. Newer turns do not wait for it.

use crate::write::journal::{Journal, not_durable};
use index::Error;
use log::Lsn;
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    static TURNS: RefCell<Turns> = const { RefCell::new(Turns { next: 0, under_way: Vec::new() }) };
}

/// The turns of a thread.
struct Turns {
    /// The id of the next turn.
    next: u64,
    /// The active turns, from the oldest to the newest.
    under_way: Vec<UnderWay>,
}

/// An active turn of the thread.
struct UnderWay {
    id: TurnId,
    of: Arc<Journal>,
    /// The position that must be durable before the turn's results may be acknowledged.
    end: Lsn,
}

/// The id of a turn, unique on its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TurnId(u64);

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

/// Returns the newest of these turns that belongs to this journal.
fn newest_of<'t>(turns: &'t [UnderWay], journal: &Journal) -> Option<&'t UnderWay> {
    turns.iter().rev().find(|turn| turn.is_of(journal))
}

/// Accesses the thread's turns. A thread that is exiting has none.
fn with<R>(look: impl FnOnce(&mut Turns) -> R) -> Option<R> {
    TURNS.try_with(|turns| look(&mut turns.borrow_mut())).ok()
}

/// Returns the thread's newest turn of this journal.
fn newest(journal: &Journal) -> Option<TurnId> {
    with(|turns| newest_of(&turns.under_way, journal).map(|turn| turn.id)).flatten()
}

/// Makes a turn of the thread wait for this position at its end.
fn note(id: TurnId, end: Lsn) {
    with(|turns| {
        if let Some(at) = turns.position(id) {
            let turn = &mut turns.under_way[at];
            turn.end = turn.end.max(end);
        }
    });
}

/// Returns the position that must be durable before results of the thread's newest turn of this journal may be
/// acknowledged.
#[inline]
fn end(journal: &Journal) -> Lsn {
    with(|turns| newest_of(&turns.under_way, journal).map(|turn| turn.end))
        .flatten()
        .unwrap_or_default()
}

impl Journal {
    /// Waits until everything below the position is durable; returns at once in a [turn](self).
    ///
    /// # Errors
    ///
    /// [`Error::NotDurable`]
    #[inline]
    pub fn settle(&self, end: Lsn) -> Result<(), Error> {
        if end <= self.log.durable() {
            return Ok(());
        }
        self.settle_later(end)
    }

    #[cold]
    fn settle_later(&self, end: Lsn) -> Result<(), Error> {
        self.settle_in(end, newest(self))
    }

    /// Waits until everything below the position is durable. In a turn of this thread it returns at once: the turn
    /// waits.
    ///
    /// # Errors
    ///
    /// [`Error::NotDurable`]
    fn settle_in(&self, end: Lsn, turn: Option<TurnId>) -> Result<(), Error> {
        if end <= self.log.durable() {
            return Ok(());
        }
        let Some(turn) = turn else {
            return self.wait(end);
        };
        // If its write can no longer become durable, the operation itself fails, rather than the turn's end.
        if let Some(why) = self.log.failure() {
            return Err(not_durable(log::Error::Failed(why)));
        }
        note(turn, end);
        Ok(())
    }

    /// Returns whether everything that this thread's turn has done and seen is durable; `true` without a turn.
    #[inline]
    pub fn is_turn_durable(&self) -> bool {
        end(self) <= self.log.durable()
    }

    /// Waits until everything that this thread's turn has done and seen is durable. The turn continues.
    ///
    /// # Errors
    ///
    /// [`Error::NotDurable`]
    pub fn settle_turn(&self) -> Result<(), Error> {
        match self.is_turn_durable() {
            true => Ok(()),
            false => self.wait(end(self)),
        }
    }
}

/// A [turn](Turn) that its thread has paused, to be resumed later. See [`Turn::pause`].
#[derive(Debug, Default)]
#[must_use = "results of the turn must not be acknowledged before it has ended"]
pub struct PausedTurn {
    /// The journal of the turn's database, if that has one.
    journal: Option<Arc<Journal>>,
    end: Lsn,
}

/// Operations of this thread that wait for durability together. See [`Db::turn`](crate::Db::turn).
///
/// Turns of a thread may end in any order. An operation is part of the newest turn of its database.
#[derive(Debug)]
#[must_use = "its results must not be acknowledged before it has ended"]
pub struct Turn<'d> {
    /// `None` if the database has no journal, and after the turn was left.
    id: Option<TurnId>,
    /// It ends on the thread on which it began.
    _here: std::marker::PhantomData<(*const (), &'d ())>,
}

/// The state of a turn that its thread has left.
struct Left {
    journal: Arc<Journal>,
    end: Lsn,
    /// The older turn of the same journal that enclosed it.
    around: Option<TurnId>,
}

impl Turn<'_> {
    /// A paused turn stays with its own database. One that has none yet joins this journal.
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

    /// Pauses the turn without waiting. [`Db::resume`](crate::Db::resume) continues it, so that several turns of one
    /// thread, for example those of tasks, can alternate.
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

    /// Waits until everything that the thread has done and seen in this turn is durable. Within an older turn of the
    /// same database it returns at once, and the older turn waits.
    ///
    /// # Errors
    ///
    /// [`Error::Index`](crate::Error::Index) if it is not known whether it is durable.
    pub fn end(mut self) -> Result<(), crate::Error> {
        Ok(self.leave().map_or(Ok(()), Left::settle)?)
    }
}

impl Left {
    fn settle(self) -> Result<(), Error> {
        self.journal.settle_in(self.end, self.around)
    }
}

impl Drop for Turn<'_> {
    /// A dropped turn waits like one that ends, but cannot report an error.
    fn drop(&mut self) {
        let _ = self.leave().map(Left::settle);
    }
}
