//! An audit: compares everything that the roots lead to with everything that is in use.
//!
//! It traces as recovery does, but marks in bitmaps of its own. For checks and leak tests.

use crate::alloc::page::{Chunks, Kind};
use crate::lock::lock;
use crate::recovery::trace::{MAX_THREADS, Tracers, Tracing};
use crate::{Error, Heap, RecoveryStage};
use pmem::{Media, Offset};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// What an audit found.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    /// Objects that the roots lead to.
    pub reachable: u64,
    /// Bytes of these objects.
    pub reachable_bytes: u64,
    /// Links to an object that another link leads to as well.
    pub doubly_reachable: u64,
    /// Chunks and large objects in use that no root leads to. This includes retired ones that wait for their epoch;
    /// see [`leaked`](Audit::leaked).
    pub unreachable: u64,
    /// Bytes of these, as chunks.
    pub unreachable_bytes: u64,
    /// Chunks that were retired and still wait for their epoch, because a thread holds a guard or has not flushed its
    /// garbage.
    pub retired: u64,
    /// Reachable or [held](Heap::hold) objects that the allocator does not have in use with their length, a line for
    /// each or for several neighbours; and a line if objects were freed twice since the heap was opened. At most a
    /// thousand lines.
    pub faults: Vec<String>,
}

impl Audit {
    /// Chunks lost until the next recovery: in use, not reachable, and not on their way back.
    pub fn leaked(&self) -> u64 {
        self.unreachable.saturating_sub(self.retired)
    }

    /// Whether the audit found no fault and no leak.
    pub fn is_clean(&self) -> bool {
        self.doubly_reachable == 0 && self.leaked() == 0 && self.faults.is_empty()
    }

    fn fault(&mut self, what: String) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(what);
        }
    }
}

/// Maximum number of recorded faults.
const MAX_FAULTS: usize = 1000;

/// The fault of an object outside all pages.
const BEYOND: &str = "beyond the last page";

/// How often to advance the epoch before the audit, so that garbage is freed.
const FLUSHES: usize = 100;

/// A bit for each chunk of each page that the trace met.
type Visited = Vec<Mutex<Vec<u64>>>;

impl<M: Media> Heap<M> {
    /// Compares what the roots lead to with what is in use. No other thread may use the heap meanwhile, and the
    /// caller must hold no guard.
    ///
    /// # Errors
    ///
    /// [`Error::NotRecovered`] before recovery has ended, and any error of a trace.
    pub fn audit(&self, tracers: &Tracers<M>, threads: usize) -> Result<Audit, Error> {
        match self.recovery().state {
            RecoveryStage::Done => {}
            RecoveryStage::Idle => return Err(Error::NotRecovered("was not started".into())),
            RecoveryStage::Running => return Err(Error::NotRecovered("is still running".into())),
            RecoveryStage::Failed(why) => return Err(Error::NotRecovered(format!("failed: {why}"))),
        }
        let arena = &self.inner.arena;
        for _ in 0..FLUSHES {
            if Arc::strong_count(arena) == 1 {
                break;
            }
            crate::pin().flush();
        }
        let end = lock(&arena.runs).end;
        let visited: Visited = (0..end).map(|_| Mutex::default()).collect();
        let audit = Mutex::new(Audit::default());
        let traced = AtomicU64::new(0);
        let tracing = Tracing {
            heap: self,
            tracers,
            threads: threads.clamp(1, MAX_THREADS),
            stop: &AtomicBool::new(false),
            traced: &traced,
        };
        let bytes = AtomicU64::new(0);
        // Objects retired meanwhile stay as they are until the trace has ended.
        let guard = crate::pin();
        tracing.run(
            self.roots()?,
            &|offset, len| match self.visit(&visited, offset, len) {
                Ok(true) => {
                    bytes.fetch_add(len, Relaxed);
                    Ok(true)
                }
                Ok(false) => {
                    lock(&audit).doubly_reachable += 1;
                    Ok(false)
                }
                Err(what) => {
                    let mut audit = lock(&audit);
                    if audit.faults.len() < MAX_FAULTS {
                        audit.faults.push(format!(
                            "object of {len} bytes at offset {:#x}: {what}",
                            offset.get()
                        ));
                    }
                    Ok(false)
                }
            },
        )?;
        drop(guard);
        for &offset in &*lock(&arena.held) {
            let place = Offset::new(offset).ok_or("not a place");
            if let Err(what) = place.and_then(|place| self.visit(&visited, place, 0)) {
                lock(&audit).fault(format!("held object at offset {offset:#x}: {what}"));
            }
        }
        let mut audit = lock(&audit).clone();
        audit.reachable = traced.load(Relaxed);
        audit.reachable_bytes = bytes.load(Relaxed);
        audit.retired = Arc::strong_count(arena) as u64 - 1;
        let twice = arena.freed_twice.load(Relaxed);
        if twice > 0 {
            audit.fault(format!("{twice} objects were freed twice"));
        }
        self.count_unreachable(&visited, &mut audit);
        Ok(audit)
    }

