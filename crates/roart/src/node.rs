//! Inner nodes (ROART §3.3, Fig. 11).
//!
//! I1 An entry is one 8-byte word, key byte and link together; zero is empty; it changes by one store.
//! I2 A non-zero entry names an object that was durable before that store.
//! I3 A node's level and prefix never change. Its prefix is stored from the level backwards (`prefix`).
//! I4 Key bytes, child index and count mean something only while the lock's generation is the pool's. Even then the
//!    key bytes of an N16 and the index of an N48 are only hints: the entry itself states its byte. A hint is set
//!    before its entry is published, so a key that a scan finds is found by a get too.
//! I5 Entries change under the lock; an obsolete node's entries stay as they are.
//! I6 In a damaged pool a link may lead to anything. Before a lock is taken here, or anything else stored, the header
//!    was checked to be that of a node of the link's kind and level (`locate::check_level`), and if the lock's
//!    generation is not the pool's, the slots to be those of such a node ([`Node::check_slots`]).
//!
//! Not here: the meaning of locks (`pmem::GenerationLock`), and when nodes change kind (`grow`, `shrink`).

mod build;

pub(crate) use build::{Layouts, children_of, draft_node, draft_root};

use crate::Variant;
use crate::prefix::Prefix;
use art::{
    InnerRef, Kind, Kinds, Tagged, byte_at, bytes_like, child_tag, each_kind, index_word, matching, prefetch,
    with_byte,
};
use heap::Access;
use pmem::{
    Fault, GenerationLock, Link, Locked, Media, Obsolete, Offset, PSlot, PWord, Persistent, Purpose, VWord,
    persist_scope, persistent,
};

persistent! {
    /// The common beginning of all nodes: half a line.
    #[derive(Debug)]
    pub(crate) struct Header [size: 32] {
        pub(crate) lock: GenerationLock,
        meta: PWord,            // level:32 | N4: key bytes, used without entry compression only; others: kind:32
        pub(crate) ends: PSlot, // the leaf of the key that ends at this level
        prefix: PWord,          // Prefix
    }
}

impl Header {
    fn new(generation: u32, path: &[u8], kind: Kind) -> Header {
        Header {
            lock: GenerationLock::new(generation),
            meta: PWord::new(path.len() as u64 | kind_word(kind) << 32),
            ends: PSlot::null(),
            prefix: PWord::new(Prefix::of(path).to_word()),
        }
    }

    /// The level was durable before the link that led here; the key bytes beside it may not be.
    pub(crate) fn level<M: Media>(&self, media: &M) -> usize {
        self.meta.peek(media) as u32 as usize
    }

    /// The fault of the header, for a node of this kind and level. An upper half of zero is that of a node made
    /// before kinds were stored.
    #[inline]
    pub(crate) fn fault<M: Media>(&self, kind: Kind, level: usize, media: &M) -> Option<&'static str> {
        let meta = self.meta.peek(media);
        if meta as u32 as usize != level {
            return Some("node's level");
        }
        let noted = meta >> 32;
        (kind != Kind::N4 && noted != 0 && noted != kind_word(kind)).then_some("node's kind")
    }

    pub(crate) fn prefix<M: Media>(&self, media: &M) -> Prefix {
        Prefix::from_word(self.prefix_word(media), self.level(media))
    }

    /// The prefix as stored.
    #[inline]
    pub(crate) fn prefix_word<M: Media>(&self, media: &M) -> u64 {
        self.prefix.load(media)
    }
}

/// The stored form of the node's kind: one flipped bit in a link turns an N16 into an N48 or an N256. An N4 has its key
/// bytes there instead; its kind differs from those of the other nodes by more than one bit.
fn kind_word(kind: Kind) -> u64 {
    match kind {
        Kind::N4 => 0,
        kind => kind as u64,
    }
}

persistent! {
    /// Up to 4 children in one line.
    pub(crate) struct N4 [size: 64, align: 64] {
        header: Header,
        slots: [PSlot; 4],
    }

    /// Up to 16 children.
    pub(crate) struct N16 [size: 3 * 64, align: 64] {
        header: Header,
        keys: [VWord; 2], // a byte for each entry: its key byte
        count: VWord,     // used without selective metadata persistence only
        unused: VWord,
        slots: [PSlot; 16],
    }

    /// Up to 48 children.
    pub(crate) struct N48 [size: 11 * 64, align: 64] {
        header: Header,
        count: VWord,
        unused: [VWord; 3],
        index: [VWord; 32], // a byte for each key byte: its entry's number plus one
        slots: [PSlot; 48],
    }

    /// A child for each byte.
    pub(crate) struct N256 [size: 33 * 64, align: 64] {
        header: Header,
        count: VWord,
        unused: [VWord; 3],
        slots: [PSlot; 256],
    }
}

