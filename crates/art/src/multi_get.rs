//! Reading many keys at once: their walks go down side by side, so that their cache misses overlap.

use crate::{Design, Digit, Node, Radix, Tagged, prefetch, prefetch_range};
use heap::Heap;
use index::Value;
use pmem::{Fault, LINE, Link, Media, Offset};

/// Number of walks side by side: a little more than the misses that a core overlaps.
pub const GROUP: usize = 32;

/// The ends of the walks of several keys.
#[derive(Debug)]
pub struct Walks {
    /// The links that end them.
    pub links: [Link; GROUP],
    /// The links to the nodes above, and the depths in digits there.
    pub above: [(Link, usize); GROUP],
    /// Whether a walk skipped no digit on its way to the node above, and so has compared all of them.
    pub is_whole: [bool; GROUP],
}

/// Takes the walks of at most [`GROUP`] keys down from `top`, side by side, each to the link that ends it. `step`
/// returns what an inner node at this depth in digits has for the key, and sets the depth below that node; `ask`
/// prefetches the lines of the next step.
///
/// # Errors
///
/// Errors of a step.
#[inline(always)]
pub fn walk_together(
    keys: &[&[u8]],
    top: Link,
    step: impl Fn(Link, &[u8], &mut usize) -> Result<Link, Fault>,
    ask: impl Fn(Link, &[u8], usize),
) -> Result<Walks, Fault> {
    let mut links = [top; GROUP];
    let mut above = [(top, 0); GROUP];
    let mut depths = [0; GROUP];
    for key in keys {
        prefetch_range(key.as_ptr(), key.len());
    }
    let mut is_whole = [true; GROUP];
    // Number of digits that each continuing walk has compared.
    let mut compared = 0;
    let mut busy = true;
    while busy {
        busy = false;
        let walks = links
            .iter_mut()
            .zip(&mut above)
            .zip(&mut depths)
            .zip(&mut is_whole);
        for ((((link, above), depth), is_whole), key) in walks.zip(keys) {
            if link.is_inner() {
                *above = (*link, *depth);
                *is_whole = *depth == compared;
                *link = step(*link, key, depth)?;
                ask(*link, key, *depth);
                busy |= link.is_inner();
            }
        }
        compared += 1;
    }
    Ok(Walks {
        links,
        above,
        is_whole,
    })
}

impl<D: Design, M: Media> Radix<D, M> {
    /// Reads all `keys`, of any length, and reports the result for each.
    pub(crate) fn read_many<'g>(
        &'g self,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, Option<Value<'g>>),
    ) -> Result<(), Fault> {
        let step = |link, key: &[u8], depth: &mut usize| self.step(link, key, depth);
        let ask = |link, key: &[u8], depth| self.prefetch_next(link, key, depth);
        for (group, keys) in keys.chunks(GROUP).enumerate() {
            let Walks { links, .. } = walk_together(keys, self.top()?, step, ask)?;
            for (i, (link, key)) in links.into_iter().zip(keys).enumerate() {
                let leaf = self.leaf_of(link, key)?;
                found(group * GROUP + i, leaf.map(|leaf| leaf.value(self.access())));
            }
        }
        Ok(())
    }

    /// Prefetches the lines that the next step from `link` reads.
    #[inline(always)]
    fn prefetch_next(&self, link: Link, key: &[u8], depth: usize) {
        if link.is_inner() {
            return D::Node::prefetch(self.access(), link, D::Digit::at(key, depth).unwrap_or_default());
        }
        prefetch_leaf(self.access(), link, key);
    }
}

/// The address of an object, for prefetches: any link is allowed.
#[inline(always)]
pub fn address<M: Media>(heap: &Heap<M>, link: Link) -> *const u8 {
    let base = heap.pool().base().as_ptr().cast_const();
    base.wrapping_add((link.bits() & Offset::MASK) as usize)
}

/// Prefetches the lines of the leaf at `link` that a comparison with `key` reads. Never faults.
#[inline(always)]
pub fn prefetch_leaf<M: Media>(heap: &Heap<M>, link: Link, key: &[u8]) {
    let start = address(heap, link);
    prefetch(start);
    if key.len() > 32 {
        prefetch_range(start.wrapping_add(LINE), key.len() - 32);
    }
}
