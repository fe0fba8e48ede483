//! The creation of an index's root.

use heap::{Error, Heap, Trace};
use pmem::{Erased, Flushed, Link, Media, PersistBatch, Persisted, Purpose, Tag, persist_scope};

/// Builds an empty index of this kind with `draft`, and makes it the root `name`: it is durable before its name leads
/// to it. Costs one fence, besides the lines of the draft and the cost of [`Heap::create_root`].
///
/// # Errors
///
/// If the name is taken or invalid, or the pool is full.
///
/// # Safety
///
/// The object, and everything that it leads to, is what the readers and the tracer of this `kind` expect.
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

/// Names an index that was built and is durable: the commit point of a build. Costs as much as [`Heap::create_root`].
///
/// # Errors
///
/// If the name is taken or invalid. Nothing that was built remains then.
///
/// # Safety
///
/// As for [`create_root`], with the tracer's kind; and no reachable link has ever led to any of it.
pub unsafe fn name_built<M: Media>(
    heap: &Heap<M>,
    name: &[u8],
    root: Persisted<'_, Erased>,
    tag: Tag,
    tracer: &dyn Trace<M>,
) -> Result<Link, Error> {
    let mut below = Vec::new();
    // SAFETY: only the builder's thread has reached the root.
    let access = unsafe { heap.access() };
    tracer.trace(access, root.link(tag), &mut below)?;
    heap.media().comes_to("bulk: publication");
    // SAFETY: the caller's promise.
    let named = unsafe { heap.create_root(name, tracer.kind(), root, tag) };
    if named.is_err() {
        // SAFETY: the root's chunk was given back, and nothing else has led to the objects below it.
        unsafe { heap.retire_unpublished(below, tracer) }?;
    }
    named
}
