//! Leaves of the base tree (DPTree §2.2, Fig. 3).
//!
//! ```text
//!    0   lock      GenerationLock            16  passed    a bit for each group: a pair of that group
//!    8   capacity C                                        is further on                         (volatile)
//!   24   lengths   of the two orders, 16 bits each (volatile)
//!   32   records   a bit for each slot: the value is a link to a record
//!   64   metadata of version 0, and at 128 of version 1:
//!          0  bitmap     a bit for each slot
//!         32  next       the leaf that follows
//!         40  last       the slot of the greatest key
//!  192   fingerprints    C bytes                            (volatile)
//!        orders          C bytes for each version           (volatile)
//!        slots           C pairs of words: prefix of the key, value
//! ```
//!
//! A *group* is 64 slots: one word of the bitmap, one line of fingerprints, 16 lines of pairs. The hash of a key
//! determines its group; if that is full, the pair goes into the next one with room (linear probing). Within a group
//! the pairs that a merge adds share lines where they can, so that few lines are written.
//!
//! I1 A merge changes only the metadata of the version that does not count; slots that are not in the valid version's
//!    bitmap, nor its `last`, with their bits in `records`; and volatile parts. So the valid contents do not change
//!    until the root's state does. (In-place updates store one word of a slot, in-place removals clear one bit of the
//!    bitmap, both under the lock and never during a merge.)
//! I2 The slot named by `last` keeps its key while the version counts: it marks the end of the leaf's range. So its
//!    pair is not removed in place, and no merge writes to the slot.
//! I3 The first thread that touches the leaf in a generation rebuilds the volatile parts from the rest (partial
//!    persistence); the lock's generation is the paper's restart count.
//! I4 While an in-place change may not be durable yet, the lock is held: a reader that finds it held persists what it
//!    has read; and the first thread to touch a leaf in a generation persists changes that a killed process may have
//!    left.

use super::slots::{Bits, GROUP, GROUPS, equal_bytes, has, home, passed_by, print, slots_of};
use crate::key::{MarkedPair, SearchKey};
use crate::options::Probing;
use crate::root::tag;
use heap::{Access, Error};
use index::codec::{PairWords, RecordRef};
use pmem::{
    Fault, GenerationLock, Link, Locked, Media, Offset, PEither, PSlot, PWord, Purpose, VWord, persist_scope,
    persistent,
};
use std::cmp::Ordering;
use std::mem::offset_of;
use std::ops::{Deref, Range};

persistent! {
    #[derive(Debug)]
    pub(crate) struct Head [size: 192, align: 64] {
        lock: GenerationLock,
        capacity: PWord,
        passed: VWord,
        lengths: VWord,
        pub(crate) records: [PWord; GROUPS],
        meta: [Meta; 2],
    }

    #[derive(Debug, Default)]
    pub(crate) struct Meta [size: 64] {
        pub(crate) bitmap: [PWord; GROUPS],
        pub(crate) next: PSlot,
        pub(crate) last: PWord,
        unused: [PWord; 2],
    }

    /// A slot.
    #[derive(Debug)]
    pub(crate) struct Pair [size: 16] {
        pub(crate) prefix: PWord,
        pub(crate) value: PEither,
    }

    /// A whole leaf of the largest capacity.
    #[derive(Debug)]
    struct Largest [size: 192 + 19 * LARGEST, align: 64] {
        head: Head,
        prints: [VWord; LARGEST / 8],
        orders: [[VWord; LARGEST / 8]; 2],
        slots: [Pair; LARGEST],
    }
}

/// The largest capacity, which is the usual one.
const LARGEST: usize = GROUP * GROUPS;

const HEAD: usize = size_of::<Head>();
const PAIR: usize = size_of::<Pair>();

/// Number of bytes after the head.
pub(crate) const fn tail(capacity: usize) -> usize {
    capacity * (3 + PAIR)
}

/// Number of bytes of a whole leaf.
pub(crate) const fn extent(capacity: usize) -> usize {
    HEAD + tail(capacity)
}

/// Prefetches the lines of a leaf that show whether it has a key: its lock's, the version's metadata, and the
/// fingerprints of the key's group.
#[inline]
pub(crate) fn prefetch<M: Media>(heap: &Access<M>, link: Link, capacity: usize, version: usize, hash: u64) {
    let start = heap.pool().base().as_ptr().cast_const();
    let start = start.wrapping_add((link.bits() & Offset::MASK) as usize);
    pmem::prefetch(start);
    pmem::prefetch(start.wrapping_add(offset_of!(Head, meta) + version * size_of::<Meta>()));
    pmem::prefetch(start.wrapping_add(HEAD + home(hash, capacity / GROUP) * GROUP));
}

