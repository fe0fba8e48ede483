//! Reads: no locks, no waiting (RECIPE §6.2).

use super::bucket::{Bucket, Wanted};
use super::chain::Chain;
use super::directory::{self, DEEPEST};
use super::locate::below;
use super::{Clht, damaged, segment, tag};
use index::Value;
use pmem::{Fault, Media, prefetch};

/// Number of keys whose lines are prefetched side by side.
const GROUP: usize = 32;

impl<M: Media> Clht<M> {
    /// The home bucket for a hash; `None` if there is no table. Like [`locate`](Clht::locate), but without recording
    /// the way.
    #[inline]
    pub(super) fn bucket(&self, hash: u64) -> Result<Option<&Bucket>, Fault> {
        let (media, mut rest) = (self.heap.media(), hash);
        let mut link = directory::first(&self.heap, self.root)?.load(media);
        // Not `0..=DEEPEST`: an inclusive range costs a get some instructions.
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
        let mut chain = Chain::new(&self.heap);
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
