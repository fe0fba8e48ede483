//! SMOs (RECIPE §6.4): paths are recompressed in two ordered steps, under the locks of the node and of its parent; a
//! merge also holds the lock of the node that it removes between them.
//!
//! ```text
//!  split     (1) parent -> a new N4 over the new leaf and the node     (2) the node's prefix gets shorter
//!  merge     (1) parent -> the node, past the node between them        (2) the node's prefix gets longer
//! ```
//!
//! Each step is durable before the next begins. After step (1) reads find everything; step (2) only concerns writers.

use super::locate::{Place, node_below};
use super::node::Node;
use super::prefix::Prefix;
use super::repair::prefix_from;
use super::{AppendOnly, Writer};
use art::{Child, Kind, Missed, Tagged, any_leaf, child_tag, common_prefix, same_object};
use heap::Error;
use index::{Action, Edit};
use pmem::{Link, LinkAndPersist, Locked, Media, PSlot};

impl<'a, M: Media> Writer<'a, M> {
    /// Edits a key that parts from the string of the inner node at the place: the key is absent, and to insert it, a
    /// new N4 is put above that node, at the level where they part. Costs 4 write-backs and 4 fences.
    pub(super) fn edit_above(
        &self,
        place: &Place<'a>,
        (at, byte): (usize, u8),
        edit: &mut dyn Edit,
    ) -> Result<Result<Action, Missed>, Error> {
        // The node, then its parent.
        let below = Node::at(self.heap, place.link)?;
        let Ok(_below_locked) = below.lock(self.heap) else {
            return Ok(Err(Missed::Lost));
        };
        let Ok(_locked) = place.node.lock(self.heap) else {
            return Ok(Err(Missed::Lost));
        };
        let (slot, link) = place.node.slot(self.media(), self.key.get(place.level).copied());
        let (depth, level) = (place.level + 1, below.level(self.media()));
        let prefix = below.prefix(self.media());
        let Some(slot) = slot.filter(|_| same_object(link, place.link) && prefix.fits(depth, level)) else {
            return Ok(Err(Missed::Lost));
        };
        let (kept, len);
        let leaf;
        let string = match prefix.whole() {
            Some(whole) => {
                (kept, len) = whole;
                &kept[..len]
            }
            None => {
                leaf = any_leaf::<AppendOnly, M>(self.heap, link, depth)?;
                match leaf.as_ref().and_then(|leaf| leaf.key().get(depth..level)) {
                    Some(string) => string,
                    None => return Ok(Err(Missed::Lost)),
                }
            }
        };
        let split = at.wrapping_sub(depth);
        if string.get(split) != Some(&byte) {
            return Ok(Err(Missed::Lost));
        }
        let action = edit.decide(None);
        if action != Action::Put {
            return Ok(Ok(Action::Keep));
        }
        let leaf = self.persist_leaf(edit.value())?;
        let (node, kind) = self.persist_node(at, Prefix::of(&string[..split]), |children| {
            children.add_reachable(Some(byte), link, 0);
            children.add(self.key.get(at).copied(), Child::Durable(leaf, Kind::Leaf, 0));
        })?;
        // (1) Commit: the new node is installed.
        let tag = child_tag(kind, link.byte(), 0);
        let _durable = slot
            .publish::<LinkAndPersist, M, _>(self.media(), node, tag)
            .commit();
        // (2) The header below gets the prefix that fits.
        let _durable = self.store_prefix(below, Prefix::of(&string[split + 1..]));
        Ok(Ok(action))
    }

    /// Two keys diverge below the place: puts an N4 over the old leaf, in `slot`, and the new one, at the level where
    /// they part. Costs 3 write-backs and 3 fences.
    pub(super) fn split_leaf(
        &self,
        slot: &PSlot,
        link: Link,
        depth: usize,
        old_key: &[u8],
        value: &[u8],
    ) -> Result<(), Error> {
        let level = common_prefix(old_key, self.key);
        let Some(string) = self.key.get(depth..level) else {
            return Err(art::damaged("key of a leaf", link).into());
        };
        let leaf = self.persist_leaf(value)?;
        let (node, kind) = self.persist_node(level, Prefix::of(string), |children| {
            children.add_reachable(old_key.get(level).copied(), link, 0);
            children.add(self.key.get(level).copied(), Child::Durable(leaf, Kind::Leaf, 0));
        })?;
        let tag = child_tag(kind, link.byte(), 0);
        let _durable = slot
            .publish::<LinkAndPersist, M, _>(self.media(), node, tag)
            .commit();
        Ok(())
    }

    /// One child is left in the node at `at`, not counting `without`: it takes the node's place. Returns the lock if
    /// the node has more or fewer children, if the child's lock is taken, or if no leaf is found below the child. Costs
    /// 1 write-back and 1 fence if the child is a leaf, otherwise 2 and 2.
    pub(super) fn merge(
        &self,
        node: Node<'a>,
        at: Link,
        locked: Locked<'a, M>,
        without: Link,
    ) -> Result<Option<Locked<'a, M>>, Error> {
        let (ends, children) = node.others(self.media(), without);
        let child = match children[..] {
            [] => ends,
            [child] if ends.is_null() => child,
            _ => return Ok(Some(locked)),
        };
        if child.is_null() {
            return Ok(Some(locked));
        }
        let mut below = None;
        if child.is_inner() {
            let depth = node.level(self.media()) + 1;
            let inner = node_below(self.heap, child, &mut { depth })?;
            let (Some(held), Some(leaf)) = (
                inner.try_lock(self.heap),
                any_leaf::<AppendOnly, M>(self.heap, child, depth)?,
            ) else {
                return Ok(Some(locked));
            };
            below = Some((inner, leaf, held));
        }
        let parent = self.lock_parent(at)?;
        let mut second_step = None;
        if let Some((inner, leaf, held)) = below {
            let prefix = prefix_from(leaf, parent.level + 1, inner.level(self.media()), child)?;
            second_step = Some((inner, prefix, held));
        }
        // (1) Commit: the child hangs in the parent.
        self.swing(&parent, child);
        // (2) Its header gets the prefix that fits.
        if let Some((inner, prefix, _held)) = second_step {
            let _durable = self.store_prefix(inner, prefix);
        }
        drop(parent);
        locked.retire();
        self.retire(at, art::Node::size(&node));
        Ok(None)
    }
}
