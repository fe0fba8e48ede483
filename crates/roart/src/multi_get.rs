//! Reading many keys at once: their walks go down side by side, so that their cache misses overlap.

use crate::array::{ArrayRef, array_size};
use crate::inline::InlineRef;
use crate::inline::word::KeyWord;
use crate::{Roart, Variant};
use art::{GROUP, Kind, Tagged, Walk, address, prefetch, prefetch_leaf, prefetch_range, walk_together};
use index::Value;
use pmem::{Fault, Link, Media};

impl<M: Media, V: Variant> Roart<M, V> {
    /// Reads all `keys`, however many, and reports the result for each.
    #[inline]
    pub(crate) fn read_many<'g>(
        &'g self,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, Option<Value<'g>>),
    ) -> Result<(), Fault> {
        for (group, keys) in keys.chunks(GROUP).enumerate() {
            let walks = self.walk_group::<true>(keys)?;
            for (i, (walk, key)) in walks.iter().zip(keys).enumerate() {
                found(group * GROUP + i, self.read_at(walk.link, key)?);
            }
        }
        Ok(())
    }

    /// Takes the walks of at most [`GROUP`] keys to their slots, and prefetches the objects there. For reads, a link to
    /// an array is replaced by the link to the only leaf with the key's fingerprint, if there is just one. For writes
    /// and for prefetches alone, it is replaced by null if no leaf has that fingerprint.
    ///
    /// Not inlined: each step then has one caller, and the compiler inlines it there.
    #[inline(never)]
    pub(crate) fn walk_group<const READS: bool>(&self, keys: &[&[u8]]) -> Result<[Walk; GROUP], Fault> {
        let step = |link, key: &[u8], depth: &mut usize| self.step(link, key, depth);
        let ask = |link, key: &[u8], depth| self.prefetch_next::<READS>(link, key, depth);
        let mut walks = walk_together(keys, self.root, step, ask)?;
        for (Walk { link, .. }, key) in walks.iter_mut().zip(keys) {
            if link.kind() == Kind::Array {
                let array = ArrayRef::at(&self.heap, *link)?;
                if !READS {
                    match array.likely(&self.heap, key) {
                        Some(likely) => prefetch_leaf(&self.heap, likely, key),
                        None => *link = Link::NULL,
                    }
                } else if let Some(only) = array.candidate(&self.heap, key) {
                    // From here on the leaf is treated like a direct child. Several candidates are rare, and compared
                    // later.
                    *link = only;
                    prefetch_leaf(&self.heap, only, key);
                }
            }
        }
        Ok(walks)
    }

    /// Prefetches the lines that the next step from `link` reads.
    #[inline(always)]
    fn prefetch_next<const READS: bool>(&self, link: Link, key: &[u8], depth: usize) {
        let start = address(&self.heap, link);
        let byte = || {
            let byte = key.get(depth + usize::from(link.aux()));
            byte.copied().map_or(0, usize::from)
        };
        match link.kind() {
            Kind::Leaf => prefetch_leaf(&self.heap, link, key),
            Kind::N256 => prefetch(start.wrapping_add(64 + byte() * size_of::<u64>())),
            Kind::N48 => prefetch(start.wrapping_add(64 + byte())),
            Kind::Array => prefetch_range(start, array_size(link)),
            Kind::Inline => {
                if let (Ok(array), Some(word)) = (InlineRef::at(&self.heap, link), KeyWord::of(key)) {
                    array.prefetch_home(word);
                    if !READS {
                        array.prefetch_line(0); // for the lock
                    }
                }
            }
            _ => prefetch_range(start, 192),
        }
    }
}
