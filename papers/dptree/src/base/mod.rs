//! The base tree (DPTree §2.2): a radix tree in DRAM over a persistent list of leaves. Only a merge replaces it.
//!
//! I1 The leaves are those of the list whose head the root's state names, in that order, and together hold each key
//!    once.
//! I2 A base tree can be read until the merge after the next one begins, which reuses its version. A reader checks
//!    afterwards that this has not happened.

mod cursor;
pub(crate) mod leaf;
pub(crate) mod new_leaf;
mod router;
pub(crate) mod slots;

use crate::key::{MarkedPair, SearchKey};
use crate::options::Probing;
use crate::root::{Root, State, tag};
pub(crate) use cursor::Cursor;
use heap::{Access, Error};
use leaf::LeafRef;
use pmem::{Fault, Link, Media};
pub(crate) use router::Router;
use std::ops::Bound;

/// A base tree.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) state: State,
    /// Counts the base trees since the opening.
    pub(crate) serial: u64,
    /// Links to the leaves, ascending.
    pub(crate) leaves: Vec<Link>,
    /// The greatest key of each leaf but the last.
    pub(crate) router: Router,
    /// Approximate number of pairs: those removed in place since are included.
    pub(crate) keys: usize,
}

/// The result of a lookup.
pub(crate) struct Found<'g> {
    pub(crate) leaf: LeafRef<'g>,
    pub(crate) slot: usize,
    pub(crate) entry: MarkedPair,
}

impl Base {
    /// Opens the base tree that the root leads to. Of each leaf, reads the first line, that of the version's metadata,
    /// and the slot of the greatest key with its record, if it has one; rebuilds no volatile parts.
    pub(crate) fn open<M: Media>(heap: &Access<M>, root: &Root, capacity: usize) -> Result<Base, Error> {
        let media = heap.media();
        let state = root.state(media);
        let max = heap.pool().len() / leaf::extent(capacity) as u64;
        let mut leaves = Vec::new();
        let mut lasts = Vec::new();
        let mut keys = 0;
        let mut link = root.heads[state.version].peek(media);
        while let Some(offset) = link.offset() {
            // A further leaf: so the one before is not the last. In a list with a cycle, keys soon do not ascend.
            if let [.., a, b] = &lasts[..]
                && a >= b
            {
                return Err(Fault {
                    what: "leaves out of order",
                    offset: offset.get(),
                }
                .into());
            }
            let leaf = LeafRef::at(heap, link)?;
            let tagged = link.tag() == tag::LEAF[state.version];
            if leaf.capacity() != capacity || !tagged || leaves.len() as u64 >= max {
                return Err(Fault {
                    what: "list of leaves",
                    offset: offset.get(),
                }
                .into());
            }
            let last = leaf.entry(leaf.last(state.version, media)?, media);
            lasts.push(last.key_bytes(heap)?);
            let bits = leaf.bitmap(state.version, media);
            keys += bits.iter().map(|word| word.count_ones() as usize).sum::<usize>();
            leaves.push(link);
            link = leaf.meta(state.version).next.peek(media);
        }
        lasts.pop();
        Ok(Base {
            state,
            serial: 0,
            leaves,
            router: Router::new(&lasts),
            keys,
        })
    }

    /// The number of the leaf for a key; prefetches the lines of it that a search for the key reads.
    #[inline]
    pub(crate) fn approach<M: Media>(
        &self,
        heap: &Access<M>,
        capacity: usize,
        key: &SearchKey<'_>,
        hash: u64,
    ) -> usize {
        let place = self.router.rank(key.bytes);
        if let Some(&link) = self.leaves.get(place) {
            leaf::prefetch(heap, link, capacity, self.state.version, hash);
        }
        place
    }

    /// Prefetches the pairs of leaf `place` that may have a key of this hash. (The read itself reports a fault.)
    #[inline]
    pub(crate) fn prefetch_pair<M: Media>(&self, heap: &Access<M>, place: usize, hash: u64) {
        if let Some(Ok(leaf)) = self.leaves.get(place).map(|&link| LeafRef::at(heap, link)) {
            leaf.prefetch_alike(hash, heap.media());
        }
    }

