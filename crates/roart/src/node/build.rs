//! Nodes under construction: private drafts, flushed with their batch.

use super::{Header, N4, N16, N48, N256, Node};
use art::{Children, Head, Inner, Kind, Tagged, index_word, with_byte};
use heap::{Error, Heap};
use pmem::{Erased, Flushed, Media, Offset, PSlot, PWord, PersistBatch, VWord};

/// A ROART's four kinds of inner node.
pub(crate) enum Layouts {}

impl art::Kinds for Layouts {
    type Head = Header;
    type N4 = N4;
    type N16 = N16;
    type N48 = N48;
    type N256 = N256;
}

fn bump(count: &mut VWord) {
    *count = VWord::new(count.private() + 1);
}

fn put_byte(word: &mut VWord, at: usize, byte: u8) {
    *word = VWord::new(with_byte(word.private(), at, byte));
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
        let meta = with_byte(self.header.meta.private(), i + 4, byte);
        self.header.meta = PWord::new(meta);
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
        put_byte(&mut self.keys[i / 8], i, byte);
        bump(&mut self.count);
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
        put_byte(&mut self.index[index_word(byte)], byte.into(), i as u8 + 1);
        bump(&mut self.count);
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
        bump(&mut self.count);
        &mut self.slots[usize::from(byte)]
    }
}

/// All children of `node`.
pub(crate) fn children_of<'e, 'h, M: Media>(node: &Node<'_>, media: &M) -> Children<'e, 'h> {
    let list = node.slots().iter().map(|slot| slot.load(media));
    let list = list.filter(|link| !link.is_null());
    Children::of(
        node.header().ends.load(media),
        list.map(|link| (link.byte(), link)).collect(),
    )
}

/// Builds the smallest node that holds `children`, for the keys that begin with `path`. On failure `children` is
/// unchanged. The caller gives the space at the offset back if it does not link the object.
pub(crate) fn draft_node<'e, 'h, M: Media>(
    heap: &'h Heap<M>,
    batch: &PersistBatch<'e, 'h, M>,
    path: &[u8],
    children: &mut Children<'e, 'h>,
) -> Result<(Flushed<'e, 'h, Erased>, Kind, Offset), Error> {
    let header = |kind| Header::new(heap.generation(), path, kind);
    art::draft_smallest::<Layouts, M>(heap, batch, header, children)
}

/// Builds a root: an N256, whatever children it has. On failure `children` is unchanged.
pub(crate) fn draft_root<'e, 'h, M: Media>(
    heap: &'h Heap<M>,
    batch: &PersistBatch<'e, 'h, M>,
    children: &mut Children<'e, 'h>,
) -> Result<Flushed<'e, 'h, Erased>, Error> {
    let header = |kind| Header::new(heap.generation(), &[], kind);
    art::draft_kind::<N256, M>(heap, batch, header, children).map(|(root, ..)| root)
}
