//! Reads: no locks, no waiting (RECIPE §6.2).

use super::bucket::{Bucket, Wanted};
use super::directory::{self, DEEPEST};
use super::locate::below;
use super::{Clht, damaged, segment, tag};
use index::Value;
use pmem::{Fault, Link, Media, prefetch};

/// Number of keys whose lines are prefetched side by side.
const GROUP: usize = 32;

impl<M: Media> Clht<M> {
    /// The home bucket for a hash; `None` if there is no table. Like [`locate`](Clht::locate), but without recording
    /// the way.
    #[inline]
    pub(super) fn bucket(&self, hash: u64) -> Result<Option<&Bucket>, Fault> {
        let (media, mut rest) = (self.heap.media(), hash);
        let mut link = directory::first(&self.heap, self.root)?.load(media);
        for _ in 0..DEEPEST + 1 {
            if link.tag() != tag::DIRECTORY {
                let bucket = || segment::bucket(&self.heap, link, rest);
                return (!link.is_null()).then(bucket).transpose();
            }
            let at;
            (at, rest) = below(rest);
            link = directory::slot(&self.heap, link, at)?.load(media);
        }
        Err(damaged("a directory below the last", link))
    }

    /// The key's value.
    #[inline]
    pub(super) fn read(&self, key: &Wanted<'_>) -> Result<Option<Value<'_>>, Fault> {
        match self.bucket(key.hash)? {
            Some(bucket) => self.read_in(bucket, key),
            None => Ok(None),
        }
    }

    #[inline]
    fn read_in<'g>(&'g self, mut bucket: &'g Bucket, key: &Wanted<'_>) -> Result<Option<Value<'g>>, Fault> {
        let mut chain = Chain::new(self);
        loop {
            let next = match bucket.find(key, &self.heap)? {
                Ok(pair) => return Ok(Some(pair.value(&self.heap)?)),
                Err(state) => state.next(),
            };
            match chain.follow(next)? {
                Some(next) => bucket = next,
                None => return Ok(None),
            }
        }
    }

    /// Reads all keys, prefetching the lines of [`GROUP`] of them side by side.
    pub(super) fn read_many<'g>(
        &'g self,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, Option<Value<'g>>),
    ) -> Result<(), Fault> {
        for (group, keys) in keys.chunks(GROUP).enumerate() {
            let mut waiting: [Option<(&Bucket, Wanted<'_>)>; GROUP] = [None; GROUP];
            for (waiting, key) in waiting.iter_mut().zip(keys) {
                let key = Wanted::new(key);
                *waiting = self.bucket(key.hash)?.map(|bucket| (bucket, key));
                if let Some((bucket, _)) = waiting {
                    prefetch(*bucket);
                }
            }
            for (i, waiting) in waiting[..keys.len()].iter().enumerate() {
                let value = match waiting {
                    Some((bucket, key)) => self.read_in(bucket, key)?,
                    None => None,
                };
                found(group * GROUP + i, value);
            }
        }
        Ok(())
    }

    /// Prefetches the key's home bucket.
    pub(super) fn prefetch(&self, key: &Wanted<'_>) -> Result<(), Fault> {
        if let Some(bucket) = self.bucket(key.hash)? {
            prefetch(bucket);
        }
        Ok(())
    }
}

/// A walk along a chain of overflow buckets. It ends even in a damaged pool, where it finds a cycle soon (Brent).
pub(super) struct Chain<'g, M: Media> {
    index: &'g Clht<M>,
    steps: u64,
    /// The bucket of the last step whose number is a power of two.
    passed: Link,
}

impl<'g, M: Media> Chain<'g, M> {
    #[inline]
    pub(super) fn new(index: &'g Clht<M>) -> Self {
        Chain {
            index,
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
        Bucket::at(&self.index.heap, next).map(Some)
    }
}
