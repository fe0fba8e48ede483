//! Roots that were removed, and taking all that hangs from one out of use.
//!
//! A tree can be too large for one guard from its unlinking to its last retirement: that guard would keep back whatever
//! any thread retires meanwhile. So its objects are retired under many guards, and [`Removal`] keeps recovery from
//! sweeping until the last of them is: else the sweep would free what the trace no longer reached, and the retirement
//! would free it again.

use crate::recovery::Removal;
use crate::{Error, Heap, Root, Trace};
use pmem::Media;
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

    /// Retires the root's object and everything below it, as `tracer` finds it. Nobody may have an index under this root
    /// open; readers that came to it before the removal may still hold their guards. What a crash or an error leaves over
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
        let mut links = vec![self.root.link];
        let mut met = HashSet::new();
        while !links.is_empty() {
            let guard = crate::pin();
            for _ in 0..RETIRE_BATCH {
                let Some(link) = links.pop() else { break };
                let Some(offset) = link.offset() else { continue };
                if !met.insert(offset) {
                    return Err(Error::Damaged {
                        what: "two links lead to an object of a removed root",
                        offset: offset.get(),
                    });
                }
                // SAFETY: no thread retires what is below a removed root but this one.
                let access = unsafe { self.heap.access() };
                let len = tracer.trace(access, link, &mut links)?;
                self.heap.verify(offset, len)?;
                // SAFETY: the root was removed, by the promise that readers hold older guards; recovery does not sweep
                // before the removal has ended. The length was held against the page, and `met` keeps the object from
                // being retired again.
                unsafe { self.heap.retire(&guard, offset, len as usize) };
            }
        }
        Ok(())
    }
}
