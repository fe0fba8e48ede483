//! Reading many keys at once: their walks go down side by side, so that their cache misses overlap.
//!
//! A step of a walk has two parts, since the partial keys determine which line of slots it reads: the walks of a
//! group take turns at the first part, which prefetches the line of the slot, and then at the second, which
//! prefetches the node or leaf that it leads to.

use super::Hot;
use super::layout::{HEAD, Target, target};
use super::node::Node;
use super::walk::descend;
use art::{GROUP, address, prefetch, prefetch_leaf, prefetch_range};
use index::Value;
use pmem::{Fault, Link, Media, PSlot};

impl<M: Media> Hot<M> {
    /// Reads all `keys` and reports the result for each.
    pub(super) fn read_many<'g>(
        &'g self,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, Option<Value<'g>>),
    ) -> Result<(), Fault> {
        for (group, keys) in keys.chunks(GROUP).enumerate() {
            let links = self.walk_together(keys)?;
            for (i, (link, key)) in links.into_iter().zip(keys).enumerate() {
                let leaf = self.leaf_of(link, key)?;
                found(group * GROUP + i, leaf.map(|leaf| leaf.value(&self.heap)));
            }
        }
        Ok(())
    }

    /// The ends of the walks of at most [`GROUP`] keys.
    fn walk_together(&self, keys: &[&[u8]]) -> Result<[Link; GROUP], Fault> {
        let (heap, media) = (&self.heap, self.heap.media());
        let mut links = [self.root()?.top.load(media); GROUP];
        let mut above = [None; GROUP];
        let mut slots: [Option<&PSlot>; GROUP] = [None; GROUP];
        for key in keys {
            prefetch_range(key.as_ptr(), key.len());
        }
        let mut busy = true;
        while busy {
            busy = false;
            for (i, key) in keys.iter().enumerate() {
                slots[i] = None;
                if let Target::Node(shape) = target(links[i]) {
                    let node = Node::at(heap, links[i], shape)?;
                    descend(&node, links[i], &mut above[i])?;
                    let slot = &node.slots[node.search(key)?];
                    prefetch(slot);
                    slots[i] = Some(slot);
                    busy = true;
                }
            }
            for (i, key) in keys.iter().enumerate() {
                let Some(slot) = slots[i] else { continue };
                links[i] = slot.load(media);
                match target(links[i]) {
                    Target::Node(shape) => prefetch_range(address(heap, links[i]), HEAD + shape.fixed()),
                    _ => prefetch_leaf(heap, links[i], key),
                }
            }
        }
        Ok(links)
    }
}
