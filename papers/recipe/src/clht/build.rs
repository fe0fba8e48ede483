//! New tables and directories, each made durable by one fence.

use super::bucket::{Bucket, Placed, SLOTS, State, words};
use super::directory::{self, FANOUT, Head};
use super::locate::{BITS, below};
use super::segment::{Size, hint, home};
use heap::{Access, Error};
use pmem::{Draft, Flushed, Link, Media, PersistBatch, Persisted, Purpose, Tag, VWord, persist_scope};

/// The place of the word in a bucket.
const WORD: usize = std::mem::offset_of!(Bucket, word);

/// A table, and its overflow buckets, which do not hang from it yet: if it is dropped, it gives all of them back.
struct Table<'e, 'h> {
    draft: Draft<'e, 'h, Head>,
    /// The number of the home bucket, the bucket, and the bits beside the link in its word.
    overflow: Vec<(usize, Draft<'e, 'h, Bucket>, Tag)>,
}

impl<'e, 'h> Table<'e, 'h> {
    /// Drafts a table for pairs in the order of their hashes, of which directories have consumed the first `used` bits.
    fn draft<M: Media>(
        heap: &'h Access<M>,
        batch: &PersistBatch<'e, 'h, M>,
        size: Size,
        (pairs, used): (&[Placed], u32),
    ) -> Result<Self, Error> {
        let buckets = size.buckets();
        let mut draft = heap.draft(Head::new(buckets as u64, 0), size.tail(), batch)?;
        let mut overflow = Vec::new();
        let mut left = pairs;
        let (tail, _) = draft.tail_mut().as_chunks_mut::<8>();
        for (number, line) in tail.chunks_mut(2 + 2 * SLOTS).enumerate() {
            let is_here = |(hash, _): &&Placed| home(hash << used, buckets) == number;
            let (pairs, others) = left.split_at(left.iter().take_while(is_here).count());
            left = others;
            let (first, more) = pairs.split_at(pairs.len().min(SLOTS));
            for (bytes, word) in line.iter_mut().zip(words(first)) {
                *bytes = word.to_le_bytes();
            }
            for pairs in more.chunks(SLOTS) {
                let bucket = heap.draft(Bucket::holding(pairs), 0, batch)?;
                overflow.push((number, bucket, State::of(pairs).tag()));
            }
        }
        draft.hint = VWord::new(hint(overflow.len() as u32, heap));
        Ok(Table { draft, overflow })
    }

    /// Links the overflow buckets, and completes the table.
    fn flush<M: Media>(mut self, batch: &PersistBatch<'e, 'h, M>) -> Flushed<'e, 'h, Head> {
        let mut next: Option<(usize, Flushed<'e, 'h, Bucket>)> = None;
        for (number, mut bucket, tag) in self.overflow.into_iter().rev() {
            match next.take() {
                Some((other, follows)) if other == number => {
                    bucket.adopt(|bucket| &mut bucket.word, follows, tag)
                }
                first => {
                    hang(&mut self.draft, first);
                    bucket.link(|bucket| &mut bucket.word, Link::NULL.with_tag(tag));
                }
            }
            next = Some((number, bucket.flush(batch)));
        }
        hang(&mut self.draft, next);
        self.draft.flush(batch)
    }
}

/// Links a home bucket to its first overflow bucket.
fn hang<'e, 'h>(table: &mut Draft<'e, 'h, Head>, first: Option<(usize, Flushed<'e, 'h, Bucket>)>) {
    let Some((number, bucket)) = first else { return };
    let at = number * size_of::<Bucket>() + WORD;
    let (words, _) = table.tail_mut().as_chunks::<8>();
    let tag = Tag::new(u64::from_le_bytes(words[at / 8]));
    table.adopt_in_tail(at, bucket, tag);
}

/// Builds a table of this size with these pairs, in the order of their hashes, of which directories have consumed the
/// first `used` bits. Costs its lines and those of its overflow buckets, and 1 fence.
pub(super) fn table<'h, M: Media>(
    heap: &'h Access<M>,
    size: Size,
    pairs: (&[Placed], u32),
) -> Result<Persisted<'h, Head>, Error> {
    persist_scope(heap.media(), Purpose::Node, |batch| {
        let table = Table::draft(heap, &batch, size, pairs)?.flush(&batch);
        Ok(table.persisted(&batch.fence()))
    })
}

/// The pairs for each slot of a directory, among pairs in the order of their hashes.
pub(super) fn slots(pairs: &[Placed], used: u32) -> impl Iterator<Item = (usize, &[Placed])> {
    let mut left = pairs;
    (0..FANOUT).map(move |slot| {
        let end = left.partition_point(|(hash, _)| below(hash << used).0 <= slot);
        let (pairs, others) = left.split_at(end);
        left = others;
        (slot, pairs)
    })
}

/// Builds a directory, with a table for each slot that has pairs among these. Costs the lines of all objects, and 1
/// fence.
pub(super) fn directory<'h, M: Media>(
    heap: &'h Access<M>,
    (pairs, used): (&[Placed], u32),
) -> Result<Persisted<'h, Head>, Error> {
    persist_scope(heap.media(), Purpose::Node, |batch| {
        let mut draft = directory::draft(heap, &[Link::NULL; FANOUT], &batch)?;
        let mut tables = Vec::with_capacity(FANOUT);
        for (slot, pairs) in slots(pairs, used).filter(|(_, pairs)| !pairs.is_empty()) {
            let size = Size::for_keys(slot, pairs.len());
            let table = Table::draft(heap, &batch, size, (pairs, used + BITS))?;
            tables.push((slot, size.tag(), table));
        }
        for (slot, tag, table) in tables {
            draft.adopt_in_tail(slot * size_of::<Link>(), table.flush(&batch), tag);
        }
        Ok(draft.flush(&batch).persisted(&batch.fence()))
    })
}