    /// Marks an object of `len` bytes (0: unknown length) as met. Returns `false` if it was met before, and an error
    /// if no such object is in use there.
    fn visit(&self, visited: &Visited, offset: Offset, len: u64) -> Result<bool, &'static str> {
        let arena = &*self.inner.arena;
        let number = arena.page_of(offset.get());
        let visited = visited.get(number as usize).ok_or(BEYOND)?;
        let state = arena.table.page(number).lock();
        let slot = arena.slot_of(&state, offset, len)?;
        let mut visited = lock(visited);
        let index = slot as usize / 64;
        if visited.len() <= index {
            visited.resize(index + 1, 0);
        }
        let bit = 1 << (slot % 64);
        let new = visited[index] & bit == 0;
        visited[index] |= bit;
        Ok(new)
    }

    /// Checks that an object of `len` bytes can be in use at `offset`: called before an object that a link leads to
    /// is retired, since the pool may be damaged. Pages that recovery has not swept are not checked; nothing in them
    /// is reused before the sweep.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if it cannot.
    pub(crate) fn verify(&self, offset: Offset, len: u64) -> Result<(), Error> {
        let arena = &*self.inner.arena;
        let number = arena.page_of(offset.get());
        let end = lock(&arena.runs).end;
        let fits = if number < end {
            let state = arena.table.page(number).lock();
            if state.swept {
                arena.slot_of(&state, offset, len).map(drop)
            } else {
                Ok(())
            }
        } else {
            Err(BEYOND)
        };
        fits.map_err(|_| Error::Damaged {
            what: "an object where none is in use",
            offset: offset.get(),
        })
    }

    fn count_unreachable(&self, visited: &Visited, audit: &mut Audit) {
        let arena = &*self.inner.arena;
        // Chunks claimed by a thread count as in use to their page, but hold nothing yet.
        for claim in lock(&arena.caches).iter().flat_map(|cache| cache.claims()) {
            let page = arena.page_of(claim.start);
            if let (Kind::Chunks(chunks), Some(visited)) =
                (&arena.table.page(page).lock().kind, visited.get(page as usize))
            {
                let index = (arena.within(claim.start) / chunks.size() / 64) as usize;
                let mut visited = lock(visited);
                let len = visited.len().max(index + 1);
                visited.resize(len, 0);
                let wrong = visited[index] & claim.bits;
                if wrong != 0 {
                    let first = claim.start + u64::from(wrong.trailing_zeros() * chunks.size());
                    audit.fault(format!(
                        "{} objects from offset {first:#x} on: free",
                        wrong.count_ones()
                    ));
                }
                visited[index] |= claim.bits;
            }
        }
        for (number, visited) in (0..).zip(visited) {
            let visited = lock(visited);
            let state = arena.table.page(number).lock();
            let (lost, size) = match &state.kind {
                Kind::Chunks(chunks) => (lost_chunks(chunks, &visited), u64::from(chunks.size())),
                Kind::Large { pages, .. } => (u64::from(visited.is_empty()), arena.start_of(*pages)),
                Kind::Free | Kind::Rest => continue,
            };
            audit.unreachable += lost;
            audit.unreachable_bytes += lost * size;
        }
    }
}

fn lost_chunks(chunks: &Chunks, visited: &[u64]) -> u64 {
    let visited = visited.iter().copied().chain(std::iter::repeat(0));
    chunks
        .words()
        .zip(visited)
        .map(|(live, visited)| u64::from((live & !visited).count_ones()))
        .sum()
}
