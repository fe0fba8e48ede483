//! New tables and overflow buckets.

use super::bucket::{Bucket, Filling, SLOTS, State, words};
use super::directory::{self, FANOUT, Head};
use super::locate::below;
use super::segment::{Size, hint, home};
use super::{Clht, tag};
use heap::{Access, Error};
use index::Guard;
use pmem::{Link, Media, Offset, Persisted, Purpose, persist_scope};

/// A pair, and the bits of its hash that directories have not consumed.
pub(super) type Placed = (u64, Filling);

/// Pairs of one bucket, by number.
type Buckets = Vec<Vec<Filling>>;

/// Objects built for a table or a directory that is not published yet.
#[derive(Default)]
pub(super) struct Loose(Vec<(Offset, usize)>);

impl Loose {
    /// Gives them back if the whole could not be built.
    pub(super) fn give_back<M: Media>(self, heap: &Access<M>, guard: &Guard) {
        for (offset, len) in self.0 {
            // SAFETY: a writer has built it for a table that was not published, so nothing reachable has ever led to
            // it.
            unsafe { heap.retire(guard, offset, len) };
        }
    }
}

impl<M: Media> Clht<M> {
    /// Builds a table of this size with these pairs, and makes it durable. Costs its lines, those of its overflow
    /// buckets, and 1 fence; 2 if there are overflow buckets.
    pub(super) fn build_segment(
        &self,
        size: Size,
        pairs: &[Placed],
        loose: &mut Loose,
    ) -> Result<Persisted<'_, Head>, Error> {
        let mut buckets: Buckets = vec![Vec::new(); size.buckets()];
        for (rest, pair) in pairs {
            buckets[home(*rest, size.buckets())].push(*pair);
        }
        let before = loose.0.len();
        let overflow = self.build_overflow(&buckets, loose)?;
        let hint = hint((loose.0.len() - before) as u32, &self.heap);
        persist_scope(self.heap.media(), Purpose::Node, |batch| {
            let head = Head::new(size.buckets() as u64, hint);
            let mut draft = self.heap.draft(head, size.tail(), &batch)?;
            let (tail, _) = draft.tail_mut().as_chunks_mut::<8>();
            let lines = tail.chunks_mut(2 + 2 * SLOTS);
            for ((line, pairs), next) in lines.zip(&buckets).zip(overflow) {
                let home = &pairs[..pairs.len().min(SLOTS)];
                for (bytes, word) in line.iter_mut().zip(words(home, next)) {
                    *bytes = word.to_le_bytes();
                }
            }
            let flushed = draft.flush(&batch);
            Ok(flushed.persisted(&batch.fence()))
        })
    }

    /// Builds a directory, with a table for each slot that has pairs among these, and makes all of it durable. Costs
    /// the lines of all objects, and a fence for each; one more for each table with overflow buckets.
    pub(super) fn build_directory(
        &self,
        pairs: &[Placed],
        loose: &mut Loose,
    ) -> Result<Persisted<'_, Head>, Error> {
        let mut parts: Vec<Vec<Placed>> = vec![Vec::new(); FANOUT];
        for (rest, pair) in pairs {
            let (at, rest) = below(*rest);
            parts[at].push((rest, *pair));
        }
        let mut links = [Link::NULL; FANOUT];
        for (at, pairs) in parts.iter().enumerate().filter(|(_, pairs)| !pairs.is_empty()) {
            let size = Size::for_keys(at, pairs.len());
            let table = self.build_segment(size, pairs, loose)?;
            loose.0.push((table.offset(), size.extent()));
            links[at] = table.into_link(size.tag());
        }
        persist_scope(self.heap.media(), Purpose::Node, |batch| {
            let flushed = directory::draft(&self.heap, FANOUT, links, &batch)?;
            Ok(flushed.persisted(&batch.fence()))
        })
    }

    /// Builds the overflow buckets of these buckets and makes them durable; returns a link to the first of each.
    fn build_overflow(&self, buckets: &Buckets, loose: &mut Loose) -> Result<Vec<Link>, Error> {
        let mut links = vec![Link::NULL; buckets.len()];
        if buckets.iter().all(|pairs| pairs.len() <= SLOTS) {
            return Ok(links);
        }
        persist_scope(self.heap.media(), Purpose::Node, |batch| {
            let mut chains = Vec::new();
            for (i, pairs) in buckets
                .iter()
                .enumerate()
                .filter(|(_, pairs)| pairs.len() > SLOTS)
            {
                let mut next = None;
                for pairs in pairs[SLOTS..].chunks(SLOTS) {
                    let mut draft = self.heap.draft(Bucket::holding(pairs), 0, &batch)?;
                    let tag = State::of(pairs).tag();
                    match next.take() {
                        Some((offset, next)) => {
                            draft.adopt(|bucket| &mut bucket.word, next, tag);
                            loose.0.push((offset, size_of::<Bucket>()));
                        }
                        None => draft.link(|bucket| &mut bucket.word, Link::NULL.with_tag(tag)),
                    }
                    next = Some((draft.offset(), draft.flush(&batch)));
                }
                chains.extend(next.map(|(_, first)| (i, first)));
            }
            let fenced = batch.fence();
            for (i, first) in chains {
                let first = first.persisted(&fenced);
                loose.0.push((first.offset(), size_of::<Bucket>()));
                links[i] = first.into_link(tag::BUCKET);
            }
            Ok(links)
        })
    }
}