/// A reference to a node.
#[derive(Clone, Copy)]
pub(crate) struct Node<'g>(pub(crate) InnerRef<'g, Layouts>);

/// The place of a link's object.
#[inline(always)]
pub(crate) fn offset_of(link: Link) -> Result<Offset, Fault> {
    link.offset().ok_or(Fault {
        what: "null link",
        offset: 0,
    })
}

/// The offset of a byte's slot in an N256.
#[inline(always)]
pub(crate) fn slot_in_n256(byte: u8) -> usize {
    std::mem::offset_of!(N256, slots) + usize::from(byte) * size_of::<PSlot>()
}

impl N256 {
    #[inline(always)]
    pub(crate) fn child(&self, byte: u8) -> &PSlot {
        &self.slots[usize::from(byte)]
    }

    /// The slots of all bytes.
    pub(crate) fn slots(&self) -> &[PSlot; 256] {
        &self.slots
    }
}

impl N16 {
    /// The child for `byte`, if a key byte leads to it. Prefetches the entries' lines, since the key bytes are in
    /// another one.
    #[inline(always)]
    fn hinted<M: Media>(&self, media: &M, byte: u8) -> Option<(&PSlot, Link)> {
        prefetch(&self.slots[0]);
        prefetch(&self.slots[8]);
        for (half, word) in self.keys.iter().enumerate() {
            let mut places = bytes_like(word.load(media), byte);
            while places != 0 {
                let slot = self.slots.get(half * 8 + places.trailing_zeros() as usize / 8)?;
                if let found @ Some(_) = matching(media, slot, byte) {
                    return found;
                }
                places &= places - 1;
            }
        }
        None
    }

    fn set_key<M: Media>(&self, media: &M, entry: usize, byte: u8) {
        let word = &self.keys[entry / 8];
        word.store(with_byte(word.load(media), entry, byte), media);
    }
}

impl N48 {
    fn hint<M: Media>(&self, media: &M, byte: u8) -> usize {
        let word = self.index[index_word(byte)].load(media);
        usize::from(byte_at(word, byte.into()))
    }

    /// Sets the hint for a byte: an entry's number plus one; 0: none.
    fn set_hint<M: Media>(&self, media: &M, byte: u8, hint: u8) {
        let word = &self.index[index_word(byte)];
        word.store(with_byte(word.load(media), byte.into(), hint), media);
    }

    fn hinted<M: Media>(&self, media: &M, byte: u8) -> Option<(&PSlot, Link)> {
        let slot = self.slots.get(self.hint(media, byte).checked_sub(1)?)?;
        matching(media, slot, byte)
    }
}

impl<'g> Node<'g> {
    /// The node that `link` leads to.
    #[inline(always)]
    pub(crate) fn at<M: Media>(heap: &'g Access<M>, link: Link) -> Result<Node<'g>, Fault> {
        InnerRef::at(heap, link).map(Node)
    }

    /// The node that a [plain](Tagged::is_plain) link to an N256 leads to.
    #[inline(always)]
    pub(crate) fn n256_at<M: Media>(heap: &'g Access<M>, link: Link) -> Result<Node<'g>, Fault> {
        Ok(Node(InnerRef::N256(heap.at(offset_of(link)?)?)))
    }

    pub(crate) fn header(&self) -> &'g Header {
        each_kind!(self.0, node => &node.header)
    }

    pub(crate) fn kind(&self) -> Kind {
        self.0.kind()
    }

    /// Bytes of the node.
    pub(crate) fn size(&self) -> usize {
        Layouts::size(self.kind())
    }

    /// All slots except `ends`. The n-th slot of an N256 is for byte n; elsewhere the links have their bytes.
    pub(crate) fn slots(&self) -> &'g [PSlot] {
        each_kind!(self.0, node => &node.slots)
    }

