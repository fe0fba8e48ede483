//! Chains of overflow buckets.

use super::bucket::Bucket;
use super::damaged;
use heap::Access;
use pmem::{Fault, Link, Media};

/// A walk along a chain of overflow buckets. It ends even in a damaged pool, where it finds a cycle soon (Brent).
pub(super) struct Chain<'g, M: Media> {
    heap: &'g Access<M>,
    steps: u64,
    /// The bucket of the last step whose number is a power of two.
    passed: Link,
}

impl<'g, M: Media> Chain<'g, M> {
    #[inline]
    pub(super) fn new(heap: &'g Access<M>) -> Self {
        Chain {
            heap,
            steps: 0,
            passed: Link::NULL,
        }
    }

    /// The bucket that a link leads to.
    #[inline]
    pub(super) fn follow(&mut self, next: Link) -> Result<Option<&'g Bucket>, Fault> {
        if next.is_null() {
            return Ok(None);
        }
        if next.offset() == self.passed.offset() {
            return Err(damaged("a chain of buckets has a cycle", next));
        }
        self.steps += 1;
        if self.steps.is_power_of_two() {
            self.passed = next;
        }
        Bucket::at(self.heap, next).map(Some)
    }
}
