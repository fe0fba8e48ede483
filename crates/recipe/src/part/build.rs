//! Objects under construction: each is written, written back and fenced before anything leads to it.
//!
//! RECIPE fences after each store that is written back, so each new object has a fence of its own. (A shared one would
//! do: that is ROART's minimally ordered split.)

use super::Writer;
use super::node::{Header, Meta, N4, N16, N48, N256};
use super::prefix::Prefix;
use art::{Kind, Leaf, Tagged, child_tag, draft_leaf, index_word, naming, with_byte};
use heap::{Error, Heap};
use pmem::{
    Batch, CommitWord, Draft, Erased, Flushed, GenerationLock, Link, Media, PSlot, PWord, Persisted,
    Persistent, Purpose, VWord, persist_scope,
};

/// What shall hang in a new node.
#[derive(Default)]
pub(super) struct Children<'h> {
    /// What is reachable already, each under its byte in the new node.
    pub(super) links: Vec<Link>,
    /// The reachable leaf of the key that ends at the node, if there is one.
    pub(super) ends: Option<Link>,
    /// A new leaf, under its byte, or as the one that ends there.
    pub(super) new: Option<(Option<u8>, Persisted<'h, Leaf>)>,
}

impl<'h> Children<'h> {
    /// Adds something reachable under a byte (`None`: it ends there).
    pub(super) fn add(&mut self, byte: Option<u8>, link: Link) {
        let tag = child_tag(link.kind(), byte.unwrap_or_default(), 0);
        match byte {
            None => self.ends = Some(link.with_tag(tag)),
            Some(_) => self.links.push(link.with_tag(tag)),
        }
    }

    /// How many there are under bytes.
    fn count(&self) -> usize {
        self.links.len() + usize::from(matches!(self.new, Some((Some(_), _))))
    }
}

/// A node's own part in construction.
trait Inner: Persistent {
    const KIND: Kind;
    /// A node whose children are those for `bytes`, with null pointers.
    fn new(header: Header, meta: Meta, bytes: &[u8]) -> Self;
    fn header(&mut self) -> &mut Header;
    /// The pointer of the `entry`th child, which is that for `byte`.
    fn slot(&mut self, entry: usize, byte: u8) -> &mut PSlot;
}

const fn slots<const N: usize>() -> [PSlot; N] {
    [const { PSlot::null() }; N]
}

const fn words<const N: usize>() -> [PWord; N] {
    [const { PWord::new(0) }; N]
}

impl Inner for N4 {
    const KIND: Kind = Kind::N4;
    fn new(mut header: Header, meta: Meta, bytes: &[u8]) -> Self {
        header.meta = CommitWord::new(bytes.iter().fold(meta, |meta, &byte| meta.with(Some(byte))).0);
        N4 {
            header,
            slots: slots(),
        }
    }
    fn header(&mut self) -> &mut Header {
        &mut self.header
    }
    fn slot(&mut self, entry: usize, _byte: u8) -> &mut PSlot {
        &mut self.slots[entry]
    }
}

impl Inner for N16 {
    const KIND: Kind = Kind::N16;
    fn new(mut header: Header, meta: Meta, bytes: &[u8]) -> Self {
        header.meta = CommitWord::new(bytes.iter().fold(meta, |meta, _| meta.with(None)).0);
        let mut keys = [0; 2];
        for (entry, &byte) in bytes.iter().enumerate() {
            keys[entry / 8] = with_byte(keys[entry / 8], entry, byte);
        }
        N16 {
            header,
            keys: keys.map(PWord::new),
            unused: words(),
            slots: slots(),
        }
    }
    fn header(&mut self) -> &mut Header {
        &mut self.header
    }
    fn slot(&mut self, entry: usize, _byte: u8) -> &mut PSlot {
        &mut self.slots[entry]
    }
}

impl Inner for N48 {
    const KIND: Kind = Kind::N48;
    fn new(header: Header, _meta: Meta, bytes: &[u8]) -> Self {
        let mut index = [0; 32];
        for (entry, &byte) in bytes.iter().enumerate() {
            let word = &mut index[index_word(byte)];
            *word = naming(*word, byte, Some(entry));
        }
        N48 {
            header,
            live: VWord::new(bytes.len() as u64),
            used: VWord::new(bytes.len() as u64),
            unused: words(),
            index: index.map(CommitWord::new),
            slots: slots(),
        }
    }
    fn header(&mut self) -> &mut Header {
        &mut self.header
    }
    fn slot(&mut self, entry: usize, _byte: u8) -> &mut PSlot {
        &mut self.slots[entry]
    }
}

