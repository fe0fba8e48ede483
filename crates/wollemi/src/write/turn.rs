//! Turns: a number of operations of a thread that wait once, all together, until they are durable.
//!
//! A turn is the thread's, and of one database. While it is under way, [`Journal::settle`] of that database notes what
//! must be durable, rather than wait for it.

use crate::write::journal::Journal;
use log::Lsn;
use std::cell::Cell;

thread_local! {
    static TURN: Cell<Option<UnderWay>> = const { Cell::new(None) };
}

/// A turn of the thread's.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    /// The journal whose turn it is; null where the database has none. Only compared: the turn keeps the journal alive.
    of: *const Journal,
    /// The position that must be durable before the thread's results may be acknowledged.
    end: u64,
}

/// The thread's turn, if it is this journal's. What concerns another database waits at once.
fn of(journal: &Journal) -> Option<UnderWay> {
    TURN.get().filter(|turn| std::ptr::eq(turn.of, journal))
}

/// Whether the thread has a turn of this journal.
pub(crate) fn is_of(journal: &Journal) -> bool {
    of(journal).is_some()
}

/// Has the thread's turn of this journal wait for this position at its end.
pub(crate) fn note(journal: &Journal, end: Lsn) {
    if let Some(turn) = of(journal) {
        let end = turn.end.max(end.0);
        TURN.set(Some(UnderWay { end, ..turn }));
    }
}

/// The position that must be durable before results of the thread's turn of this journal may be acknowledged.
#[inline]
pub(crate) fn end(journal: &Journal) -> Lsn {
    Lsn(of(journal).map_or(0, |turn| turn.end))
}

/// A [turn](Turn) that its thread has left, to go on with it later: see [`Turn::pause`].
#[derive(Debug, Default)]
#[must_use = "results of the turn must not be acknowledged before it has ended"]
pub struct PausedTurn(u64);

/// A number of operations of this thread that are to be durable together: see [`Db::turn`](crate::Db::turn).
#[derive(Debug)]
#[must_use = "its results must not be acknowledged before it has ended"]
pub struct Turn<'d> {
    journal: Option<&'d Journal>,
    /// The turn around it.
    outer: Option<UnderWay>,
    /// It ends on the thread on which it began.
    _here: std::marker::PhantomData<*const ()>,
}

impl<'d> Turn<'d> {
    pub(crate) fn resume(journal: Option<&'d Journal>, PausedTurn(end): PausedTurn) -> Turn<'d> {
        let of = journal.map_or(std::ptr::null(), std::ptr::from_ref);
        Turn {
            journal,
            outer: TURN.replace(Some(UnderWay { of, end })),
            _here: std::marker::PhantomData,
        }
    }

    /// Leaves the turn without waiting, for [`Db::resume`](crate::Db::resume) to go on with: so that several turns of a
    /// thread, those of tasks, say, can take turns themselves.
    pub fn pause(self) -> PausedTurn {
        PausedTurn(self.leave())
    }

    /// The position that must be durable before results of the turn may be acknowledged.
    fn leave(self) -> u64 {
        let end = TURN.replace(self.outer).map_or(0, |turn| turn.end);
        std::mem::forget(self);
        end
    }

    /// Returns when all that the thread has done and seen since the turn began is durable.
    ///
    /// # Errors
    ///
    /// [`Error::Index`](crate::Error::Index), where it is not known whether it is.
    pub fn end(self) -> Result<(), crate::Error> {
        let journal = self.journal;
        let end = Lsn(self.leave());
        match journal {
            Some(journal) => Ok(journal.settle(end)?),
            None => Ok(()),
        }
    }
}

impl Drop for Turn<'_> {
    /// A turn that is given up waits as one that ends, and has no way to tell of an error.
    fn drop(&mut self) {
        let end = TURN.replace(self.outer).map_or(0, |turn| turn.end);
        if let Some(journal) = self.journal {
            let _ = journal.settle(Lsn(end));
        }
    }
}
