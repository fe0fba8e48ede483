//! Point reads: without locks and without reading prefixes (optimistic path compression, as in ART).

use crate::{Design, Digit, Kind, LeafRef, Node, Radix, Tagged, damaged, same};
use heap::Access;
use index::Guard;
use pmem::{Fault, Link, Media};

impl<D: Design, M: Media> Radix<D, M> {
    /// The leaf of `key`.
    ///
    /// # Errors
    ///
    /// If the pool is damaged; likewise for all reads.
    #[inline]
    pub fn find_leaf<'g>(&'g self, key: &[u8], _guard: &'g Guard) -> Result<Option<LeafRef<'g>>, Fault> {
        let mut link = self.top()?;
        let mut depth = 0;
        while link.is_inner() {
            link = self.step(link, key, &mut depth)?;
        }
        self.leaf_of(link, key)
    }

    /// Steps from the inner node at `link`, reached after `depth` digits of the key, to its child for the key.
    #[inline(always)]
    pub(crate) fn step(&self, link: Link, key: &[u8], depth: &mut usize) -> Result<Link, Fault> {
        let heap = self.access();
        if let Some(digit) = D::Digit::at(key, *depth) {
            // If nothing is skipped, the child's line is fetched together with the node's first.
            D::Node::prefetch(heap, link, digit);
        }
        let node = D::Node::at(heap, link)?;
        let level = node.level(heap, link, *depth)?;
        *depth = level + 1;
        Ok(match D::Digit::at(key, level) {
            Some(digit) => node.child(heap, digit),
            None if level == D::Digit::count(key) => node.ends(heap),
            None => Link::NULL,
        })
    }

    /// The leaf at the end of a key's path, if it is the key's.
    #[inline(always)]
    pub(crate) fn leaf_of(&self, link: Link, key: &[u8]) -> Result<Option<LeafRef<'_>>, Fault> {
        match link.kind() {
            Kind::Leaf => {
                let leaf = LeafRef::at(self.access(), link)?;
                Ok(same(leaf.key(), key).then_some(leaf))
            }
            Kind::Null => Ok(None),
            _ => Err(damaged("link's kind", link)),
        }
    }
}

/// A leaf below the inner node at `link`, to which `depth` digits lead; `None` if a concurrent change emptied the
/// nodes on the way.
///
/// # Errors
///
/// If the pool is damaged.
pub fn any_leaf<D: Design, M: Media>(
    heap: &Access<M>,
    mut link: Link,
    mut depth: usize,
) -> Result<Option<LeafRef<'_>>, Fault> {
    while link.is_inner() {
        let node = D::Node::at(heap, link)?;
        depth = node.own_level(heap, link, depth)? + 1;
        link = node.ends(heap);
        let mut digit = 0;
        while link.is_null() && digit < D::Digit::RADIX {
            let end = digit + node.stride();
            node.children(heap, digit..end, |_, child| link = child);
            digit = end;
        }
    }
    match link.kind() {
        Kind::Leaf => LeafRef::at(heap, link).map(Some),
        Kind::Null => Ok(None),
        _ => Err(damaged("link's kind", link)),
    }
}
