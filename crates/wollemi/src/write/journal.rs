//! The log as writers and readers of maps use it.
//!
//! A write appends its key's new value in the edit, under the key's [stripe](crate::write::stripes), before the index
//! publishes it. So the log orders a key's records as the index applied them, and everything in the pool that no
//! checkpoint holds is always in the log, though possibly only in the page cache.
//!
//! An operation returns when everything it did and saw is durable:
//!
//! I1 The record of an [immediate](Durability::Immediate) write is noted, for the key's stripe and as the newest of
//! all, before the index publishes the write.
//! I2 A reader reads the notes after it has read the index. So it knows of a record at least as late as that of the
//! data it has seen, and waits until that record is durable. For a key it reads the stripe's note; for a range, whose
//! gaps have no stripe, the newest of all.
//! I3 [Eventual](Durability::Eventual) writes are not noted: a power loss may take back data that a reader has seen.

use crate::files_error::FilesError;
use crate::write::stripes::{STRIPES, StripeId};
use crossbeam_utils::CachePadded;
use index::{Action, Edit, Error, Index, MAX_VALUE};
use log::{Change, Disk, Log, Lsn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::time::Duration;

/// When a write becomes durable, in a database of level [`Disk`](crate::Level::Disk).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When it returns. Writes that wait at the same time share one sync of the disk.
    #[default]
    Immediate,
    /// Within a bounded time ([`Options::sync_within`](crate::Options::sync_within)), or when a later
    /// [`Db::sync`](crate::Db::sync) or immediate write returns, if that is earlier. The write survives the end of the
    /// process at once, as at level `process`. Until it is durable, a loss of power can take it back, even if other
    /// threads have read it.
    Eventual,
}

/// How long a write waits for a checkpoint to make room in a log that has reached its limit.
pub(crate) const ROOM_TIMEOUT: Duration = Duration::from_secs(30);

/// How often an operation is run again after it has waited for room.
const ATTEMPTS: usize = 3;

