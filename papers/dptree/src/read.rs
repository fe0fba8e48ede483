//! Point reads (DPTree §3.2, Algorithm 6): front, middle, base. A reader waits for no edit and no merge, only for the
//! few stores by which a node of a buffer tree changes, and for the first use of a leaf of the base since the opening,
//! which rebuilds its volatile parts.

use crate::key::SearchKey;
use crate::tree::{TreeState, Trees};
use heap::{Error, Guard};
use index::Value;
use pmem::Media;

/// Number of keys that are read at once.
const TOGETHER: usize = 16;

/// A key's hash, and the number of its leaf in the base tree.
type Approached = (u64, usize);

impl<M: Media> TreeState<M> {
    /// The key's value.
    #[inline]
    pub(crate) fn read<'g>(&'g self, bytes: &[u8], guard: &'g Guard) -> Result<Option<Value<'g>>, Error> {
        let heap = &self.heap;
        let key = SearchKey::new(bytes);
        let hash = key.hash();
        loop {
            let trees = self.current.load(guard);
            let place = trees.base.approach(heap, self.shape.leaf, &key, hash);
            if let Some(read) = self.read_in(trees, &key, (hash, place))? {
                return Ok(read);
            }
        }
    }

    /// The key's value in these trees; `None` if the base tree is not valid any more.
    #[inline]
    fn read_in<'g>(
        &'g self,
        trees: &'g Trees,
        key: &SearchKey<'_>,
        (hash, place): Approached,
    ) -> Result<Option<Option<Value<'g>>>, Error> {
        let heap = &self.heap;
        for buffer in [Some(&trees.front), trees.middle.as_ref()].into_iter().flatten() {
            if let Some(entry) = buffer.get(heap, key, hash)? {
                return match entry.removed {
                    true => Ok(Some(None)),
                    false => Ok(Some(Some(entry.value(heap)?))),
                };
            }
        }
        let read = trees
            .base
            .get(heap, place, key, hash, self.options.probing)
            .and_then(|found| match found {
                Some(found) => Ok(Some(found.entry.value(heap)?)),
                None => Ok(None),
            });
        // Otherwise the second merge since has begun, and the read pair may be one that it has written.
        if self.is_valid(&trees.base) {
            return read.map(Some);
        }
        trees.base.disregard(heap, place);
        Ok(None)
    }

    /// The keys' values, in order: the lines that the searches for some of them read arrive side by side.
    pub(crate) fn read_many<'g>(
        &'g self,
        keys: &[&[u8]],
        guard: &'g Guard,
        found: &mut dyn FnMut(usize, Option<Value<'g>>),
    ) -> Result<(), Error> {
        for (part, keys) in keys.chunks(TOGETHER).enumerate() {
            let trees = self.current.load(guard);
            let approached = self.approach(trees, keys);
            for (i, (key, approached)) in keys.iter().zip(approached).enumerate() {
                let value = match self.read_in(trees, &SearchKey::new(key), approached)? {
                    Some(value) => value,
                    None => self.read(key, guard)?,
                };
                found(part * TOGETHER + i, value);
            }
        }
        Ok(())
    }

    /// Prefetches what reads and edits of these keys access.
    pub(crate) fn prefetch(&self, keys: &[&[u8]], guard: &Guard) {
        let trees = self.current.load(guard);
        for keys in keys.chunks(TOGETHER) {
            self.approach(trees, keys);
        }
    }

    /// Prefetches, for up to [`TOGETHER`] keys, the lines of filters, leaves and pairs that a search for them reads.
    fn approach(&self, trees: &Trees, keys: &[&[u8]]) -> [Approached; TOGETHER] {
        let (heap, base) = (&self.heap, &trees.base);
        let mut approached = [(0, 0); TOGETHER];
        for (key, approached) in keys.iter().zip(&mut approached) {
            let key = SearchKey::new(key);
            let hash = key.hash();
            trees.front.prefetch(hash);
            if let Some(middle) = &trees.middle {
                middle.prefetch(hash);
            }
            *approached = (hash, base.approach(heap, self.shape.leaf, &key, hash));
        }
        for (hash, place) in approached.into_iter().take(keys.len()) {
            base.prefetch_pair(heap, place, hash);
        }
        approached
    }
}
