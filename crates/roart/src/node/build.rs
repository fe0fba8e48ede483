//! Nodes under construction: private drafts, flushed with their batch.

use super::{Header, N4, N16, N48, N256, Node};
use art::{Children, Kind, Tagged, index_word, with_byte};
use heap::{Error, Heap};
use pmem::{Batch, Erased, Flushed, Media, Offset, PSlot, PWord, Persistent, VWord};

/// A node's own part in construction.
trait Inner: Persistent {
    const KIND: Kind;
    fn new(header: Header) -> Self;
    fn header(&mut self) -> &mut Header;
    fn slot(&mut self, entry: usize, byte: u8) -> &mut PSlot;
    /// Notes entry `entry` for `byte` in the metadata.
    fn note(&mut self, entry: usize, byte: u8);
}

const fn slots<const N: usize>() -> [PSlot; N] {
    [const { PSlot::null() }; N]
}

const fn words<const N: usize>() -> [VWord; N] {
    [const { VWord::new(0) }; N]
}

fn bump(count: &mut VWord) {
    *count = VWord::new(count.private() + 1);
}

fn put_byte(word: &mut VWord, at: usize, byte: u8) {
    *word = VWord::new(with_byte(word.private(), at, byte));
}

impl Inner for N4 {
    const KIND: Kind = Kind::N4;
    fn new(header: Header) -> Self {
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
    fn note(&mut self, entry: usize, byte: u8) {
        let meta = with_byte(self.header.meta.private(), entry + 4, byte);
        self.header.meta = PWord::new(meta);
    }
}

impl Inner for N16 {
    const KIND: Kind = Kind::N16;
    fn new(header: Header) -> Self {
        N16 {
            header,
            keys: words(),
            count: VWord::new(0),
            unused: VWord::new(0),
            slots: slots(),
        }
    }
    fn header(&mut self) -> &mut Header {
        &mut self.header
    }
    fn slot(&mut self, entry: usize, _byte: u8) -> &mut PSlot {
        &mut self.slots[entry]
    }
    fn note(&mut self, entry: usize, byte: u8) {
        put_byte(&mut self.keys[entry / 8], entry, byte);
        bump(&mut self.count);
    }
}

impl Inner for N48 {
    const KIND: Kind = Kind::N48;
    fn new(header: Header) -> Self {
        N48 {
            header,
            count: VWord::new(0),
            unused: words(),
            index: words(),
            slots: slots(),
        }
    }
    fn header(&mut self) -> &mut Header {
        &mut self.header
    }
    fn slot(&mut self, entry: usize, _byte: u8) -> &mut PSlot {
        &mut self.slots[entry]
    }
    fn note(&mut self, entry: usize, byte: u8) {
        put_byte(&mut self.index[index_word(byte)], byte.into(), entry as u8 + 1);
        bump(&mut self.count);
    }
}

impl Inner for N256 {
    const KIND: Kind = Kind::N256;
    fn new(header: Header) -> Self {
        N256 {
            header,
            count: VWord::new(0),
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
    fn note(&mut self, _entry: usize, _byte: u8) {
        bump(&mut self.count);
    }
}

/// All that hangs in `node`.
pub(crate) fn children_of<'e, 'h, M: Media>(node: &Node<'_>, media: &M) -> Children<'e, 'h> {
    let list = node.slots().iter().map(|slot| slot.load(media));
    let list = list.filter(|link| !link.is_null());
    Children::of(
        node.header().ends.load(media),
        list.map(|link| (link.byte(), link)).collect(),
    )
}

/// Builds the smallest node that holds `children`, for the keys that begin with `path`. The offset is for who must give
/// it back.
pub(crate) fn draft_node<'e, 'h, M: Media>(
    heap: &'h Heap<M>,
    batch: &Batch<'e, '_, M>,
    path: &[u8],
    children: Children<'e, 'h>,
) -> Result<(Flushed<'e, 'h, Erased>, Kind, Offset), Error> {
    match children.list.len() {
        0..=4 => build::<N4, M>(heap, batch, path, children),
        5..=16 => build::<N16, M>(heap, batch, path, children),
        17..=48 => build::<N48, M>(heap, batch, path, children),
        _ => build::<N256, M>(heap, batch, path, children),
    }
}

/// Builds an N256 without children: a root.
pub(crate) fn draft_root<'e, 'h, M: Media>(
    heap: &'h Heap<M>,
    batch: &Batch<'e, '_, M>,
) -> Result<Flushed<'e, 'h, Erased>, Error> {
    build::<N256, M>(heap, batch, &[], Children::default()).map(|(root, ..)| root)
}

fn build<'e, 'h, T: Inner, M: Media>(
    heap: &'h Heap<M>,
    batch: &Batch<'e, '_, M>,
    path: &[u8],
    children: Children<'e, 'h>,
) -> Result<(Flushed<'e, 'h, Erased>, Kind, Offset), Error> {
    let mut draft = heap.draft(T::new(Header::new(heap.generation(), path)), 0, batch)?;
    if let Some(child) = children.ends {
        child.attach(&mut draft, |node| &mut node.header().ends, 0);
    }
    for (entry, (byte, child)) in children.list.into_iter().enumerate() {
        draft.note(entry, byte);
        child.attach(&mut draft, |node| node.slot(entry, byte), byte);
    }
    let offset = draft.offset();
    Ok((draft.flush(batch).erased(), T::KIND, offset))
}
