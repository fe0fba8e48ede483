//! Leaf arrays (ROART §3.2): up to 64 leaves below one slot, in no order, each with a fingerprint of its key.
//!
//! ```text
//!  0  lock          8  class          16  entries: fingerprint:16 | offset:48, zero is empty
//! ```
//!
//! I1 An entry changes by one store, under the array's lock.
//! I2 All keys of an array begin with the bytes that lead to its slot. The array may move down, when a node is put
//!    above it (under the array's lock), but never up: a scan that holds its link may rely on its contents.
//! I3 A published array has at least two leaves, and at most [`MAX_LEAVES`].
//! I4 The lock is the only volatile metadata: the entries show which of them are in use.
//!
//! The smallest class fills half a line, so that it can share its line with the leaf that made it necessary.

use crate::Variant;
use crate::fingerprint::{fingerprint, leaf_tag};
use art::{Kind, Leaf, LeafRef, Tagged, draft_leaf, fill_leaf, prefetch, same, same_object};
use heap::{Access, Error, Heap};
use pmem::{
    Draft, Erased, Fault, Flushed, GenerationLock, Link, Locked, Media, Obsolete, Offset, PSlot, PWord,
    PersistBatch, persistent,
};

/// Entries of each size class; with the head they fill 32, 64, 128, 256, 384 and 528 bytes.
pub(crate) const CAPACITIES: [usize; 6] = [2, 6, 14, 30, 46, 64];

/// Maximum number of leaves of an array: the paper's m.
pub(crate) const MAX_LEAVES: usize = CAPACITIES[CAPACITIES.len() - 1];

/// Maximum number of leaves of an array in repeated splits, so that it has room for many inserts before the next
/// split: in a chain, where each key is a prefix of the next, one key at a time parts from all others.
pub(crate) const ROOM: usize = CAPACITIES[CAPACITIES.len() - 2];

persistent! {
    struct Head [size: 16] {
        lock: GenerationLock,
        class: PWord,
    }

    /// A leaf array of one size class.
    struct Array<const N: usize> [size: 16 + 8 * N] {
        head: Head,
        slots: [PSlot; N],
    }
}

/// An entry, its link, and the leaf that the link leads to.
pub(crate) type Found<'g> = (&'g PSlot, Link, LeafRef<'g>);

/// A reference to an array.
#[derive(Clone, Copy)]
pub(crate) struct ArrayRef<'g> {
    head: &'g Head,
    slots: &'g [PSlot],
}

/// The class for `count` leaves, if there is one.
fn class_for<V: Variant>(count: usize) -> Option<usize> {
    let smallest = if V::SIZES { 0 } else { CAPACITIES.len() - 1 };
    (smallest..CAPACITIES.len()).find(|&class| count <= CAPACITIES[class])
}

/// Number of entries of the array that a link leads to; 0 if the link has a class that does not exist.
#[inline(always)]
pub(crate) fn capacity_of(link: Link) -> usize {
    CAPACITIES
        .get(usize::from(link.aux()))
        .copied()
        .unwrap_or_default()
}

/// Bytes of the array that a link leads to.
#[inline(always)]
pub(crate) fn array_size(link: Link) -> usize {
    size_of::<Head>() + capacity_of(link) * size_of::<PSlot>()
}

impl<'g> ArrayRef<'g> {
    /// The array that `link` leads to.
    #[inline]
    pub(crate) fn at<M: Media>(heap: &'g Access<M>, link: Link) -> Result<ArrayRef<'g>, Fault> {
        let (Some(offset), capacity @ 1..) = (link.offset(), capacity_of(link)) else {
            return Err(art::damaged("leaf array's link", link));
        };
        let slots = Offset::new(offset.get() + size_of::<Head>() as u64);
        let slots = slots.ok_or_else(|| art::damaged("leaf array's link", link))?;
        Ok(ArrayRef {
            head: heap.at(offset)?,
            slots: heap.slice(slots, capacity)?,
        })
    }

    /// Takes the lock of the array at `link`, whose keys all begin with `path`. After a restart only marks left by a
    /// crash are repaired (I4).
    #[inline(always)]
    pub(crate) fn lock<M: Media>(
        &self,
        heap: &'g Access<M>,
        link: Link,
        path: &[u8],
    ) -> Result<Result<Locked<'g, M>, Obsolete>, Fault> {
        self.check_head(heap, link, path)?;
        let lock = &self.head.lock;
        Ok(lock.lock(heap.media(), heap.generation()).map(|mut locked| {
            self.repair(&mut locked, heap);
            locked
        }))
    }

