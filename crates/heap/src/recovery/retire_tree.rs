//! Removed roots, and the retirement of all objects below one.
//!
//! A tree can be too large for one guard from its unlinking to its last retirement: that guard would delay the
//! reclamation of everything that any thread retires meanwhile. So its objects are retired under many guards, and
//! [`Removal`] keeps recovery from sweeping until the last of them is retired. Otherwise the sweep would free objects
//! that the trace no longer reached, and the retirement would free them again.

use crate::reclaim::phase::Removal;
use crate::{Error, Heap, Root, Trace};
use pmem::{Link, LinkAndPersist, Media};
use std::collections::HashSet;

/// Objects retired under one guard.
const RETIRE_BATCH: usize = 256;

/// A root that no name leads to any more. The holder [retires](Removed::retire) the objects below it.
///
/// While it lives, recovery does not sweep, unless its trace had ended before the removal; the holder must not wait for
/// recovery.
#[derive(Debug)]
#[must_use]
pub struct Removed<'h, M: Media> {
    heap: &'h Heap<M>,
    name: Box<[u8]>,
    root: Root,
    _removal: Removal,
}

impl<'h, M: Media> Removed<'h, M> {
    pub(crate) fn new(heap: &'h Heap<M>, name: &[u8], root: Root, removal: Removal) -> Removed<'h, M> {
        Removed {
            heap,
            name: name.into(),
            root,
            _removal: removal,
        }
    }

    /// The root's kind and link.
    pub fn root(&self) -> Root {
        self.root
    }

    /// Retires the root's object and everything below it, as `tracer` finds it. No index may be open under this root;
    /// readers that reached it before the removal may still hold their guards. The next recovery reclaims whatever a
    /// crash or an error leaves. Takes memory for a set of all objects' offsets.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownKind`] if the tracer is for another kind of root. [`Error::Damaged`] if an object is invalid, or
    /// a second link leads to it: retiring it again would free a chunk that may have been reallocated. The objects met
    /// before the error are retired.
    pub fn retire(self, tracer: &dyn Trace<M>) -> Result<(), Error> {
        if tracer.kind() != self.root.kind {
            return Err(Error::UnknownKind {
                root: self.name,
                kind: self.root.kind,
            });
        }
        retire_all(self.heap, vec![self.root.link], tracer)
    }
}

impl<M: Media> Heap<M> {
    /// Removes the root of this name and returns it. The caller [retires](Removed::retire) the objects below it; the
    /// next recovery reclaims those that the caller has not retired. Failure-atomic: one write-back, one fence.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if an entry is invalid.
    ///
    /// # Safety
    ///
    /// No thread uses objects that only this root leads to from now on, except under a guard of its own from before
    /// this call: the next recovery frees them, and so may the caller.
    pub unsafe fn remove_root(&self, name: &[u8]) -> Result<Option<Removed<'_, M>>, Error> {
        // Begins before anything is unlinked.
        let removal = Removal::begin(&self.inner.recovery);
        let _held = pmem::lock_across(&self.inner.roots, self.media());
        let Some((entry, root)) = self.find_root(name)? else {
            return Ok(None);
        };
        let _durable = entry
            .link
            .publish_link::<LinkAndPersist, M>(self.media(), Link::NULL)
            .commit();
        Ok(Some(Removed::new(self, name, root, removal)))
    }

    /// Retires objects that were built, and everything below them: for a builder that fails before it has published
    /// any of it. Takes memory for a set of all objects' offsets.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if an object is invalid, or two links lead to it.
    ///
    /// # Safety
    ///
    /// The caller has drafted all of it since the heap was opened, `tracer` knows such objects, and no link that
    /// other threads can reach has ever led to any of them.
    pub unsafe fn retire_unpublished(&self, links: Vec<Link>, tracer: &dyn Trace<M>) -> Result<(), Error> {
        retire_all(self, links, tracer)
    }
}

/// Retires the objects that these links lead to, and everything below. The caller has made sure that all of it may be
/// retired.
fn retire_all<M: Media>(heap: &Heap<M>, mut links: Vec<Link>, tracer: &dyn Trace<M>) -> Result<(), Error> {
    let mut visited = HashSet::new();
    while !links.is_empty() {
        let guard = crate::pin();
        for _ in 0..RETIRE_BATCH {
            let Some(link) = links.pop() else { break };
            let Some(offset) = link.offset() else { continue };
            if !visited.insert(offset) {
                return Err(Error::Damaged {
                    what: "two links lead to an object that is being retired",
                    offset: offset.get(),
                });
            }
            // SAFETY: only this thread retires objects below a removed root, or that were never published.
            let access = unsafe { heap.access() };
            let len = tracer.trace(access, link, &mut links)?;
            heap.verify(offset, len)?;
            // SAFETY: a root was removed, by the promise that readers hold older guards, and recovery does not sweep
            // before the removal has ended; or the objects were never reachable, and are of this generation, which
            // recovery does not sweep. The length was checked against the page, and `visited` keeps the object from
            // being retired again.
            unsafe { heap.retire(&guard, offset, len as usize) };
        }
    }
    Ok(())
}
