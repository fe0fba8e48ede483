//! RECIPE's Condition #3 (§4.5, §6.5): reads tolerate a half-done SMO, and writes repair it here, which they did not
//! in the index in DRAM.
//!
//! * A split after its first store leaves entries at or above the sibling's `low`. A writer sees them on its way right,
//!   or at the first lock after a restart. The splitter, if it is at work, holds the node's lock. The repair removes
//!   these entries.
//! * A split before its third store, or a removal between its two, leaves a node without a separator. A writer notices
//!   when it reaches the node from its left sibling. The splitter or remover, if it is at work, holds the node's own
//!   lock. The repair adds the separator.
//!
//! *Transient or permanent*: the writer takes the lock that a thread in the middle of the operation holds throughout.
//! Whether it had to wait is irrelevant. It checks *again* under the lock: if the state is still half done then, it
//! was left by a crash (or by a split whose parent found no room).
//!
//! *The replay* completes the split, and repeats no step of it: the entries that the sibling took over are only
//! removed from the node. Copying them again would overwrite changes in the sibling that were acknowledged since. No
//! writer changes the sibling before the replay: the only way to it leads through here (I5 of `node`).
//!
//! An interrupted removal looks like an interrupted split, and the replay undoes it: the node gets its separator
//! again. It is empty and remains in use.

use super::locate::{Layer, Writer};
use super::node::{LINK, NodeRef, descend, kind};
use art::damaged;
use heap::Error;
use pmem::{Fault, LinkAndPersist, Locked, Media, Obsolete};

impl<'a, M: Media> Writer<'a, M> {
    /// Takes a node's lock. Its first holder in a generation repairs the node after a crash: from then on, a node
    /// that no other thread has locked has no entry of its sibling.
    ///
    /// # Errors
    ///
    /// If the writer [holds](Writer::holding) it already, and would wait for itself for ever.
    #[inline]
    pub(super) fn lock(&self, node: NodeRef<'a>) -> Result<Result<Locked<'a, M>, Obsolete>, Fault> {
        if self.held.has(node) {
            return Err(damaged("node above or beside itself", node.link));
        }
        let Ok(mut locked) = node.node.lock.lock(self.media(), self.heap.generation()) else {
            return Ok(Err(Obsolete));
        };
        if locked.is_stale() {
            self.repair(node, locked.was_left())?;
            locked.repaired();
        }
        Ok(Ok(locked))
    }

    /// Settles the marks that a crash has left in a node, and completes an interrupted split. The caller holds the
    /// lock. If the process was killed with the lock (`left`), its stores may not be durable: the next writer of an
    /// entry relies on the kind that it finds.
    #[cold]
    fn repair(&self, node: NodeRef<'a>, left: bool) -> Result<(), Fault> {
        let media = self.media();
        if left || node.node.order.is_marked(media) {
            node.persist_words(media);
        }
        node.node.order.settle(media);
        node.node.next.settle(media);
        let kinds = node.node.kinds.load(media);
        for entry in node.order(media).entries() {
            if node.level() == 0 && kind(kinds, entry) == LINK {
                node.node.entries[entry].word.slot().settle(media);
            }
        }
        if let Some(sibling) = node.sibling(self.heap)?
            && let Some(within) = node.within(media, sibling.low(media))
        {
            media.comes_to("repair: split ended");
            self.leave_out(node, within);
        }
        Ok(())
    }

    /// Removes all entries but the first ones: the second store of a split. Costs 1 write-back and 1 fence.
    pub(super) fn leave_out(&self, node: NodeRef<'a>, first: usize) {
        let order = node.order(self.media()).truncated(first);
        let _durable = node
            .node
            .order
            .publish::<LinkAndPersist, M>(self.media(), order.word())
            .commit();
    }

    /// The sibling, if it is the way to a slice. Before it is returned, the node's entries that belong to it are
    /// removed durably.
    #[inline]
    pub(super) fn right_of(&self, node: NodeRef<'a>, slice: u64) -> Result<Option<NodeRef<'a>>, Fault> {
        let Some(right) = node.right(self.heap, slice)? else {
            return Ok(None);
        };
        if node.within(self.media(), right.low(self.media())).is_some() {
            // The splitter completes the split before it releases the lock; after a crash there is no splitter, and
            // taking the lock repairs the node.
            let _ = self.lock(node)?;
        }
        Ok(Some(right))
    }

    /// Adds the separator of a node that was reached from its left sibling, if the parent has none. The caller holds
    /// the node's lock, so neither its splitter nor a thread that removes it is at work. A full pool is no error: the
    /// next writer tries again.
    pub(super) fn see_to_separator(&self, layer: &mut Layer, node: NodeRef<'a>) -> Result<(), Error> {
        let low = node.low(self.media());
        let Some(root) = self.root_of(layer)? else {
            return Ok(());
        };
        let mut parent = descend(self.heap, root, low, node.level() + 1)?;
        while let Some(at) = parent {
            let there = at.look(self.media(), |order| {
                let place = at.before(self.media(), order, low);
                place < order.len() && at.slice(self.media(), order, place) == low
            });
            if there {
                return Ok(());
            }
            parent = at.right(self.heap, low)?;
        }
        self.media().comes_to("repair: separator put in");
        match self.link_up(layer, node) {
            Err(Error::Full { .. }) => Ok(()),
            done => done,
        }
    }
}
