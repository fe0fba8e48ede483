//! Bulk building: a new index from sorted pairs.
//!
//! Ordinary writes make each key reachable and durable by itself. A build makes all objects privately, makes them
//! durable, and gives the index its name by one store, the commit point. A builder works bottom-up and with few fences
//! (that of the radix trees, with one for each thread). A crash leaves the whole index or none; the next recovery finds
//! the objects of an unfinished build unreachable.
//!
//! Several threads can build one index, each from a part of the pairs ([`Parts`]); some builders read the parts one
//! after the other. An index that has keys already accepts further ones by ordinary writes only.

use crate::{Error, MAX_KEY, MAX_VALUE, OnHeap, Order};
use heap::Heap;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// A key and its value.
pub type Pair<'p> = (&'p [u8], &'p [u8]);

/// A source of pairs in strictly ascending order of their keys.
pub trait Pairs {
    /// The next pair; `None` at the end, after which it is not called again.
    ///
    /// # Errors
    ///
    /// Any error ends the build, which returns it. [`Error::Stopped`] is for a source that keeps the reason itself.
    fn next(&mut self) -> Result<Option<Pair<'_>>, Error>;
}

/// The pairs of an iterator.
#[derive(Debug)]
pub struct Sorted<I, K, V> {
    pairs: I,
    current: Option<(K, V)>,
}

impl<I: Iterator<Item = (K, V)>, K, V> Sorted<I, K, V> {
    /// The pairs that `pairs` yields, which must ascend.
    pub fn new(pairs: impl IntoIterator<IntoIter = I>) -> Self {
        let pairs = pairs.into_iter();
        Sorted { pairs, current: None }
    }
}

impl<I, K, V> Pairs for Sorted<I, K, V>
where
    I: Iterator<Item = (K, V)>,
    K: AsRef<[u8]>,
    V: AsRef<[u8]>,
{
    fn next(&mut self) -> Result<Option<Pair<'_>>, Error> {
        self.current = self.pairs.next();
        Ok(self
            .current
            .as_ref()
            .map(|(key, value)| (key.as_ref(), value.as_ref())))
    }
}

/// The pairs of a build: all of them, or several parts, each read by a thread.
pub struct Parts<'p> {
    first: &'p mut dyn Pairs,
    others: Vec<Part<'p>>,
}

/// A source that catches its panic; of several sources the first panic is kept.
struct Caught<'p, P: ?Sized> {
    pairs: &'p mut P,
    panic: &'p Mutex<Option<Box<dyn Any + Send>>>,
}

impl<P: Pairs + ?Sized> Pairs for Caught<'_, P> {
    fn next(&mut self) -> Result<Option<Pair<'_>>, Error> {
        // An error ends the build, so a source that has panicked is not called again.
        let pairs = AssertUnwindSafe(&mut *self.pairs);
        let next = catch_unwind(|| {
            let AssertUnwindSafe(pairs) = { pairs };
            pairs.next()
        });
        next.unwrap_or_else(|panic| {
            let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(panic);
            Err(Error::Stopped)
        })
    }
}

/// A part that is not the first.
struct Part<'p> {
    from: &'p [u8],
    pairs: &'p mut (dyn Pairs + Send),
}

impl<'p> Parts<'p> {
    /// The pairs that the caller's thread reads: all, unless [further parts](Parts::and) are added.
    pub fn new(first: &'p mut dyn Pairs) -> Parts<'p> {
        Parts {
            first,
            others: Vec::new(),
        }
    }

    /// Adds the pairs from a key on, which a thread of its own reads; those of the part before must end before that
    /// key.
    #[must_use]
    pub fn and(mut self, from: &'p [u8], pairs: &'p mut (dyn Pairs + Send)) -> Parts<'p> {
        self.others.push(Part { from, pairs });
        self
    }

    /// Passes these parts to a build, for which a panicking source counts as [stopped](Error::Stopped), so that it
    /// cleans up. The panic resumes when the build has ended.
    pub fn catch_panics<T>(self, build: impl FnOnce(Parts<'_>) -> T) -> T {
        let panic = Mutex::new(None);
        let mut first = Caught {
            pairs: self.first,
            panic: &panic,
        };
        let others = self.others.into_iter();
        let mut others: Vec<_> = others
            .map(|Part { from, pairs }| (from, Caught { pairs, panic: &panic }))
            .collect();
        let mut parts = Parts::new(&mut first);
        for (from, pairs) in &mut others {
            parts = parts.and(from, pairs);
        }
        let built = build(parts);
        match panic.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(panic) => resume_unwind(panic),
            None => built,
        }
    }