/// Slots in the order of their keys.
#[derive(Debug)]
pub(crate) struct Order {
    slots: [u8; GROUP * GROUPS],
    len: usize,
}

impl Order {
    pub(crate) fn new() -> Order {
        Order {
            slots: [0; GROUP * GROUPS],
            len: 0,
        }
    }

    /// Adds a slot; a leaf has no more than there is room for.
    #[inline]
    pub(crate) fn push(&mut self, slot: u8) {
        self.slots[self.len] = slot;
        self.len += 1;
    }
}

impl Deref for Order {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.slots[..self.len]
    }
}

/// A reference to a leaf.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafRef<'g> {
    pub(crate) head: &'g Head,
    prints: &'g [VWord],
    orders: [&'g [VWord]; 2],
    pub(crate) slots: &'g [Pair],
    pub(crate) offset: Offset,
}

impl<'g> LeafRef<'g> {
    /// The leaf at `link`, with the capacity that it states.
    #[inline]
    pub(crate) fn at<M: Media>(heap: &'g Access<M>, link: Link) -> Result<LeafRef<'g>, Error> {
        let offset = link.offset().ok_or(Fault {
            what: "null leaf",
            offset: 0,
        })?;
        let fault = Fault {
            what: "leaf of a DPTree",
            offset: offset.get(),
        };
        let head: &Head = heap.at(offset)?;
        let capacity = head.capacity.load(heap.media()) as usize;
        if !(GROUP..=GROUP * GROUPS).contains(&capacity) || !capacity.is_multiple_of(GROUP) {
            return Err(fault.into());
        }
        if capacity == LARGEST {
            // It is checked at once that all of it lies in the pool.
            let leaf: &Largest = heap.at(offset)?;
            return Ok(LeafRef {
                head: &leaf.head,
                prints: &leaf.prints,
                orders: [&leaf.orders[0], &leaf.orders[1]],
                slots: &leaf.slots,
                offset,
            });
        }
        let place = |bytes: usize| Offset::new(offset.get() + bytes as u64).ok_or(fault);
        let volatile: &[VWord] = heap.slice(place(HEAD)?, 3 * capacity / 8)?;
        let slots: &[Pair] = heap.slice(place(HEAD + 3 * capacity)?, capacity)?;
        let (prints, orders) = volatile.split_at(capacity / 8);
        let (first, second) = orders.split_at(capacity / 8);
        Ok(LeafRef {
            head,
            prints,
            orders: [first, second],
            slots,
            offset,
        })
    }

    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    pub(crate) fn groups(&self) -> usize {
        self.slots.len() / GROUP
    }

    #[inline]
    pub(crate) fn meta(&self, version: usize) -> &'g Meta {
        &self.head.meta[version]
    }

    /// The slots in use.
    pub(crate) fn bitmap<M: Media>(&self, version: usize, media: &M) -> Bits {
        let mut bits = [0; GROUPS];
        for (bits, word) in bits
            .iter_mut()
            .zip(&self.meta(version).bitmap)
            .take(self.groups())
        {
            *bits = word.load(media);
        }
        bits
    }

    /// The slots whose values are links to records. Valid only for slots in use, since a merge may be changing the
    /// bits of others.
    pub(crate) fn records<M: Media>(&self, media: &M) -> Bits {
        std::array::from_fn(|group| self.head.records[group].peek(media))
    }

    /// The slot of the greatest key.
    pub(crate) fn last<M: Media>(&self, version: usize, media: &M) -> Result<usize, Fault> {
        let last = self.meta(version).last.load(media);
        if last < self.capacity() as u64 {
            Ok(last as usize)
        } else {
            Err(Fault {
                what: "last slot of a leaf",
                offset: self.offset.get(),
            })
        }
    }

    /// The pair in a slot.
    pub(crate) fn entry<M: Media>(&self, slot: usize, media: &M) -> MarkedPair {
        let pair = &self.slots[slot];
        let prefix = pair.prefix.load(media);
        let is_record = self.head.records[slot / GROUP].peek(media) >> (slot % GROUP) & 1 == 1;
        let (link, word) = if is_record {
            (pair.value.load_link(media).with_tag(tag::RECORD), 0)
        } else {
            (Link::NULL, pair.value.load(media))
        };
        MarkedPair {
            pair: PairWords { prefix, link, word },
            removed: false,
        }
    }

