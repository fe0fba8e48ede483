//! Commits in progress, as other commits and writers see them: the keys that each is about to change, and the ranges
//! that it is checking.
//!
//! A transaction that has read a range cannot lock the keys that are absent from it. Instead it announces the range
//! while it checks it. A writer that has taken its key's stripe and finds the key in an announced range marks the range
//! as broken before it changes anything, without waiting; the transaction then starts again. A single key that is
//! announced counts as a range of one key in all that follows.
//!
//! I1 A writer of a single key calls [`Active::break_ranges`] after it has taken the key's stripe and before it changes
//! the key. So a writer that takes its stripe after a range was announced breaks the range. While the range is
//! unbroken, each of its keys changes at most once: by a writer that already held the key's stripe.
//! I2 A commit announces its changes and its ranges in one step, after it has taken its stripes and before it checks
//! its reads. It withdraws its changes after it has applied them. So if commit A changes a key in a range of commit B,
//! whichever announces second notices: if it is B, B fails; if it is A, A breaks B's range.
//! I3 A published commit that cannot be completed shuts the gate before its changes are withdrawn here.
//!
//! The only lock here is one mutex; its holder compares keys and waits for nothing.

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
    fn mark_broken_by(&mut self, stripe: StripeId, map: &str, key: &[u8]) {
        if self.broken.is_none() && self.reads.has(stripe, map, key) {
            self.broken = Some((map.to_owned(), key.to_owned()));
        }
    }
}

/// Counts a commit whose ranges are being checked.
#[derive(Debug)]
struct Checking<'a>(&'a AtomicUsize);

impl Checking<'_> {
    fn begin(count: &AtomicUsize) -> Checking<'_> {
        count.fetch_add(1, SeqCst);
        Checking(count)
    }
}

impl Drop for Checking<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// A commit listed here, until this is dropped.
#[derive(Debug)]
pub(crate) struct Announcement<'a> {
    active: &'a Active,
    id: u64,
    /// `None` if there are no ranges, or they are checked.
    checking: Option<Checking<'a>>,
}

impl Active {
    /// Announces changes, and ranges to be checked.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] if another commit is about to change a key in one of the ranges.
    pub fn announce(
        &self,
        changes: &Arc<[KeyState]>,
        reads: &AnnouncedReads,
    ) -> Result<Announcement<'_>, Error> {
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
                commit.mark_broken_by(change.stripe(), change.map.name(), &change.key);
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
        // The caller examines the ranges after this: a writer that loads the counter from now on breaks them.
        let checking = (!reads.is_empty()).then(|| Checking::begin(&self.checking));
        Ok(Announcement {
            active: self,
            id,
            checking,
        })
    }

    /// Marks the ranges that contain the key as broken. The caller is about to change the key and holds its stripe.
    #[inline]
    pub fn break_ranges(&self, stripe: StripeId, map: &str, key: &[u8]) {
        // The stripe was taken by a sequentially consistent exchange: either this load sees the range, or the stripe
        // was held when the range was announced.
        if self.checking.load(SeqCst) != 0 {
            self.break_announced(stripe, map, key);
        }
    }

    #[cold]
    fn break_announced(&self, stripe: StripeId, map: &str, key: &[u8]) {
        self.lock()
            .all
            .iter_mut()
            .for_each(|commit| commit.mark_broken_by(stripe, map, key));
    }

    // A panicking holder leaves the list consistent: each change is one push, one removal or one mark.
    fn lock(&self) -> MutexGuard<'_, Commits> {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Announcement<'_> {
    /// Withdraws the ranges, which the caller has checked.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] if one was broken meanwhile.
    pub fn end_check(&mut self) -> Result<(), Error> {
        let mut commits = self.active.lock();
        let mut all = commits.all.iter_mut();
        let commit = all
            .find(|commit| commit.id == self.id)
            .expect("listed until this is dropped");
        commit.reads = AnnouncedReads::default();
        self.checking = None;
        match commit.broken.take() {
            Some((map, key)) => Err(Error::conflict(&map, &key)),
            None => Ok(()),
        }
    }
}

impl Drop for Announcement<'_> {
    fn drop(&mut self) {
        let mut commits = self.active.lock();
        if let Some(at) = commits.all.iter().position(|commit| commit.id == self.id) {
            commits.all.swap_remove(at);
        }
    }
}
