//! Steps that all designs share: publishing a leaf in an existing slot, replacing a key's value, and retiring
//! replaced objects.
//!
//! The order is that of all the papers: a leaf is durable before the link to it, whose store is the commit point.

use crate::{LeafRef, checksum, draft_checked_leaf};
use heap::{Access, Error, Guard};
use pmem::{Link, Media, PSlot, Publication, Purpose, Tag, persist_scope};

/// Publishes a new leaf in a slot, whose lock the caller holds. Costs 2 write-backs and 2 fences for a leaf of one
/// line.
///
/// # Errors
///
/// If the heap has no room. Nothing was changed then.
pub fn publish_leaf<P: Publication, M: Media>(
    heap: &Access<M>,
    slot: &PSlot,
    tag: Tag,
    key: &[u8],
    value: &[u8],
) -> Result<(), Error> {
    publish_checked_leaf::<P, M>(heap, slot, tag, (key, checksum(key)), value)
}

/// Like [`publish_leaf`], given the key's checksum.
///
/// # Errors
///
/// If the heap has no room. Nothing was changed then.
pub fn publish_checked_leaf<P: Publication, M: Media>(
    heap: &Access<M>,
    slot: &PSlot,
    tag: Tag,
    key: (&[u8], u64),
    value: &[u8],
) -> Result<(), Error> {
    persist_scope(heap.media(), Purpose::Node, |batch| {
        let leaf = draft_checked_leaf(heap, key, value, &batch)?.flush(&batch);
        let fenced = batch.fence();
        let _durable = slot
            .publish::<P, M, _>(heap.media(), leaf.persisted(&fenced), tag)
            .commit();
        Ok(())
    })
}

/// Replaces the value of `leaf`, to which `link` leads from `slot`: in place if both values have eight bytes (1
/// write-back, 1 fence), otherwise by a new leaf ([`publish_leaf`]). The caller holds the slot's lock.
///
/// # Errors
///
/// If the heap has no room. Nothing was changed then.
pub fn replace_value<P: Publication, M: Media>(
    heap: &Access<M>,
    (slot, link): (&PSlot, Link),
    leaf: LeafRef<'_>,
    value: &[u8],
    guard: &Guard,
) -> Result<(), Error> {
    if let Some(word) = leaf.takes_word(value) {
        let _durable = leaf.store_word::<P, M>(heap, word);
        return Ok(());
    }
    publish_leaf::<P, M>(heap, slot, link.tag(), leaf.key(), value)?;
    retire(heap, guard, link, leaf.extent());
    Ok(())
}

/// Frees the chunk of an object once no reader can hold it. `len` is the [`footprint`](heap::footprint) of its draft.
#[track_caller]
pub fn retire<M: Media>(heap: &Access<M>, guard: &Guard, link: Link, len: usize) {
    if let Some(offset) = link.offset() {
        // SAFETY: the holder of the access retires what it has unlinked under its guard.
        unsafe { heap.retire(guard, offset, len) };
    }
}