    /// The pair in a slot that counted in `version`, if it still does after it was read. Otherwise its key was
    /// removed in place meanwhile, and the read pair may be partly that of another key, which a merge puts there.
    pub(crate) fn live_entry<M: Media>(&self, version: usize, slot: usize, media: &M) -> Option<MarkedPair> {
        let entry = self.entry(slot, media);
        let live = self.meta(version).bitmap[slot / GROUP].load(media);
        if live >> (slot % GROUP) & 1 == 1 {
            return Some(entry);
        }
        let pair = &self.slots[slot];
        pair.prefix.disregard(media);
        pair.value.disregard(media);
        None
    }

    /// The prefix and the record of the key in a slot that counted in `version`, if it still does after they were
    /// read. Does not read a value stored in place.
    pub(crate) fn live_key<M: Media>(&self, version: usize, slot: usize, media: &M) -> Option<(u64, Link)> {
        let pair = &self.slots[slot];
        let prefix = pair.prefix.load(media);
        let is_record = self.head.records[slot / GROUP].peek(media) >> (slot % GROUP) & 1 == 1;
        let link = match is_record {
            true => pair.value.load_link(media).with_tag(tag::RECORD),
            false => Link::NULL,
        };
        let live = self.meta(version).bitmap[slot / GROUP].load(media);
        if live >> (slot % GROUP) & 1 == 1 {
            return Some((prefix, link));
        }
        pair.prefix.disregard(media);
        pair.value.disregard(media);
        None
    }

    /// Declares that nothing depends on what the caller has loaded of the bitmap of `version` and of pairs.
    pub(crate) fn disregard<M: Media>(&self, version: usize, media: &M) {
        for word in self.meta(version).bitmap.iter().take(self.groups()) {
            word.disregard(media);
        }
        for pair in self.slots {
            pair.prefix.disregard(media);
            pair.value.disregard(media);
        }
    }

    /// The slot of the key, among those that count in `version`, and its pair. The leaf must be current.
    #[inline]
    pub(crate) fn find<M: Media>(
        &self,
        heap: &Access<M>,
        version: usize,
        key: &SearchKey<'_>,
        hash: u64,
        probing: Probing,
    ) -> Result<Option<(usize, MarkedPair)>, Fault> {
        let media = heap.media();
        let groups = self.groups();
        let by_hash = probing != Probing::Fingerprints;
        let mut group = if by_hash { home(hash, groups) } else { 0 };
        for _ in 0..groups {
            let live = self.meta(version).bitmap[group].load(media);
            let mut alike = match probing {
                Probing::Linear => live,
                _ => live & self.alike(group, print(hash), media),
            };
            while alike != 0 {
                let slot = group * GROUP + alike.trailing_zeros() as usize;
                alike &= alike - 1;
                if self.slots[slot].prefix.load(media) == key.prefix
                    && let Some(entry) = self.live_entry(version, slot, media)
                    && key.compare(heap, entry.prefix, entry.link)? == Ordering::Equal
                {
                    return Ok(Some((slot, entry)));
                }
            }
            if by_hash && self.head.passed.load(media) >> group & 1 == 0 {
                return Ok(None);
            }
            group = (group + 1) % groups;
        }
        Ok(None)
    }

    /// A bit for each slot of the group whose fingerprint is `print`.
    #[inline]
    fn alike<M: Media>(&self, group: usize, print: u8, media: &M) -> u64 {
        match self.prints.as_chunks::<{ GROUP / 8 }>().0.get(group) {
            Some(line) => equal_bytes(std::array::from_fn(|i| line[i].load(media)), print),
            None => 0,
        }
    }

    /// Prefetches the pairs that may have a key of this hash, by their fingerprints in its group.
    #[inline]
    pub(crate) fn prefetch_alike<M: Media>(&self, hash: u64, media: &M) {
        let group = home(hash, self.groups());
        let mut alike = self.alike(group, print(hash), media);
        while alike != 0 {
            pmem::prefetch(&self.slots[group * GROUP + alike.trailing_zeros() as usize]);
            alike &= alike - 1;
        }
    }

    /// Prefetches all that a merge reads.
    pub(crate) fn prefetch_all(&self) {
        pmem::prefetch_range(self.head, extent(self.capacity()));
    }

    /// The fingerprint of a slot.
    pub(crate) fn print_at<M: Media>(&self, slot: usize, media: &M) -> u8 {
        (self.prints[slot / 8].load(media) >> (slot % 8 * 8)) as u8
    }

