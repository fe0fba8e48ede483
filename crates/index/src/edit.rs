//! Edits: what a write makes of a key's current value.
//!
//! Every write operation is one edit: the index finds the key, asks the edit, and carries the answer out atomically, as
//! if under a lock on the key. An index with locks asks once, under the lock. One without asks, tries to publish, and
//! where another writer was faster asks again.

use crate::Error;
use std::ops::ControlFlow;

/// What to do with the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Leave it as it is.
    Keep,
    /// Give it the value [`Edit::value`], whether it is there or not.
    Put,
    /// Remove it, if it is there.
    Remove,
}

/// A read-modify-write of one key.
pub trait Edit {
    /// Decides, given the key's current value (`None`: absent). Called under the lock on the key where the index has
    /// one: keep it short, and do not use the index in it.
    ///
    /// It may be asked again, with the key's current value, and only its last answer counts: where the pool was full
    /// and room has been made since; where what it decides cannot be done [together](crate::Index::write_many) with
    /// other edits; and in a [lock-free](crate::OnHeap::IS_LOCK_FREE) index wherever another writer has published
    /// first. So what an answer leaves behind in the edit is replaced by the next one. Its other effects must be right
    /// for an answer that was not carried out, too.
    fn decide(&mut self, current: Option<&[u8]>) -> Action;

    /// The value to put. Called only after [`decide`](Edit::decide) has answered [`Action::Put`].
    fn value(&self) -> &[u8];
}

/// Edits of several keys: see [`Index::write_many`](crate::Index::write_many).
pub trait Edits {
    /// The edit of the `i`-th key. Asked for when its turn has come, and again whenever it is to be looked at anew.
    fn edit(&mut self, i: usize) -> &mut dyn Edit;

    /// Told what came of it, before the next one begins and perhaps under the lock on the key: do not use the index in
    /// it. Others see what was done, and it is durable, at the latest when `write_many` returns. A break leaves out the
    /// others.
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
    /// What the key must hold.
    pub expected: Option<&'v [u8]>,
    /// What it shall hold.
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
