//! Visiting leaves, and leaf arrays in order.

use super::{Item, Walk};
use crate::array::ArrayRef;
use crate::{Roart, Variant};
use art::LeafRef;
use art::bounds::{Bounds, Edges};
use index::{Direction, Visit};
use pmem::{Fault, Media};
use std::ops::ControlFlow;

impl<M: Media, V: Variant> Roart<M, V> {
    #[inline(always)]
    pub(super) fn visit_leaf<'g>(
        &'g self,
        leaf: &LeafRef<'g>,
        edges: Edges,
        bounds: &Bounds<'_>,
        visit: &mut Visit<'_, 'g>,
    ) -> ControlFlow<()> {
        if edges.are_free() || bounds.hold(leaf.key(), edges) {
            visit(leaf.key(), leaf.value(&self.heap))
        } else {
            ControlFlow::Continue(())
        }
    }

    pub(super) fn visit_array<'g>(
        &'g self,
        item: &Item,
        walk: &Walk<'_, 'g>,
        (leaves, order): &mut (Vec<LeafRef<'g>>, Vec<(u64, u32)>),
        visit: &mut Visit<'_, 'g>,
    ) -> Result<ControlFlow<()>, Fault> {
        leaves.clear();
        order.clear();
        let array = ArrayRef::at(&self.heap, item.link)?;
        for link in array.leaves(self.heap.media()) {
            let leaf = LeafRef::at(&self.heap, link)?;
            order.push((first_bytes(leaf.key(), item.depth as usize), leaves.len() as u32));
            leaves.push(leaf);
        }
        let leaf = |at: u32| &leaves[at as usize];
        // Almost always the first bytes after what all share decide.
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| leaf(a.1).key().cmp(leaf(b.1).key())));
        if walk.direction == Direction::Reverse {
            order.reverse();
        }
        let mut last: Option<(u64, u32)> = None;
        for &(bytes, at) in &*order {
            let leaf_now = leaf(at);
            // A key twice: it was removed and inserted again, into another entry, meanwhile.
            if last
                .replace((bytes, at))
                .is_some_and(|(before, other)| before == bytes && leaf(other).key() == leaf_now.key())
            {
                continue;
            }
            if self
                .visit_leaf(leaf_now, item.edges, &walk.bounds, visit)
                .is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Eight bytes of the key from `from` on, as they order keys; a key that ends among them is filled up with zeros.
#[inline(always)]
fn first_bytes(key: &[u8], from: usize) -> u64 {
    let rest = key.get(from..).unwrap_or_default();
    if let Some(bytes) = rest.first_chunk::<8>() {
        return u64::from_be_bytes(*bytes);
    }
    let bits = 8 * (8 - rest.len() as u32);
    if let Some(bytes) = key.last_chunk::<8>() {
        return u64::from_be_bytes(*bytes).checked_shl(bits).unwrap_or(0);
    }
    let mut bytes = [0; 8];
    bytes[..rest.len()].copy_from_slice(rest);
    u64::from_be_bytes(bytes)
}