    pub(crate) fn set_print<M: Media>(&self, slot: usize, print: u8, media: &M) {
        let shift = slot % 8 * 8;
        let word = &self.prints[slot / 8];
        word.store(
            word.load(media) & !(0xff << shift) | u64::from(print) << shift,
            media,
        );
    }

    pub(crate) fn passed<M: Media>(&self, media: &M) -> u64 {
        self.head.passed.load(media)
    }

    pub(crate) fn set_passed<M: Media>(&self, passed: u64, media: &M) {
        self.head.passed.store(passed, media);
    }

    /// Stores the fingerprints of all slots.
    pub(super) fn set_prints<M: Media>(&self, prints: &[u8], media: &M) {
        for (word, bytes) in self.prints.iter().zip(prints.as_chunks().0) {
            word.store(u64::from_le_bytes(*bytes), media);
        }
    }

    /// The `live` slots, in the order of their keys.
    pub(crate) fn order<M: Media>(&self, version: usize, live: &Bits, media: &M) -> Order {
        let len = (self.head.lengths.load(media) >> (16 * version)) as usize & 0xffff;
        let mut order = Order::new();
        let words = self.orders[version].iter().take(len.div_ceil(8));
        for (i, word) in words.enumerate() {
            let slots = word.load(media).to_le_bytes();
            // Volatile words may contain anything: numbers that are not slots are not live.
            for &slot in &slots[..8.min(len - i * 8)] {
                // The length is below the number of slots here: the remainder replaces a check of bounds.
                order.slots[order.len % (GROUP * GROUPS)] = slot;
                order.len += usize::from(has(live, slot.into()));
            }
        }
        order
    }

    pub(crate) fn set_order<M: Media>(&self, version: usize, order: &[u8], media: &M) {
        for (word, bytes) in self.orders[version].iter().zip(order.chunks(8)) {
            let mut all = [0; 8];
            all[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(all), media);
        }
        let shift = 16 * version;
        let lengths = self.head.lengths.load(media);
        let lengths = lengths & !(0xffff << shift) | (order.len() as u64) << shift;
        self.head.lengths.store(lengths, media);
    }

    /// Makes sure that the volatile parts belong to this generation: the first thread to touch the leaf rebuilds
    /// them.
    #[inline]
    pub(crate) fn touch<M: Media>(&self, heap: &'g Access<M>, version: usize) -> Result<(), Fault> {
        if self.head.lock.is_current(heap.media(), heap.generation()) {
            return Ok(());
        }
        self.lock(heap, version).map(drop)
    }

