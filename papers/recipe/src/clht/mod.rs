//! P-CLHT: the cache-line hash table, converted (RECIPE §6.2).
//!
//! A bucket is a cache line with three pairs; more are in a chain of overflow buckets of the same shape. A write
//! changes one line in place, under the lock in that line; a read takes no lock, and sees each bucket as of one
//! moment. A table that is too full, or too empty, is copied into another one, which one store puts in its place.
//!
//! | operation | condition | the store that commits it | written back and fenced before it | after it |
//! |---|---|---|---|---|
//! | insert into a bucket with room | #1 | the bucket's word (`bucket`) | nothing: the pair is in its line | its line |
//! | insert that takes an overflow bucket | #1 | the word of the bucket before it | the new bucket | that word's line |
//! | update | #1 | the value's word; if its form changes, the bucket's word | a new record or bucket | the line |
//! | removal | #1 | the bucket's word; of an overflow bucket's last pair, the word before it | nothing | the line |
//! | rehashing, directory, shrinking (SMO) | #1 | the slot that leads to the table | the new table | the slot's line |
//!
//! So a read sees the state before such a store or the one after it, and nothing half done. After a crash there is
//! nothing to repair: locks of an older generation are free, and the first writer of a bucket clears the marks of
//! link-and-persist.
//!
//! **A single table would be copied as a whole**, and an insert would wait for that. So tables are small, and a table
//! that would become larger than `segment::LARGEST` becomes a directory of tables, one for each value of the hash's
//! next four bits: a radix tree over hashes, whose leaves are the paper's tables. A write copies at most one table
//! (docs/recipe.md counts the longest one).
//!
//! The hash's upper bits number the buckets, at all sizes alike: so the order by hash, then by key, is that of
//! buckets from the first to the last, and never changes. Walks (`walk`) use it.
//!
//! A key and a value of eight bytes each are stored in their bucket; any other pair is a record (`index::codec`), and
//! the bucket has its key's hash and a link.
//!
//! I1 A key is in one place at most, and in the chain of the bucket that its hash names.
//! I2 The contents of a bucket that its word makes count were durable, or in the word's own line, before the word was
//!    stored.
//! I3 A word's version counts how often a slot of the bucket was filled. It never wraps around: a bucket that has
//!    used it up accepts no further pairs, and is copied with its table.
//! I4 A table that is about to be replaced has all of its home buckets locked, and these are condemned before the
//!    slot changes.
//!
//! **Order of locks:** a table's home buckets, from the first to the last; its directory; the directory above. A
//! writer of one key holds only one home bucket.
//!
//! | file | idea |
//! |---|---|
//! | `bucket`, `chain` | the line: its word, its slots, reads and writes of it; lines in a chain |
//! | `segment`, `directory` | tables, and the directories that lead to them |
//! | `locate`, `read`, `write` | from a hash to its bucket; the operations |
//! | `build`, `rehash` | new tables; when and how one replaces another |
//! | `bulk` | an index built from pairs |
//! | `walk`, `trace`, `check` | all pairs in order; live objects; faults |

mod bucket;
mod build;
mod bulk;
mod chain;
mod check;
mod directory;
mod locate;
mod read;
mod rehash;
mod segment;
mod trace;
mod walk;
mod write;

use bucket::Wanted;
use heap::{Access, Heap, Trace};
use index::{Action, Direction, Edit, Faults, Guard, OnHeap, Order, Value, Visit};
use pmem::{Fault, Hardware, Link, Media};
use std::ops::Bound;
use std::sync::Arc;

/// The kind of a P-CLHT in the heap's root directory.
pub const KIND: u32 = 6;

/// The kinds of objects, in the tags of links.
mod tag {
    use pmem::Tag;

    pub(super) const ROOT: Tag = Tag::new(0);
    pub(super) const DIRECTORY: Tag = Tag::new(1 << 1);
    pub(super) const BUCKET: Tag = Tag::new(2 << 1);
    pub(super) const RECORD: Tag = Tag::new(3 << 1);
    /// A table, with the number of buckets in the upper bits.
    pub(super) const SEGMENT: u64 = 4 << 1;
    pub(super) const KIND: u64 = 7 << 1;
}

/// A key's hash, which is also its place in walks: zero for the empty key.
#[inline]
pub(crate) fn hash(key: &[u8]) -> u64 {
    match key {
        [] => 0,
        key => index::codec::checksum(key),
    }
}

/// A P-CLHT in a heap, under a root of its own.
#[derive(Clone, Debug)]
pub struct Clht<M: Media = Hardware> {
    heap: Access<M>,
    root: Link,
}

impl<M: Media> OnHeap for Clht<M> {
    type Media = M;
    const KIND: u32 = KIND;
    const ORDER: Order = Order::Ranks(hash);

    fn create(heap: &Heap<M>, name: &[u8]) -> Result<Self, heap::Error> {
        // SAFETY: it is a directory of one empty slot, as tracer and readers expect.
        let root =
            unsafe { index::create_root(heap, name, KIND, |batch| directory::draft_root(heap, batch)) }?;
        // SAFETY: as for `open`.
        let heap = unsafe { heap.access() }.clone();
        Ok(Clht { heap, root })
    }

    fn open(heap: &Heap<M>, name: &[u8]) -> Result<Option<Self>, heap::Error> {
        let Some(root) = heap.root(name)? else {
            return Ok(None);
        };
        if root.kind != KIND || root.link.tag() != tag::ROOT {
            return Err(damaged("root of a P-CLHT", root.link).into());
        }
        // SAFETY: reads and writes hold their caller's guard since before they load the root's slot, a check holds
        // its own; they follow only slots and words, and keep nothing longer. Writers retire what they have unlinked
        // under their locks.
        let heap = unsafe { heap.access() }.clone();
        Ok(Some(Clht {
            heap,
            root: root.link,
        }))
    }

    fn tracer() -> Arc<dyn Trace<M>> {
        Arc::new(trace::Tracer)
    }

    fn heap(&self) -> &Heap<M> {
        &self.heap
    }

    #[inline]
    fn find<'g>(&'g self, key: &[u8], _: &'g Guard) -> Result<Option<Value<'g>>, Fault> {
        self.read(&Wanted::new(key))
    }

    fn find_many<'g>(
        &'g self,
        keys: &[&[u8]],
        _: &'g Guard,
        found: &mut dyn FnMut(usize, Option<Value<'g>>),
    ) -> Result<(), Fault> {
        self.read_many(keys, found)
    }

    fn prefetch_many(&self, keys: &[&[u8]], _: &Guard) -> Result<(), Fault> {
        keys.iter().try_for_each(|key| self.prefetch(&Wanted::new(key)))
    }

    fn edit(&self, key: &[u8], edit: &mut dyn Edit, guard: &Guard) -> Result<Action, heap::Error> {
        self.write(&Wanted::new(key), edit, guard)
    }

    fn visit_range<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Fault> {
        self.walk_between((lower, upper), direction, guard, visit)
    }

    fn find_faults(&self) -> Faults {
        self.check_all()
    }
}

#[cold]
fn damaged(what: &'static str, link: Link) -> Fault {
    Fault {
        what,
        offset: link.offset().map_or(0, pmem::Offset::get),
    }
}
