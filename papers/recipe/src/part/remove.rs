//! Removes: a null pointer, and then giving space back.
//!
//! If too few children would remain in a node, it is replaced by a smaller copy without the key, or by its last child,
//! or removed with the key. If there is no memory for the copy, or the lock of the last child is taken, the pointer is
//! just emptied.

use super::locate::Place;
use super::lock::Parent;
use super::node::Node;
use super::{AppendOnly, Writer};
use art::{Kinds, LeafRef, Tagged, same_object};
use heap::Error;
use pmem::{Link, Locked, Media, PSlot};

/// Maximum number of attempts to replace a node by its only child, while other threads hold the child's lock.
const MAX_TURNS: u32 = 1000;

impl<'a, M: Media> Writer<'a, M> {
    /// Removes the leaf at `link` from its slot in the place's node. By itself this costs 1 write-back and 1 fence.
    pub(super) fn remove(
        &self,
        place: &Place<'a>,
        locked: Locked<'a, M>,
        slot: &PSlot,
        link: Link,
    ) -> Result<(), Error> {
        let media = self.media();
        let extent = LeafRef::at(self.heap, link)?.extent();
        let node = place.node;
        let byte = self.key.get(place.level).copied();
        let ends = usize::from(!node.header().ends.load(media).is_null());
        let left = (node.live(media) + ends).saturating_sub(1);
        let children_left = if byte.is_some() {
            left.saturating_sub(ends)
        } else {
            left
        };
        let locked = if same_object(place.at, self.index.root()) {
            Some(locked)
        } else if left == 0 {
            self.cut(place, locked)?;
            None
        } else if left == 1 {
            self.merge(node, place.at, locked, link)?
        } else if children_left <= art::shrink_at(node.kind()) {
            self.shrink(place, locked, link)?
        } else {
            Some(locked)
        };
        if let Some(locked) = locked {
            let _durable = node.clear(media, slot, byte);
            drop(locked);
            if left == 1 {
                self.tidy_if_possible(node, place.at);
            }
        }
        self.retire(link, extent);
        Ok(())
    }

    /// Removes the last key below a node: the pointer of the nearest ancestor with more children is emptied, so that no
    /// node but the root is ever without a child. (A crash, or a taken lock, may leave a node with one child.)
    fn cut(&self, place: &Place<'a>, locked: Locked<'a, M>) -> Result<(), Error> {
        let media = self.media();
        let mut dead = vec![(place.at, locked)];
        let mut parent = self.lock_parent(place.at)?;
        while !same_object(parent.at, self.index.root()) && is_empty(&parent, media) {
            let above = self.lock_parent(parent.at)?;
            dead.push((parent.at, parent.locked));
            parent = above;
        }
        let Parent {
            node,
            at,
            slot,
            link,
            locked,
            ..
        } = parent;
        let _durable = node.clear(media, slot, Some(link.byte()));
        drop(locked);
        for (link, locked) in dead {
            locked.retire();
            self.retire(link, AppendOnly::size(link.kind()));
        }
        self.tidy_if_possible(node, at);
        Ok(())
    }

    /// Like [`tidy`](Self::tidy), after the commit of a remove. The remove has succeeded whatever happens here:
    /// damage is reported by the operations that reach it, and by checks.
    fn tidy_if_possible(&self, node: Node<'a>, at: Link) {
        let _ = self.tidy(node, at);
    }

    /// Replaces a node by its child if it has only one left.
    fn tidy(&self, node: Node<'a>, at: Link) -> Result<(), Error> {
        if same_object(at, self.index.root()) {
            return Ok(());
        }
        for turn in 0..MAX_TURNS {
            let Ok(locked) = node.lock(self.heap) else {
                return Ok(());
            };
            let ends = usize::from(!node.header().ends.load(self.media()).is_null());
            if node.live(self.media()) + ends != 1 {
                return Ok(());
            }
            if self.merge(node, at, locked, Link::NULL)?.is_none() {
                return Ok(());
            }
            self.media().wait(turn);
        }
        Ok(())
    }
}

/// Whether the parent has nothing but the object in its slot.
fn is_empty<M: Media>(parent: &Parent<'_, M>, media: &M) -> bool {
    let (ends, children) = parent.node.others(media, parent.link);
    ends.is_null() && children.is_empty()
}
