//! Accounting: used + free + unswept = reserved.
//!
//! The sum is a check, since its terms have different sources: `reserved` comes from the pool, `unswept` and `used`
//! from the pages and their bitmaps, `free` from the bitmaps, the free runs and the pool's space beyond its last page.

use crate::Heap;
use crate::alloc::page::Kind;
use crate::lock::lock;
use pmem::Media;
use std::sync::Arc;

/// The use of a heap's bytes.
///
/// The sum holds while no other thread uses the heap (otherwise the numbers are from slightly different moments) and no
/// pages are [set apart](Heap::set_apart): until such a page is used, it counts as neither used nor free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapStats {
    /// Bytes that the pool takes.
    pub reserved: u64,
    /// Bytes in use: page 0, chunks and large objects, and page ends too short for a chunk.
    pub used: u64,
    /// Bytes available for objects.
    pub free: u64,
    /// Those of them whose blocks were given back to the file system.
    pub given_back: u64,
    /// Bytes in pages of earlier generations that recovery has not swept yet.
    pub unswept: u64,
    /// Chunks and large objects in use, including retired ones that wait for their epoch.
    pub objects: u64,
    /// Retired chunks that wait for their epoch. (Those that recovery keeps until its trace has ended are not counted.)
    pub retired: u64,
    /// Runs of free pages.
    pub free_runs: u64,
    /// Bytes of the longest run of free pages.
    pub longest_free_run: u64,
}

impl<M: Media> Heap<M> {
    /// Computes the statistics. Takes time in proportion to the pages.
    pub fn stats(&self) -> HeapStats {
        let arena = &*self.inner.arena;
        let page_size = arena.page_size();
        // Threads that end meanwhile wait, so that no claim is counted twice.
        let caches = lock(&arena.caches);
        let (end, free_pages, shape) = {
            let runs = lock(&arena.runs);
            (runs.end, runs.free(), runs.shape())
        };
        let reserved = self.pool().len();
        let mut stats = HeapStats {
            reserved,
            used: page_size,
            free: free_pages * page_size + (reserved - arena.start_of(end)),
            given_back: self.pool().given_back(),
            retired: Arc::strong_count(&self.inner.arena) as u64 - 1,
            free_runs: shape.0 as u64,
            longest_free_run: arena.start_of(shape.1),
            ..HeapStats::default()
        };
        for number in 1..end {
            let state = arena.table.page(number).lock();
            if !state.swept && arena.old_pages().contains(&number) {
                stats.unswept += page_size;
                continue;
            }
            match &state.kind {
                Kind::Free => {}
                Kind::Chunks(chunks) => {
                    let size = u64::from(chunks.size());
                    let live: u64 = chunks.words().map(|word| u64::from(word.count_ones())).sum();
                    let dead = u64::from(chunks.slots()) - live;
                    stats.objects += live;
                    stats.used += page_size - dead * size;
                    stats.free += dead * size;
                }
                Kind::Large { .. } => {
                    stats.objects += 1;
                    stats.used += page_size;
                }
                Kind::Rest => stats.used += page_size,
            }
        }
        // Chunks that threads have claimed and not used count as free.
        for claim in caches.iter().flat_map(|cache| cache.claims()) {
            if let Kind::Chunks(chunks) = &arena.table.page(arena.page_of(claim.start)).lock().kind {
                let count = u64::from(claim.bits.count_ones());
                let bytes = count * u64::from(chunks.size());
                stats.objects = stats.objects.saturating_sub(count);
                stats.used = stats.used.saturating_sub(bytes);
                stats.free += bytes;
            }
        }
        stats
    }
}
