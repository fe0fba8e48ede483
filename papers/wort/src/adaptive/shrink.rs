//! Removes, which give space back.
//!
//! A remove makes one slot no longer count. If that leaves one child, the child takes the node's place; if it leaves
//! few, a smaller copy does. The thresholds lie below those at which inserts make larger copies, so that no single
//! key toggles an N48 or an N256. A remove needs no memory: in a full pool a node stays as large as it is.

use super::build::{children_of, draft_node};
use super::locate::{Passed, Place, Writer};
use super::{Publish, Scheme};
use art::{Kind, LeafRef, Tagged, no_memory, shrink_at};
use heap::Error;
use pmem::{Link, Media, Purpose, persist_scope};

impl<S: Scheme, M: Media> Writer<'_, S, M> {
    /// Removes the leaf at `place`, which is the key's, from the tree.
    pub(super) fn remove(
        &self,
        place: &Place<'_>,
        leaf: LeafRef<'_>,
        above: Option<&Passed<'_, S>>,
    ) -> Result<(), Error> {
        let extent = leaf.extent();
        match above {
            None => self.clear(place),
            Some(above) => self.remove_from(place, above)?,
        }
        self.retire(place.link, extent);
        Ok(())
    }

    /// Empties a slot. Costs 1 write-back and 1 fence.
    fn clear(&self, place: &Place<'_>) {
        let slot = place
            .slot
            .publish_link::<Publish, M>(self.heap.media(), Link::NULL);
        let _durable = slot.commit();
    }

    fn remove_from(&self, place: &Place<'_>, above: &Passed<'_, S>) -> Result<(), Error> {
        let media = self.heap.media();
        let node = above.node;
        let Some(byte) = above.byte else {
            if node.count_up_to(media, 2) > 1 {
                self.clear(place);
                return Ok(());
            }
            return self.collapse(above);
        };
        let few = shrink_at(node.kind());
        // The removed child, and one more than may remain for collapsing or a smaller kind.
        let others = node.count_up_to(media, few.max(1) + 2).saturating_sub(1);
        let ends = !node.common().ends.load(media).is_null();
        if others + usize::from(ends) <= 1 {
            return self.collapse(above);
        }
        if others <= few && self.remove_by_copy(above)? {
            return Ok(());
        }
        if !node.remove(media, byte) && !self.remove_by_copy(above)? {
            self.clear(place);
        }
        Ok(())
    }

    /// Replaces the node by a copy without the child; returns `false` if there is no memory for it. Costs 2 fences; a
    /// write-back for each line of the copy, and for the slot.
    fn remove_by_copy(&self, above: &Passed<'_, S>) -> Result<bool, Error> {
        let media = self.heap.media();
        let Passed {
            node, place, byte, ..
        } = above;
        let done = persist_scope(media, Purpose::Node, |batch| {
            let children = children_of(*node, media, *byte);
            let (copy, kind) = draft_node::<S, M>(self.heap, &batch, above.header(self.heap)?, children)?;
            let fenced = batch.fence();
            self.publish(place, copy.persisted(&fenced), kind, place.link.aux());
            Ok(())
        });
        if no_memory(done)? {
            return Ok(false);
        }
        self.retire_node(place.link, *node);
        Ok(true)
    }

    /// Puts the one remaining child in the node's place. (Only in a damaged pool is there none.)
    fn collapse(&self, above: &Passed<'_, S>) -> Result<(), Error> {
        let media = self.heap.media();
        let Passed { node, place, .. } = above;
        let mut last = match above.byte {
            Some(_) => node.common().ends.load(media),
            None => Link::NULL,
        };
        node.all(media, |byte, link| {
            if Some(byte) != above.byte {
                last = link;
            }
        });
        match last.kind() {
            Kind::Leaf => self.publish_link(place, last, 0),
            _ if last.is_null() => self.clear(place),
            _ => S::merge_prefix(self, place, last, above.level + 1)?,
        }
        self.retire_node(place.link, *node);
        Ok(())
    }
}
