//! Point reads: without locks and without reading prefixes.
//!
//! A reader skips the bytes between levels and compares the whole key at the leaf (optimistic path compression).
//! Skips are stored in the links, and a level never changes, so a reader that follows an old link still arrives at
//! the right byte. Every slot on the way is durable before the reader acts on it (`PSlot::load`).

use crate::array::ArrayRef;
use crate::inline::InlineRef;
use crate::inline::word::KeyWord;
use crate::node::{N256, Node, offset_of};
use crate::{Roart, Variant};
use art::{Kind, LONG_SKIP, LeafRef, Tagged, damaged, same};
use index::Value;
use pmem::{Fault, Link, Media};

impl<M: Media, V: Variant> Roart<M, V> {
    /// The value of `key`.
    #[inline(always)]
    pub(crate) fn read(&self, key: &[u8]) -> Result<Option<Value<'_>>, Fault> {
        let mut link = self.root;
        let mut depth = 0;
        loop {
            // In a large index nearly all steps are of this kind.
            if link.is_plain(Kind::N256)
                && let Some(&byte) = key.get(depth)
            {
                depth += 1;
                let node: &N256 = self.heap.at(offset_of(link)?)?;
                link = node.child(byte).load(self.heap.media());
                continue;
            }
            if !link.is_inner() {
                return self.read_at(link, key);
            }
            link = self.step(link, key, &mut depth)?;
        }
    }

    /// The value of `key`, whose slot holds `link` to an object other than an inner node.
    #[inline(always)]
    pub(crate) fn read_at(&self, link: Link, key: &[u8]) -> Result<Option<Value<'_>>, Fault> {
        match link.kind() {
            Kind::Inline if V::INLINE => {
                let array = InlineRef::at(&self.heap, link)?;
                let Some(word) = KeyWord::of(key) else {
                    return Ok(None);
                };
                let media = self.heap.media();
                let value = array.find(word, media).and_then(|entry| entry.read(media));
                Ok(value.map(|value| Value::Word(value.to_le_bytes())))
            }
            Kind::Leaf => {
                let leaf = LeafRef::at(&self.heap, link)?;
                Ok(same(leaf.key(), key).then(|| leaf.value(&self.heap)))
            }
            Kind::Array => {
                let found = ArrayRef::at(&self.heap, link)?.find(&self.heap, key)?;
                Ok(found.map(|(_, _, leaf)| leaf.value(&self.heap)))
            }
            Kind::Null => Ok(None),
            _ => Err(damaged("link's kind", link)),
        }
    }

    /// Steps from the inner node at `link`, reached after `depth` bytes of the key, to its child for the key.
    #[inline(always)]
    pub(crate) fn step(&self, link: Link, key: &[u8], depth: &mut usize) -> Result<Link, Fault> {
        // In a large index nearly all steps are of this kind.
        if link.is_plain(Kind::N256)
            && let Some(&byte) = key.get(*depth)
        {
            *depth += 1;
            let node: &N256 = self.heap.at(offset_of(link)?)?;
            return Ok(node.child(byte).load(self.heap.media()));
        }
        let node = Node::at(&self.heap, link)?;
        let level = self.level_after(link, &node, *depth);
        *depth = level + 1;
        if level < key.len() {
            return Ok(node
                .find::<V, M>(&self.heap, level, key[level])?
                .map_or(Link::NULL, |(_, link)| link));
        }
        if level == key.len() {
            return Ok(node.header().ends.load(self.heap.media()));
        }
        Ok(Link::NULL)
    }

    /// The level of the node at `link`, reached after `depth` bytes.
    #[inline(always)]
    pub(crate) fn level_after(&self, link: Link, node: &Node<'_>, depth: usize) -> usize {
        match link.aux() {
            // A damaged level below the depth would make the walk endless.
            LONG_SKIP => node.header().level(self.heap.media()).max(depth),
            skip => depth + usize::from(skip),
        }
    }
}
