//! Inline leaf arrays: pairs of a short key and an eight-byte value, in the array itself.
//!
//! ```text
//!  0  lock          8  63      32 31    8 7     0         16  entries: key word, value
//!                     +----------+-------+-------+
//!                     | present  |   0   | shape |
//!                     +----------+-------+-------+
//! ```
//!
//! They hold keys of up to eight bytes below one slot of the root, which determines the first byte (`word` explains
//! the storage of the others); an array has 2^c lines (`shape`). A key is in the first line, from its home line on,
//! that had a free entry when it was inserted, so that nearly all reads touch one line of the array.
//!
//! I1 An entry once used belongs to its key until the array is replaced, present or removed. So a value that a reader
//!    finds under a key word is that key's, and a line with a never-used entry ends every search.
//! I2 Entries change under the array's lock: first the value, then the key word that makes it count, marked; both are
//!    in one line, and stores to a line become durable in order. When they are durable, the mark is cleared, and then
//!    the lock is released. Several pairs may become durable together (`together`), but a pair that takes the last
//!    free entry of a line becomes durable before any pair whose search passes the line: a crash in between would
//!    break I1.
//! I3 A thread that meets a mark persists the line before it acts on the entry, whichever generation has left the
//!    mark: after a kill the mark may be the only sign. The first holder of the lock in a generation settles the
//!    marks that a crash left.
//! I4 All keys of an array, removed ones included, share the bytes before position `from` of its shape (`shape`). Like
//!    a leaf array, it may move down, but never up.
//! I5 A published array has at least one key. The count of present keys is volatile.
//!
//! This file has the object; `build` makes new ones, `scan` reads in order, `check` finds faults. The writers are
//! `edit_inline` and `together`.

mod build;
mod check;
mod scan;
pub(crate) mod shape;
pub(crate) mod word;

pub(crate) use build::{Fill, Image, draft_inline};
pub(crate) use check::fault;
use check::leads_to;
pub(crate) use scan::{LINES_AHEAD, Scratch, Words};
pub(crate) use shape::LARGEST_CAPACITY;

use art::{damaged, prefetch};
use heap::Access;
use pmem::{
    Fault, GenerationLock, Link, Locked, Media, Obsolete, Offset, PWord, PersistBatch, Publication, Purpose,
    persist_scope, persistent,
};
use shape::{PER_LINE, Shape};
use std::ops::Range;
use word::{KeyWord, MARK, is_present};

const PRESENT_SHIFT: u32 = 32;

persistent! {
    struct Head [size: 16] {
        lock: GenerationLock,
        shape: PWord,
    }

    /// A key and its value.
    pub(crate) struct InlineEntry [size: 16] {
        key: PWord,
        value: PWord,
    }

    /// The head and the first entries.
    struct FirstLine [size: 64, align: 64] {
        head: Head,
        entries: [InlineEntry; PER_LINE - 1],
    }
}

/// A reference to an inline leaf array.
#[derive(Clone, Copy)]
pub(crate) struct InlineRef<'g> {
    pub(crate) shape: Shape,
    offset: Offset,
    /// Lines of entries; the first entry's place holds the head.
    slots: &'g [InlineEntry],
}

/// Bytes of the array that a link leads to.
pub(crate) fn inline_size(link: Link) -> Result<usize, Fault> {
    Ok(Shape::of(link)?.size())
}

/// The place of a key, as the lock's holder sees it.
pub(crate) enum Spot<'g> {
    /// In this entry, present or removed.
    Taken(&'g InlineEntry),
    /// Absent; this entry is free for it.
    Free(Free<'g>),
    /// Absent, and all entries that it may use are taken.
    None,
}

/// An entry that is free for a key.
pub(crate) struct Free<'g> {
    pub(crate) entry: &'g InlineEntry,
    /// Whether a pair is marked in a line that the search for the key passes. Such a pair may have taken the last
    /// free entry of its line: the key must not be durable before it (I1).
    pub(crate) is_behind_mark: bool,
}

impl InlineEntry {
    /// The key, if the entry was ever used, and whether it is present. The caller holds the lock.
    pub(crate) fn stored<M: Media>(&self, media: &M) -> Option<(KeyWord, bool)> {
        let word = self.key.load(media);
        KeyWord::stored(word).map(|key| (key, is_present(word)))
    }

