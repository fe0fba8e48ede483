//! Point reads (DPTree §3.2, Algorithm 6): front, middle, base. A reader waits for no edit and no merge, only for the
//! few stores by which a node of a buffer tree changes, and for the first use of a leaf of the base since the opening,
//! which rebuilds its volatile parts.

use crate::key::SearchKey;
use crate::tree::TreeState;
use heap::{Error, Guard};
use index::Value;
use pmem::Media;

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
            for buffer in [Some(&trees.front), trees.middle.as_ref()].into_iter().flatten() {
                if let Some(entry) = buffer.get(heap, &key, hash)? {
                    return match entry.removed {
                        true => Ok(None),
                        false => Ok(Some(entry.value(heap)?)),
                    };
                }
            }
            let read = trees
                .base
                .get(heap, place, &key, hash, self.options.probing)
                .and_then(|found| match found {
                    Some(found) => Ok(Some(found.entry.value(heap)?)),
                    None => Ok(None),
                });
            // Otherwise the second merge since has begun, and the read pair may be one that it has written.
            if self.is_valid(&trees.base) {
                return read;
            }
            trees.base.disregard(heap, place);
        }
    }
}
