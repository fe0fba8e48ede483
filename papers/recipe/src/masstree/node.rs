//! Nodes, the same for all levels, and how they are read.
//!
//! ```text
//!   0  lock       GenerationLock
//!   8  order      permutation, mark: the commit word of all changes in the node (`order`)
//!  16  next       the right sibling
//!  24  kinds      13 times four bits: the kind of each entry's word
//!  32  low        the lower bound of the node's slices; constant
//!  40  version    number of overwritten entries; volatile
//!  48  entries    13 of: slice, word
//! ```
//!
//! A *border* node (level 0) has an entry for each key of its layer whose slice is in its range: its word is the value
//! (the kind is the length of the key in this slice, 0 to 8), or a link ([`LINK`]) to a leaf or to a further layer. An
//! inner node has an entry for each child: the child's `low`, and the link to it.
//!
//! I1 An entry counts if the order names it. Such entries were durable before.
//! I2 In an entry that counts only the word changes: a value in place under the order's mark, a link by its own.
//! I3 A writer overwrites an entry that does not count only under the lock, after incrementing the version. So a
//!    reader that finds the version unchanged has read nothing of another key.
//! I4 A node covers the slices from its `low` up to its sibling's: that is its high key, which changes with the link
//!    by one store. Keys of a layer with the same slice are in one border (there are at most ten).
//! I5 Entries that a node still has at or above its sibling's `low` belong to the sibling, where no writer has
//!    changed them (`repair`).
//! I6 The link to a node states its level, and a child is one level below its parent; siblings' `low`s ascend.

use super::link::{self, Target, level_of, node_tag};
use super::order::{ENTRIES, Order};
use super::slice::Slice;
use art::{damaged, prefetch_range};
use heap::Access;
use pmem::{
    CommitWord, Fault, GenerationLock, Link, Media, PEither, PSlot, PWord, Purpose, VWord, persist_scope,
    persistent,
};

/// The kind of an entry whose word is a link.
pub(super) const LINK: u8 = 15;

/// The kind of an entry with the value of a key of eight bytes, the usual kind for integer keys.
pub(super) const WHOLE: u8 = 8;

/// Bits that belong to no entry's kind.
pub(super) const NO_KINDS: u64 = !(ONES * 15);

/// A one in each of the kinds.
const ONES: u64 = 0x1_1111_1111_1111;

persistent! {
    /// A slice and its word.
    #[derive(Debug, Default)]
    pub(super) struct NodeEntry [size: 16] {
        pub(super) slice: PWord,
        pub(super) word: PEither,
    }
}

persistent! {
    /// A node of any level.
    #[derive(Debug)]
    pub(super) struct Node [size: 256, align: 64] {
        pub(super) lock: GenerationLock,
        pub(super) order: CommitWord,
        pub(super) next: PSlot,
        pub(super) kinds: PWord,
        pub(super) low: PWord,
        pub(super) version: VWord,
        pub(super) entries: [NodeEntry; ENTRIES],
    }
}

pub(super) const SIZE: usize = size_of::<Node>();
const HEAD: usize = std::mem::offset_of!(Node, entries);
const _: () = assert!(HEAD == 48);

/// The present or future contents of an entry.
#[derive(Clone, Copy, Debug)]
pub(super) enum Held {
    /// The value of a key that ends with the slice.
    Value(u64),
    /// A link to a leaf, or to a node: of a further layer in a border, a child elsewhere.
    Link(Link),
}

impl Held {
    /// The kind of an entry of this slice with these contents.
    pub(super) fn kind(self, slice: Slice) -> u8 {
        match self {
            Held::Value(_) => slice.len,
            Held::Link(_) => LINK,
        }
    }
}

/// The result of a search for a slice in a node.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    Held(Held),
    /// Absent, and whether all entries of the node come before.
    Absent {
        beyond: bool,
    },
}

/// The kind of an entry.
#[inline(always)]
pub(super) fn kind(kinds: u64, entry: usize) -> u8 {
    (kinds >> (4 * entry)) as u8 & 15
}

/// The kinds with one of them replaced.
pub(super) fn with_kind(kinds: u64, entry: usize, kind: u8) -> u64 {
    kinds & !(15 << (4 * entry)) | u64::from(kind) << (4 * entry)
}

impl Node {
    /// A node for a draft, without entries. Entries added later with this kind cost no write-back for it.
    pub(super) fn new(generation: u32, low: u64, kind: u8) -> Node {
        Node {
            lock: GenerationLock::new(generation),
            order: CommitWord::new(Order::first(0).word()),
            next: PSlot::null(),
            kinds: PWord::new(u64::from(kind) * ONES),
            low: PWord::new(low),
            version: VWord::new(0),
            entries: std::array::from_fn(|_| NodeEntry {
                slice: PWord::new(0),
                word: PEither::value(0),
            }),
        }
    }