    /// Passes the parts to `read` one after the other, in this thread. Without an order of keys their pairs may come in
    /// any order.
    ///
    /// # Errors
    ///
    /// Errors of `read`; [`Error::OutOfOrder`] if the parts do not ascend.
    pub fn read_in_turn(
        self,
        order: Order,
        mut read: impl FnMut(Reading<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let is_ordered = order.is_by_keys();
        let starts: Vec<_> = self.others.iter().map(|part| part.from).collect();
        if is_ordered && !starts.is_sorted_by(|a, b| a < b) {
            return Err(Error::OutOfOrder);
        }
        let froms = std::iter::once(None).chain(starts.iter().copied().map(Some));
        let untils = starts.iter().copied().map(Some).chain([None]);
        let others = self.others.into_iter().map(|part| part.pairs as &mut dyn Pairs);
        let all = std::iter::once(self.first).chain(others);
        for (pairs, (from, until)) in all.zip(froms.zip(untils)) {
            read(Reading {
                is_ordered,
                from,
                until,
                pairs,
                last: None,
                is_over: false,
                failed: None,
            })?;
        }
        Ok(())
    }

    /// Whether one thread reads all pairs.
    pub fn is_one(&self) -> bool {
        self.others.is_empty()
    }

    /// Passes the first part to `read`, in this thread, as the only one: the caller has checked that [there is
    /// one](Parts::is_one).
    ///
    /// # Errors
    ///
    /// Errors of `read`.
    pub fn read_here<T>(self, read: impl FnOnce(Reading<'_>) -> T) -> T {
        read(Reading {
            is_ordered: true,
            from: None,
            until: None,
            pairs: self.first,
            last: None,
            is_over: false,
            failed: None,
        })
    }

    /// Reads all parts, each in a thread of its own except for the first, and returns their results in order. (A part
    /// for which the system refuses a thread is read when the others are done.) `read` returns what it has built, and
    /// the error if it failed, for its source or for the lack of room, say. Once it has failed for one part, the other
    /// readings end early: what they build is of no use.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfOrder`] if the parts do not ascend.
    pub fn read<T: Send, E: Send>(
        self,
        read: impl Fn(Reading<'_>) -> (T, Option<E>) + Sync,
    ) -> Result<Vec<(T, Option<E>)>, Error> {
        let starts: Vec<_> = self.others.iter().map(|part| part.from).collect();
        if !starts.is_sorted_by(|a, b| a < b) {
            return Err(Error::OutOfOrder);
        }
        let failed = AtomicBool::new(false);
        let read = |reading: Reading<'_>| {
            let (built, error) = read(reading);
            if error.is_some() {
                failed.store(true, Relaxed);
            }
            (built, error)
        };
        let untils = starts.iter().copied().skip(1).map(Some).chain([None]);
        let others: Vec<_> = self
            .others
            .into_iter()
            .zip(untils)
            .map(|(part, until)| Mutex::new(Work::Left(part, until)))
            .collect();
        let run = |work: &Mutex<Work<'_, (T, Option<E>)>>| {
            let mut work = work.lock().unwrap_or_else(PoisonError::into_inner);
            *work = match std::mem::replace(&mut *work, Work::Begun) {
                Work::Left(part, until) => Work::Done(read(Reading {
                    is_ordered: true,
                    from: Some(part.from),
                    until,
                    pairs: part.pairs,
                    last: None,
                    is_over: false,
                    failed: Some(&failed),
                })),
                other => other,
            };
        };
        let first = std::thread::scope(|scope| {
            for work in &others {
                let thread = std::thread::Builder::new().name("wollemi-build".into());
                // Without a thread it is left to the caller.
                let _ = thread.spawn_scoped(scope, || run(work));
            }
            let first = read(Reading {
                is_ordered: true,
                from: None,
                until: starts.first().copied(),
                pairs: self.first,
                last: None,
                is_over: false,
                failed: Some(&failed),
            });
            others.iter().for_each(run);
            first
        });
        let others = others.into_iter().filter_map(|work| {
            match work.into_inner().unwrap_or_else(PoisonError::into_inner) {
                Work::Done(done) => Some(done),
                _ => None,
            }
        });
        Ok(std::iter::once(first).chain(others).collect())
    }
}

impl std::fmt::Debug for Parts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let others = self.others.iter().map(|part| part.from).collect::<Vec<_>>();
        f.debug_struct("Parts")
            .field("others", &others)
            .finish_non_exhaustive()
    }
}

/// A part that is not the first, the start of the next one, and its result.
enum Work<'p, T> {
    Left(Part<'p>, Option<&'p [u8]>),
    Begun,
    Done(T),
}

