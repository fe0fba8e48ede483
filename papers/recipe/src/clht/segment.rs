//! Tables: buckets in a row, numbered by the upper bits of a hash that directories have not consumed.
//!
//! ```text
//!   0  0
//!   8  shape    number of buckets, as in the tag of the link to it
//!  16  hint     generation:32 | overflow buckets:32       (volatile, and only a hint)
//!  24  0
//!  64  buckets
//! ```
//!
//! A table has one of a ladder of sizes, each four times the one below. There are four ladders, which the slots of a
//! directory use in turn: so the tables of a directory do not all grow at the same time, and the share of free space
//! is about the same whatever the number of keys.

use super::bucket::Bucket;
use super::chain::Chain;
use super::directory::{HEAD, Head};
use super::{damaged, tag};
use heap::{Access, Heap};
use pmem::{Fault, LINE, Link, Media, Offset, Tag};

/// Bytes of the smallest table of each ladder.
const LEAST: [usize; 4] = [128, 192, 256, 384];

/// Maximum size of a table in bytes. When such a table has as many overflow buckets as buckets, and becomes a
/// directory, it holds about 2,000 keys.
pub(super) const LARGEST: usize = 384 << 6;

/// Each size is this many times the one below.
const STEP: usize = 4;

/// A size of table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    bytes: usize,
}

impl Size {
    /// The smallest table for a directory's slot.
    pub(super) fn least(slot: usize) -> Size {
        Size {
            bytes: LEAST[slot % LEAST.len()],
        }
    }

    /// Whether tables with this number of buckets exist. With the head, each has 2 or 3 lines times a power of two.
    #[inline]
    fn is_of(buckets: usize) -> bool {
        let lines = buckets + 1;
        let upper = lines & lines.wrapping_sub(1);
        lines > 1 && lines <= LARGEST / LINE && (upper == 0 || lines == upper / 2 * 3)
    }

    /// The smallest table with room for this many keys; the largest if none has.
    pub(super) fn for_keys(slot: usize, keys: usize) -> Size {
        let mut size = Size::least(slot);
        while !size.has_room(keys)
            && let Some(larger) = size.larger()
        {
            size = larger;
        }
        size
    }

    /// Whether a table of this many keys is far from growing: with 5.2 keys a bucket it has as many overflow buckets as
    /// buckets.
    pub(super) fn has_room(self, keys: usize) -> bool {
        keys <= 4 * self.buckets()
    }

    /// The next larger size; `None` if a directory comes instead.
    pub(super) fn larger(self) -> Option<Size> {
        let bytes = self.bytes * STEP;
        (bytes <= LARGEST).then_some(Size { bytes })
    }

    /// The next smaller size.
    pub(super) fn smaller(self) -> Option<Size> {
        let bytes = self.bytes / STEP;
        (bytes >= LEAST[0]).then_some(Size { bytes })
    }

    /// Number of buckets, after the head.
    pub(super) fn buckets(self) -> usize {
        self.bytes / LINE - 1
    }

    /// Bytes after the head.
    pub(super) fn tail(self) -> usize {
        self.bytes - HEAD
    }

    /// The tag of a link to such a table.
    pub(super) fn tag(self) -> Tag {
        Tag::new(tag::SEGMENT | (self.buckets() as u64) << 48)
    }
}

/// A reference to a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentRef<'g> {
    pub(super) head: &'g Head,
    pub(super) buckets: &'g [Bucket],
    pub(super) offset: Offset,
}

/// Whether a link leads to a table.
#[inline]
pub(super) fn is_segment(link: Link) -> bool {
    link.bits() & tag::KIND == tag::SEGMENT
}

/// The hint of a table with `count` overflow buckets.
pub(super) fn hint<M: Media>(count: u32, heap: &Heap<M>) -> u64 {
    u64::from(heap.generation()) << 32 | u64::from(count)
}

/// The bucket, among `buckets`, for the remaining bits of a hash.
#[inline]
pub(super) fn home(rest: u64, buckets: usize) -> usize {
    ((u128::from(rest) * buckets as u128) >> 64) as usize
}

/// The home bucket, in the table at `link`, for the remaining bits of a hash.
#[inline]
pub(super) fn bucket<M: Media>(heap: &Access<M>, link: Link, rest: u64) -> Result<&Bucket, Fault> {
    let fault = || damaged("table of a P-CLHT", link);
    let buckets = (link.bits() >> 48) as usize;
    let number = home(rest, buckets);
    let place = link
        .offset()
        .filter(|_| is_segment(link) && Size::is_of(buckets))
        .and_then(|offset| Offset::new(offset.get() + ((1 + number) * LINE) as u64));
    heap.at(place.ok_or_else(fault)?)
}

