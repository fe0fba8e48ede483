//! The making of an index's root.

use heap::{Error, Heap, Trace};
use pmem::{Erased, Flushed, Link, Media, PersistBatch, Persisted, Purpose, Tag, persist_scope};

/// Makes what `draft` builds, an empty index of this kind, the root `name`: it is durable before its name leads to it.
/// Beside the lines of the draft and what [`Heap::create_root`] costs, 1 fence.
///
/// # Errors
///
/// If the name is taken or not a name, or the pool is full.
///
/// # Safety
///
/// The object, and all that it leads to, is what the readers and the tracer of this `kind` take it for.
pub unsafe fn create_root<'h, M: Media>(
    heap: &'h Heap<M>,
    name: &[u8],
    kind: u32,
    draft: impl for<'e> FnOnce(&PersistBatch<'e, 'h, M>) -> Result<(Flushed<'e, 'h, Erased>, Tag), Error>,
) -> Result<Link, Error> {
    persist_scope(heap.media(), Purpose::Node, |batch| {
        let (root, tag) = draft(&batch)?;
        heap.media().site("index: root object");
        let fenced = batch.fence();
        // SAFETY: the caller's promise.
        unsafe { heap.create_root(name, kind, root.persisted(&fenced), tag) }
    })
}

/// Gives an index that was built, and is durable, its name: the commit point of a build. Costs what
/// [`Heap::create_root`] does.
///
/// # Errors
///
/// If the name is taken or not a name. Nothing of what was built stays then.
///
/// # Safety
///
/// As for [`create_root`], of the kind that the tracer knows; and nothing reachable has ever led to any of it.
pub unsafe fn name_built<M: Media>(
    heap: &Heap<M>,
    name: &[u8],
    root: Persisted<'_, Erased>,
    tag: Tag,
    tracer: &dyn Trace<M>,
) -> Result<Link, Error> {
    // SAFETY: the caller's promise.
    let below = unsafe { below(heap, &root, tag, tracer) }?;
    heap.media().comes_to("bulk: publication");
    // SAFETY: the caller's promise.
    let named = unsafe { heap.create_root(name, tracer.kind(), root, tag) };
    if named.is_err() {
        // SAFETY: the root has given itself back, and nothing else has led to what hung from it.
        unsafe { heap.retire_unpublished(below, tracer) }?;
    }
    named
}

/// Gives back an index that was built, and has no name.
///
/// # Errors
///
/// Where an object makes no sense.
///
/// # Safety
///
/// As for [`name_built`], and no handle of it is used any more.
pub(crate) unsafe fn forget_built<M: Media>(
    heap: &Heap<M>,
    root: Persisted<'_, Erased>,
    tag: Tag,
    tracer: &dyn Trace<M>,
) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let below = unsafe { below(heap, &root, tag, tracer) }?;
    drop(root);
    // SAFETY: as above.
    unsafe { heap.retire_unpublished(below, tracer) }
}

/// What hangs from a root that has no name.
///
/// # Safety
///
/// As for [`name_built`].
unsafe fn below<M: Media>(
    heap: &Heap<M>,
    root: &Persisted<'_, Erased>,
    tag: Tag,
    tracer: &dyn Trace<M>,
) -> Result<Vec<Link>, Error> {
    // SAFETY: no thread but the builder's has come to the root.
    let access = unsafe { heap.access() };
    let mut below = Vec::new();
    tracer.trace(access, root.link(tag), &mut below)?;
    Ok(below)
}
