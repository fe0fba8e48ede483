//! The cost of one operation: its write-backs and fences, exactly.
//!
//! An operation's cost depends only on the structure, so a test builds one and asserts both numbers. The heap's own
//! persists (one write-back and one fence per new page) are counted separately. A non-temporal store counts as the
//! write-back it replaces, as in the papers.

use crate::{Error, OnHeap};
use heap::Heap;
use pmem::{Counting, Counts, Hardware, Pool, PoolOptions};

/// Write-backs (or non-temporal stores) and fences.
pub type Cost = (u64, u64);

/// An index in memory, on a counting media.
#[derive(Debug)]
pub struct Costs<I> {
    media: Counting,
    index: I,
}

impl<I: OnHeap<Media = Counting>> Costs<I> {
    /// An empty index.
    pub fn create() -> Self {
        let media = Counting::new(Hardware::detect());
        let options = PoolOptions {
            max_size: 1 << 30,
            ..PoolOptions::default()
        };
        let pool = Pool::anonymous(&options, media.clone()).expect("a pool");
        let heap = Heap::new(pool).expect("a heap");
        let index = I::create(&heap, b"counts").expect("an index");
        Costs { media, index }
    }

    /// The index.
    pub fn index(&self) -> &I {
        &self.index
    }

    /// The counts while `operation` runs, and its result.
    pub fn counts<R>(&self, operation: impl FnOnce(&I) -> R) -> (Counts, R) {
        let before = self.media.counts();
        let result = operation(&self.index);
        (self.media.counts() - before, result)
    }

    /// The cost of an operation, without the heap's part. The operation must return that it changed something.
    ///
    /// # Panics
    ///
    /// If it writes a line back twice before one fence: a correct index may do so, but gains nothing by it.
    pub fn cost(&self, operation: impl FnOnce(&I) -> Result<bool, Error>) -> Cost {
        let (counts, done) = self.counts(operation);
        assert!(done.expect("no error"), "nothing was changed");
        assert_eq!(
            counts.node.lines,
            counts.node.write_backs + counts.non_temporal,
            "a line was written back twice before one fence"
        );
        (counts.node.write_backs + counts.non_temporal, counts.node.fences)
    }
}
