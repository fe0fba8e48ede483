//! Reading many keys at once: their walks go down side by side, so that their cache misses overlap.

use crate::{Design, Digit, Node, Radix, Tagged, prefetch, prefetch_range};
use index::{OnHeap, Value};
use pmem::{Fault, LINE, Link, Media, Offset};

/// Walks that go side by side: a little more than the misses that a core overlaps.
const GROUP: usize = 32;

impl<D: Design, M: Media> Radix<D, M> {
    /// Reads all `keys`, of any length, and tells what was found of each.
    pub(crate) fn read_many<'g>(
        &'g self,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, Option<Value<'g>>),
    ) -> Result<(), Fault> {
        for (group, keys) in keys.chunks(GROUP).enumerate() {
            self.read_group(keys, group * GROUP, found)?;
        }
        Ok(())
    }

    fn read_group<'g>(
        &'g self,
        keys: &[&[u8]],
        first: usize,
        found: &mut dyn FnMut(usize, Option<Value<'g>>),
    ) -> Result<(), Fault> {
        let mut walks = [(self.top()?, 0); GROUP];
        for key in keys {
            prefetch_range(key.as_ptr(), key.len());
        }
        let mut busy = true;
        while busy {
            busy = false;
            for ((link, depth), key) in walks.iter_mut().zip(keys) {
                if link.is_inner() {
                    *link = self.step(*link, key, depth)?;
                    self.prefetch_next(*link, key, *depth);
                    busy |= link.is_inner();
                }
            }
        }
        for (i, ((link, _), key)) in walks.iter().zip(keys).enumerate() {
            let leaf = self.leaf_of(*link, key)?;
            found(first + i, leaf.map(|leaf| leaf.value(self.heap())));
        }
        Ok(())
    }

    /// Asks for the lines that the next step from `link` reads.
    #[inline(always)]
    fn prefetch_next(&self, link: Link, key: &[u8], depth: usize) {
        if link.is_inner() {
            return D::Node::prefetch(self.heap(), link, D::Digit::at(key, depth).unwrap_or_default());
        }
        let base = self.heap().pool().base().as_ptr().cast_const();
        let start = base.wrapping_add((link.bits() & Offset::MASK) as usize);
        prefetch(start);
        if key.len() > 32 {
            prefetch_range(start.wrapping_add(LINE), key.len() - 32);
        }
    }
}
