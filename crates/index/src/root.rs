//! The making of an index's root.

use heap::{Error, Heap};
use pmem::{Batch, Erased, Flushed, Link, Media, Purpose, Tag, persist_scope};

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
    draft: impl for<'e> FnOnce(&Batch<'e, '_, M>) -> Result<(Flushed<'e, 'h, Erased>, Tag), Error>,
) -> Result<Link, Error> {
    persist_scope(heap.media(), Purpose::Node, |batch| {
        let (root, tag) = draft(&batch)?;
        heap.media().site("index: root object");
        let fenced = batch.fence();
        // SAFETY: the caller's promise.
        unsafe { heap.create_root(name, kind, root.persisted(&fenced), tag) }
    })
}