impl<'g> SegmentRef<'g> {
    /// The table at `link`.
    #[inline]
    pub(super) fn at<M: Media>(heap: &'g Access<M>, link: Link) -> Result<SegmentRef<'g>, Fault> {
        let fault = || damaged("table of a P-CLHT", link);
        let buckets = (link.bits() >> 48) as usize;
        let offset = link
            .offset()
            .filter(|_| is_segment(link) && Size::is_of(buckets))
            .ok_or_else(fault)?;
        let first = Offset::new(offset.get() + HEAD as u64).ok_or_else(fault)?;
        Ok(SegmentRef {
            head: heap.at(offset)?,
            buckets: heap.slice(first, buckets)?,
            offset,
        })
    }

    /// Compares the number of buckets in the link with the one in the table.
    pub(super) fn compare<M: Media>(&self, link: Link, heap: &Access<M>) -> Result<(), Fault> {
        match self.head.shape.load(heap.media()) == self.buckets.len() as u64 {
            true => Ok(()),
            false => Err(damaged("number of buckets in the link to a table", link)),
        }
    }

    /// Its size.
    pub(super) fn size(&self) -> Size {
        Size { bytes: self.extent() }
    }

    /// Its bytes.
    pub(super) fn extent(&self) -> usize {
        HEAD + size_of_val(self.buckets)
    }

    /// The approximate number of overflow buckets.
    fn overflow<M: Media>(&self, heap: &Access<M>) -> Option<u32> {
        let word = self.head.hint.load(heap.media());
        ((word >> 32) as u32 == heap.generation()).then_some(word as u32)
    }

    /// Stores the number of overflow buckets.
    pub(super) fn note_overflow<M: Media>(&self, count: u32, heap: &Access<M>) {
        self.head.hint.store(hint(count, heap), heap.media());
    }

    /// Adds `change` to the number of overflow buckets, and returns the approximate result.
    pub(super) fn count_overflow<M: Media>(&self, change: i32, heap: &Access<M>) -> u32 {
        let known = self.overflow(heap);
        let count = known.unwrap_or_else(|| self.look_for_overflow(heap));
        // If the number was unknown, the count has included the change.
        let count = count.saturating_add_signed(if known.is_some() { change } else { 0 });
        self.note_overflow(count, heap);
        count
    }

    /// Counts the overflow buckets. Other writers may be changing the chains meanwhile. Of a damaged chain, the buckets
    /// before the damage count; operations that follow the chain report it.
    fn look_for_overflow<M: Media>(&self, heap: &Access<M>) -> u32 {
        let mut count = 0;
        for home in self.buckets {
            let (mut chain, mut next) = (Chain::new(heap), home.glance(heap.media()).next());
            while let Ok(Some(bucket)) = chain.follow(next) {
                count += 1;
                next = bucket.glance(heap.media()).next();
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::super::Clht;
    use super::*;
    use index::Index;
    use pmem::{Hardware, Pool, PoolOptions};
    use std::collections::BTreeSet;

    #[test]
    fn tables_have_the_sizes_of_the_ladders() {
        let sizes = (0..LEAST.len()).flat_map(|slot| {
            std::iter::successors(Some(Size::least(slot)), |size| size.larger()).map(Size::buckets)
        });
        let sizes: BTreeSet<usize> = sizes.collect();
        let are: BTreeSet<usize> = (0..1 << 16).filter(|&buckets| Size::is_of(buckets)).collect();
        assert_eq!(are, sizes);
    }

    /// After an opening the overflow buckets are counted anew, all of a chain: a table becomes larger with the same
    /// insert as without the opening.
    #[test]
    fn an_opening_counts_whole_chains() {
        let memory = pmem::Memory::new(16 << 20).expect("memory");
        let options = PoolOptions::default();
        let pool = Pool::create_in(&memory, &options, Hardware::detect()).expect("a pool");
        let mut table: Clht =
            index::OnHeap::create(&Heap::new(pool).expect("a heap"), b"table").expect("room");
        let buckets = |table: &Clht| {
            let link = table.locate(0).expect("sound").link;
            SegmentRef::at(&table.heap, link).expect("a table").buckets.len()
        };
        // All of one home bucket, of slot 0, whose chain has an overflow bucket for each three of them.
        let mut keys = (0_u64..)
            .map(u64::to_le_bytes)
            .filter(|key| super::super::hash(key) < u64::MAX >> 12);
        let mut count = 0;
        while count == 0 || buckets(&table) < 31 {
            let key = keys.next().expect("endless");
            assert!(table.insert(&key, b"8 bytes!").expect("room"));
            count += 1;
        }
        // One home bucket and 31 overflow buckets have room for 96 pairs; the table grows with the 31st.
        for _ in 0..3 * 31 - count {
            let key = keys.next().expect("endless");
            assert!(table.insert(&key, b"8 bytes!").expect("room"));
        }
        assert_eq!(buckets(&table), 31);
        drop(table);
        let pool = Pool::open_in(&memory, Hardware::detect()).expect("the pool");
        table = index::OnHeap::open(&Heap::new(pool).expect("a heap"), b"table")
            .expect("sound")
            .expect("there");
        assert!(
            table
                .insert(&keys.next().expect("endless"), b"8 bytes!")
                .expect("room")
        );
        assert!(buckets(&table) > 31, "{} buckets", buckets(&table));
    }

    /// An approximate count that is too high is corrected by the first writer that counts.
    #[test]
    fn a_count_that_is_too_high_is_corrected() {
        let pool = Pool::anonymous(&PoolOptions::default(), Hardware::detect()).expect("a pool");
        let table: Clht = index::OnHeap::create(&Heap::new(pool).expect("a heap"), b"table").expect("room");
        let mut of_one_bucket = Vec::new();
        for number in 0_u64.. {
            let key = number.to_le_bytes();
            if super::super::hash(&key) < u64::MAX / 64 {
                of_one_bucket.push(key);
            } else if number < 70 {
                assert!(table.insert(&key, b"8 bytes!").expect("room"));
            }
            if of_one_bucket.len() == 4 {
                break;
            }
        }
        let segment = || SegmentRef::at(&table.heap, table.locate(0).expect("sound").link).expect("a table");
        let buckets = segment().buckets.len();
        assert!(buckets > 20, "{buckets} buckets");
        segment().note_overflow(buckets as u32, &table.heap);
        for key in &of_one_bucket {
            assert!(table.insert(key, b"8 bytes!").expect("room"));
        }
        assert_eq!(segment().buckets.len(), buckets);
        let count = segment().overflow(&table.heap).expect("known");
        assert!(
            (1..buckets as u32 / 2).contains(&count),
            "{count} overflow buckets"
        );
    }
}
