//! The cost of one operation: its write-backs and fences, exactly.
//!
//! An operation's cost depends on the structure alone, so a test builds one and asserts both numbers. The heap's own
//! persists (one write-back and one fence for each page taken) are counted apart. A non-temporal store counts as the
//! write-back it replaces, as in the papers.

use crate::{Error, OnHeap};
use heap::Heap;
use pmem::{Counting, Counts, Hardware, Pool, PoolOptions};

/// Write-backs (or non-temporal stores) and fences.
pub type Cost = (u64, u64);

/// An index in memory, on a media that counts.
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

    /// What passes while `operation` runs.
    pub fn counts<R>(&self, operation: impl FnOnce(&I) -> R) -> (Counts, R) {
        let before = self.media.counts();
        let result = operation(&self.index);
        (self.media.counts() - before, result)
    }

    /// The cost of an operation, which must return that it changed something, without the heap's part.
    ///
    /// # Panics
    ///
    /// If it writes a line back twice before one fence: a correct index may do so, but gains nothing.
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
