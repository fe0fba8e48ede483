//! Locks: write exclusion (ROWEX), and the metadata that the first holder after a restart rebuilds.
//!
//! A writer locks the node that it changes, then, if that is to be replaced, its parent: from the child upward only,
//! here and everywhere, so that waits cannot form a cycle. A thread that holds a parent's lock does not wait for a
//! child's, but tries it. An obsolete node refuses its lock; a writer that meets one starts over from the root.

use super::node::{Meta, Node};
use super::{Writer, locate};
use art::{InnerRef, Missed, Tagged, Tries, damaged, same_object};
use heap::Access;
use pmem::{
    Fault, Link, LinkAndPersist, Locked, Media, Obsolete, PSlot, PWord, Purpose, Uncounted, persist_scope,
};

pub(super) type Parent<'g, M> = art::Parent<'g, Node<'g>, M>;

impl<'g> Node<'g> {
    /// Takes the lock.
    pub(super) fn lock<M: Media>(&self, heap: &'g Access<M>) -> Result<Locked<'g, M>, Obsolete> {
        let mut locked = self.header().lock.lock(heap.media(), heap.generation())?;
        self.rebuild_if_stale(&mut locked, heap.media());
        Ok(locked)
    }

    /// Takes the lock if it is free.
    pub(super) fn try_lock<M: Media>(&self, heap: &'g Access<M>) -> Option<Locked<'g, M>> {
        let lock = &self.header().lock;
        let mut locked = lock.try_lock(heap.media(), heap.generation()).ok()??;
        self.rebuild_if_stale(&mut locked, heap.media());
        Some(locked)
    }

    fn rebuild_if_stale<M: Media>(&self, locked: &mut Locked<'_, M>, media: &'g M) {
        if locked.is_stale() {
            self.rebuild(media);
            locked.repaired();
        }
    }

    /// Recomputes the counts that a restart has invalidated, clears the marks that a crash has left, and empties
    /// leftovers in entries that do not count.
    #[cold]
    fn rebuild<M: Media>(&self, media: &'g M) {
        let header = self.header();
        header.ends.settle(media);
        header.prefix.settle(media);
        let slots = self.slots();
        slots.iter().for_each(|slot| _ = slot.settle(media));
        // Only the counter's mark shows that the last entry is torn (`is_torn`), so the mark is cleared afterwards.
        if let Some((entry, (byte, slot))) = self.counted(media).enumerate().last()
            && slot.peek(media).byte() != byte
            && self.is_torn(media, entry, byte)
        {
            empty(&slots[entry..=entry], media);
        }
        let meta = Meta(header.meta.settle(media));
        let mut live = 0;
        self.each_child(media, 0..256, |_, _| live += 1);
        match self.0 {
            InnerRef::N4(_) => empty(slots.get(meta.count()..).unwrap_or_default(), media),
            InnerRef::N16(node) => {
                empty(slots.get(meta.count()..).unwrap_or_default(), media);
                forget(&node.keys, meta.count(), media);
            }
            InnerRef::N48(node) => {
                let words = node.index.iter().map(|word| word.settle(media));
                let max = words.flat_map(|word| word.to_le_bytes()).max();
                let used = usize::from(max.unwrap_or(0) >> 1).min(slots.len());
                empty(&slots[used..], media);
                node.used.store(used as u64, media);
                node.live.store(live, media);
            }
            InnerRef::N256(node) => node.live.store(live, media),
        }
    }
}

/// Empties pointers that do not count.
fn empty<M: Media>(slots: &[PSlot], media: &M) {
    for slot in slots {
        if !slot.peek(media).is_null() {
            media.site("part: uncounted pointer");
            let _durable = slot.publish_link::<Uncounted, M>(media, Link::NULL).commit();
        }
    }
}

/// Clears key bytes that do not count.
fn forget<M: Media>(keys: &[PWord; 2], count: usize, media: &M) {
    for (word, count) in keys.iter().zip([count.min(8), count.saturating_sub(8).min(8)]) {
        let all = word.load(media);
        let counted = all & !u64::MAX.checked_shl(8 * count as u32).unwrap_or(0);
        if counted != all {
            media.site("part: uncounted key bytes");
            persist_scope(media, Purpose::Node, |batch| {
                word.store(counted, &batch);
                batch.fence();
            });
        }
    }
}

impl<'a, M: Media> Writer<'a, M> {
    /// Locks the pointer to `child` in its parent. The caller holds the child's lock and the child is not obsolete,
    /// so it hangs somewhere on the key's path and stays there until the caller changes that.
    pub(super) fn lock_parent(&self, child: Link) -> Result<Parent<'a, M>, Fault> {
        let mut tries = Tries::default();
        loop {
            if let Some((at, level)) = self.find_parent(child)? {
                let node = Node::at(self.heap, at)?;
                match node.lock(self.heap) {
                    // The parent was replaced, and the replacement is in place.
                    Err(Obsolete) => {}
                    Ok(locked) => {
                        let (slot, link) = node.slot(self.media(), self.key.get(level).copied());
                        if let Some(slot) = slot
                            && same_object(link, child)
                        {
                            return Ok(Parent {
                                node,
                                at,
                                slot,
                                link,
                                level,
                                locked,
                            });
                        }
                    }
                }
            }
            if !tries.go_on(Missed::Lost, self.media()) {
                return Err(damaged("object without a parent", child));
            }
        }
    }

    /// The parent of `child` on the key's path, and its level; `None` if the walk did not meet it.
    ///
    /// For the holder of the child's lock the level is more than a hint. A node is put above a child, or removed
    /// there, only under the child's lock, and any other replacement of a parent has the parent's level. So the node
    /// found is the present parent, or was replaced by one of its level.
    pub(super) fn find_parent(&self, child: Link) -> Result<Option<(Link, usize)>, Fault> {
        let mut at = self.index.root();
        let mut depth = 0;
        loop {
            let (node, level) = locate::node_below(self.heap, at, depth)?;
            let (_, link) = node.slot(self.media(), self.key.get(level).copied());
            if same_object(link, child) {
                return Ok(Some((at, level)));
            }
            if !link.is_inner() || level >= self.key.len() {
                return Ok(None);
            }
            at = link;
            depth = level + 1;
        }
    }

    /// Swings the parent's pointer: a commit point. Costs 1 write-back and 1 fence.
    pub(super) fn swing(&self, parent: &Parent<'_, M>, link: Link) {
        let tag = art::child_tag(link.kind(), parent.link.byte(), 0);
        let _durable = parent
            .slot
            .publish_link::<LinkAndPersist, M>(self.media(), link.with_tag(tag))
            .commit();
    }
}
