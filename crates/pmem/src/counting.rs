//! A media that counts persists.
//!
//! The papers count write-backs and fences, split by purpose. Two more counts show the memory's work: *lines* counts
//! a line once however often it is written back before one fence, and *blocks* does so for blocks of 256 bytes. A
//! non-temporal store does not count as a write-back, but its line does.
//!
//! Counters are relaxed and sharded by thread: a count is exact once the counted threads have been joined or are
//! otherwise known to be idle.

use crate::recent::Recent;
use crate::watched::{ObservedStep, Observer, StepKind, Watched};
use crate::{Hardware, Media, Purpose};
use std::cell::Cell;
use std::ops::{Add, Sub};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The counts of one [`Purpose`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Persists {
    /// Write-backs.
    pub write_backs: u64,
    /// Fences.
    pub fences: u64,
    /// Lines of 64 bytes that the fences waited for, each counted once per fence.
    pub lines: u64,
    /// Blocks of 256 bytes that the fences waited for, each counted once per fence.
    pub blocks: u64,
    /// Bytes stored into lines that the thread wrote back for this purpose by its next fence; or, if it did not write
    /// them back, before a fence for this purpose. Hints that recovery ignores count as [`Purpose::Node`].
    pub bytes: u64,
}

/// The counts of a [`Counting`] media.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// For nodes, leaves and values.
    pub node: Persists,
    /// For the heap's own metadata.
    pub alloc: Persists,
    /// For log records.
    pub log: Persists,
    /// Stores past the cache.
    pub non_temporal: u64,
    /// Bytes stored into persistent words and drafts, including those that no fence has followed. Words of the
    /// current generation only are not counted.
    pub bytes: u64,
}

impl Counts {
    /// The sum over all purposes.
    pub fn total(&self) -> Persists {
        self.node + self.alloc + self.log
    }
}

impl Add for Persists {
    type Output = Persists;
    fn add(self, other: Persists) -> Persists {
        Persists {
            write_backs: self.write_backs + other.write_backs,
            fences: self.fences + other.fences,
            lines: self.lines + other.lines,
            blocks: self.blocks + other.blocks,
            bytes: self.bytes + other.bytes,
        }
    }
}

/// The difference between two counts, the later one first.
impl Sub for Persists {
    type Output = Persists;
    fn sub(self, earlier: Persists) -> Persists {
        Persists {
            write_backs: self.write_backs - earlier.write_backs,
            fences: self.fences - earlier.fences,
            lines: self.lines - earlier.lines,
            blocks: self.blocks - earlier.blocks,
            bytes: self.bytes - earlier.bytes,
        }
    }
}

/// The difference between two counts, the later one first.
impl Sub for Counts {
    type Output = Counts;
    fn sub(self, earlier: Counts) -> Counts {
        Counts {
            node: self.node - earlier.node,
            alloc: self.alloc - earlier.alloc,
            log: self.log - earlier.log,
            non_temporal: self.non_temporal - earlier.non_temporal,
            bytes: self.bytes - earlier.bytes,
        }
    }
}

/// Counts the calls that it passes on to `M`. Clones share their counters.
pub type Counting<M = Hardware> = Watched<Counter, M>;

/// The counters of a [`Counting`] media.
#[derive(Clone, Debug)]
pub struct Counter(Arc<Counters>);

#[derive(Debug)]
struct Counters {
    shards: Box<[Shard]>,
    recent: Recent,
}

/// Number of shards; threads beyond it share counters.
const SHARDS: usize = 64;

const PURPOSES: usize = 3;

/// The counters of one thread, or of several if there are more than [`SHARDS`], on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard {
    write_backs: [AtomicU64; PURPOSES],
    fences: [AtomicU64; PURPOSES],
    lines: [AtomicU64; PURPOSES],
    blocks: [AtomicU64; PURPOSES],
    bytes_for: [AtomicU64; PURPOSES],
    non_temporal: AtomicU64,
    bytes: AtomicU64,
}

fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

impl Counters {
    fn shard(&self) -> &Shard {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static MINE: Cell<usize> = Cell::new(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        let mine = MINE.try_with(Cell::get).unwrap_or(0);
        &self.shards[mine % SHARDS]
    }
}

impl<M: Media> Counting<M> {
    /// Wraps `inner`, with counters at zero.
    pub fn new(inner: M) -> Counting<M> {
        let counters = Counters {
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            recent: Recent::new(),
        };
        Watched::around(inner, Counter(Arc::new(counters)))
    }