    /// The value. The caller holds the lock.
    pub(crate) fn value<M: Media>(&self, media: &M) -> u64 {
        self.value.load(media)
    }

    /// The value of the entry's key, durable; `None` if the key is not present.
    #[inline(always)]
    pub(crate) fn read<M: Media>(&self, media: &M) -> Option<u64> {
        let word = self.key.load(media);
        if !is_present(word) {
            if word & MARK != 0 {
                self.persist(media);
            }
            return None;
        }
        let value = self.value.load(media);
        // The word is read again: a writer that has stored another value meanwhile marked it before.
        let word = self.key.load(media);
        if word & MARK != 0 {
            self.persist(media);
        }
        if !is_present(word) {
            self.value.disregard(media);
            return None;
        }
        Some(value)
    }

    #[cold]
    #[inline(never)]
    fn persist<M: Media>(&self, media: &M) {
        persist_scope(media, Purpose::Node, |batch| {
            self.key.persist_seen(&batch);
            self.value.persist_seen(&batch);
            batch.fence();
        });
    }

    /// Makes the key present with this value. The caller holds the lock; the entry is the key's or free. Costs 1
    /// write-back and 1 fence; without marks, 2 non-temporal stores and 2 fences.
    pub(crate) fn insert<P: Publication, M: Media>(&self, key: KeyWord, value: u64, media: &M) {
        let word = key.to_store(true);
        if !P::MARKS {
            persist_scope(media, Purpose::Node, |batch| {
                self.value.store_nt(value, &batch);
                batch.fence();
            });
            return self.store_unmarked(word, media);
        }
        persist_scope(media, Purpose::Node, |batch| {
            self.insert_marked(key, value, &batch);
            batch.fence();
        });
        self.key.store_unpersisted(word, media);
    }

    /// Like [`insert`](InlineEntry::insert), but as part of `batch`: durable once it is fenced; the caller then calls
    /// [`settle`](InlineEntry::settle).
    pub(crate) fn insert_marked<'m, M: Media>(
        &'m self,
        key: KeyWord,
        value: u64,
        batch: &PersistBatch<'_, 'm, M>,
    ) {
        self.value.store(value, batch);
        self.key.store(key.to_store(true) | MARK, batch);
    }

    /// Replaces the value of the key, which is present. The caller holds the lock. Costs 1 write-back and 1 fence;
    /// without marks, 1 non-temporal store and 1 fence.
    pub(crate) fn update<P: Publication, M: Media>(&self, key: KeyWord, value: u64, media: &M) {
        if !P::MARKS {
            return persist_scope(media, Purpose::Node, |batch| {
                self.value.store_nt(value, &batch);
                batch.fence();
            });
        }
        persist_scope(media, Purpose::Node, |batch| {
            self.update_marked(key, value, &batch);
            batch.fence();
        });
        self.key.store_unpersisted(key.to_store(true), media);
    }

    /// Like [`update`](InlineEntry::update), but as part of `batch`: durable once it is fenced; the caller then calls
    /// [`settle`](InlineEntry::settle).
    pub(crate) fn update_marked<'m, M: Media>(
        &'m self,
        key: KeyWord,
        value: u64,
        batch: &PersistBatch<'_, 'm, M>,
    ) {
        // The mark lies in the value's line, and means nothing without the value.
        self.key
            .store_unpersisted(key.to_store(true) | MARK, batch.media());
        self.value.store(value, batch);
    }

    /// Clears the mark, now that the marked store is durable. The caller has held the lock since that store.
    pub(crate) fn settle<M: Media>(&self, media: &M) {
        let word = self.key.load(media);
        self.key.store_unpersisted(word & !MARK, media);
    }

    /// Removes the key. The caller holds the lock. Costs 1 write-back and 1 fence; without marks, 1 non-temporal store
    /// and 1 fence.
    pub(crate) fn remove<P: Publication, M: Media>(&self, key: KeyWord, media: &M) {
        let word = key.to_store(false);
        if !P::MARKS {
            return self.store_unmarked(word, media);
        }
        persist_scope(media, Purpose::Node, |batch| {
            self.key.store(word | MARK, &batch);
            batch.fence();
        });
        self.key.store_unpersisted(word, media);
    }

    fn store_unmarked<M: Media>(&self, word: u64, media: &M) {
        persist_scope(media, Purpose::Node, |batch| {
            self.key.store_nt(word, &batch);
            batch.fence();
        });
    }
}

