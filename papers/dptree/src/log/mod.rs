//! The log of one buffer tree: partitions by key hash, each a list of pages (DPTree §3.1, Algorithm 5, Fig. 7).
//!
//! I1 A key's records are in one partition, in the order of its updates: the writer that appends holds the lock on the
//!    key's leaf of the buffer tree.
//! I2 One fetch-and-add claims a record's place, and only the claimer writes it.
//! I3 A page is reachable before any record is written into it, and belongs to one log.

pub(crate) mod cache;
pub(crate) mod page;
mod replay;

use crate::key::MarkedPair;
use crate::root::{Root, Shape, tag};
use cache::{Cache, Ready};
use crossbeam_utils::CachePadded;
use heap::{Access, Error};
use page::{First, PageHead};
use pmem::{Link, Media, PWord, Purpose, persist_scope};
pub(crate) use replay::replay;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Bits of a partition's word that hold the next record's position; the next bit is the page's sense.
const POSITION_BITS: u32 = 19;
const POSITION: u64 = (1 << POSITION_BITS) - 1;

/// One log.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) number: u64,
    shape: Shape,
    capacity: usize,
    partitions: Box<[CachePadded<Partition>]>,
}

#[derive(Debug)]
struct Partition {
    /// The place of the next record: the page's offset / 16, its sense, and the position. No page at first.
    next: AtomicU64,
    pages: Mutex<Pages>,
}

#[derive(Debug, Default)]
struct Pages {
    /// Pages of this generation, the current one last.
    used: Vec<(Link, bool)>,
    /// Replayed pages.
    old: Vec<Link>,
}

fn packed(place: u64, first: First) -> u64 {
    (place / 16) << (POSITION_BITS + 1) | u64::from(first.sense) << POSITION_BITS | first.position as u64
}

impl Log {
    /// An empty log.
    pub(crate) fn new(number: u64, shape: Shape) -> Log {
        let capacity = page::capacity(shape.page);
        let full = First {
            position: capacity,
            sense: false,
        };
        Log {
            number,
            shape,
            capacity,
            partitions: (0..shape.partitions)
                .map(|_| {
                    CachePadded::new(Partition {
                        next: AtomicU64::new(packed(0, full)),
                        pages: Mutex::default(),
                    })
                })
                .collect(),
        }
    }

    /// The partition of a key of this hash.
    #[inline]
    pub(crate) fn partition(&self, hash: u64) -> usize {
        (hash >> 40) as usize % self.partitions.len()
    }

    /// Number of partitions.
    pub(crate) fn partitions(&self) -> usize {
        self.partitions.len()
    }

    /// Appends a record of the entry, durably: costs one write-back and one fence. Returns its position in its page.
    pub(crate) fn append<M: Media>(
        &self,
        heap: &Access<M>,
        root: &Root,
        cache: &Cache,
        hash: u64,
        entry: &MarkedPair,
    ) -> Result<usize, Error> {
        let number = self.partition(hash);
        let partition = &self.partitions[number];
        let next = loop {
            if (partition.next.load(Ordering::Acquire) & POSITION) as usize >= self.capacity {
                self.add_page(heap, root, cache, number)?;
            }
            let next = partition.next.fetch_add(1, Ordering::AcqRel);
            if ((next & POSITION) as usize) < self.capacity {
                break next;
            }
        };
        let position = (next & POSITION) as usize;
        let sense = next >> POSITION_BITS & 1 == 1;
        let record = page::record(heap, (next >> (POSITION_BITS + 1)) * 16, position)?;
        heap.media().site("dptree: record");
        persist_scope(heap.media(), Purpose::Log, |batch| {
            record.store(entry, self.number, sense, &batch);
            let _durable = batch.fence().durable();
        });
        Ok(position)
    }

    /// Adds a page to the partition. Costs two write-backs and two fences; a page from the heap, rather than the cache,
    /// is cleared first, and all of its lines are written back.
    #[cold]
    fn add_page<M: Media>(
        &self,
        heap: &Access<M>,
        root: &Root,
        cache: &Cache,
        number: usize,
    ) -> Result<(), Error> {
        let partition = &self.partitions[number];
        let mut pages = pmem::lock_across(&partition.pages, heap.media());
        if ((partition.next.load(Ordering::Acquire) & POSITION) as usize) < self.capacity {
            return Ok(());
        }
        let slot = &root.log(self.number)[number];
        let media = heap.media();
        let prev = slot.peek(media);
        let (link, first) = match cache.take(heap) {
            Some(Ready { link, first }) => {
                media.comes_to("log: page serves again");
                let head = PageHead::at(heap, link)?;
                persist_scope(media, Purpose::Log, |batch| {
                    head.prev.store(prev, &batch);
                    head.number.store(self.number, &batch);
                    head.first.store(first.word(), &batch);
                    let _durable = batch.fence().durable();
                });
                (link, first)
            }
            None => {
                media.comes_to("log: new page");
                let head = PageHead::fresh(self.number, self.capacity);
                let first = First::from_word(head.first.private());
                let link = persist_scope(media, Purpose::Alloc, |batch| {
                    let mut draft = heap.draft(head, page::tail(self.shape.page), &batch)?;
                    draft.tail_mut().fill(0);
                    draft.link(|head| &mut head.prev, prev);
                    let draft = draft.flush(&batch);
                    Ok::<_, Error>(draft.persisted(&batch.fence()).into_link(tag::PAGE))
                })?;
                (link, first)
            }
        };
        media.site("dptree: link to a log page");
        persist_scope(media, Purpose::Log, |batch| {
            slot.store(link, &batch);
            let _durable = batch.fence().durable();
        });
        pages.used.push((link, first.sense));
        let place = link.offset().map_or(0, |offset| offset.get());
        partition.next.store(packed(place, first), Ordering::Release);
        Ok(())
    }