    /// Takes the lock; the leaf is current afterwards.
    pub(crate) fn lock<M: Media>(&self, heap: &'g Access<M>, version: usize) -> Result<Locked<'g, M>, Fault> {
        let lock = self.head.lock.lock(heap.media(), heap.generation());
        let mut locked = lock.map_err(|_| Fault {
            what: "lock of a leaf",
            offset: self.offset.get(),
        })?;
        if locked.is_stale() {
            self.persist_left(heap, version, locked.was_left());
            self.rebuild(heap, version)?;
            locked.repaired();
        }
        Ok(locked)
    }

    /// Rebuilds the volatile parts from the bitmap and the pairs.
    fn rebuild<M: Media>(&self, heap: &'g Access<M>, version: usize) -> Result<(), Fault> {
        let media = heap.media();
        let bits = self.bitmap(version, media);
        let groups = self.groups();
        let mut keys = Vec::with_capacity(self.capacity());
        let mut passed = 0;
        for slot in slots_of(bits) {
            let entry = self.entry(slot, media);
            let mut in_place = [0; 8];
            let hash = entry.key(heap, &mut in_place)?.hash();
            self.set_print(slot, print(hash), media);
            passed |= passed_by(home(hash, groups), slot / GROUP, groups);
            let record = match entry.link.is_null() {
                true => None,
                false => Some(RecordRef::at(heap, entry.link)?.key),
            };
            keys.push((entry.prefix, in_place, record, slot as u8));
        }
        keys.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0)
                .then_with(|| a.2.unwrap_or(&a.1).cmp(b.2.unwrap_or(&b.1)))
        });
        let bytes = |key: &'_ (u64, [u8; 8], Option<&'g [u8]>, u8)| {
            (key.0, key.2.map_or(key.1.to_vec(), <[u8]>::to_vec))
        };
        if keys
            .windows(2)
            .any(|pair| pair[0].0 == pair[1].0 && bytes(&pair[0]) == bytes(&pair[1]))
        {
            return Err(Fault {
                what: "a duplicate key in a leaf",
                offset: self.offset.get(),
            });
        }
        self.set_passed(passed, media);
        self.head.lengths.store(0, media);
        let order: Vec<u8> = keys.iter().map(|&(.., slot)| slot).collect();
        self.set_order(version, &order, media);
        Ok(())
    }

    /// Persists what was just read from the leaf, if its writer may not have: bitmap and pairs, for all entries that
    /// are read together.
    #[inline]
    pub(crate) fn settle<M: Media>(&self, heap: &Access<M>, version: usize, slots: &[u8]) {
        if self.head.lock.is_locked(heap.media(), heap.generation()) {
            self.persist_seen(heap, version, slots);
        }
    }

    #[cold]
    fn persist_seen<M: Media>(&self, heap: &Access<M>, version: usize, slots: &[u8]) {
        heap.media().site("dptree: shown during a change");
        persist_scope(heap.media(), Purpose::Node, |batch| {
            self.meta(version).bitmap[0].persist_seen(&batch);
            for &slot in slots {
                self.slots[usize::from(slot)].value.persist_seen(&batch);
            }
            let _durable = batch.fence().durable();
        });
    }

    /// Persists what an earlier process may have left of an in-place change, if it held the lock, and of a merge: the
    /// next merge does not rewrite words of `records` that are already right.
    fn persist_left<M: Media>(&self, heap: &Access<M>, version: usize, was_locked: bool) {
        let slots = if was_locked {
            slots_of(self.bitmap(version, heap.media())).collect()
        } else {
            Vec::new()
        };
        persist_scope(heap.media(), Purpose::Node, |batch| {
            self.head.records[0].persist_seen(&batch);
            if was_locked {
                self.meta(version).bitmap[0].persist_seen(&batch);
            }
            for slot in slots {
                self.slots[slot].value.persist_seen(&batch);
            }
            let _durable = batch.fence().durable();
        });
    }

    /// Stores a value in place. The caller holds the lock. Costs one write-back and one fence.
    pub(crate) fn update<M: Media>(&self, heap: &Access<M>, slot: usize, value: u64) {
        persist_scope(heap.media(), Purpose::Node, |batch| {
            self.slots[slot].value.store(value, &batch);
            let _durable = batch.fence().durable();
        });
    }

    /// Removes a pair in place. The caller holds the lock. Costs one write-back and one fence.
    pub(crate) fn remove<M: Media>(&self, heap: &Access<M>, version: usize, slot: usize) {
        heap.media().site("dptree: removal in place");
        persist_scope(heap.media(), Purpose::Node, |batch| {
            let word = &self.meta(version).bitmap[slot / GROUP];
            word.store(word.load(heap.media()) & !(1 << (slot % GROUP)), &batch);
            let _durable = batch.fence().durable();
        });
    }
}

impl Head {
    /// The slot, in a draft, of the next leaf's link.
    pub(super) fn next_mut(&mut self, version: usize) -> &mut PSlot {
        &mut self.meta[version].next
    }

    /// The head of a new leaf in which only `version` counts.
    pub(crate) fn new(
        generation: u32,
        capacity: usize,
        version: usize,
        (bits, records, last): (Bits, Bits, usize),
    ) -> Head {
        let meta = Meta {
            bitmap: bits.map(PWord::new),
            last: PWord::new(last as u64),
            ..Meta::default()
        };
        let mut both = [Meta::default(), meta];
        both.rotate_left(1 - version);
        Head {
            lock: GenerationLock::new(generation),
            capacity: PWord::new(capacity as u64),
            passed: VWord::new(0),
            lengths: VWord::new(0),
            records: records.map(PWord::new),
            meta: both,
        }
    }
}

/// Writes a new leaf's pairs, ascending by slot, into the bytes after its head; returns the written parts of the
/// leaf: its head, and the lines of the pairs.
pub(crate) fn fill(
    tail: &mut [u8],
    capacity: usize,
    pairs: impl Iterator<Item = (usize, MarkedPair)>,
) -> Vec<Range<usize>> {
    let slots = &mut tail[3 * capacity..];
    let mut parts: Vec<Range<usize>> = std::iter::once(0..HEAD).collect();
    for (slot, entry) in pairs {
        let at = slot * PAIR;
        slots[at..][..8].copy_from_slice(&entry.prefix.to_le_bytes());
        slots[at + 8..][..8].copy_from_slice(&entry.value_bits().to_le_bytes());
        let start = HEAD + 3 * capacity + at;
        match parts.last_mut() {
            Some(part) if part.end == start => part.end += PAIR,
            _ => parts.push(start..start + PAIR),
        }
    }
    parts
}
