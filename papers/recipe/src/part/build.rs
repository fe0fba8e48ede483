//! Objects under construction: each is written, written back and fenced before anything leads to it.
//!
//! RECIPE fences after each store that is written back, so each new object of a write has a fence of its own. (A shared
//! one would suffice: that is ROART's minimally ordered split.) Objects of a bulk load share the fence of their batch.

use super::node::{Header, Meta, N4, N16, N48, N256};
use super::prefix::Prefix;
use super::{AppendOnly, Writer};
use art::{
    Child, Children, Grown, Head, Inner, Kind, Spot, draft_kind, draft_leaf, draft_smallest, index_word,
    naming, with_byte,
};
use heap::{Access, Error, Heap};
use pmem::{
    CommitWord, Erased, Flushed, GenerationLock, Media, PSlot, PWord, PersistBatch, Persisted, Purpose,
    VWord, persist_scope,
};

impl art::Kinds for AppendOnly {
    type Head = Header;
    type N4 = N4;
    type N16 = N16;
    type N48 = N48;
    type N256 = N256;
}

fn bump(count: &mut VWord) {
    *count = VWord::new(count.private() + 1);
}

impl Header {
    fn new(generation: u32, kind: Kind, level: usize, prefix: Prefix) -> Header {
        Header {
            lock: GenerationLock::new(generation),
            meta: CommitWord::new(Meta::new(kind, level).0),
            ends: PSlot::null(),
            prefix: CommitWord::new(prefix.to_word()),
        }
    }

    /// Counts one more entry.
    fn count(&mut self, byte: Option<u8>) {
        self.meta = CommitWord::new(Meta(self.meta.private()).with(byte).0);
    }
}

impl Head for Header {
    fn ends_mut(&mut self) -> &mut PSlot {
        &mut self.ends
    }
}

impl Inner for N4 {
    const KIND: Kind = Kind::N4;
    type Head = Header;

    fn head_mut(&mut self) -> &mut Header {
        &mut self.header
    }
    fn fill(&mut self, i: usize, byte: u8) -> &mut PSlot {
        self.header.count(Some(byte));
        &mut self.slots[i]
    }
}

impl Inner for N16 {
    const KIND: Kind = Kind::N16;
    type Head = Header;

    fn head_mut(&mut self) -> &mut Header {
        &mut self.header
    }
    fn fill(&mut self, i: usize, byte: u8) -> &mut PSlot {
        self.header.count(None);
        let word = &mut self.keys[i / 8];
        *word = PWord::new(with_byte(word.private(), i, byte));
        &mut self.slots[i]
    }
}

impl Inner for N48 {
    const KIND: Kind = Kind::N48;
    type Head = Header;

    fn head_mut(&mut self) -> &mut Header {
        &mut self.header
    }
    fn fill(&mut self, i: usize, byte: u8) -> &mut PSlot {
        bump(&mut self.live);
        bump(&mut self.used);
        let word = &mut self.index[index_word(byte)];
        *word = CommitWord::new(naming(word.private(), byte, Some(i)));
        &mut self.slots[i]
    }
}

impl Inner for N256 {
    const KIND: Kind = Kind::N256;
    type Head = Header;

    fn head_mut(&mut self) -> &mut Header {
        &mut self.header
    }
    fn fill(&mut self, _i: usize, byte: u8) -> &mut PSlot {
        bump(&mut self.live);
        &mut self.slots[usize::from(byte)]
    }
}

/// Builds a root: an N256 of level 0, whatever children it has. If the heap has no room, `children` keeps them.
pub(super) fn draft_root<'e, 'h, M: Media>(
    heap: &'h Heap<M>,
    batch: &PersistBatch<'e, 'h, M>,
    children: &mut Children<'e, 'h>,
) -> Result<Flushed<'e, 'h, Erased>, Error> {
    let header = |kind| Header::new(heap.generation(), kind, 0, Prefix::EMPTY);
    draft_kind::<N256, M>(heap, batch, header, children).map(|(root, ..)| root)
}

impl Grown for AppendOnly {
    fn draft_node<'e, 'h, M: Media>(
        heap: &'h Access<M>,
        batch: &PersistBatch<'e, 'h, M>,
        spot: Spot<'_>,
        children: &mut Children<'e, 'h>,
    ) -> Result<Child<'e, 'h>, Error> {
        let prefix = Prefix::of(&spot.key[spot.depth..spot.level]);
        let header = |kind| Header::new(heap.generation(), kind, spot.level, prefix);
        let (node, kind, _) = draft_smallest::<AppendOnly, M>(heap, batch, header, children)?;
        Ok(Child::New(node, kind, 0))
    }
}

impl<'a, M: Media> Writer<'a, M> {
    /// Writes a durable leaf of the key with this value. Costs a write-back for each of its lines, and 1 fence.
    pub(super) fn persist_leaf(&self, value: &[u8]) -> Result<Persisted<'a, Erased>, Error> {
        persist_scope(self.media(), Purpose::Node, |batch| {
            let leaf = draft_leaf(self.heap, self.key, value, &batch)?.flush(&batch);
            let fenced = batch.fence();
            Ok(leaf.erased().persisted(&fenced))
        })
    }

    /// Writes a durable node, the smallest that holds what `hang` adds, and returns its kind. Costs a write-back for
    /// each of its lines, and 1 fence.
    pub(super) fn persist_node(
        &self,
        level: usize,
        prefix: Prefix,
        hang: impl for<'e> FnOnce(&mut Children<'e, 'a>),
    ) -> Result<(Persisted<'a, Erased>, Kind), Error> {
        persist_scope(self.media(), Purpose::Node, |batch| {
            let mut children = Children::default();
            hang(&mut children);
            let header = |kind| Header::new(self.heap.generation(), kind, level, prefix);
            let (node, kind, _) = draft_smallest::<AppendOnly, M>(self.heap, &batch, header, &mut children)?;
            let fenced = batch.fence();
            Ok((node.persisted(&fenced), kind))
        })
    }
}