    /// The child for `byte` of this node of level `level`, and its slot.
    #[inline(always)]
    pub(crate) fn find<V: Variant, M: Media>(
        &self,
        heap: &Access<M>,
        level: usize,
        byte: u8,
    ) -> Result<Option<(&'g PSlot, Link)>, Fault> {
        let media = heap.media();
        Ok(match self.0 {
            InnerRef::N4(node) if V::EC => node.slots.iter().find_map(|slot| matching(media, slot, byte)),
            InnerRef::N4(node) => {
                // A key byte counts only with a pointer beside it, and was durable before that.
                let keys = (node.header.meta.peek(media) >> 32) as u32;
                let slots = keys.to_le_bytes().into_iter().zip(&node.slots);
                slots
                    .filter(|(key, _)| *key == byte)
                    .find_map(|(_, slot)| matching(media, slot, byte))
            }
            InnerRef::N16(node) => match node.hinted(media, byte) {
                None => return self.find_anew(heap, level, byte, |media| node.hinted(media, byte)),
                found => found,
            },
            InnerRef::N48(node) => match node.hinted(media, byte) {
                None => return self.find_anew(heap, level, byte, |media| node.hinted(media, byte)),
                found => found,
            },
            InnerRef::N256(node) => {
                let slot = &node.slots[usize::from(byte)];
                let link = slot.load(media);
                (!link.is_null()).then_some((slot, link))
            }
        })
    }