    /// Appends an entry to a draft; returns its number.
    pub(super) fn push(&mut self, slice: Slice, held: Held) -> usize {
        let word = match held {
            Held::Value(value) => PEither::value(value),
            Held::Link(link) => PEither::link(link),
        };
        let at = self.push_word(slice.bytes, word);
        self.kinds = PWord::new(with_kind(self.kinds.private(), at, held.kind(slice)));
        at
    }

    /// Appends a child to a draft of an inner node, whose kinds are not used; returns the entry's number.
    pub(super) fn push_child(&mut self, low: u64, child: Link) -> usize {
        self.push_word(low, PEither::link(child))
    }

    fn push_word(&mut self, slice: u64, word: PEither) -> usize {
        let order = Order::from_word(self.order.private());
        let at = order.len();
        self.entries[at] = NodeEntry {
            slice: PWord::new(slice),
            word,
        };
        self.order = CommitWord::new(order.with(at, at).word());
        at
    }

    /// Number of entries of a draft.
    pub(super) fn len(&self) -> usize {
        Order::from_word(self.order.private()).len()
    }

    /// Moves the entries of slices from these bytes on from one draft to another one (I4).
    pub(super) fn move_from(&mut self, bytes: u64, to: &mut Node) {
        let order = Order::from_word(self.order.private());
        let is_below = |at: &usize| self.entries[*at].slice.private() < bytes;
        let left = (0..order.len()).take_while(is_below).count();
        for at in left..order.len() {
            let NodeEntry { slice, word } = std::mem::take(&mut self.entries[at]);
            let kind = kind(self.kinds.private(), at);
            let at = to.push_word(slice.private(), word);
            to.kinds = PWord::new(with_kind(to.kinds.private(), at, kind));
        }
        self.order = CommitWord::new(order.truncated(left).word());
    }

    /// The used bytes of a draft.
    pub(super) fn used(&self) -> std::ops::Range<usize> {
        0..HEAD + self.len() * size_of::<NodeEntry>()
    }
}

/// A reference to a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeRef<'g> {
    pub(super) link: Link,
    pub(super) node: &'g Node,
}

