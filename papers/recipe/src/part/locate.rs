//! Finding the place of a write: the descent that compares every byte.
//!
//! A node stands for one string for good: all keys of its subtree begin with the same `level` bytes. A writer that has
//! compared them all may therefore lock the node later and still be right. Meanwhile its children and its prefix may
//! have changed, and it may have become obsolete.

use super::node::Node;
use super::{AppendOnly, Writer};
use art::{CommonPrefix, Kind, Missed, Tagged, Way, damaged, prefetch};
use heap::{Access, Error};
use pmem::{Fault, Link, Media};

pub(super) type Place<'g> = art::NodePlace<'g, Node<'g>>;

/// The inner node at `link`, to which `depth` bytes lead, and its level. The node is one of the link's kind: the first
/// holder of its lock in a generation stores to what it takes for entries.
pub(super) fn node_below<'g, M: Media>(
    heap: &'g Access<M>,
    link: Link,
    depth: usize,
) -> Result<(Node<'g>, usize), Fault> {
    let node = Node::at(heap, link)?;
    let meta = node.meta(heap.media());
    if !meta.is_of(node.kind()) {
        return Err(damaged("node's kind", link));
    }
    if meta.level() < depth {
        return Err(damaged("node's level", link));
    }
    Ok((node, meta.level()))
}

impl<'a, M: Media> Writer<'a, M> {
    /// The place of the key; the inner error if the walk must start over.
    pub(super) fn locate(&self) -> Result<Result<Place<'a>, Missed>, Error> {
        let mut at = self.index.root();
        let (mut node, mut level) = node_below(self.heap, at, 0)?;
        let mut way = None;
        loop {
            let (slot, link) = node.slot(self.media(), self.key.get(level).copied());
            if level >= self.key.len() && link.kind() != Kind::Leaf && !link.is_null() {
                return Err(damaged("leaf of the key that ends at a node", link).into());
            }
            let place = Place {
                node,
                at,
                level,
                slot,
                link,
                parting: None,
            };
            if !link.is_inner() {
                return Ok(Ok(place));
            }
            let depth = level + 1;
            let (child, below) = node_below(self.heap, link, depth)?;
            prefetch(child.header());
            // Detection: the sum of the depth and the prefix's length is not the level (Condition #3).
            if !child.prefix(self.media()).fits(depth, below) {
                return Ok(Err(self.finish_interrupted(child, link)?));
            }
            match self.compare(child, link, (depth, below), &mut way)? {
                None => return Ok(Err(Missed::Lost)),
                Some(CommonPrefix::All) => (at, node, level) = (link, child, below),
                Some(CommonPrefix::Until(until, byte)) => {
                    return Ok(Ok(Place {
                        parting: Some((until, byte)),
                        ..place
                    }));
                }
            }
        }
    }

    /// Compares the key with the bytes of the node at `link` from `depth` to its level; returns `None` if the prefix no
    /// longer fits, or if a concurrent change emptied the nodes on the way to a leaf.
    fn compare(
        &self,
        node: Node<'_>,
        link: Link,
        (depth, level): (usize, usize),
        way: &mut Option<Way>,
    ) -> Result<Option<CommonPrefix>, Fault> {
        let prefix = node.prefix(self.media());
        if !prefix.fits(depth, level) {
            return Ok(None);
        }
        let (kept, len) = prefix.kept();
        let shared = CommonPrefix::of(&kept[..len], self.key, depth);
        if prefix.len() == len || matches!(shared, CommonPrefix::Until(..)) {
            return Ok(Some(shared));
        }
        // Any key below has the remaining bytes.
        if !way.as_mut().is_some_and(|way| way.leads_to(link, level)) {
            *way = Way::along::<AppendOnly, M>(self.heap, (link, depth), self.key)?;
        }
        let Some(way) = way else {
            return Ok(None);
        };
        match way.parting(level) {
            None => Ok(Some(CommonPrefix::All)),
            Some((at, byte)) if at >= depth => Ok(Some(CommonPrefix::Until(at, byte))),
            Some(_) => Err(damaged("key of a leaf", link)),
        }
    }
}
