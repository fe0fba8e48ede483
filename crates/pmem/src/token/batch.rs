//! Batches: the set of lines that one fence makes durable.
//!
//! I1 A line stored into through the batch is written back after the store and before the fence.
//! I2 A line is written back only once, unless more lines than the batch holds back, or an early fence, come between
//!    its changes.
//! I3 What has joined stays mapped until the batch is gone, since the batch borrows it.

use super::{Brand, Durable, NotSend};
use crate::{LINE, Media, Purpose};
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::atomic::AtomicU64;

/// Runs `f` with a fresh batch.
///
/// ```
/// # use wollemi_pmem::*;
/// # use std::sync::atomic::{AtomicU64, Ordering};
/// # struct Heap(Pool, AtomicU64);
/// # impl Lender for Heap {
/// #     fn give_back(&self, _: Offset, _: usize) {}
/// # }
/// # impl Heap {
/// #     fn draft<'e, T: Persistent>(&self, object: T, batch: &PersistBatch<'e, '_, Hardware>) -> Draft<'e, '_, T> {
/// #         let offset = Offset::new(self.1.fetch_add(64, Ordering::Relaxed)).unwrap();
/// #         let start = self.0.chunk_start(offset, 64).unwrap();
/// #         // SAFETY: each 64 bytes are handed out once.
/// #         Draft::new(unsafe { Chunk::new(start, offset, 64, self) }, object, batch)
/// #     }
/// # }
/// # let pool = Pool::anonymous(&PoolOptions::default(), Hardware::detect())?;
/// # let heap = Heap(pool, AtomicU64::new(4096));
/// # let media = heap.0.media();
/// persistent! {
///     struct Leaf [size: 16] { key: PWord, next: PSlot }
/// }
///
/// let root = PSlot::null();
/// let _durable: Durable = persist_scope(media, Purpose::Node, |batch| {
///     // Private: written freely, by plain stores.
///     let last = heap.draft(Leaf { key: PWord::new(2), next: PSlot::null() }, &batch).flush(&batch);
///     let mut first = heap.draft(Leaf { key: PWord::new(1), next: PSlot::null() }, &batch);
///     first.adopt(|leaf| &mut leaf.next, last, Tag::default());
///     let first = first.flush(&batch);
///     // One fence for all of it.
///     let fenced = batch.fence();
///     // The commit point, and its own write-back and fence.
///     root.publish::<LinkAndPersist, _, _>(media, first.persisted(&fenced), Tag::default()).commit()
/// });
/// // SAFETY: both leaves are published, and this heap reuses nothing.
/// let leaf = |link: Link| unsafe { heap.0.at::<Leaf>(link.offset().unwrap()) };
/// let first = leaf(root.load(media))?;
/// let last = leaf(first.next.load(media))?;
/// assert_eq!((first.key.load(media), last.key.load(media)), (1, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[inline]
pub fn persist_scope<'m, M: Media, R>(
    media: &'m M,
    purpose: Purpose,
    f: impl for<'e> FnOnce(PersistBatch<'e, 'm, M>) -> R,
) -> R {
    f(PersistBatch {
        media,
        purpose,
        lines: RefCell::new(Lines::default()),
        brand: PhantomData,
        borrows: PhantomData,
        not_send: PhantomData,
    })
}

/// A thread's write-backs that are not fenced yet. A line that has joined is written back at the fence at the latest.
///
/// What joins is borrowed for `'m`, which outlasts the scope, so that its lines are still mapped when they are
/// written back. (`'m` is invariant: with a shorter one, the borrow of what has joined would end too early.) A
/// function that stores words through its caller's batch names the lifetime in both:
///
/// ```
/// # use wollemi_pmem::{Media, PWord, PersistBatch};
/// fn swap<'m, M: Media>(a: &'m PWord, b: &'m PWord, batch: &PersistBatch<'_, 'm, M>) {
///     let media = batch.media();
///     let (of_a, of_b) = (a.load(media), b.load(media));
///     a.store(of_b, batch);
///     b.store(of_a, batch);
/// }
/// ```
#[derive(Debug)]
pub struct PersistBatch<'e, 'm, M: Media> {
    media: &'m M,
    purpose: Purpose,
    lines: RefCell<Lines>,
    brand: Brand<'e>,
    borrows: PhantomData<Cell<&'m ()>>,
    not_send: NotSend,
}

