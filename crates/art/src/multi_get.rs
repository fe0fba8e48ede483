//! Reading many keys at once: their walks go down side by side, so that their cache misses overlap.

use crate::{Design, Digit, Node, Radix, Tagged, prefetch, prefetch_range};
use heap::Heap;
use index::Value;
use pmem::{Fault, LINE, Link, Media, Offset};

/// Number of walks side by side: a little more than the misses that a core overlaps.
pub const GROUP: usize = 32;

/// The walk of a key, as far as it has come.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    /// The link that it has reached.
    pub link: Link,
    /// The link to the node above, and the depth in digits there.
    pub above: (Link, usize),
    /// Whether it skipped no digit on its way to the node above, and so has compared all of them.
    pub is_whole: bool,
    /// The depth in digits at the link.
    depth: usize,
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
) -> Result<[Walk; GROUP], Fault> {
    let begin = Walk {
        link: top,
        above: (top, 0),
        is_whole: true,
        depth: 0,
    };
    let mut walks = [begin; GROUP];
    for key in keys {
        prefetch_range(key.as_ptr(), key.len());
    }
    // Number of digits that each continuing walk has compared.
    let mut compared = 0;
    let mut busy = true;
    while busy {
        busy = false;
        for (walk, key) in walks.iter_mut().zip(keys) {
            if walk.link.is_inner() {
                walk.above = (walk.link, walk.depth);
                walk.is_whole = walk.depth == compared;
                walk.link = step(walk.link, key, &mut walk.depth)?;
                ask(walk.link, key, walk.depth);
                busy |= walk.link.is_inner();
            }
        }
        compared += 1;
    }
    Ok(walks)
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
            let walks = walk_together(keys, self.top()?, step, ask)?;
            for (i, (walk, key)) in walks.iter().zip(keys).enumerate() {
                let leaf = self.leaf_of(walk.link, key)?;
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