    /// The end of the partition's newest page, for `Ready`; no thread appends any more.
    fn end(&self, partition: &Partition) -> usize {
        ((partition.next.load(Ordering::Acquire) & POSITION) as usize).min(self.capacity)
    }

    /// Bytes of the log's pages.
    pub(crate) fn bytes(&self) -> usize {
        let pages = |partition: &CachePadded<Partition>| {
            let pages = lock(&partition.pages);
            pages.used.len() + pages.old.len()
        };
        self.partitions.iter().map(pages).sum::<usize>() * self.shape.page
    }

    /// Empties a merged log: nothing leads to its pages any more, and they are reused, or retired, except for those
    /// whose head is damaged. (One fence.)
    pub(crate) fn drop_pages<M: Media>(&self, heap: &Access<M>, root: &Root, cache: &Cache) {
        heap.media().comes_to("merge: log emptied");
        heap.media().site("dptree: links of a merged log");
        persist_scope(heap.media(), Purpose::Log, |batch| {
            for slot in &root.log(self.number)[..self.partitions.len()] {
                if !slot.peek(heap.media()).is_null() {
                    slot.store(Link::NULL, &batch);
                }
            }
            let _durable = batch.fence().durable();
        });
        let mut ready = Vec::new();
        let guard = heap::pin();
        for partition in &*self.partitions {
            let mut pages = lock(&partition.pages);
            let end = self.end(partition);
            let last = pages.used.len();
            for (i, (link, sense)) in std::mem::take(&mut pages.used).into_iter().enumerate() {
                let first = if i + 1 == last && end < self.capacity {
                    First { position: end, sense }
                } else {
                    First {
                        position: 0,
                        sense: !sense,
                    }
                };
                ready.push(Ready { link, first });
            }
            for link in std::mem::take(&mut pages.old) {
                let _ = cache::retire(heap, &guard, link);
            }
        }
        // Partly filled pages have room for fewer records the next time.
        cache.put(heap, &guard, ready, 2 * self.partitions.len());
    }

    /// Adopts replayed pages.
    fn adopt(&self, partition: usize, pages: Vec<Link>) {
        lock(&self.partitions[partition].pages).old = pages;
    }
}

/// Takes the lock; a holder that panicked has left nothing inconsistent that matters.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Makes the links of merged logs null (a crash came between a merge's commit and this step). Recovery may trace
/// meanwhile, so the guard is held from before the unlinking to the last retirement.
pub(crate) fn forget_merged<M: Media>(heap: &Access<M>, root: &Root, merged: u64) -> Result<(), Error> {
    let media = heap.media();
    let guard = heap::pin();
    let mut stale = Vec::new();
    for slot in root.logs() {
        let link = slot.peek(media);
        if !link.is_null() && PageHead::at(heap, link)?.number.load(media) <= merged {
            stale.push((slot, link));
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    media.comes_to("opening: merged log emptied");
    media.site("dptree: links of a merged log at an opening");
    persist_scope(media, Purpose::Log, |batch| {
        for (slot, _) in &stale {
            slot.store(Link::NULL, &batch);
        }
        let _durable = batch.fence().durable();
    });
    for (_, link) in stale {
        // The tracer has kept only this one of its partition's pages alive.
        cache::retire(heap, &guard, link)?;
    }
    Ok(())
}

const _: () = assert!(size_of::<PWord>() == 8 && page_fits());

const fn page_fits() -> bool {
    (64 << 10) / 32 < 1 << POSITION_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DpTree, DpTreeOptions};
    use heap::Heap;
    use pmem::{Hardware, Pool, PoolOptions};

    /// Threads that meet at the end of a page each get a place of their own in a page: everything that they append is
    /// replayed. (Whether they meet depends on the machine: pages of six records end often.)
    #[test]
    fn what_threads_append_at_a_time_is_replayed() {
        const THREADS: u64 = 4;
        const RECORDS: u64 = 200_000;
        let pool = Pool::anonymous(&PoolOptions::default(), Hardware::detect()).expect("memory");
        let heap = Heap::new(pool).expect("a heap");
        let options = DpTreeOptions {
            partitions: 1,
            log_page: 256,
            workers: 0,
            ..DpTreeOptions::default()
        };
        let tree = DpTree::create_with(&heap, b"tree", options).expect("room");
        let shared = tree.shared();
        let (heap, root) = (&shared.heap, shared.root().expect("sound"));
        let log = &Log::new(1, shared.shape);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || {
                    for i in 0..RECORDS {
                        let entry = MarkedPair {
                            pair: index::codec::PairWords {
                                prefix: thread,
                                link: Link::NULL,
                                word: i,
                            },
                            removed: false,
                        };
                        let position = log.append(heap, root, &shared.cache, 0, &entry).expect("room");
                        assert!(position < log.capacity, "{position} of {}", log.capacity);
                    }
                });
            }
        });
        let mut next = [0; THREADS as usize];
        replay(heap, root, log, 0, &mut |entry| {
            let expected = &mut next[entry.prefix as usize];
            assert_eq!(entry.word, *expected, "of thread {}", entry.prefix);
            *expected += 1;
            Ok(())
        })
        .expect("sound");
        assert_eq!(next, [RECORDS; THREADS as usize]);
    }
}
