//! Nodes under construction: private drafts, flushed with their batch.

use super::{Header, N4, N16, N48, N256, Node};
use art::{Kind, Tagged, child_tag, index_word, with_byte};
use heap::{Error, Heap};
use pmem::{Batch, Draft, Erased, Flushed, Link, Media, Offset, PSlot, PWord, Persisted, Persistent, VWord};

/// What a node under construction links to.
pub(crate) enum Child<'e, 'h> {
    /// Something reachable already, under its tag in the new node.
    Reachable(Link),
    /// Something new, its kind and aux.
    New(Flushed<'e, 'h, Erased>, Kind, u8),
    /// Something new that was fenced before.
    Durable(Persisted<'h, Erased>, Kind, u8),
}

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

/// The children of a node under construction: at most one for each byte.
#[derive(Default)]
pub(crate) struct Children<'e, 'h> {
    pub(crate) ends: Option<Child<'e, 'h>>,
    pub(crate) list: Vec<(u8, Child<'e, 'h>)>,
}

impl<'e, 'h> Children<'e, 'h> {
    /// All that hangs in `node`.
    pub(crate) fn of<M: Media>(node: &Node<'_>, media: &M) -> Self {
        let ends = node.header().ends.load(media);
        let list = node
            .slots()
            .iter()
            .map(|slot| slot.load(media))
            .filter(|link| !link.is_null());
        Children {
            ends: (!ends.is_null()).then_some(Child::Reachable(ends)),
            list: list.map(|link| (link.byte(), Child::Reachable(link))).collect(),
        }
    }

    /// Adds the child of the keys whose byte at the node's level is `byte` (`None`: the key that ends there).
    pub(crate) fn add(&mut self, byte: Option<u8>, child: Child<'e, 'h>) {
        match byte {
            None => self.ends = Some(child),
            Some(byte) => self.list.push((byte, child)),
        }
    }

    /// Adds something reachable under this byte, with the kind and aux it has.
    pub(crate) fn add_reachable(&mut self, byte: Option<u8>, link: Link) {
        let tag = child_tag(link.kind(), byte.unwrap_or_default(), link.aux());
        self.add(byte, Child::Reachable(link.with_tag(tag)));
    }
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
        attach(&mut draft, |node| &mut node.header().ends, 0, child);
    }
    for (entry, (byte, child)) in children.list.into_iter().enumerate() {
        draft.note(entry, byte);
        attach(&mut draft, |node| node.slot(entry, byte), byte, child);
    }
    let offset = draft.offset();
    Ok((draft.flush(batch).erased(), T::KIND, offset))
}

fn attach<'e, 'h, T: Inner>(
    draft: &mut Draft<'e, 'h, T>,
    slot: impl FnOnce(&mut T) -> &mut PSlot,
    byte: u8,
    child: Child<'e, 'h>,
) {
    match child {
        Child::Reachable(link) => draft.link(slot, link),
        Child::New(object, kind, aux) => draft.adopt(slot, object, child_tag(kind, byte, aux)),
        Child::Durable(object, kind, aux) => draft.adopt_persisted(slot, object, child_tag(kind, byte, aux)),
    }
}
