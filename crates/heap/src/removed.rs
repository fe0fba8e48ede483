//! Roots that were removed, and taking all that hangs from one out of use.
//!
//! A tree can be too large for one guard from its unlinking to its last retirement: that guard would keep back whatever
//! any thread retires meanwhile. So its objects are retired under many guards, and [`Removal`] keeps recovery from
//! sweeping until the last of them is: else the sweep would free what the trace no longer reached, and the retirement
//! would free it again.

use crate::recovery::Removal;
use crate::{Error, Heap, Root, Trace};
use pmem::{Link, Media};
use std::collections::HashSet;

/// Objects that are retired under one guard.
const RETIRE_BATCH: usize = 256;

/// A root that no name leads to any more. What hangs from it is the holder's to [retire](Removed::retire).
///
/// While it lives, recovery does not sweep; the holder must not wait for recovery.
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

    /// What the root's entry said.
    pub fn root(&self) -> Root {
        self.root
    }

    /// Retires the root's object and everything below it, as `tracer` finds it. No index may be open under this root;
    /// readers that came to it before the removal may still hold their guards. What a crash or an error leaves over
    /// comes back by the next recovery. Takes memory for a word for each object.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownKind`] where the tracer is not the root's. [`Error::Damaged`] where an object makes no sense, or
    /// a second link leads to it: to retire it once more would free a chunk that may have been reallocated.
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
    /// Takes objects that were built, and everything below them, out of use: for a builder that fails before it has
    /// published any of it. Takes memory for a word for each object.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] where an object makes no sense, or two links lead to it.
    ///
    /// # Safety
    ///
    /// The caller has drafted all of it since the heap was opened, `tracer` knows such objects, and nothing that others
    /// can reach has ever led to any of them.
    pub unsafe fn retire_unpublished(&self, links: Vec<Link>, tracer: &dyn Trace<M>) -> Result<(), Error> {
        retire_all(self, links, tracer)
    }
}

/// Retires what these links lead to, and everything below. The caller has seen to it that all of it is to be.
fn retire_all<M: Media>(heap: &Heap<M>, mut links: Vec<Link>, tracer: &dyn Trace<M>) -> Result<(), Error> {
    let mut met = HashSet::new();
    while !links.is_empty() {
        let guard = crate::pin();
        for _ in 0..RETIRE_BATCH {
            let Some(link) = links.pop() else { break };
            let Some(offset) = link.offset() else { continue };
            if !met.insert(offset) {
                return Err(Error::Damaged {
                    what: "two links lead to an object that is taken out of use",
                    offset: offset.get(),
                });
            }
            // SAFETY: no thread retires what is below a removed root, or was never published, but this one.
            let access = unsafe { heap.access() };
            let len = tracer.trace(access, link, &mut links)?;
            heap.verify(offset, len)?;
            // SAFETY: a root was removed, by the promise that readers hold older guards, and recovery does not sweep
            // before the removal has ended; or the objects were never reachable, and are of this generation, which
            // recovery does not sweep. The length was held against the page, and `met` keeps the object from being
            // retired again.
            unsafe { heap.retire(&guard, offset, len as usize) };
        }
    }
    Ok(())
}