    /// Like [`lock`](ArrayRef::lock), if the lock is free.
    pub(crate) fn try_lock<M: Media>(
        &self,
        heap: &'g Access<M>,
        link: Link,
        path: &[u8],
    ) -> Result<Option<Locked<'g, M>>, Fault> {
        self.check_head(heap, link, path)?;
        let taken = self.head.lock.try_lock(heap.media(), heap.generation());
        Ok(taken.ok().flatten().map(|mut locked| {
            self.repair(&mut locked, heap);
            locked
        }))
    }

    #[inline(always)]
    fn check_head<M: Media>(&self, heap: &Access<M>, link: Link, path: &[u8]) -> Result<(), Fault> {
        let (media, lock) = (heap.media(), &self.head.lock);
        self.check_class(link, media)?;
        lock.check_stale(media, heap.generation(), || self.check_entries(heap, link, path))
    }

    /// Checks that the array has at least two entries, that all are leaves, and that the key of the first one begins
    /// with `path`.
    #[cold]
    #[inline(never)]
    fn check_entries<M: Media>(&self, heap: &Access<M>, link: Link, path: &[u8]) -> Result<(), Fault> {
        let entries = self.slots.iter().map(|slot| slot.peek(heap.media()));
        let leaves = || entries.clone().filter(|leaf| !leaf.is_null());
        if leaves().any(|leaf| leaf.kind() != Kind::Leaf) || leaves().count() < 2 {
            return Err(art::damaged("leaf array's entries", link));
        }
        let is_first_sound = match leaves().next() {
            Some(first) => LeafRef::at(heap, first)?.key().starts_with(path),
            None => false,
        };
        if is_first_sound {
            Ok(())
        } else {
            Err(art::damaged("leaf array's keys", link))
        }
    }

    #[inline]
    fn repair<M: Media>(&self, locked: &mut Locked<'_, M>, heap: &Access<M>) {
        if locked.is_stale() {
            for slot in self.slots {
                slot.settle(heap.media());
            }
            locked.repaired();
        }
    }

    /// Its lock.
    pub(crate) fn lock_word(&self) -> &'g GenerationLock {
        &self.head.lock
    }

    /// Checks that the array's class is that of the link to it. Called before the lock is taken: behind a damaged
    /// link the lock may be something else.
    pub(crate) fn check_class<M: Media>(&self, link: Link, media: &M) -> Result<(), Fault> {
        if self.head.class.load(media) == u64::from(link.aux()) {
            Ok(())
        } else {
            Err(art::damaged("leaf array's class", link))
        }
    }

    /// Bytes of the array.
    pub(crate) fn size(&self) -> usize {
        size_of::<Head>() + size_of_val(self.slots)
    }

    /// All entries.
    pub(crate) fn slots(&self) -> &'g [PSlot] {
        self.slots
    }

    /// The leaves.
    pub(crate) fn leaves<M: Media>(&self, media: &'g M) -> impl Iterator<Item = Link> + use<'g, M> {
        self.slots
            .iter()
            .map(|slot| slot.load(media))
            .filter(|link| !link.is_null())
    }

    /// The number of leaves other than `link`'s. Does not branch on the entries: it may be called for each removal.
    pub(crate) fn count_without<M: Media>(&self, link: Link, media: &M) -> usize {
        let is_other = |slot: &PSlot| {
            let other = slot.load(media);
            !other.is_null() & !same_object(other, link)
        };
        self.slots.iter().map(|slot| usize::from(is_other(slot))).sum()
    }

    /// An unused entry.
    pub(crate) fn vacant<M: Media>(&self, media: &M) -> Option<&'g PSlot> {
        PSlot::candidates(self.slots, leaf_tag(0), media).find(|slot| slot.load(media).is_null())
    }

    /// The leaf of `key`, with its entry.
    #[inline]
    pub(crate) fn find<M: Media>(&self, heap: &'g Access<M>, key: &[u8]) -> Result<Option<Found<'g>>, Fault> {
        self.find_by(fingerprint(key), heap, key)
    }

    /// Like [`find`](ArrayRef::find), given the key's fingerprint.
    #[inline]
    pub(crate) fn find_by<M: Media>(
        &self,
        print: u16,
        heap: &'g Access<M>,
        key: &[u8],
    ) -> Result<Option<Found<'g>>, Fault> {
        let wanted = leaf_tag(print);
        for slot in PSlot::candidates(self.slots, wanted, heap.media()) {
            let link = slot.load(heap.media());
            if link.tag() == wanted {
                let leaf = LeafRef::at(heap, link)?;
                if same(leaf.key(), key) {
                    return Ok(Some((slot, link, leaf)));
                }
            }
        }
        Ok(None)
    }

    /// The leaf of `key`, if the fingerprints leave exactly one candidate.
    pub(crate) fn candidate<M: Media>(&self, heap: &Access<M>, key: &[u8]) -> Option<Link> {
        let wanted = leaf_tag(fingerprint(key));
        let mut matching = PSlot::candidates(self.slots, wanted, heap.media())
            .map(|slot| slot.load(heap.media()))
            .filter(|link| link.tag() == wanted);
        let only = matching.next()?;
        matching.next().is_none().then_some(only)
    }

    /// The first candidate by `key`'s fingerprint, for prefetching.
    pub(crate) fn likely<M: Media>(&self, heap: &Access<M>, key: &[u8]) -> Option<Link> {
        let wanted = leaf_tag(fingerprint(key));
        let slots = PSlot::candidates(self.slots, wanted, heap.media());
        let mut links = slots.map(|slot| slot.peek(heap.media()));
        links.find(|link| link.tag() == wanted)
    }

    /// Prefetches the first lines of all leaves.
    pub(crate) fn prefetch_leaves<M: Media>(&self, heap: &Access<M>) {
        let base = heap.pool().base().as_ptr();
        for slot in self.slots {
            // An empty entry is treated as a place like any other: a branch on it would be unpredictable.
            let offset = slot.peek(heap.media()).bits() & Offset::MASK;
            prefetch(base.wrapping_add(offset as usize));
        }
    }
}

