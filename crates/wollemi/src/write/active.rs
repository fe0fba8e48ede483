//! Commits in progress, as other commits and writers see them: the keys that each is about to change, and the ranges
//! that it is checking.
//!
//! A transaction that has read a range cannot lock the keys that are absent from it. Instead it announces the range
//! while it checks it. A writer that has taken its key's stripe and finds the key in an announced range marks the range
//! as broken before it changes anything, without waiting; the transaction then starts again. An announced single key is
//! a range of one key, here and below; writers look it up by its stripe.
//!
//! I1 A writer of a single key looks here after it has taken the stripe and before it changes the key. So, of the
//! changes made in a range while the range is announced and unbroken, no two are of one key: only writers that held a
//! stripe when the range was announced make any, and each changes its key once while it holds the stripe.
//! I2 A commit announces its changes and its ranges together, after it has its stripes and before it checks its reads,
//! and withdraws its changes after it has applied them. If one of two commits changes a key in a range of the other,
//! the second to announce notices: it fails if the range is its own, and marks the range as broken if the change is its
//! own.
//! I3 A published commit that cannot be completed shuts the gate before its changes are withdrawn here.
//!
//! A thread waits here for one mutex only, whose holder compares some keys and waits for nothing.

use crate::Error;
use crate::write::map_index::KeyState;
use crate::write::reads::AnnouncedReads;
use crate::write::stripes::StripeId;
use crossbeam_utils::CachePadded;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The commits in progress in a database.
#[derive(Debug, Default)]
pub(crate) struct Active {
    /// Number of commits whose ranges are being checked. Writers of single keys read it first.
    checking: CachePadded<AtomicUsize>,
    commits: Mutex<Commits>,
}

#[derive(Debug, Default)]
struct Commits {
    next: u64,
    all: Vec<Announced>,
}

#[derive(Debug)]
struct Announced {
    id: u64,
    changes: Arc<[KeyState]>,
    /// Empty once they are checked.
    reads: AnnouncedReads,
    /// The key whose change broke one of the ranges.
    broken: Option<(String, Vec<u8>)>,
}

impl Announced {
    /// Marks the ranges as broken if the key, which has this stripe, lies in one.
    fn meet(&mut self, stripe: StripeId, map: &str, key: &[u8]) {
        if self.broken.is_none() && self.reads.has(stripe, map, key) {
            self.broken = Some((map.to_owned(), key.to_owned()));
        }
    }
}

/// A commit listed here, until this is dropped.
#[derive(Debug)]
pub(crate) struct Entered<'a> {
    active: &'a Active,
    id: u64,
}

impl Active {
    /// Announces changes, and ranges to be checked.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] if another commit is about to change a key in one of the ranges.
    pub fn enter(&self, changes: &Arc<[KeyState]>, reads: &AnnouncedReads) -> Result<Entered<'_>, Error> {
        let mut commits = self.lock();
        if !reads.is_empty() {
            let mut changes = commits.all.iter().flat_map(|commit| &*commit.changes);
            let is_read = |change: &&KeyState| reads.has(change.stripe(), change.map.name(), &change.key);
            if let Some(change) = changes.find(is_read) {
                return Err(change.conflict());
            }
        }
        for commit in commits.all.iter_mut().filter(|commit| !commit.reads.is_empty()) {
            for change in &**changes {
                commit.meet(change.stripe(), change.map.name(), &change.key);
            }
        }
        let id = commits.next;
        commits.next += 1;
        commits.all.push(Announced {
            id,
            changes: changes.clone(),
            reads: reads.clone(),
            broken: None,
        });
        // Before the ranges are examined: a writer that looks from now on marks them.
        self.checking.fetch_add(usize::from(!reads.is_empty()), SeqCst);
        Ok(Entered { active: self, id })
    }

    /// Marks the ranges that contain the key as broken. The caller is about to change the key and holds its stripe.
    #[inline]
    pub fn meet(&self, stripe: StripeId, map: &str, key: &[u8]) {
        // The stripe was taken by a sequentially consistent exchange: either this load sees the range, or the stripe
        // was held when the range was announced.
        if self.checking.load(SeqCst) != 0 {
            self.meet_ranges(stripe, map, key);
        }
    }

    #[cold]
    fn meet_ranges(&self, stripe: StripeId, map: &str, key: &[u8]) {
        self.lock()
            .all
            .iter_mut()
            .for_each(|commit| commit.meet(stripe, map, key));
    }

    // A panicking holder leaves the list consistent: each change is one push, one removal or one mark.
    fn lock(&self) -> MutexGuard<'_, Commits> {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entered<'_> {
    /// Withdraws the ranges, which were checked.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] if one was broken meanwhile.
    pub fn checked(&self) -> Result<(), Error> {
        let mut commits = self.active.lock();
        let Some(commit) = commits.all.iter_mut().find(|commit| commit.id == self.id) else {
            return Ok(());
        };
        let reads = std::mem::take(&mut commit.reads);
        self.active
            .checking
            .fetch_sub(usize::from(!reads.is_empty()), SeqCst);
        match commit.broken.take() {
            Some((map, key)) => Err(Error::conflict(&map, &key)),
            None => Ok(()),
        }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut commits = self.active.lock();
        if let Some(at) = commits.all.iter().position(|commit| commit.id == self.id) {
            let gone = commits.all.swap_remove(at);
            let is_checking = !gone.reads.is_empty();
            self.active.checking.fetch_sub(usize::from(is_checking), SeqCst);
        }
    }
}