/// An index that can be built from sorted pairs.
pub trait Bulk: OnHeap {
    /// Builds an index under the root `name` from all pairs.
    ///
    /// Durable when it returns. A radix tree costs one write-back per line written and one fence per part, besides
    /// those of the root and its name and of new pages. Waits for recovery if only that can make room, so the caller
    /// must hold no guard. The pairs of an index without an order of keys may come in any order.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfOrder`] if keys do not ascend, are not unique, or leave their part; [`Error::KeyTooLong`] and
    /// [`Error::ValueTooLong`]; errors of a source; [`Error::Heap`] if the name is taken or invalid, or the pool is
    /// full, or the system refuses a thread that the index needs. Nothing that was built remains then.
    fn build(heap: &Heap<Self::Media>, name: &[u8], parts: Parts<'_>) -> Result<Self, Error>;
}

/// A part being read: checks that its pairs are in order, within bounds, and not too long.
pub struct Reading<'p> {
    /// Whether order and bounds are checked.
    is_ordered: bool,
    from: Option<&'p [u8]>,
    until: Option<&'p [u8]>,
    pairs: &'p mut dyn Pairs,
    last: Option<Vec<u8>>,
    /// Whether the source has no more pairs.
    is_over: bool,
    /// Whether another part has failed.
    failed: Option<&'p AtomicBool>,
}

impl std::fmt::Debug for Reading<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reading")
            .field("from", &self.from)
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

impl<'p> Reading<'p> {
    /// The lower bound of the part's keys; `None` if there is no part before.
    pub fn from(&self) -> Option<&'p [u8]> {
        self.from
    }

    /// The key at which the next part begins.
    pub fn until(&self) -> Option<&'p [u8]> {
        self.until
    }

    /// The next pair; `None` at the end, however often it is called there, and once another part has failed.
    ///
    /// # Errors
    ///
    /// As for [`Bulk::build`], except for those of the heap.
    #[expect(clippy::should_implement_trait, reason = "it lends what it returns")]
    pub fn next(&mut self) -> Result<Option<Pair<'_>>, Error> {
        if self.is_over || self.failed.is_some_and(|failed| failed.load(Relaxed)) {
            return Ok(None);
        }
        self.checked()
    }

    /// The source's next pair, if it is in order, within the part, and not too long.
    fn checked(&mut self) -> Result<Option<Pair<'_>>, Error> {
        let Some((key, value)) = self.pairs.next()? else {
            self.is_over = true;
            return Ok(None);
        };
        if key.len() > MAX_KEY {
            return Err(Error::KeyTooLong(key.len()));
        }
        if value.len() > MAX_VALUE {
            return Err(Error::ValueTooLong(value.len()));
        }
        if !self.is_ordered {
            return Ok(Some((key, value)));
        }
        let ascends = match &self.last {
            Some(last) => &last[..] < key,
            None => self.from.is_none_or(|from| from <= key),
        };
        if !ascends || self.until.is_some_and(|until| until <= key) {
            return Err(Error::OutOfOrder);
        }
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        Ok(Some((key, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;
    use std::time::Duration;

    /// A source that fails at once.
    struct Failing;

    impl Pairs for Failing {
        fn next(&mut self) -> Result<Option<Pair<'_>>, Error> {
            Err(Error::Stopped)
        }
    }

    /// A slow source that ascends from a key, and would take some ten seconds.
    struct Slow {
        key: [u8; 4],
        asked: u32,
    }

    impl Pairs for Slow {
        fn next(&mut self) -> Result<Option<Pair<'_>>, Error> {
            sleep(Duration::from_millis(1));
            self.asked += 1;
            self.key = self.asked.to_be_bytes();
            Ok((self.asked <= 10_000).then_some((&self.key, b"")))
        }
    }

    fn read_all(reading: &mut Reading<'_>) -> Result<(), Error> {
        while reading.next()?.is_some() {}
        Ok(())
    }

    /// Once the source of a part has failed, or its builder, the other parts end, and the error is that of the part.
    #[test]
    fn a_failed_part_ends_the_others() {
        for builder_fails in [false, true] {
            let mut slow = Slow {
                key: [0; 4],
                asked: 0,
            };
            let mut failing = Failing;
            let parts = Parts::new(&mut failing).and(b"", &mut slow);
            let all = parts.read(|mut reading| {
                if builder_fails && reading.from().is_none() {
                    return ((), Some(Error::ReadOnly));
                }
                ((), read_all(&mut reading).err())
            });
            let all = all.expect("the parts ascend");
            match builder_fails {
                false => assert!(
                    matches!(all[..], [(_, Some(Error::Stopped)), (_, None)]),
                    "{all:?}"
                ),
                true => assert!(
                    matches!(all[..], [(_, Some(Error::ReadOnly)), (_, None)]),
                    "{all:?}"
                ),
            }
            assert!(slow.asked < 10_000, "it was read to its end: {builder_fails}");
        }
    }
}