/// An entry of an array under construction.
pub(crate) enum DraftEntry<'e, 'h> {
    /// A reachable leaf, tagged with its fingerprint.
    Reachable(Link),
    /// A new leaf, and its fingerprint.
    New(Flushed<'e, 'h, Leaf>, u16),
}

/// The place of a new object, and its length. The caller gives this space back if it does not link the object.
pub(crate) type Extent = (Offset, usize);

const TOO_LONG: Fault = Fault {
    what: "leaf array's length",
    offset: 0,
};

/// Builds the smallest array that holds `entries`.
pub(crate) fn draft_array<'e, 'h, M: Media, V: Variant>(
    heap: &'h Heap<M>,
    batch: &PersistBatch<'e, 'h, M>,
    entries: Vec<DraftEntry<'e, 'h>>,
) -> Result<(Flushed<'e, 'h, Erased>, u8, Extent), Error> {
    let class = class_for::<V>(entries.len()).ok_or(TOO_LONG)?;
    let fill = Contents::Entries(entries);
    let (object, offset) = draft_class(heap, batch, class, fill)?;
    let size = size_of::<Head>() + CAPACITIES[class] * size_of::<PSlot>();
    Ok((object, class as u8, (offset, size)))
}

/// Builds the next larger array, with the leaves of a full one, whose lock the caller holds, and a new leaf.
pub(crate) fn draft_enlarged<'e, 'h, M: Media, V: Variant>(
    heap: &'h Heap<M>,
    batch: &PersistBatch<'e, 'h, M>,
    array: &ArrayRef<'_>,
    leaf: Flushed<'e, 'h, Leaf>,
    print: u16,
) -> Result<(Flushed<'e, 'h, Erased>, u8), Error> {
    let class = class_for::<V>(array.slots.len() + 1).ok_or(TOO_LONG)?;
    let (object, _) = draft_class(heap, batch, class, Contents::Copy(array, leaf, print))?;
    Ok((object, class as u8))
}

/// The contents of an array under construction.
enum Contents<'a, 'e, 'h> {
    Entries(Vec<DraftEntry<'e, 'h>>),
    /// The leaves of this array and a new one with its fingerprint.
    Copy(&'a ArrayRef<'a>, Flushed<'e, 'h, Leaf>, u16),
}

