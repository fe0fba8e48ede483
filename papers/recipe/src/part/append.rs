//! Non-SMOs (RECIPE §6.4): appending a child or removing one; one store commits either.
//!
//! The caller holds the node's lock. The leaf that is appended is durable already.

use super::node::Node;
use art::{InnerRef, Kind, child_tag, index_word, naming, with_byte};
use pmem::{Durable, Erased, Link, LinkAndPersist, Media, PSlot, Persisted, Uncounted, VWord};

fn change<M: Media>(word: &VWord, media: &M, by: i64) {
    word.store(word.load(media).wrapping_add_signed(by), media);
}

impl<'g> Node<'g> {
    /// Whether a child can be appended for a byte that has none yet.
    pub(super) fn has_room<M: Media>(&self, media: &M) -> bool {
        match self.0 {
            InnerRef::N4(node) => self.meta(media).count() < node.slots.len(),
            InnerRef::N16(node) => self.meta(media).count() < node.slots.len(),
            InnerRef::N48(node) => (node.used.load(media) as usize) < node.slots.len(),
            InnerRef::N256(_) => true,
        }
    }

    /// Appends a leaf for `byte` to a node that has room. Costs in write-backs and fences: N4 and N256 1, 1; N16 and
    /// N48 2, 2.
    pub(super) fn append<M: Media>(&self, media: &M, leaf: Persisted<'_, Erased>, byte: u8) -> Durable {
        let tag = child_tag(Kind::Leaf, byte, 0);
        let meta = self.meta(media);
        let entry = meta.count();
        let counter = &self.header().meta;
        match self.0 {
            InnerRef::N4(node) => {
                // (i) The pointer, in a place that no reader uses yet.
                let _in_the_counters_line = node.slots[entry].publish::<Uncounted, M, _>(media, leaf, tag);
                // (ii) Commit: key byte and counter by one store. Its write-back includes the pointer.
                let meta = meta.with(Some(byte));
                counter.publish::<LinkAndPersist, M>(media, meta.0).commit()
            }
            InnerRef::N16(node) => {
                // (i) The pointer.
                let _durable = node.slots[entry]
                    .publish::<Uncounted, M, _>(media, leaf, tag)
                    .commit();
                // (ii) The key byte, in the counter's line. No reader uses it before the counter includes it.
                let word = &node.keys[entry / 8];
                word.store_unpersisted(with_byte(word.load(media), entry, byte), media);
                // (iii) Commit: the counter.
                let meta = meta.with(None);
                counter.publish::<LinkAndPersist, M>(media, meta.0).commit()
            }
            InnerRef::N48(node) => {
                let used = node.used.load(media) as usize;
                // (i) The pointer.
                let _durable = node.slots[used]
                    .publish::<Uncounted, M, _>(media, leaf, tag)
                    .commit();
                change(&node.used, media, 1);
                change(&node.live, media, 1);
                // (ii) Commit: its number in the child index.
                let word = &node.index[index_word(byte)];
                let index = naming(word.load(media), byte, Some(used));
                word.publish::<LinkAndPersist, M>(media, index).commit()
            }
            InnerRef::N256(node) => {
                change(&node.live, media, 1);
                // Commit: the pointer.
                let slot = &node.slots[usize::from(byte)];
                slot.publish::<LinkAndPersist, M, _>(media, leaf, tag).commit()
            }
        }
    }

    /// Empties the pointer in `slot`, that of the child for `byte` or, without a byte, `ends`: "a single atomic store".
    /// Costs 1 write-back and 1 fence.
    pub(super) fn clear<M: Media>(&self, media: &M, slot: &PSlot, byte: Option<u8>) -> Durable {
        match (self.0, byte) {
            (InnerRef::N48(node), Some(_)) => change(&node.live, media, -1),
            (InnerRef::N256(node), Some(_)) => change(&node.live, media, -1),
            _ => {}
        }
        media.site("part: emptied pointer");
        slot.publish_link::<LinkAndPersist, M>(media, Link::NULL).commit()
    }

    /// The number of children, without `ends`.
    pub(super) fn live<M: Media>(&self, media: &'g M) -> usize {
        match self.0 {
            InnerRef::N48(node) => node.live.load(media) as usize,
            InnerRef::N256(node) => node.live.load(media) as usize,
            _ => {
                let mut count = 0;
                self.each_child(media, 0..256, |_, _| count += 1);
                count
            }
        }
    }
}
