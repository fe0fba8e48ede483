//! Finding the place of a write: the descent that compares every byte.
//!
//! A node stands for one string for good: all keys of its subtree begin with the same `level` bytes. A writer that
//! has compared them all may therefore lock the node later and still be right; what may have changed meanwhile is
//! only what the node's slots hold, and whether the node is obsolete.

use crate::array::ArrayRef;
use crate::leaf::LeafRef;
use crate::node::Node;
use crate::{Roart, Variant};
use art::{Kind, Prefix, Tagged, common_prefix, prefetch};
use pmem::{Fault, Link, Locked, Media, PSlot};

/// A node whose string the key begins with, and what the node's slot for the key holds.
pub(crate) struct Place<'g> {
    pub(crate) node: Node<'g>,
    /// Where the node is (its kind and offset; other tag bits are those of the link the walk came by).
    pub(crate) at: Link,
    pub(crate) level: usize,
    /// What the slot held when the walk passed: null, a leaf, a leaf array, or an inner node from whose string
    /// the key parts.
    pub(crate) link: Link,
    /// Where the key parts from that inner node's string, and the string's byte there.
    pub(crate) parting: Option<(usize, u8)>,
}

/// The slot, locked, by which an object hangs in its parent.
pub(crate) struct Parent<'g, M: Media> {
    pub(crate) node: Node<'g>,
    /// Where the node is.
    pub(crate) at: Link,
    pub(crate) slot: &'g PSlot,
    /// What the slot holds.
    pub(crate) link: Link,
    pub(crate) level: usize,
    pub(crate) locked: Locked<'g, M>,
}

/// Tries after which a parent that cannot be found is taken for damage.
const MOST_TRIES: u32 = 10_000_000;

/// Whether two links lead to the same object.
pub(crate) fn same_object(a: Link, b: Link) -> bool {
    a.offset() == b.offset() && a.kind() == b.kind()
}

impl<M: Media, V: Variant> Roart<M, V> {
    /// The place of `key`; `None` if a concurrent change was met and the walk must start anew.
    pub(crate) fn locate<'g>(&'g self, key: &[u8]) -> Result<Option<Place<'g>>, Fault> {
        let mut at = self.root;
        let mut node = Node::at(&self.heap, at)?;
        let mut level = 0;
        loop {
            let (_, link) = node.slot::<V, M>(&self.heap, key.get(level).copied());
            if !link.is_inner() {
                return Ok(Some(Place {
                    node,
                    at,
                    level,
                    link,
                    parting: None,
                }));
            }
            let child = Node::at(&self.heap, link)?;
            prefetch(child.header()); // for the lock
            let child_level = self.level_after(link, &child, level + 1);
            if child_level > level + 1 {
                let Some(shared) = self.shared(&child, child_level, key, level + 1)? else {
                    return Ok(None);
                };
                if let Shared::Until(until, byte) = shared {
                    return Ok(Some(Place {
                        node,
                        at,
                        level,
                        link,
                        parting: Some((until, byte)),
                    }));
                }
            }
            (at, node, level) = (link, child, child_level);
        }
    }

    /// Compares `key` with the string of `node` from byte `from` to the node's level.
    fn shared(
        &self,
        node: &Node<'_>,
        level: usize,
        key: &[u8],
        from: usize,
    ) -> Result<Option<Shared>, Fault> {
        let prefix = node.header().prefix(self.heap.media());
        if level - from <= Prefix::MAX {
            let kept = prefix.as_bytes();
            return Ok(Some(Shared::of(&kept[kept.len() - (level - from)..], key, from)));
        }
        let Some(leaf) = self.any_leaf(*node)? else {
            return Ok(None);
        };
        let Some(string) = leaf.key().get(from..level) else {
            return Err(Fault {
                what: "leaf's key",
                offset: 0,
            });
        };
        Ok(Some(Shared::of(string, key, from)))
    }

    /// Some leaf below `node`; `None` if a concurrent change emptied what was looked at.
    pub(crate) fn any_leaf(&self, node: Node<'_>) -> Result<Option<LeafRef<'_>>, Fault> {
        let media = self.heap.media();
        let first = |node: &Node<'_>| -> Link {
            let ends = node.header().ends.load(media);
            if !ends.is_null() {
                return ends;
            }
            node.slots()
                .iter()
                .map(|slot| slot.load(media))
                .find(|link| !link.is_null())
                .unwrap_or(Link::NULL)
        };
        let mut link = first(&node);
        let mut level = node.header().level(media);
        loop {
            match link.kind() {
                Kind::Null => return Ok(None),
                Kind::Leaf => return LeafRef::at(&self.heap, link).map(Some),
                Kind::Array => {
                    link = ArrayRef::at(&self.heap, link)?
                        .leaves(media)
                        .next()
                        .unwrap_or(Link::NULL);
                }
                _ => {
                    let node = Node::at(&self.heap, link)?;
                    let below = node.header().level(media);
                    if below <= level {
                        return Err(damaged("node's level", link));
                    }
                    level = below;
                    link = first(&node);
                }
            }
        }
    }

    /// Locks the slot by which `child` hangs. The caller holds the child's lock and the child is not obsolete, so it
    /// hangs somewhere on the key's path and stays there until the caller changes that. Locks are taken from the
    /// child upward only, here and everywhere, so that waiting cannot end in a circle.
    pub(crate) fn lock_parent<'g>(&'g self, key: &[u8], child: Link) -> Result<Parent<'g, M>, Fault> {
        for turn in 0..MOST_TRIES {
            if let Some(parent) = self.try_lock_parent(key, child)? {
                return Ok(parent);
            }
            self.heap.media().wait(turn);
        }
        Err(damaged("object without a parent", child))
    }

    fn try_lock_parent<'g>(&'g self, key: &[u8], child: Link) -> Result<Option<Parent<'g, M>>, Fault> {
        let mut at = self.root;
        let mut node = Node::at(&self.heap, at)?;
        let mut level = 0;
        loop {
            let byte = key.get(level).copied();
            let (_, link) = node.slot::<V, M>(&self.heap, byte);
            if same_object(link, child) {
                let Ok(locked) = node.lock(&self.heap) else {
                    return Ok(None);
                };
                let (slot, link) = node.slot::<V, M>(&self.heap, byte);
                return Ok(match slot {
                    Some(slot) if same_object(link, child) => Some(Parent {
                        node,
                        at,
                        slot,
                        link,
                        level,
                        locked,
                    }),
                    _ => None,
                });
            }
            if !link.is_inner() {
                return Ok(None);
            }
            at = link;
            node = Node::at(&self.heap, at)?;
            let below = node.header().level(self.heap.media());
            if below <= level || below > key.len() {
                return Ok(None);
            }
            level = below;
        }
    }
}

enum Shared {
    /// The key has all the bytes.
    All,
    /// The key differs, or ends, at this position, where the string has this byte.
    Until(usize, u8),
}

impl Shared {
    fn of(string: &[u8], key: &[u8], from: usize) -> Shared {
        let same = common_prefix(string, key.get(from..).unwrap_or_default());
        match string.get(same) {
            None => Shared::All,
            Some(&byte) => Shared::Until(from + same, byte),
        }
    }
}

pub(crate) fn damaged(what: &'static str, link: Link) -> Fault {
    Fault {
        what,
        offset: link.bits() & pmem::Offset::MASK,
    }
}
