//! Retiring objects: they are free again when the guards that protect them are gone, or when recovery frees them
//! ([`quarantine`](crate::alloc::quarantine)).

use crate::alloc::arena::Arena;
use crate::alloc::quarantine::{Retired, Stage};
use crate::alloc::reuse::Site;
use crate::lock::lock;
use crate::{Error, Guard};
use pmem::Offset;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Chunks retired under one guard.
const RETIRE_BATCH: usize = 256;

impl Arena {
    /// Takes an object out of use: see [`Heap::retire`](crate::Heap::retire).
    #[inline]
    pub(crate) fn retire(self: &Arc<Self>, guard: &Guard, offset: Offset, len: usize, site: Site) {
        let retired = (offset, len, site);
        if !self.quarantine.is_active.load(Ordering::Acquire) || self.is_freed_after_guards(retired) {
            self.free_after_guards(guard, retired);
        }
    }

    #[inline]
    fn free_after_guards(self: &Arc<Self>, guard: &Guard, retired: Retired) {
        let (arena, (offset, len, _)) = (Arc::clone(self), retired);
        match self.reuse {
            None => guard.defer(len, move || arena.free(offset)),
            Some(_) => guard.defer_exactly(move || arena.free_and_report(retired)),
        }
    }

    /// Frees an object and reports it, under media that reuse memory at once.
    pub(crate) fn free_and_report(&self, (offset, len, site): Retired) {
        self.free(offset);
        if let Some(reuse) = &self.reuse {
            reuse.report_freed(offset, len, site);
        }
    }

    /// Whether a retirement during recovery is freed when its guards are gone. If not, recovery frees it.
    #[cold]
    fn is_freed_after_guards(&self, (offset, len, site): Retired) -> bool {
        match &mut *lock(&self.quarantine.stage) {
            Stage::BeforeTrace => !self.old_pages().contains(&self.page_of(offset.get())),
            Stage::Tracing(kept) => {
                kept.push((offset, len, site));
                false
            }
            Stage::Settling(wrong) => {
                if let Err(error) = self.mark(offset, len as u64) {
                    wrong.get_or_insert(error);
                }
                true
            }
            Stage::Swept => true,
        }
    }

    /// Called when the trace is about to read the roots: from here on, retired objects are kept.
    pub(crate) fn trace_begins(&self) {
        self.quarantine.enter(Stage::Tracing(Vec::new()));
    }

    /// Called when the trace has ended: the kept objects are marked, and freed when their guards are gone; so are
    /// those retired from here on. Returns whether any were kept.
    ///
    /// # Errors
    ///
    /// If a kept object could not be marked. All of them are freed later even so.
    pub(crate) fn trace_ended(self: &Arc<Self>) -> Result<bool, Error> {
        let kept = self.quarantine.enter(Stage::Settling(None));
        let any = matches!(&kept, Stage::Tracing(kept) if !kept.is_empty());
        self.release(kept, |offset, len| self.mark(offset, len as u64).map(drop))?;
        Ok(any)
    }

    /// Called when recovery has settled and is about to sweep: retirement works as usual from here on.
    ///
    /// # Errors
    ///
    /// If an object retired since the trace ended could not be marked.
    pub(crate) fn sweep_begins(&self) -> Result<(), Error> {
        let before = self.quarantine.enter(Stage::Swept);
        self.quarantine.is_active.store(false, Ordering::Release);
        match before {
            Stage::Settling(Some(wrong)) => Err(wrong),
            _ => Ok(()),
        }
    }

    /// Called when recovery has failed or was stopped: old objects stay, since nothing is swept; new ones can be
    /// reused.
    pub(crate) fn nothing_is_swept(self: &Arc<Self>) {
        let kept = self.quarantine.enter(Stage::Swept);
        self.quarantine.is_active.store(false, Ordering::Release);
        let _ = self.release(kept, |_, _| Ok(()));
    }

    /// Frees the objects that a stage has kept when their guards are gone, each after a call of `mark`. The first error
    /// of `mark` ends these calls, not the freeing, and is returned.
    fn release(
        self: &Arc<Self>,
        stage: Stage,
        mark: impl Fn(Offset, usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Stage::Tracing(kept) = stage else {
            return Ok(());
        };
        let mut marked = Ok(());
        for some in kept.chunks(RETIRE_BATCH) {
            let guard = crate::pin();
            for &(offset, len, site) in some {
                marked = marked.and_then(|()| mark(offset, len));
                self.free_after_guards(&guard, (offset, len, site));
            }
        }
        marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Heap, footprint};
    use pmem::{Hardware, PWord, Pool, PoolOptions, Purpose, persist_scope};

    /// An object that was retired while the trace ran is marked when the trace has ended: the sweep must not free it
    /// as well.
    #[test]
    fn what_the_trace_has_missed_is_marked() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let open = || -> Result<Heap<Hardware>, Box<dyn std::error::Error>> {
            let path = folder.path().join("pool");
            let pool = Pool::open_or_create(path, &PoolOptions::default(), Hardware::detect())?;
            Ok(Heap::new(pool)?)
        };
        let heap = open()?;
        let offset = persist_scope(heap.media(), Purpose::Node, |batch| {
            let draft = heap.draft(PWord::new(1), 50, &batch)?;
            let offset = draft.offset();
            std::mem::forget(draft);
            Ok::<_, Error>(offset)
        })?;
        drop(heap);

        let heap = open()?;
        let arena = &heap.inner.arena;
        let len = footprint::<PWord>(50).ok_or("too long")?;
        arena.trace_begins();
        // The guard keeps the object from being freed.
        let guard = crate::pin();
        arena.retire(&guard, offset, len, std::panic::Location::caller());
        arena.trace_ended()?;
        let is_new = arena.mark(offset, len as u64)?;
        assert!(!is_new, "the end of the trace has not marked it");
        Ok(())
    }
}
