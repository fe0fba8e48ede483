//! Turns: a number of operations of a thread that wait once, all together, until they are durable.
//!
//! A turn is the thread's. While one is under way, [`Journal::settle`] notes what must be durable, rather than wait for
//! it.

use crate::write::journal::Journal;
use log::Lsn;
use std::cell::Cell;

thread_local! {
    /// In a turn: the position that must be durable before the thread's results may be acknowledged.
    static TURN: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Whether the thread has a turn.
pub(crate) fn is_under_way() -> bool {
    TURN.get().is_some()
}

/// Notes what must be durable at the end of the thread's turn.
pub(crate) fn note(end: Lsn) {
    TURN.set(Some(self::end().max(end).0));
}

/// The position that must be durable before results of the thread's turn may be acknowledged.
#[inline]
pub(crate) fn end() -> Lsn {
    Lsn(TURN.get().unwrap_or(0))
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
    /// Of the turn around it.
    outer: Option<u64>,
    /// It ends on the thread on which it began.
    _here: std::marker::PhantomData<*const ()>,
}

impl<'d> Turn<'d> {
    pub(crate) fn resume(journal: Option<&'d Journal>, PausedTurn(end): PausedTurn) -> Turn<'d> {
        Turn {
            journal,
            outer: TURN.replace(Some(end)),
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
        let end = TURN.replace(self.outer).unwrap_or(0);
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
        let end = TURN.replace(self.outer).unwrap_or(0);
        if let Some(journal) = self.journal {
            let _ = journal.settle(Lsn(end));
        }
    }
}