impl<'g> InlineRef<'g> {
    /// The array that `link` leads to.
    #[inline(always)]
    pub(crate) fn at<M: Media>(heap: &'g Access<M>, link: Link) -> Result<InlineRef<'g>, Fault> {
        let shape = Shape::of(link)?;
        let Some(offset) = link.offset() else {
            return Err(damaged("null inline leaf array", link));
        };
        Ok(InlineRef {
            shape,
            offset,
            slots: heap.slice(offset, shape.lines() * PER_LINE)?,
        })
    }

    /// Its lock.
    pub(crate) fn lock_word<M: Media>(&self, heap: &'g Access<M>) -> Result<&'g GenerationLock, Fault> {
        Ok(&self.head(heap)?.lock)
    }

    fn head<M: Media>(&self, heap: &'g Access<M>) -> Result<&'g Head, Fault> {
        heap.at(self.offset)
    }

    /// Takes the lock of the array at `link`, whose keys all begin with `path`. The first lock in a generation also
    /// settles marks left by a crash (I3) and recounts the present keys (I5).
    #[inline(always)]
    pub(crate) fn lock<M: Media>(
        &self,
        heap: &'g Access<M>,
        link: Link,
        path: &[u8],
    ) -> Result<Result<Locked<'g, M>, Obsolete>, Fault> {
        let head = self.checked_head(heap, link, path)?;
        Ok(head.lock.lock(heap.media(), heap.generation()).map(|mut locked| {
            self.repair(head, &mut locked, heap);
            locked
        }))
    }

    /// Like [`lock`](InlineRef::lock), if the lock is free.
    pub(crate) fn try_lock<M: Media>(
        &self,
        heap: &'g Access<M>,
        link: Link,
        path: &[u8],
    ) -> Result<Option<Locked<'g, M>>, Fault> {
        let head = self.checked_head(heap, link, path)?;
        let taken = head.lock.try_lock(heap.media(), heap.generation());
        Ok(taken.ok().flatten().map(|mut locked| {
            self.repair(head, &mut locked, heap);
            locked
        }))
    }

    #[inline(always)]
    fn checked_head<M: Media>(
        &self,
        heap: &'g Access<M>,
        link: Link,
        path: &[u8],
    ) -> Result<&'g Head, Fault> {
        let head = self.head(heap)?;
        self.check_head(head, link, heap)?;
        head.lock.check_stale(heap.media(), heap.generation(), || {
            self.check_entries(heap, link, path)
        })?;
        Ok(head)
    }

    fn repair<M: Media>(&self, head: &Head, locked: &mut Locked<'_, M>, heap: &Access<M>) {
        if !locked.is_stale() {
            return;
        }
        let media = heap.media();
        let mut present = 0;
        for entry in self.entries() {
            let word = entry.key.load(media);
            present += u64::from(is_present(word));
            if word & MARK != 0 {
                entry.persist(media);
                entry.key.store_unpersisted(word & !MARK, media);
            }
        }
        let shape = head.shape.load(media) & !(u64::MAX << PRESENT_SHIFT);
        head.shape
            .store_unpersisted(shape | present << PRESENT_SHIFT, media);
        locked.repaired();
    }

    /// Checks that the entries can be those of an array of this shape to which `path` leads.
    #[cold]
    #[inline(never)]
    fn check_entries<M: Media>(&self, heap: &Access<M>, link: Link, path: &[u8]) -> Result<(), Fault> {
        let mut is_used = false;
        for line in 0..self.shape.lines() {
            for entry in self.line(line) {
                let word = entry.key.peek(heap.media());
                let Some(key) = KeyWord::stored(word) else {
                    continue;
                };
                is_used = true;
                let is_at_home = self.shape.window(key).contains(&line);
                if word::fault(word).is_some() || !is_at_home || !leads_to(path, key) {
                    return Err(damaged("inline leaf array's entries", link));
                }
            }
        }
        if is_used {
            Ok(())
        } else {
            Err(damaged("inline leaf array without keys", link))
        }
    }

    /// Checks that the array's shape is that of the link to it. Called before the lock is taken: behind a damaged
    /// link the lock may be something else.
    pub(crate) fn check_shape<M: Media>(&self, link: Link, heap: &Access<M>) -> Result<(), Fault> {
        self.check_head(self.head(heap)?, link, heap)
    }