impl Inner for N256 {
    const KIND: Kind = Kind::N256;
    fn new(header: Header, _meta: Meta, bytes: &[u8]) -> Self {
        N256 {
            header,
            live: VWord::new(bytes.len() as u64),
            unused: words(),
            slots: slots(),
        }
    }
    fn header(&mut self) -> &mut Header {
        &mut self.header
    }
    fn slot(&mut self, _entry: usize, byte: u8) -> &mut PSlot {
        &mut self.slots[usize::from(byte)]
    }
}

/// Builds a root: a node of level 0 without children.
pub(super) fn draft_root<'e, 'h, M: Media>(
    heap: &'h Heap<M>,
    batch: &Batch<'e, '_, M>,
) -> Result<Flushed<'e, 'h, Erased>, Error> {
    draft::<N256, M>(heap, batch, 0, Prefix::EMPTY, Children::default())
}

fn draft<'e, 'h, T: Inner, M: Media>(
    heap: &'h Heap<M>,
    batch: &Batch<'e, '_, M>,
    level: usize,
    prefix: Prefix,
    children: Children<'h>,
) -> Result<Flushed<'e, 'h, Erased>, Error> {
    let meta = Meta::new(T::KIND, level);
    let header = Header {
        lock: GenerationLock::new(heap.generation()),
        meta: CommitWord::new(meta.0),
        ends: PSlot::null(),
        prefix: CommitWord::new(prefix.to_word()),
    };
    let Children { links, ends, new } = children;
    let mut bytes: Vec<u8> = links.iter().map(|link| link.byte()).collect();
    bytes.extend(new.iter().filter_map(|(byte, _)| *byte));
    let mut node: Draft<'e, 'h, T> = heap.draft(T::new(header, meta, &bytes), 0, batch)?;
    for (entry, link) in links.iter().enumerate() {
        node.link(|node| node.slot(entry, link.byte()), *link);
    }
    if let Some(link) = ends {
        node.link(|node| &mut node.header().ends, link);
    }
    if let Some((byte, leaf)) = new {
        let tag = child_tag(Kind::Leaf, byte.unwrap_or_default(), 0);
        match byte {
            Some(byte) => node.adopt_persisted(|node| node.slot(links.len(), byte), leaf, tag),
            None => node.adopt_persisted(|node| &mut node.header().ends, leaf, tag),
        }
    }
    Ok(node.flush(batch).erased())
}

impl<'a, M: Media> Writer<'a, M> {
    /// A durable leaf of the key with this value. A write-back for each of its lines, 1 fence.
    pub(super) fn persist_leaf(&self, value: &[u8]) -> Result<Persisted<'a, Leaf>, Error> {
        persist_scope(self.media(), Purpose::Node, |batch| {
            let leaf = draft_leaf(self.heap(), self.key, value, &batch)?.flush(&batch);
            let fenced = batch.fence();
            Ok(leaf.persisted(&fenced))
        })
    }

    /// A durable node, the smallest that holds the children, and its kind. A write-back for each of its lines, 1 fence.
    pub(super) fn persist_node(
        &self,
        level: usize,
        prefix: Prefix,
        children: Children<'a>,
    ) -> Result<(Persisted<'a, Erased>, Kind), Error> {
        let heap = self.heap();
        persist_scope(self.media(), Purpose::Node, |batch| {
            let (node, kind) = match children.count() {
                0..=4 => (draft::<N4, M>(heap, &batch, level, prefix, children)?, Kind::N4),
                5..=16 => (draft::<N16, M>(heap, &batch, level, prefix, children)?, Kind::N16),
                17..=48 => (draft::<N48, M>(heap, &batch, level, prefix, children)?, Kind::N48),
                _ => (
                    draft::<N256, M>(heap, &batch, level, prefix, children)?,
                    Kind::N256,
                ),
            };
            let fenced = batch.fence();
            Ok((node.persisted(&fenced), kind))
        })
    }
}