    /// The child for `byte`, for which no hint was found: after a restart the hints may have been missing.
    #[inline(never)]
    fn find_anew<M: Media>(
        &self,
        heap: &Access<M>,
        level: usize,
        byte: u8,
        hinted: impl Fn(&M) -> Option<(&'g PSlot, Link)>,
    ) -> Result<Option<(&'g PSlot, Link)>, Fault> {
        let media = heap.media();
        if self.header().lock.is_current(media, heap.generation()) {
            // The hint may have been read before a repair that has ended by now.
            return Ok(hinted(media));
        }
        self.repair_at_first_touch(heap, level)?;
        Ok(self.slots().iter().find_map(|slot| matching(media, slot, byte)))
    }

    /// The slot of `key` in this node of level `level`, and its link; no slot if no entry is used for the key's byte
    /// yet.
    #[inline(always)]
    pub(crate) fn slot<V: Variant, M: Media>(
        &self,
        heap: &Access<M>,
        level: usize,
        key: &[u8],
    ) -> Result<(Option<&'g PSlot>, Link), Fault> {
        // In a large index nearly all steps are through such nodes.
        if let (InnerRef::N256(node), Some(&byte)) = (self.0, key.get(level)) {
            let slot = node.child(byte);
            let link = slot.load(heap.media());
            return Ok(((!link.is_null()).then_some(slot), link));
        }
        self.slot_by_kind::<V, M>(heap, level, key)
    }

    #[inline(never)]
    fn slot_by_kind<V: Variant, M: Media>(
        &self,
        heap: &Access<M>,
        level: usize,
        key: &[u8],
    ) -> Result<(Option<&'g PSlot>, Link), Fault> {
        Ok(match key.get(level) {
            None => {
                let ends = &self.header().ends;
                (Some(ends), ends.load(heap.media()))
            }
            Some(&byte) => match self.find::<V, M>(heap, level, byte)? {
                Some((slot, link)) => (Some(slot), link),
                None => (None, Link::NULL),
            },
        })
    }

    /// The children in use, in no particular order, without `ends`.
    pub(crate) fn children<M: Media>(&self, media: &'g M) -> impl Iterator<Item = Link> + use<'g, M> {
        self.slots()
            .iter()
            .map(|slot| slot.load(media))
            .filter(|link| !link.is_null())
    }

    /// The number of children in use, without `ends`. The caller holds the lock.
    pub(crate) fn count<M: Media>(&self, media: &'g M) -> usize {
        match self.0 {
            InnerRef::N48(node) => node.count.load(media) as usize,
            InnerRef::N256(node) => node.count.load(media) as usize,
            _ => self.children(media).count(),
        }
    }

    /// Takes the lock, and rebuilds stale metadata after a restart. The caller has checked the node's kind and level
    /// (I6).
    #[inline(always)]
    pub(crate) fn lock<M: Media>(
        &self,
        heap: &'g Access<M>,
    ) -> Result<Result<Locked<'g, M>, Obsolete>, Fault> {
        self.check_stale(heap)?;
        let lock = &self.header().lock;
        Ok(lock.lock(heap.media(), heap.generation()).map(|mut locked| {
            self.repair(&mut locked, heap);
            locked
        }))
    }

    /// Like [`lock`](Node::lock), if the lock is free.
    pub(crate) fn try_lock<M: Media>(&self, heap: &'g Access<M>) -> Result<Option<Locked<'g, M>>, Fault> {
        self.check_stale(heap)?;
        let taken = self.header().lock.try_lock(heap.media(), heap.generation());
        Ok(taken.ok().flatten().map(|mut locked| {
            self.repair(&mut locked, heap);
            locked
        }))
    }

    #[inline(always)]
    fn check_stale<M: Media>(&self, heap: &Access<M>) -> Result<(), Fault> {
        let lock = &self.header().lock;
        lock.check_stale(heap.media(), heap.generation(), || self.check_slots(heap))
    }

    /// Checks that the slots can be those of a node of this kind. A node with one child is sound too: a crash or a full
    /// pool may leave it.
    #[cold]
    #[inline(never)]
    fn check_slots<M: Media>(&self, heap: &Access<M>) -> Result<(), Fault> {
        let media = heap.media();
        let header = self.header();
        let mut seen = [false; 256];
        let mut children = 0;
        for (position, slot) in self.slots().iter().enumerate() {
            let link = slot.peek(media);
            if link.is_null() {
                continue;
            }
            let byte = usize::from(link.byte());
            let is_misplaced = self.kind() == Kind::N256 && position != byte;
            let is_second = std::mem::replace(&mut seen[byte], true);
            if link.kind() == Kind::Null || link.offset().is_none() || is_misplaced || is_second {
                return Err(self.fault("node's slots", heap));
            }
            children += 1;
        }
        let ends = header.ends.peek(media);
        let is_leaf = ends.kind() == Kind::Leaf && ends.offset().is_some();
        if !ends.is_null() && !is_leaf {
            return Err(self.fault("leaf of the key that ends at a node", heap));
        }
        // Only the root may have no children.
        if children == 0 && ends.is_null() && header.level(media) > 0 {
            return Err(self.fault("node without children", heap));
        }
        Ok(())
    }

    #[cold]
    fn fault<M: Media>(&self, what: &'static str, heap: &Access<M>) -> Fault {
        let start = std::ptr::from_ref(self.header()).addr();
        Fault {
            what,
            offset: (start - heap.pool().base().as_ptr().addr()) as u64,
        }
    }

    #[inline]
    fn repair<M: Media>(&self, locked: &mut Locked<'_, M>, heap: &Access<M>) {
        if locked.is_stale() {
            self.rebuild(heap.media());
            locked.repaired();
        }
    }

    /// Repairs a node that a reader has reached; the reader has not checked the node's level.
    #[cold]
    fn repair_at_first_touch<M: Media>(&self, heap: &'g Access<M>, level: usize) -> Result<(), Fault> {
        match self.header().fault(self.kind(), level, heap.media()) {
            Some(what) => Err(self.fault(what, heap)),
            None => self.try_lock(heap).map(drop),
        }
    }

    /// Computes the volatile metadata from the entries (§3.3.1), and clears the marks that a crash has left. The
    /// caller holds the lock.
    fn rebuild<M: Media>(&self, media: &M) {
        self.header().ends.settle(media);
        match self.0 {
            InnerRef::N4(node) => node.slots.iter().for_each(|slot| {
                slot.settle(media);
            }),
            InnerRef::N16(node) => {
                for (entry, slot) in node.slots.iter().enumerate() {
                    node.set_key(media, entry, slot.settle(media).byte());
                }
            }
            InnerRef::N48(node) => {
                let mut words = [0; 32];
                let mut count = 0;
                for (i, slot) in node.slots.iter().enumerate() {
                    let link = slot.settle(media);
                    if !link.is_null() {
                        let word = &mut words[index_word(link.byte())];
                        *word = with_byte(*word, link.byte().into(), i as u8 + 1);
                        count += 1;
                    }
                }
                for (word, value) in node.index.iter().zip(words) {
                    word.store(value, media);
                }
                node.count.store(count, media);
            }
            InnerRef::N256(node) => {
                let count = node
                    .slots
                    .iter()
                    .filter(|slot| !slot.settle(media).is_null())
                    .count();
                node.count.store(count as u64, media);
            }
        }
    }

    /// An unused entry, for `byte`; `None` if the node is full. The caller holds the lock.
    pub(crate) fn vacant<M: Media>(&self, media: &M, byte: u8) -> Option<Vacant<'g>> {
        let entry = match self.0 {
            InnerRef::N256(_) => usize::from(byte),
            _ => self.slots().iter().position(|slot| slot.load(media).is_null())?,
        };
        Some(Vacant {
            node: *self,
            entry,
            byte,
        })
    }

    /// Empties a used slot. The caller holds the lock. Costs 1 write-back and 1 fence.
    pub(crate) fn clear<V: Variant, M: Media>(&self, media: &M, slot: &PSlot, byte: Option<u8>) {
        let _durable = slot.publish_link::<V::Publish, M>(media, Link::NULL).commit();
        if let Some(byte) = byte {
            self.note::<V, M>(media, byte, 0, -1);
        }
    }

    /// Changes count and child index by one entry; persists them if selective metadata persistence is off.
    fn note<V: Variant, M: Media>(&self, media: &M, byte: u8, hint: u8, change: i64) {
        let counted = |count: &VWord| count.load(media).wrapping_add_signed(change);
        if V::SMP {
            match self.0 {
                InnerRef::N4(_) | InnerRef::N16(_) => {}
                InnerRef::N48(node) => {
                    if hint == 0 {
                        node.set_hint(media, byte, 0);
                    }
                    node.count.store(counted(&node.count), media);
                }
                InnerRef::N256(node) => node.count.store(counted(&node.count), media),
            }
            return;
        }
        let count = match self.0 {
            InnerRef::N4(_) => return,
            InnerRef::N16(node) => &node.count,
            InnerRef::N48(node) => &node.count,
            InnerRef::N256(node) => &node.count,
        };
        persist_scope(media, Purpose::Node, |batch| {
            count.store_persistent(counted(count), &batch);
            if let InnerRef::N48(node) = self.0 {
                let word = &node.index[index_word(byte)];
                word.store_persistent(with_byte(word.load(media), byte.into(), hint), &batch);
            }
            batch.fence();
        });
    }
}

/// A free entry of a locked node.
pub(crate) struct Vacant<'g> {
    node: Node<'g>,
    entry: usize,
    byte: u8,
}