fn draft_class<'e, 'h, M: Media>(
    heap: &'h Heap<M>,
    batch: &PersistBatch<'e, 'h, M>,
    class: usize,
    fill: Contents<'_, 'e, 'h>,
) -> Result<(Flushed<'e, 'h, Erased>, Offset), Error> {
    match class {
        0 => build::<2, M>(heap, batch, class, fill),
        1 => build::<6, M>(heap, batch, class, fill),
        2 => build::<14, M>(heap, batch, class, fill),
        3 => build::<30, M>(heap, batch, class, fill),
        4 => build::<46, M>(heap, batch, class, fill),
        _ => build::<64, M>(heap, batch, class, fill),
    }
}

/// An array of this class without leaves.
fn empty<const N: usize>(generation: u32, class: usize) -> Array<N> {
    let head = Head {
        lock: GenerationLock::new(generation),
        class: PWord::new(class as u64),
    };
    Array {
        head,
        slots: [const { PSlot::null() }; N],
    }
}

fn build<'e, 'h, const N: usize, M: Media>(
    heap: &'h Heap<M>,
    batch: &PersistBatch<'e, 'h, M>,
    class: usize,
    fill: Contents<'_, 'e, 'h>,
) -> Result<(Flushed<'e, 'h, Erased>, Offset), Error> {
    let mut draft = heap.draft(empty::<N>(heap.generation(), class), 0, batch)?;
    match fill {
        Contents::Entries(entries) => {
            for (i, entry) in entries.into_iter().enumerate() {
                put(&mut draft, i, entry);
            }
        }
        Contents::Copy(array, leaf, print) => {
            for (i, slot) in array.slots.iter().enumerate() {
                let link = slot.load(heap.media());
                draft.link(|larger| &mut larger.slots[i], link);
            }
            put(&mut draft, array.slots.len(), DraftEntry::New(leaf, print));
        }
    }
    let offset = draft.offset();
    Ok((draft.flush(batch).erased(), offset))
}

fn put<'e, 'h, const N: usize>(draft: &mut Draft<'e, 'h, Array<N>>, i: usize, entry: DraftEntry<'e, 'h>) {
    match entry {
        DraftEntry::Reachable(link) => draft.link(|array| &mut array.slots[i], link),
        DraftEntry::New(leaf, print) => draft.adopt(|array| &mut array.slots[i], leaf, leaf_tag(print)),
    }
}

/// Builds a new leaf and the smallest array that holds it beside `old`, both in one line if they fit.
pub(crate) fn draft_pair<'e, 'h, M: Media, V: Variant>(
    heap: &'h Heap<M>,
    batch: &PersistBatch<'e, 'h, M>,
    (link, old_key): (Link, &[u8]),
    key: &[u8],
    value: &[u8],
) -> Result<(Flushed<'e, 'h, Erased>, u8), Error> {
    let old = DraftEntry::Reachable(link.with_tag(leaf_tag(fingerprint(old_key))));
    if !V::SIZES {
        let leaf = draft_leaf(heap, key, value, batch)?.flush(batch);
        let (array, class, _) =
            draft_array::<M, V>(heap, batch, vec![old, DraftEntry::New(leaf, fingerprint(key))])?;
        return Ok((array, class));
    }
    let leaf = Leaf::new(key, value);
    let tail = leaf.tail();
    let (mut leaf, mut array) = heap.draft_pair(leaf, tail, empty::<2>(heap.generation(), 0), 0, batch)?;
    fill_leaf(&mut leaf, key, value);
    put(&mut array, 0, old);
    put(
        &mut array,
        1,
        DraftEntry::New(leaf.flush(batch), fingerprint(key)),
    );
    Ok((array.flush(batch).erased(), 0))
}

/// The fault of the array itself, if there is one.
pub(crate) fn fault<M: Media, V: Variant>(
    array: &ArrayRef<'_>,
    link: Link,
    heap: &Access<M>,
) -> Option<&'static str> {
    if array.check_class(link, heap.media()).is_err() {
        return Some("the leaf array's class does not match its link");
    }
    if !V::LC {
        return Some("a leaf array in an index without leaf compaction");
    }
    let mut count = 0;
    for leaf in array.leaves(heap.media()) {
        if leaf.kind() != Kind::Leaf {
            return Some("an entry of a leaf array is not a leaf");
        }
        count += 1;
    }
    (count < 2).then_some("a leaf array of fewer than two leaves")
}
