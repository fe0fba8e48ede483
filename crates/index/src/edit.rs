//! Edits: how a write changes a key's current value.
//!
//! Every write operation is one edit: the index finds the key, asks the edit for a decision, and applies it atomically,
//! as if under a lock on the key. An index with locks asks under the lock, in most cases once ([`Edit::decide`] says
//! when again). A lock-free one asks, tries to publish, and asks again if another writer was faster.

use crate::Error;
use std::ops::ControlFlow;

/// The decision of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Leave the key unchanged.
    Keep,
    /// Set the value to [`Edit::value`], whether the key is present or not.
    Put,
    /// Remove the key, if it is present.
    Remove,
}

/// A read-modify-write of one key.
pub trait Edit {
    /// Decides, given the key's current value (`None`: absent). Called under the lock on the key if the index has
    /// locks: keep it short, and do not use the index in it.
    ///
    /// It may be called again, with the key's current value, and only its last answer counts: if the pool was full
    /// and room has been made since; if the decision cannot be applied [together](crate::Index::write_many) with
    /// other edits; and in a [lock-free](crate::OnHeap::IS_LOCK_FREE) index whenever another writer has published
    /// first. So each call must overwrite the state that an earlier one left in the edit, and its other effects must
    /// be right for an answer that is not applied, too.
    fn decide(&mut self, current: Option<&[u8]>) -> Action;

    /// The value to put. Called only after [`decide`](Edit::decide) has returned [`Action::Put`].
    fn value(&self) -> &[u8];
}

/// Edits of several keys: see [`Index::write_many`](crate::Index::write_many).
pub trait Edits {
    /// The edit of the `i`-th key. Called when its turn has come, and again whenever it must be decided anew.
    fn edit(&mut self, i: usize) -> &mut dyn Edit;

    /// Called with the result of an edit, before the next one begins and perhaps under the lock on the key: do not
    /// use the index in it. The change is visible to other threads and durable at the latest when `write_many`
    /// returns. A break skips the remaining edits.
    fn done(&mut self, i: usize, done: Result<Action, Error>) -> ControlFlow<()>;
}

/// Puts the value if the key is absent.
#[derive(Debug)]
pub struct Insert<'v>(pub &'v [u8]);

impl Edit for Insert<'_> {
    #[inline]
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        if current.is_none() {
            Action::Put
        } else {
            Action::Keep
        }
    }
    #[inline]
    fn value(&self) -> &[u8] {
        self.0
    }
}

/// Puts the value.
#[derive(Debug)]
pub struct Upsert<'v>(pub &'v [u8]);

impl Edit for Upsert<'_> {
    #[inline]
    fn decide(&mut self, _current: Option<&[u8]>) -> Action {
        Action::Put
    }
    #[inline]
    fn value(&self) -> &[u8] {
        self.0
    }
}

/// Puts the value if the key is present.
#[derive(Debug)]
pub struct Update<'v>(pub &'v [u8]);

impl Edit for Update<'_> {
    #[inline]
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        if current.is_some() {
            Action::Put
        } else {
            Action::Keep
        }
    }
    #[inline]
    fn value(&self) -> &[u8] {
        self.0
    }
}

/// Removes the key.
#[derive(Debug)]
pub struct Remove;

impl Edit for Remove {
    #[inline]
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        if current.is_some() {
            Action::Remove
        } else {
            Action::Keep
        }
    }
    #[inline]
    fn value(&self) -> &[u8] {
        &[]
    }
}

/// Replaces `expected` by `new`, either of which may be "absent".
#[derive(Debug)]
pub struct CompareAndSwap<'v> {
    /// The value that the key must hold.
    pub expected: Option<&'v [u8]>,
    /// The new value.
    pub new: Option<&'v [u8]>,
}

impl Edit for CompareAndSwap<'_> {
    #[inline]
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        match self.new {
            _ if current != self.expected => Action::Keep,
            Some(_) => Action::Put,
            None => Action::Remove,
        }
    }
    #[inline]
    fn value(&self) -> &[u8] {
        self.new.unwrap_or_default()
    }
}
