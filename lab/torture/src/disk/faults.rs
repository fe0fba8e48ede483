//! The errors that failing calls of the disk explain.
//!
//! A call that fails explains an error of the operation that made it, and no other, unless the log has failed. What
//! fails the log, and what does not (`docs/disk.md`):
//!
//! F1 A failed sync of a segment fails the log: it accepts no more records.
//! F2 A lack of room never fails it: the operation is refused, and may succeed later.
//! F3 A failure of a run or a manifest never fails it. It is an error of the checkpoint, and a write is refused for it
//!    only if the log has reached its limit and needs that checkpoint.
//! F4 A sync is never repeated: a checkpoint during which one fails ends with an error.

use super::trouble::Trouble;
use crashkit::Random;
use crashkit::disk::{DiskFault, FailedCall, FaultKind};
use wollemi::{Error, FilesError, IndexError};

/// Draws a fault: one call fails, or the disk is full from that call on.
pub fn draw_fault(steps: usize, random: &mut Random) -> DiskFault {
    let kind = *random.pick(&[FaultKind::Io, FaultKind::Io, FaultKind::Full, FaultKind::Short]);
    DiskFault {
        call: random.below(60 + 8 * steps as u64),
        kind,
        lasting: kind == FaultKind::Full && random.below(2) == 0,
    }
}

/// An operation, as far as it matters which errors it may return.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Checkpoint,
    Other,
}

/// What happened to the disk and the log during an operation.
pub struct Faults {
    pub kind: Kind,
    /// The calls that failed during it.
    pub calls: Vec<FailedCall>,
    /// Whether the log has failed, now or before.
    pub has_failed: bool,
}

/// Returns whether it is a call about a file of the log.
fn is_of_log(call: &FailedCall) -> bool {
    call.file.starts_with("log-") || call.file.starts_with("spare-")
}

fn is_of_directory(call: &FailedCall) -> bool {
    call.operation == "fsync of the directory"
}

/// Returns the error of the log, if it is one.
fn of_log(error: &Error) -> Option<&log::Error> {
    match error {
        Error::Index(IndexError::Refused(error) | IndexError::NotDurable(error)) => error.downcast_ref(),
        Error::Files(FilesError::Log(error)) => Some(error),
        _ => None,
    }
}

impl Faults {
    /// Checks that the log has failed where it must have (F1), and only where it may have (F2, F3). `all`: all calls
    /// that have failed.
    pub fn check_log(&self, all: &[FailedCall]) -> Result<(), Trouble> {
        let sync = self
            .calls
            .iter()
            .find(|call| is_of_log(call) && call.operation == "fdatasync");
        if let Some(sync) = sync.filter(|_| !self.has_failed) {
            return wrong(format!("the log has not failed, although {sync}"));
        }
        let may_fail =
            |call: &FailedCall| call.kind != FaultKind::Full && (is_of_log(call) || is_of_directory(call));
        if self.has_failed && !all.iter().any(may_fail) {
            return wrong(format!(
                "the log has failed, although only {} failed",
                listing(all)
            ));
        }
        Ok(())
    }

    /// Checks that an operation that was successful was not to fail (F4).
    pub fn check_success(&self) -> Result<(), Trouble> {
        let is_sync = |call: &&FailedCall| call.operation == "fdatasync" || is_of_directory(call);
        match self.calls.iter().find(is_sync) {
            Some(sync) if self.kind == Kind::Checkpoint => {
                wrong(format!("a checkpoint is successful, although {sync}"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that an operation of this kind may return this error.
    pub fn check_error(&self, kind: Kind, error: &Error) -> Result<(), Trouble> {
        let is_explained = self.has_failed
            || match of_log(error) {
                // The checkpoint that was to make room has failed, whatever has failed in it.
                Some(log::Error::LogFull { .. }) => !self.calls.is_empty(),
                Some(log::Error::DiskFull(_)) => self.calls.iter().any(is_of_log),
                Some(_) => kind == Kind::Checkpoint && self.calls.iter().any(is_of_log),
                None => kind == Kind::Checkpoint && !self.calls.is_empty(),
            };
        match is_explained {
            true => Ok(()),
            false => wrong(format!(
                "an operation, during which {} failed, returns an error that this does not explain: {error}",
                listing(&self.calls)
            )),
        }
    }
}

fn listing(calls: &[FailedCall]) -> String {
    match calls {
        [] => "no call".into(),
        calls => calls
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    }
}

fn wrong<T>(what: String) -> Result<T, Trouble> {
    Err(Trouble::Wrong(what))
}