impl<'g> NodeRef<'g> {
    /// The node that `link` leads to.
    #[inline(always)]
    pub(super) fn at<M: Media>(heap: &'g Access<M>, link: Link) -> Result<NodeRef<'g>, Fault> {
        if let (Some(Target::Node(_)), Some(offset)) = (link::target(link), link.offset()) {
            let node = heap.at::<Node>(offset)?;
            return Ok(NodeRef { link, node });
        }
        Err(damaged("link to a node", link))
    }

    /// Number of levels below it.
    #[inline(always)]
    pub(super) fn level(&self) -> u8 {
        level_of(self.link)
    }

    #[inline(always)]
    pub(super) fn low<M: Media>(&self, media: &M) -> u64 {
        self.node.low.load(media)
    }

    /// Whether both are the same node.
    pub(super) fn is(&self, link: Link) -> bool {
        self.link.offset() == link.offset()
    }

    /// The order, durable.
    #[inline(always)]
    pub(super) fn order<M: Media>(&self, media: &M) -> Order {
        Order::from_word(self.node.order.load(media))
    }

    /// The slice of the entry in a place.
    #[inline(always)]
    pub(super) fn slice<M: Media>(&self, media: &M, order: Order, place: usize) -> u64 {
        self.node.entries[order.entry(place)].slice.peek(media)
    }

    /// The number of entries before the first with this slice.
    #[inline(always)]
    pub(super) fn before<M: Media>(&self, media: &M, order: Order, slice: u64) -> usize {
        let mut before = 0;
        for entry in order.entries() {
            before += usize::from(self.node.entries[entry].slice.peek(media) < slice);
        }
        before
    }

    /// The contents of an entry of a border, and its slice.
    #[inline(always)]
    pub(super) fn held<M: Media>(&self, media: &M, kinds: u64, entry: usize) -> (Slice, Held) {
        let NodeEntry { slice, word } = &self.node.entries[entry];
        let bytes = slice.peek(media);
        match kind(kinds, entry) {
            LINK => {
                let link = word.slot().load(media);
                let len = link::len_of(link);
                (Slice { bytes, len }, Held::Link(link))
            }
            len => (Slice { bytes, len }, Held::Value(word.load(media))),
        }
    }

    /// The place where a slice is, or would be, in a border, and its entry. The caller holds the lock, or validates
    /// by [`look`](NodeRef::look).
    #[inline(always)]
    pub(super) fn search<M: Media>(&self, media: &M, order: Order, slice: Slice) -> (usize, Found) {
        let kinds = self.node.kinds.peek(media);
        let mut place = self.before(media, order, slice.bytes);
        let beyond = place == order.len();
        while place < order.len() {
            let entry = order.entry(place);
            if self.node.entries[entry].slice.peek(media) != slice.bytes {
                break;
            }
            let (other, held) = self.held(media, kinds, entry);
            if other.len == slice.len {
                return (place, Found::Held(held));
            }
            if other.len > slice.len {
                break;
            }
            place += 1;
        }
        (place, Found::Absent { beyond })
    }

    /// Calls `look` with the node's order until no entry was overwritten meanwhile (I3); values that it read in place
    /// are durable then.
    #[inline(always)]
    pub(super) fn look<M: Media, R>(&self, media: &M, mut look: impl FnMut(Order) -> R) -> R {
        loop {
            let version = self.node.version.load(media);
            let seen = look(self.order(media));
            if self.node.version.load(media) == version {
                // After the values are read: a writer that stores one has set the mark before.
                if self.node.order.is_marked(media) {
                    self.persist_words(media);
                }
                return seen;
            }
            for entry in &self.node.entries {
                entry.word.disregard(media);
            }
        }
    }

    /// Persists the values in place, whichever of them is being changed, and the kinds.
    #[cold]
    #[inline(never)]
    pub(super) fn persist_words<M: Media>(&self, media: &M) {
        persist_scope(media, Purpose::Node, |batch| {
            self.node.kinds.persist_seen(&batch);
            for entry in &self.node.entries {
                entry.word.persist_seen(&batch);
            }
            batch.fence();
        });
    }

    /// Searches a border for a slice.
    #[inline(always)]
    pub(super) fn find<M: Media>(&self, media: &M, slice: Slice) -> Found {
        self.look(media, |order| self.search(media, order, slice).1)
    }

    /// The child of an inner node for a slice.
    #[inline(always)]
    pub(super) fn child<M: Media>(&self, media: &M, slice: u64) -> Result<Link, Fault> {
        let link = self.look(media, |order| {
            let mut upto = 0;
            for entry in order.entries() {
                upto += usize::from(self.node.entries[entry].slice.peek(media) <= slice);
            }
            let place = upto.checked_sub(1)?;
            Some(self.node.entries[order.entry(place)].word.slot().peek(media))
        });
        match link {
            Some(link) if link.tag() == node_tag(self.level().wrapping_sub(1)) => Ok(link),
            _ => Err(damaged("child of a node", self.link)),
        }
    }

    /// The right sibling.
    pub(super) fn sibling<M: Media>(&self, heap: &'g Access<M>) -> Result<Option<NodeRef<'g>>, Fault> {
        let next = self.node.next.load(heap.media());
        if next.is_null() {
            return Ok(None);
        }
        let sibling = NodeRef::at(heap, next)?;
        let media = heap.media();
        if sibling.level() != self.level() || sibling.low(media) <= self.low(media) {
            return Err(damaged("sibling of a node", self.link));
        }
        Ok(Some(sibling))
    }

    /// The right sibling, if it, or one further right, covers the slice.
    pub(super) fn right<M: Media>(
        &self,
        heap: &'g Access<M>,
        slice: u64,
    ) -> Result<Option<NodeRef<'g>>, Fault> {
        let sibling = self.sibling(heap)?;
        Ok(sibling.filter(|sibling| sibling.low(heap.media()) <= slice))
    }

    /// The number of entries below this slice; `None` if all are, as always unless a split is unfinished or was
    /// interrupted (I5).
    pub(super) fn within<M: Media>(&self, media: &M, high: u64) -> Option<usize> {
        self.look(media, |order| {
            let within = self.before(media, order, high);
            (within < order.len()).then_some(within)
        })
    }

    /// Announces that an entry that does not count is about to be overwritten. The caller holds the lock.
    pub(super) fn overwrites<M: Media>(&self, media: &M) {
        let version = self.node.version.load(media);
        self.node.version.store(version.wrapping_add(1), media);
    }
}

/// Descends from a layer's root to the node of this level that covers the slice, or, where a split or removal is
/// unfinished, to one left of it; returns `None` if the root is below that level.
#[inline(always)]
pub(super) fn descend<'g, M: Media>(
    heap: &'g Access<M>,
    root: Link,
    slice: u64,
    level: u8,
) -> Result<Option<NodeRef<'g>>, Fault> {
    let mut node = NodeRef::at(heap, root)?;
    while node.level() > level {
        let child = node.child(heap.media(), slice)?;
        prefetch_node(heap, child);
        node = NodeRef::at(heap, child)?;
    }
    Ok((node.level() == level).then_some(node))
}

/// Prefetches the lines of a node. Never faults.
#[inline(always)]
pub(super) fn prefetch_node<M: Media>(heap: &Access<M>, link: Link) {
    prefetch_range(art::address(heap, link), SIZE);
}