    /// The counts so far. [Subtract](Sub) two of them to count what happened in between.
    pub fn counts(&self) -> Counts {
        let Counter(counters) = self.watch();
        let sum = |counter: &dyn Fn(&Shard) -> &AtomicU64| {
            let all = counters.shards.iter();
            all.map(|shard| counter(shard).load(Ordering::Relaxed)).sum()
        };
        let persists = |purpose: Purpose| Persists {
            write_backs: sum(&|shard| &shard.write_backs[purpose as usize]),
            fences: sum(&|shard| &shard.fences[purpose as usize]),
            lines: sum(&|shard| &shard.lines[purpose as usize]),
            blocks: sum(&|shard| &shard.blocks[purpose as usize]),
            bytes: sum(&|shard| &shard.bytes_for[purpose as usize]),
        };
        Counts {
            node: persists(Purpose::Node),
            alloc: persists(Purpose::Alloc),
            log: persists(Purpose::Log),
            non_temporal: sum(&|shard| &shard.non_temporal),
            bytes: sum(&|shard| &shard.bytes),
        }
    }
}

impl Observer for Counter {
    #[inline(always)]
    fn after(&self, step: &ObservedStep) {
        let Counter(counters) = self;
        match step.what {
            StepKind::Store | StepKind::Exchange | StepKind::Drafted => {
                add(&counters.shard().bytes, step.len as u64);
                counters.recent.note_stored(step.start, step.len);
            }
            // Hints in nodes, which need no fence.
            StepKind::StoreUnpersisted | StepKind::ExchangeUnpersisted => {
                let shard = counters.shard();
                add(&shard.bytes, step.len as u64);
                add(&shard.bytes_for[Purpose::Node as usize], step.len as u64);
            }
            StepKind::StoreNt => {
                add(&counters.shard().non_temporal, 1);
                add(&counters.shard().bytes, step.len as u64);
                counters.recent.note_stored(step.start, step.len);
                counters.recent.note(step.start, Purpose::Node);
            }
            StepKind::WriteBack(purpose) | StepKind::WriteBackJoined(purpose) => {
                add(&counters.shard().write_backs[purpose as usize], 1);
                counters.recent.note(step.start, purpose);
            }
            StepKind::Fence(purpose) => {
                let shard = counters.shard();
                add(&shard.fences[purpose as usize], 1);
                counters.recent.stored(purpose, |purpose, bytes| {
                    add(&shard.bytes_for[purpose as usize], bytes);
                });
                counters.recent.fence(|purpose, new_block| {
                    add(&shard.lines[purpose as usize], 1);
                    add(&shard.blocks[purpose as usize], u64::from(new_block));
                });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(256))]
    struct Block([AtomicU64; 64]);

    fn block() -> Block {
        Block([const { AtomicU64::new(0) }; 64])
    }

    fn at(block: &Block, word: usize) -> *const u8 {
        block.0[word].as_ptr().cast()
    }

    /// Write-backs, fences and bytes are counted by purpose; a line and a block are counted once per fence.
    #[test]
    fn counts_are_split() {
        let media = Counting::new(Hardware::detect());
        let memory = block();
        // Two words of a line, another line of its block, and a line of the next block.
        for word in [0, 1, 8, 32] {
            media.store(&memory.0[word], 1);
            media.write_back(&memory.0[word], Purpose::Node);
        }
        media.fence(Purpose::Node);
        media.store_unpersisted(&memory.0[2], 1);
        media.drafted(at(&memory, 7), 16);
        media.write_back(&memory.0[0], Purpose::Alloc);
        media.fence(Purpose::Alloc);
        media.store_nt(&memory.0[0], 2);
        media.store(&memory.0[40], 3);
        media.fence(Purpose::Log);
        media.store(&memory.0[0], 2);
        let counts = media.counts();
        let persists = |write_backs, fences, lines, blocks, bytes| Persists {
            write_backs,
            fences,
            lines,
            blocks,
            bytes,
        };
        // The non-temporal store's line is the fourth of the nodes; half of the draft lies in a line that is not
        // written back, and the last store has no fence.
        assert_eq!(counts.node, persists(4, 1, 4, 3, 4 * 8 + 8 + 8));
        assert_eq!(counts.alloc, persists(1, 1, 1, 1, 16));
        assert_eq!(counts.log, persists(0, 1, 0, 0, 8));
        assert_eq!(counts.total(), persists(5, 3, 5, 4, 9 * 8));
        assert_eq!((counts.non_temporal, counts.bytes), (1, 10 * 8));
        assert_eq!(memory.0[0].load(Ordering::Relaxed), 2);
    }

    /// Differences count the calls in between; a failed exchange and volatile words store nothing persistent.
    #[test]
    fn differences_count_what_passed_between() {
        let media = Counting::new(Hardware::detect());
        let memory = block();
        media.store(&memory.0[0], 5);
        let before = media.counts();
        assert_eq!(media.compare_exchange(&memory.0[0], 4, 6), Err(5));
        assert_eq!(media.compare_exchange(&memory.0[0], 5, 6), Ok(5));
        media.store_volatile(&memory.0[1], 1);
        media.drafted(at(&memory, 8), 64);
        media.write_back(&memory.0[8], Purpose::Node);
        media.fence(Purpose::Node);
        let passed = media.counts() - before;
        assert_eq!(
            (passed.bytes, passed.total().write_backs, passed.total().fences),
            (8 + 64, 1, 1)
        );
    }

    /// The counts of threads add up, clones share their counters, and a nested media keeps its own lines.
    #[test]
    fn threads_and_clones_add_up() {
        let inner = Counting::new(Hardware::detect());
        let media = Counting::new(inner.clone());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let media = media.clone();
                scope.spawn(move || {
                    let memory = block();
                    for turn in 0..100 {
                        media.write_back(&memory.0[turn % 64], Purpose::Node);
                        media.write_back(&memory.0[turn % 64], Purpose::Node);
                        media.fence(Purpose::Node);
                    }
                });
            }
        });
        let expected = Persists {
            write_backs: 800,
            fences: 400,
            lines: 400,
            blocks: 400,
            bytes: 0,
        };
        assert_eq!(media.counts().node, expected);
        assert_eq!(inner.counts(), media.counts());
    }
}
