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
use std::marker::PhantomData;
use std::sync::Arc;

thread_local! {
    static TURNS: RefCell<Turns> = const { RefCell::new(Turns { next: 0, active: Vec::new() }) };
}

/// The turns of a thread.
struct Turns {
    /// The id of the next turn.
    next: u64,
    /// The active turns, from the oldest to the newest.
    active: Vec<ActiveTurn>,
}

/// An active turn of the thread.
struct ActiveTurn {
    id: TurnId,
    /// The journal of the turn's database. It is only compared with others: the [`Turn`] keeps it alive, so no other
    /// journal has this address.
    journal: *const Journal,
    /// The position that must be durable before the turn's results may be acknowledged.
    end: Lsn,
}

/// The id of a turn, unique on its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TurnId(u64);

impl Turns {
    fn push(&mut self, journal: *const Journal, end: Lsn) -> TurnId {
        let id = TurnId(self.next);
        self.next += 1;
        self.active.push(ActiveTurn { id, journal, end });
        id
    }

    fn position(&self, id: TurnId) -> Option<usize> {
        self.active.iter().rposition(|turn| turn.id == id)
    }
}

impl ActiveTurn {
    fn belongs_to(&self, journal: &Journal) -> bool {
        std::ptr::eq(self.journal, journal)
    }
}

/// Returns the newest of these turns that belongs to this journal.
fn newest_of<'t>(turns: &'t [ActiveTurn], journal: &Journal) -> Option<&'t ActiveTurn> {
    turns.iter().rev().find(|turn| turn.belongs_to(journal))
}

/// Runs `look` on the thread's turns. Returns `None` when the thread exits, in destructors of thread-local values that
/// run after the turns' own.
fn with_turns<R>(look: impl FnOnce(&mut Turns) -> R) -> Option<R> {
    TURNS.try_with(|turns| look(&mut turns.borrow_mut())).ok()
}

/// Returns the thread's newest turn of this journal.
fn newest(journal: &Journal) -> Option<TurnId> {
    with_turns(|turns| newest_of(&turns.active, journal).map(|turn| turn.id)).flatten()
}

/// Makes a turn of the thread wait for this position at its end.
fn note(id: TurnId, end: Lsn) {
    with_turns(|turns| {
        if let Some(at) = turns.position(id) {
            let turn = &mut turns.active[at];
            turn.end = turn.end.max(end);
        }
    });
}

/// Returns the position that must be durable before results of the thread's newest turn of this journal may be
/// acknowledged.
#[inline]
fn owed(journal: &Journal) -> Lsn {
    with_turns(|turns| newest_of(&turns.active, journal).map_or(Lsn::default(), |turn| turn.end))
        .unwrap_or_else(|| owed_at_most(journal))
}

/// Returns a position beyond which no turn of this thread owes anything, for a thread whose turns are no longer known.
fn owed_at_most(journal: &Journal) -> Lsn {
    journal.log().appended()
}

impl Journal {
    /// Waits until everything below the position is durable. In a [turn](self) it returns at once: the turn's end
    /// waits.
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

    /// Like [`settle`](Journal::settle), in this turn of the thread, if any.
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
        // If the log has failed, the operation returns the error now: the turn's end would report it too late.
        if let Some(why) = self.log.failure() {
            return Err(not_durable(log::Error::Failed(why)));
        }
        note(turn, end);
        Ok(())
    }

    /// Returns whether [`settle`](Journal::settle) would wait: the position is not durable, and the thread is in no turn.
    #[inline]
    pub fn would_wait(&self, end: Lsn) -> bool {
        end > self.log.durable() && newest(self).is_none()
    }

    /// Returns whether everything that this thread's newest turn of this database has done and seen is durable; `true`
    /// without a turn.
    #[inline]
    pub fn is_turn_durable(&self) -> bool {
        owed(self) <= self.log.durable()
    }

    /// Waits until everything that this thread's newest turn of this database has done and seen is durable. The turn
    /// continues; older turns are not waited for.
    ///
    /// # Errors
    ///
    /// [`Error::NotDurable`]
    pub fn settle_turn(&self) -> Result<(), Error> {
        match self.is_turn_durable() {
            true => Ok(()),
            false => self.wait(owed(self)),
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
    /// `None` if the database has no journal, or after the turn was ended or paused.
    journal: Option<Arc<Journal>>,
    /// `None` without a journal, and if the thread's turns no longer existed when this one began: then each operation
    /// waits by itself.
    id: Option<TurnId>,
    /// Neither `Send` nor `Sync`: a turn ends on the thread on which it began.
    _not_send: PhantomData<(*const (), &'d ())>,
}

/// A turn that was taken off its thread's list, to be waited for or paused.
struct Detached {
    journal: Arc<Journal>,
    end: Lsn,
    /// The next older turn of the same database on this thread; it waits in place of this one.
    around: Option<TurnId>,
}

impl Turn<'_> {
    /// Begins or continues a turn on this thread. A turn that was paused keeps its own journal; a new one gets
    /// `journal`.
    pub(crate) fn resume(
        journal: Option<&Arc<Journal>>,
        PausedTurn { journal: own, end }: PausedTurn,
    ) -> Self {
        let journal = own.or_else(|| journal.cloned());
        Turn {
            id: journal
                .as_ref()
                .and_then(|journal| with_turns(|turns| turns.push(Arc::as_ptr(journal), end))),
            journal,
            _not_send: PhantomData,
        }
    }

    /// Pauses the turn without waiting. [`Db::resume`](crate::Db::resume) continues it, so that several turns of one
    /// thread, for example those of tasks, can alternate.
    pub fn pause(mut self) -> PausedTurn {
        match self.detach() {
            Some(Detached { journal, end, .. }) => PausedTurn {
                journal: Some(journal),
                end,
            },
            None => PausedTurn::default(),
        }
    }

    fn detach(&mut self) -> Option<Detached> {
        let journal = self.journal.take()?;
        let taken = self.id.and_then(|id| take(id, &journal));
        let (end, around) = taken.unwrap_or_else(|| (owed_at_most(&journal), None));
        Some(Detached { journal, end, around })
    }

    /// Waits until everything that the thread has done and seen in this turn is durable. Within an older turn of the
    /// same database it returns at once, and the older turn waits.
    ///
    /// # Errors
    ///
    /// [`Error::Index`](crate::Error::Index) if the log has failed, so that it is unknown which of the operations are
    /// durable.
    pub fn end(mut self) -> Result<(), crate::Error> {
        Ok(self.detach().map_or(Ok(()), Detached::settle)?)
    }
}

/// Takes a turn off the thread's list. Returns its position, and the next older turn of the same journal.
fn take(id: TurnId, journal: &Journal) -> Option<(Lsn, Option<TurnId>)> {
    with_turns(|turns| {
        let at = turns.position(id)?;
        let end = turns.active.remove(at).end;
        Some((end, newest_of(&turns.active[..at], journal).map(|turn| turn.id)))
    })
    .flatten()
}

impl Detached {
    fn settle(self) -> Result<(), Error> {
        self.journal.settle_in(self.end, self.around)
    }
}

impl Drop for Turn<'_> {
    /// A dropped turn waits like one that ends, but cannot report an error.
    fn drop(&mut self) {
        let _ = self.detach().map(Detached::settle);
    }
}