    /// Leaf `i`, if it exists, with its volatile parts current.
    #[inline]
    pub(crate) fn leaf<'g, M: Media>(
        &self,
        heap: &'g Access<M>,
        i: usize,
    ) -> Result<Option<LeafRef<'g>>, Error> {
        match self.leaves.get(i) {
            None => Ok(None),
            Some(&link) => {
                let leaf = LeafRef::at(heap, link)?;
                leaf.touch(heap, self.state.version)?;
                Ok(Some(leaf))
            }
        }
    }

    /// Declares that nothing depends on what the caller has read of leaf `i`: the base tree was not valid any more.
    #[cold]
    pub(crate) fn disregard<M: Media>(&self, heap: &Access<M>, i: usize) {
        if let Some(Ok(leaf)) = self.leaves.get(i).map(|&link| LeafRef::at(heap, link)) {
            leaf.disregard(self.state.version, heap.media());
        }
    }

    /// The key's pair, durable; `place` is the number of the [leaf](Base::approach) for it.
    #[inline]
    pub(crate) fn get<'g, M: Media>(
        &self,
        heap: &'g Access<M>,
        place: usize,
        key: &SearchKey<'_>,
        hash: u64,
        probing: Probing,
    ) -> Result<Option<Found<'g>>, Error> {
        let Some(leaf) = self.leaf(heap, place)? else {
            return Ok(None);
        };
        let found = leaf.find(heap, self.state.version, key, hash, probing)?;
        let slot = found.map(|(slot, _)| slot as u8);
        leaf.settle(heap, self.state.version, slot.as_slice());
        Ok(found.map(|(slot, entry)| Found { leaf, slot, entry }))
    }

    /// The upper bound of leaf `i`: its greatest key; the last leaf has none.
    pub(crate) fn end(&self, i: usize) -> Bound<&[u8]> {
        if i < self.router.len() {
            Bound::Included(self.router.key(i))
        } else {
            Bound::Unbounded
        }
    }

    /// The lower bound of leaf `i`: after the greatest key of the one before it.
    pub(crate) fn start(&self, i: usize) -> Bound<&[u8]> {
        match i.checked_sub(1) {
            Some(before) => Bound::Excluded(self.router.key(before)),
            None => Bound::Unbounded,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DpTree, DpTreeOptions};
    use heap::Heap;
    use index::Index;
    use pmem::{Hardware, Pool, PoolOptions, Purpose, persist_scope};

    /// Whichever leaf follows the last one in a damaged pool, the opening ends in the first turn.
    #[test]
    fn a_list_of_leaves_that_leads_back_is_found_soon() {
        let pool = Pool::anonymous(&PoolOptions::default(), Hardware::detect()).expect("memory");
        let heap = Heap::new(pool).expect("a heap");
        let options = DpTreeOptions {
            leaf_capacity: 64,
            workers: 0,
            ..DpTreeOptions::default()
        };
        let tree = DpTree::create_with(&heap, b"tree", options).expect("room");
        for i in 0..300_u64 {
            tree.insert(&i.to_be_bytes(), b"8 bytes!").expect("room");
        }
        tree.settle().expect("room");
        let shared = tree.shared();
        let (heap, root, media) = (&shared.heap, shared.root().expect("sound"), shared.heap.media());
        let trees = shared.trees();
        let (leaves, version) = (&trees.base.leaves, trees.base.state.version);
        assert!(leaves.len() > 3, "{} leaves", leaves.len());
        let last = LeafRef::at(heap, *leaves.last().expect("some")).expect("sound");
        let lead_to = |link: Link| {
            persist_scope(media, Purpose::Node, |batch| {
                last.meta(version).next.store(link, &batch);
                let _durable = batch.fence().durable();
            });
        };
        for &leaf in leaves {
            lead_to(leaf);
            let error = Base::open(heap, root, shared.shape.leaf).expect_err("a cycle");
            assert!(error.to_string().contains("leaves out of order"), "{error}");
        }
        lead_to(Link::NULL);
        Base::open(heap, root, shared.shape.leaf).expect("sound");
    }
}