/// A log on any disk.
pub(crate) trait AnyLog: Send + Sync {
    fn append(&self, changes: &[Change<'_>]) -> Result<Lsn, log::Error>;
    fn append_beyond_limit(&self, changes: &[Change<'_>]) -> Result<Lsn, log::Error>;
    fn wait_durable(&self, lsn: Lsn) -> Result<(), log::Error>;
    fn appended(&self) -> Lsn;
    fn durable(&self) -> Lsn;
    /// Returns why the log has failed, if it has.
    fn failure(&self) -> Option<Arc<str>>;
    fn is_settled(&self) -> bool;
    fn wait_for_room(&self, bytes: u64, timeout: Duration) -> Result<bool, log::Error>;
}

impl<D: Disk> AnyLog for Log<D> {
    fn append(&self, changes: &[Change<'_>]) -> Result<Lsn, log::Error> {
        Log::append(self, changes)
    }
    fn append_beyond_limit(&self, changes: &[Change<'_>]) -> Result<Lsn, log::Error> {
        Log::append_beyond_limit(self, changes)
    }
    fn wait_durable(&self, lsn: Lsn) -> Result<(), log::Error> {
        Log::wait_durable(self, lsn)
    }
    fn appended(&self) -> Lsn {
        Log::appended(self)
    }
    fn durable(&self) -> Lsn {
        Log::durable(self)
    }
    fn failure(&self) -> Option<Arc<str>> {
        Log::failure(self)
    }
    fn is_settled(&self) -> bool {
        Log::is_settled(self)
    }
    fn wait_for_room(&self, bytes: u64, timeout: Duration) -> Result<bool, log::Error> {
        Log::wait_for_room(self, bytes, timeout)
    }
}

/// A database's log.
pub(crate) struct Journal {
    pub(super) log: Arc<dyn AnyLog>,
    /// By stripe: the end of the last record of an immediate write.
    last: Box<[AtomicU64]>,
    /// The end of the newest of these records, and of the records of maps' creations and drops.
    newest: CachePadded<AtomicU64>,
    /// Whether writes are [eventual](Durability::Eventual) unless they say otherwise.
    is_eventual: AtomicBool,
    /// How long a write waits for room in the log, per attempt.
    patience: Duration,
    /// The log's limit if a write has waited for room in vain, else 0. Until there is room, later writes are refused at
    /// once.
    waited_at: AtomicU64,
    /// Called to request a checkpoint when the log has reached its limit.
    wants_room: Box<dyn Fn() + Send + Sync>,
}

impl Journal {
    pub fn new(
        log: Arc<dyn AnyLog>,
        durability: Durability,
        patience: Duration,
        wants_room: Box<dyn Fn() + Send + Sync>,
    ) -> Journal {
        Journal {
            log,
            last: (0..STRIPES).map(|_| AtomicU64::new(0)).collect(),
            newest: CachePadded::new(AtomicU64::new(0)),
            is_eventual: AtomicBool::new(durability == Durability::Eventual),
            patience,
            waited_at: AtomicU64::new(0),
            wants_room,
        }
    }

    pub fn log(&self) -> &dyn AnyLog {
        &*self.log
    }

    /// Returns the default durability of writes.
    #[inline]
    pub fn durability(&self) -> Durability {
        match self.is_eventual.load(Relaxed) {
            true => Durability::Eventual,
            false => Durability::Immediate,
        }
    }

    pub fn set_durability(&self, durability: Durability) {
        self.is_eventual
            .store(durability == Durability::Eventual, Relaxed);
    }

    /// Appends a record of changes of keys with these stripes, which the caller holds.
    #[inline]
    pub fn append(
        &self,
        changes: &[Change<'_>],
        stripes: impl Iterator<Item = StripeId>,
        durability: Durability,
    ) -> Result<(), Error> {
        let end = self.log.append(changes).map_err(refused)?;
        self.note(end, stripes, durability);
        Ok(())
    }

    /// Appends a record of what keys hold, or of which maps exist, after the failure of a write whose record was
    /// [appended](Journal::append). Ignores the log's limit: without this record, a replay would apply the failed
    /// write.
    pub fn undo(
        &self,
        changes: &[Change<'_>],
        stripes: impl Iterator<Item = StripeId>,
        durability: Durability,
    ) -> Result<(), Error> {
        let end = self.log.append_beyond_limit(changes).map_err(not_durable)?;
        self.note(end, stripes, durability);
        Ok(())
    }

    /// Makes readers of keys with these stripes wait for the record of an immediate write (I1).
    #[inline]
    fn note(&self, Lsn(end): Lsn, stripes: impl Iterator<Item = StripeId>, durability: Durability) {
        if durability == Durability::Immediate {
            stripes.for_each(|id| self.last[usize::from(id)].store(end, Release));
            self.newest.fetch_max(end, Release);
        }
    }

    /// Begins the log's part of a write to `index`. The caller holds the key's stripe.
    #[inline]
    pub fn logged<'e>(
        &'e self,
        (map, key): (&'e str, &'e [u8]),
        stripe: StripeId,
        durability: Option<Durability>,
        index: &'e dyn Index,
    ) -> Logged<'e> {
        Logged {
            journal: self,
            map,
            key,
            stripe,
            durability: durability.unwrap_or_else(|| self.durability()),
            index,
            is_appended: false,
            refused: None,
        }
    }

    /// Returns the position that must be durable before reads of keys with this stripe may be acknowledged.
    #[inline]
    pub fn last(&self, stripe: StripeId) -> Lsn {
        Lsn(self.last[usize::from(stripe)].load(Acquire))
    }

    /// Returns the position that must be durable before any read may be acknowledged.
    #[inline]
    pub fn newest(&self) -> Lsn {
        Lsn(self.newest.load(Acquire))
    }

    /// Waits until everything below the position is durable.
    pub(super) fn wait(&self, end: Lsn) -> Result<(), Error> {
        self.log.wait_durable(end).map_err(not_durable)
    }

    /// If a write has waited for room in vain, and there is room now, later writes wait again.
    #[inline]
    pub fn note_room(&self) {
        let waited_at = self.waited_at.load(Relaxed);
        if waited_at > 0 && matches!(self.log.wait_for_room(waited_at / 8, Duration::ZERO), Ok(true)) {
            self.waited_at.store(0, Relaxed);
        }
    }

    /// Runs an operation that the log may refuse because of its limit, and again when a checkpoint has made room. The
    /// operation holds no locks when it is refused.
    pub fn with_room<R, E: From<Error> + WriteError>(
        &self,
        mut run: impl FnMut() -> Result<R, E>,
    ) -> Result<R, E> {
        let mut result = run();
        self.note_room();
        // Each of its records may need room.
        for _ in 0..ATTEMPTS {
            let (limit, needed) = match &result {
                Err(error) => match error.as_log_error() {
                    Some(log::Error::LogFull { limit, needed }) => (*limit, *needed),
                    _ => return result,
                },
                Ok(_) => return result,
            };
            (self.wants_room)();
            let patience = match self.waited_at.load(Relaxed) {
                0 => self.patience,
                _ => Duration::ZERO,
            };
            // If the log has failed, the next run reports it.
            if let Ok(false) = self.log.wait_for_room(needed.max(limit / 8), patience) {
                self.waited_at.store(limit, Relaxed);
                return result;
            }
            result = run();
        }
        result
    }
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal").finish_non_exhaustive()
    }
}

/// The error of a write, which may come from the log.
pub(crate) trait WriteError {
    fn as_log_error(&self) -> Option<&log::Error>;

    /// Whether the write may have a record in the log and another that undoes it: the pool had no room for it, or the
    /// log refused the record of the next attempt or decision.
    fn may_be_undone(&self) -> bool;
}

impl WriteError for Error {
    fn as_log_error(&self) -> Option<&log::Error> {
        match self {
            Error::Refused(error) | Error::NotDurable(error) => error.downcast_ref(),
            _ => None,
        }
    }

    fn may_be_undone(&self) -> bool {
        let refuses = |error: &log::Error| {
            matches!(
                error,
                log::Error::LogFull { .. } | log::Error::DiskFull(_) | log::Error::Disk(_)
            )
        };
        matches!(self, Error::Heap(_) | Error::ValueTooLong(_)) || self.as_log_error().is_some_and(refuses)
    }
}

impl WriteError for crate::Error {
    fn as_log_error(&self) -> Option<&log::Error> {
        match self {
            crate::Error::Index(error) => error.as_log_error(),
            crate::Error::Files(FilesError::Log(error)) => Some(error),
            _ => None,
        }
    }

    /// A commit that is made, but cannot be completed, counts too: its record must survive.
    fn may_be_undone(&self) -> bool {
        match self {
            crate::Error::Heap(_) | crate::Error::Unfinished(_) => true,
            crate::Error::Index(error) => error.may_be_undone(),
            _ => false,
        }
    }
}

#[cold]
fn refused(error: log::Error) -> Error {
    Error::Refused(Box::new(error))
}

pub(super) fn not_durable(error: log::Error) -> Error {
    Error::NotDurable(Box::new(error))
}

/// The log's part of a write, which appends each decision of the edit before the index publishes it.
///
/// If the write does not end as decided after a record was appended, another record states the key's value: in
/// [`ended`](Logged::ended) after an error, and in the drop after a panic.
pub(crate) struct Logged<'e> {
    journal: &'e Journal,
    map: &'e str,
    key: &'e [u8],
    stripe: StripeId,
    durability: Durability,
    index: &'e dyn Index,
    /// Whether a record exists that the index's write has not confirmed.
    is_appended: bool,
    /// Why the log refused the record; then nothing is changed.
    refused: Option<Error>,
}

impl Logged<'_> {
    /// Appends what `edit` has decided for a key with this value. Returns the action for the index: [`Action::Keep`] if
    /// the log refuses the record.
    #[inline]
    pub fn decided(&mut self, action: Action, edit: &dyn Edit, current: Option<&[u8]>) -> Action {
        self.refused = None;
        let appended = match action {
            // The index refuses a value that is too long. (A record appended for an earlier decision is undone.)
            Action::Put => match edit.value() {
                value if value.len() > MAX_VALUE => return action,
                value => self.append(Some(value)),
            },
            Action::Remove if current.is_some() => self.append(None),
            // The edit was called before, and has now decided to change nothing.
            _ if self.is_appended => self.append(current),
            _ => return action,
        };
        match appended {
            Ok(()) => {
                self.is_appended = true;
                action
            }
            Err(error) => {
                self.refused = Some(error);
                Action::Keep
            }
        }
    }

    #[inline]
    fn append(&self, value: Option<&[u8]>) -> Result<(), Error> {
        let stripe = std::iter::once(self.stripe);
        self.journal
            .append(&[self.change(value)], stripe, self.durability)
    }

    /// Returns the change that sets the key to this value.
    fn change<'v>(&'v self, value: Option<&'v [u8]>) -> Change<'v> {
        let (map, key) = (self.map, self.key);
        match value {
            Some(value) => Change::Put { map, key, value },
            None => Change::Remove { map, key },
        }
    }

    /// Returns the outcome of the index's write, or the log's error if the log refused it.
    pub fn ended(&mut self, done: Result<Action, Error>) -> Result<Action, Error> {
        let is_appended = std::mem::take(&mut self.is_appended);
        if done.is_ok() && self.refused.is_none() {
            return done;
        }
        self.failed(done, is_appended)
    }

    #[cold]
    fn failed(&mut self, done: Result<Action, Error>, is_appended: bool) -> Result<Action, Error> {
        if is_appended {
            self.undo()?;
        }
        self.refused.take().map_or(done, Err)
    }

    /// Appends the key's current value.
    fn undo(&self) -> Result<(), Error> {
        let guard = heap::pin();
        let holds = self.index.get(self.key, &guard)?;
        let stripe = std::iter::once(self.stripe);
        // If the log refuses that, a replay applies the write after all.
        self.journal
            .undo(&[self.change(holds.as_deref())], stripe, self.durability)
    }
}

impl Drop for Logged<'_> {
    /// Handles a panic of the edit: after a record was appended, the index may call it for another decision, or for its
    /// value.
    fn drop(&mut self) {
        if self.is_appended {
            // The panic propagates to the caller; an error of the log here is not reported.
            let _ = self.undo();
        }
    }
}

#[cfg(test)]
mod tests;