impl Vacant<'_> {
    /// Sets the hint for the entry (I4). Called before the fence that makes the leaf durable, since only a fence orders
    /// this store with a publication that bypasses the cache; otherwise a scan could find a key that a get does not.
    /// Until the publication the hint leads to an empty entry.
    pub(crate) fn name<V: Variant, M: Media>(&self, media: &M) {
        match self.node.0 {
            InnerRef::N16(inner) if V::EC => inner.set_key(media, self.entry, self.byte),
            InnerRef::N48(inner) => inner.set_hint(media, self.byte, self.entry as u8 + 1),
            _ => {}
        }
    }

    /// Publishes a leaf in the entry, which is [named](Vacant::name): with all techniques on, this costs 1 write-back
    /// and 1 fence.
    pub(crate) fn publish<V: Variant, M: Media, T: Persistent>(
        self,
        media: &M,
        object: pmem::Persisted<'_, T>,
        kind: Kind,
        aux: u8,
    ) {
        let Vacant { node, entry, byte } = self;
        if !V::EC {
            self.persist_key_byte(media);
        }
        let slot = &node.slots()[entry];
        let _durable = slot
            .publish::<V::Publish, M, T>(media, object, child_tag(kind, byte, aux))
            .commit();
        node.note::<V, M>(media, byte, (entry + 1) as u8, 1);
    }

    /// Without entry compression the key byte is durable before the pointer.
    fn persist_key_byte<M: Media>(&self, media: &M) {
        persist_scope(media, Purpose::Node, |batch| {
            match self.node.0 {
                InnerRef::N4(node) => {
                    let meta = &node.header.meta;
                    meta.store(with_byte(meta.load(media), self.entry + 4, self.byte), &batch);
                }
                InnerRef::N16(node) => {
                    let word = &node.keys[self.entry / 8];
                    word.store_persistent(with_byte(word.load(media), self.entry, self.byte), &batch);
                }
                InnerRef::N48(node) => {
                    let word = &node.index[index_word(self.byte)];
                    let hint = with_byte(word.load(media), self.byte.into(), self.entry as u8 + 1);
                    word.store_persistent(hint, &batch);
                }
                InnerRef::N256(_) => return,
            }
            batch.fence();
        });
    }
}
