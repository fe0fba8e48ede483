//! Point reads: without locks and without reading prefixes (optimistic path compression, as in ART).

use crate::{Design, Digit, Kind, LeafRef, Node, Radix, Tagged, damaged, same};
use heap::Access;
use index::Guard;
use pmem::{Fault, Link, Media, Offset};

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
/// Keys can make a certain way down as long as they are (a comb has a node for each byte), but not a random one: if each
/// node has two children or more, and each step takes any of them alike, the mean number of steps is at most the binary
/// logarithm of the number of leaves. Here the steps depend on [places](scattered) in the pool, which looks random to
/// the keys, but is the same whenever the same pool is read.
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
        link = some_child::<D, M>(heap, node, link);
    }
    match link.kind() {
        Kind::Leaf => LeafRef::at(heap, link).map(Some),
        Kind::Null => Ok(None),
        _ => Err(damaged("link's kind", link)),
    }
}

/// A child of the node at `link`, or null: the key that ends there, or else one from the first window with children
/// from a scattered one on, a leaf if there is one.
fn some_child<'g, D: Design, M: Media>(heap: &'g Access<M>, node: D::Node<'g>, link: Link) -> Link {
    let mut some = node.ends(heap);
    let windows = D::Digit::RADIX.div_ceil(node.stride());
    let first = scattered(link) % windows;
    for window in (first..windows).chain(0..first) {
        if !some.is_null() {
            break;
        }
        let from = window * node.stride();
        let mut best = None;
        node.children(heap, from..from + node.stride(), |_, child| {
            let rank = Some((child.kind() == Kind::Leaf, scattered(child)));
            if rank > best {
                (best, some) = (rank, child);
            }
        });
    }
    some
}

/// A number that depends on the place of a link's object only, as if drawn at random for each place.
pub fn scattered(link: Link) -> usize {
    let mut number = link.bits() & Offset::MASK;
    for _ in 0..2 {
        number = (number ^ number >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    }
    (number ^ number >> 32) as usize
}