    #[inline(always)]
    fn check_head<M: Media>(&self, head: &Head, link: Link, heap: &Access<M>) -> Result<(), Fault> {
        if head.shape.load(heap.media()) as u32 == u32::from(self.shape.aux()) {
            Ok(())
        } else {
            Err(damaged("inline leaf array's shape", link))
        }
    }

    /// The number of present keys. The caller holds the lock.
    pub(crate) fn present<M: Media>(&self, heap: &Access<M>) -> Result<usize, Fault> {
        Ok((self.head(heap)?.shape.load(heap.media()) >> PRESENT_SHIFT) as usize)
    }

    /// Adds `change` to the number of present keys. The caller holds the lock.
    pub(crate) fn add_present<M: Media>(&self, change: i64, heap: &Access<M>) {
        // The lock is in the head, so there is one.
        let Ok(Head { shape, .. }) = self.head(heap) else {
            return;
        };
        let counted = shape
            .load(heap.media())
            .wrapping_add_signed(change << PRESENT_SHIFT);
        shape.store_unpersisted(counted, heap.media());
    }

    /// All entries.
    pub(crate) fn entries(&self) -> &'g [InlineEntry] {
        &self.slots[1..]
    }

    /// The entries of a line.
    #[inline(always)]
    pub(crate) fn line(&self, line: usize) -> &'g [InlineEntry] {
        let first = usize::from(line == 0);
        &self.slots[line * PER_LINE + first..(line + 1) * PER_LINE]
    }

    /// The entry of `key`, present or removed.
    #[inline(always)]
    pub(crate) fn find<M: Media>(&self, key: KeyWord, media: &M) -> Option<&'g InlineEntry> {
        for line in self.shape.window(key) {
            let mut ends = false;
            for entry in self.line(line) {
                // The words of other keys may not be durable, and nothing depends on them.
                let word = entry.key.peek(media);
                if key.is_in(word) {
                    return Some(entry);
                }
                ends |= word == 0;
            }
            if ends {
                return None;
            }
        }
        None
    }

    /// The place where `key` is or should be. The caller holds the lock.
    #[inline]
    pub(crate) fn spot<M: Media>(&self, key: KeyWord, media: &M) -> Spot<'g> {
        self.spot_in(self.shape.window(key), key, media)
    }

    /// Like [`spot`](InlineRef::spot), given the key's window.
    pub(crate) fn spot_in<M: Media>(&self, window: Range<usize>, key: KeyWord, media: &M) -> Spot<'g> {
        let mut passed = 0;
        for line in window {
            let mut free = None;
            let mut words = 0;
            for entry in self.line(line) {
                let word = entry.key.load(media);
                if key.is_in(word) {
                    return Spot::Taken(entry);
                }
                if word == 0 {
                    free = free.or(Some(entry));
                }
                words |= word;
            }
            if let Some(entry) = free {
                return Spot::Free(Free {
                    entry,
                    is_behind_mark: passed & MARK != 0,
                });
            }
            passed |= words;
        }
        Spot::None
    }

    /// The present pairs. The caller holds the lock.
    pub(crate) fn pairs<M: Media>(&self, media: &'g M) -> impl Iterator<Item = (KeyWord, u64)> + use<'g, M> {
        self.entries().iter().filter_map(|entry| {
            let (key, present) = entry.stored(media)?;
            present.then(|| (key, entry.value(media)))
        })
    }

    /// Whether a key begins with the bytes that all keys of the array share (I4). The caller holds the lock.
    pub(crate) fn takes<M: Media>(&self, key: KeyWord, depth: usize, media: &M) -> bool {
        let from = usize::from(self.shape.from);
        if from <= depth {
            return true;
        }
        let mut used = self.entries().iter().filter_map(|entry| entry.stored(media));
        used.next().is_none_or(|(other, _)| key.shared(other) >= from)
    }

    /// Prefetches the line where `key` should be.
    #[inline(always)]
    pub(crate) fn prefetch_home(&self, key: KeyWord) {
        prefetch(&self.slots[self.shape.home(key) * PER_LINE]);
    }

    /// Prefetches a line; the array may end before it.
    #[inline(always)]
    pub(crate) fn prefetch_line(&self, line: usize) {
        prefetch(self.slots.as_ptr().wrapping_add(line * PER_LINE));
    }
}