const HELD: usize = 8;

/// Additional lines that a batch holds back if asked to.
const MAX_EXTRA: usize = 56;

/// The lines held back, so that a line that joins again is not written back twice.
#[derive(Debug, Default)]
struct Lines {
    held: [usize; HELD],
    count: usize,
    /// In a full set, the slot of the line that joined first.
    oldest: usize,
    /// The line that joined last.
    last: usize,
    /// Lines that joined when the set was full. Without capacity unless the batch was asked to hold more back.
    more: Vec<usize>,
}

impl<'e, 'm, M: Media> PersistBatch<'e, 'm, M> {
    /// The media that the batch writes to.
    #[inline]
    pub fn media(&self) -> &'m M {
        self.media
    }

    /// Holds back up to 64 lines, for changes under several locks: a processor takes a lock only when earlier
    /// write-backs have reached the memory, so a write-back between two locks costs as much as a fence.
    pub fn hold_back(&self) {
        self.lines.borrow_mut().more.reserve_exact(MAX_EXTRA);
    }

    /// Joins the line of `word` to the batch.
    #[inline]
    #[track_caller]
    pub(crate) fn join(&self, word: &'m AtomicU64) {
        // SAFETY: the word is borrowed for `'m`.
        unsafe { self.join_bytes(word.as_ptr().cast_const().cast(), size_of::<AtomicU64>()) };
    }

    /// Joins the lines of `len` bytes from `start` to the batch. If more come than can be held back for merging, the
    /// oldest are written back: stores into one line mostly come one after the other.
    ///
    /// # Safety
    ///
    /// The bytes, at least the one at `start`, are mapped for `'m`.
    #[inline]
    #[track_caller]
    pub(super) unsafe fn join_bytes(&self, start: *const u8, len: usize) {
        self.media.joined(start, len);
        if !self.media.writes_back() {
            return;
        }
        let first = start.addr() / LINE;
        let last = (start.addr() + len.max(1) - 1) / LINE;
        let mut lines = self.lines.borrow_mut();
        if first == last && lines.last == first {
            return;
        }
        lines.last = last;
        for line in first..=last {
            let count = lines.count;
            if lines.held[..count].contains(&line) {
                continue;
            }
            if count < HELD {
                lines.held[count] = line;
                lines.count += 1;
            } else if lines.more.contains(&line) {
                continue;
            } else if lines.more.len() < lines.more.capacity() {
                lines.more.push(line);
            } else {
                let oldest = lines.oldest;
                let old = std::mem::replace(&mut lines.held[oldest], line);
                lines.oldest = (oldest + 1) % HELD;
                self.write_back(old);
            }
        }
    }

    /// Writes back a line that has joined.
    #[inline]
    #[track_caller]
    fn write_back(&self, line: usize) {
        let at = std::ptr::without_provenance(line * LINE);
        // SAFETY: what has joined is mapped for `'m`, and the batch does not outlive that.
        unsafe { self.media.write_back_joined(at, self.purpose) };
    }

    /// Makes durable what has joined so far, for a store that must not be durable before it. The batch remains in use,
    /// and its tokens still require the [`Fenced`] that only [`fence`](PersistBatch::fence) returns.
    #[inline]
    #[track_caller]
    pub fn fence_early(&self) {
        let mut lines = self.lines.borrow_mut();
        let count = std::mem::take(&mut lines.count);
        (lines.oldest, lines.last) = (0, 0);
        for &line in lines.held[..count].iter().chain(&lines.more) {
            self.write_back(line);
        }
        lines.more.clear();
        self.media.fence(self.purpose);
    }

    /// Writes back the held-back lines and fences. The batch is spent.
    #[inline(always)] // as a call, it would copy the batch
    #[track_caller]
    pub fn fence(self) -> Fenced<'e> {
        self.fence_early();
        Fenced {
            brand: PhantomData,
            not_send: PhantomData,
        }
    }
}

/// Witness that the batch's fence has retired.
#[derive(Debug)]
pub struct Fenced<'e> {
    brand: Brand<'e>,
    not_send: NotSend,
}

impl Fenced<'_> {
    /// Proof for a change made in place, by [`PWord::store`](crate::PWord::store) into this batch.
    #[inline]
    pub fn durable(self) -> Durable {
        Durable(())
    }
}
