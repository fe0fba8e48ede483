//! SMOs (RECIPE §6.4). Both change a compressed path in two ordered steps, under the locks of the node whose prefix
//! changes and of the parent that is left. A merge removes the node between these two, and holds its lock, too. If the
//! remaining child is a leaf, a merge has only step (1).
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
    /// Edits a key that diverges within the prefix of the node at `place.link`. The key is absent. An insert puts a new
    /// N4 above that node, at the level where they diverge. An insert with a leaf of one line costs 4 write-backs and 4
    /// fences.
    pub(super) fn split_prefix(
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
        let Some(string) = self.string_of(prefix, link, (depth, level))? else {
            return Ok(Err(Missed::Lost));
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

    /// Returns the bytes from `depth` to `level` that the prefix of the node at `link` represents, from a leaf if it
    /// does not store all; `None` if a concurrent change emptied the nodes on the way to one.
    fn string_of(
        &self,
        prefix: Prefix,
        link: Link,
        (depth, level): (usize, usize),
    ) -> Result<Option<Vec<u8>>, Error> {
        if let Some((kept, len)) = prefix.whole() {
            return Ok(Some(kept[..len].to_vec()));
        }
        let leaf = any_leaf::<AppendOnly, M>(self.heap, link, depth)?;
        Ok(leaf.and_then(|leaf| leaf.key().get(depth..level).map(<[u8]>::to_vec)))
    }

    /// Splits a leaf: puts an N4, at the level where the two keys diverge, into `slot`, above the old leaf and a new
    /// one. With a leaf of one line it costs 3 write-backs and 3 fences.
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

    /// Replaces the node at `at` by its only child, not counting `without`. Returns the lock if the node has more or
    /// fewer children, if the child's lock is taken, or if no leaf is found below the child. Costs 1 write-back and 1
    /// fence if the child is a leaf, otherwise 2 and 2.
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
            let (inner, level) = node_below(self.heap, child, depth)?;
            let Some(held) = inner.try_lock(self.heap) else {
                return Ok(Some(locked));
            };
            let Some(leaf) = any_leaf::<AppendOnly, M>(self.heap, child, depth)? else {
                return Ok(Some(locked));
            };
            below = Some((inner, level, leaf, held));
        }
        let parent = self.lock_parent(at)?;
        let prefix = match &below {
            Some((_, level, leaf, _)) => prefix_from(*leaf, parent.level + 1, *level, child)?,
            None => Prefix::EMPTY,
        };
        // (1) Commit: the child hangs in the parent.
        self.swing(&parent, child);
        // (2) Its header gets the prefix that fits.
        if let Some((inner, .., _held)) = below {
            let _durable = self.store_prefix(inner, prefix);
        }
        drop(parent);
        locked.retire();
        self.retire(at, art::Node::size(&node));
        Ok(None)
    }
}
