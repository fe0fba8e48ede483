//! Replacing tables by others: the structure modifications, under Condition #1 (RECIPE §6.2).
//!
//! Writers are excluded, as all home buckets are locked; readers go on in the old table. The new one is durable
//! before one store to the directory's slot puts it in the old one's place; then the old one is retired. So a crash
//! leaves one or the other, and nothing to repair.
//!
//! | what | when | replacement |
//! |---|---|---|
//! | grow | as many overflow buckets as buckets | a table four times as large |
//! | | the same, and the table has the largest size | a directory of tables |
//! | renew | a bucket has used up its versions | a table of the same size |
//! | shrink | [`RUN`] bare buckets in a row, and fewer keys than half the buckets | a table a quarter as large |
//! | | the same, and no keys | nothing: a null slot |
//! | collapse | a directory whose slots are all null | a null slot |

use super::bucket::{Bucket, Placed};
use super::build;
use super::chain::Chain;
use super::directory::{self, DEEPEST, FANOUT};
use super::locate::Place;
use super::segment::{SegmentRef, Size, home, is_segment};
use super::{Clht, tag};
use heap::Error;
use index::Guard;
use pmem::{Fault, Link, LinkAndPersist, Locked, Media, PSlot};

/// If this many buckets in a row are bare, from one on that a write has just made bare, the writer checks the whole
/// table.
const RUN: usize = 32;

/// Returns whether a table with this number of keys has so few that a smaller table replaces it.
fn is_few(keys: usize, buckets: usize) -> bool {
    keys * 2 < buckets
}

/// A table with all of its home buckets locked, and its contents.
struct Closed<'g, M: Media> {
    segment: SegmentRef<'g>,
    locks: Vec<Locked<'g, M>>,
    pairs: Vec<Placed>,
    overflow: Vec<Link>,
    used_up: bool,
}

impl<M: Media> Clht<M> {
    /// Replaces the table for a hash by a larger one or a directory, if it has as many overflow buckets as buckets.
    pub(super) fn grow(&self, hash: u64, guard: &Guard) -> Result<(), Error> {
        let place = self.locate(hash)?;
        let size = match is_segment(place.link) {
            true => SegmentRef::at(&self.heap, place.link)?.size().larger(),
            false => return Ok(()),
        };
        if size.is_none() && place.depth == DEEPEST {
            // All its keys have the same hash, except for a few bits.
            return Ok(());
        }
        match self.close(&place)? {
            Some(closed) if closed.overflow.len() >= closed.segment.buckets.len() => {
                let segment = closed.segment;
                self.replace_table(&place, closed, size, guard)
                    // As of a full pool. The next try comes when as many overflow buckets as buckets were added again.
                    .inspect_err(|_| segment.note_overflow(0, &self.heap))
            }
            Some(closed) => {
                // Writers of different buckets add and remove at the same time, so the approximate count was too high.
                closed
                    .segment
                    .note_overflow(closed.overflow.len() as u32, &self.heap);
                Ok(())
            }
            // Another thread has replaced it.
            None => Ok(()),
        }
    }

    /// Replaces the table for a hash by its copy, if a bucket has used up its versions; removes it if it has no keys.
    pub(super) fn renew(&self, hash: u64, guard: &Guard) -> Result<(), Error> {
        let place = self.locate(hash)?;
        match self.close(&place)? {
            // The removal of the last key leaves it to this writer, which is about to replace the table.
            Some(closed) if closed.pairs.is_empty() => {
                self.remove_table(&place, closed, guard)?;
                self.collapse(hash, guard)
            }
            Some(closed) if closed.used_up => {
                let size = closed.segment.size();
                self.replace_table(&place, closed, Some(size), guard)
            }
            _ => Ok(()),
        }
    }

    /// Replaces the table for a hash by a smaller one if it has few keys, or removes it if it has none, and directories
    /// whose slots are all null.
    pub(super) fn shrink(&self, hash: u64, guard: &Guard) -> Result<(), Error> {
        let place = self.locate(hash)?;
        if place.link.is_null() {
            // A crash has come between the removal of the last table and that of its directory.
            return self.collapse(hash, guard);
        }
        if !is_segment(place.link) || !self.looks_empty(&place)? {
            return Ok(());
        }
        let Some(closed) = self.close(&place)? else {
            return Ok(());
        };
        if closed.pairs.is_empty() {
            self.remove_table(&place, closed, guard)?;
            return self.collapse(hash, guard);
        }
        match closed.segment.size().smaller() {
            Some(smaller) if is_few(closed.pairs.len(), closed.segment.buckets.len()) => {
                self.replace_table(&place, closed, Some(smaller), guard)
            }
            _ => Ok(()),
        }
    }

    /// Whether all of the table is bare, or [`RUN`] buckets are, from the hash's own on, and the table appears to have
    /// few keys. (It ends at the first half of the keys, and counts none in overflow buckets.)
    fn looks_empty(&self, place: &Place<'_>) -> Result<bool, Fault> {
        let media = self.heap.media();
        let segment = SegmentRef::at(&self.heap, place.link)?;
        let first = home(place.rest, segment.buckets.len());
        let (before, from) = segment.buckets.split_at(first);
        let mut some = from.iter().chain(before).take(RUN);
        let mut keys = 0;
        let mut all = segment.buckets.iter();
        Ok(some.all(|bucket| bucket.glance(media).is_bare())
            && all.all(|bucket| {
                keys += bucket.glance(media).count();
                is_few(keys, segment.buckets.len())
            }))
    }

    /// Locks all home buckets of the table in a slot, and collects its contents. Returns `None` if there is no table,
    /// or it was replaced meanwhile.
    fn close<'g>(&'g self, place: &Place<'g>) -> Result<Option<Closed<'g, M>>, Fault> {
        if !is_segment(place.link) {
            return Ok(None);
        }
        let segment = SegmentRef::at(&self.heap, place.link)?;
        // Each of these lines is locked: none may be another object's.
        segment.compare(place.link, &self.heap)?;
        let mut closed = Closed {
            segment,
            locks: Vec::with_capacity(segment.buckets.len()),
            pairs: Vec::new(),
            overflow: Vec::new(),
            used_up: false,
        };
        for bucket in segment.buckets {
            let Some(locked) = self.lock(bucket)? else {
                return Ok(None);
            };
            closed.locks.push(locked);
            self.note_chain(bucket, place, &mut closed)?;
        }
        Ok(Some(closed))
    }

    fn note_chain(&self, home: &Bucket, place: &Place<'_>, closed: &mut Closed<'_, M>) -> Result<(), Fault> {
        let media = self.heap.media();
        let (mut chain, mut next) = (Chain::new(&self.heap), Some(home));
        while let Some(bucket) = next {
            let (state, pairs) = bucket.held(media);
            closed.used_up |= state.is_used_up();
            let pairs = pairs.into_iter().flatten();
            closed
                .pairs
                .extend(pairs.map(|pair| (place.rest_of(pair.hash()), pair)));
            closed
                .overflow
                .extend(Some(state.next()).filter(|next| !next.is_null()));
            next = chain.follow(state.next())?;
        }
        Ok(())
    }

    /// Replaces a table by one of this size, or by a directory.
    fn replace_table(
        &self,
        place: &Place<'_>,
        mut closed: Closed<'_, M>,
        size: Option<Size>,
        guard: &Guard,
    ) -> Result<(), Error> {
        let media = self.heap.media();
        let Ok(_directory) = place.directory.lock(&self.heap) else {
            return Ok(());
        };
        let slot = &place.directory.slots[place.at];
        if slot.load(media) != place.link {
            return Ok(());
        }
        closed.pairs.sort_unstable_by_key(|(rest, _)| *rest);
        let built = match size {
            Some(size) => build::table(&self.heap, size, (&closed.pairs, 0))?,
            None => build::directory(&self.heap, (&closed.pairs, 0))?,
        };
        media.comes_to(match size {
            None => "clht: directory",
            Some(size) if size.buckets() > closed.segment.buckets.len() => "clht: larger table",
            Some(size) if size.buckets() < closed.segment.buckets.len() => "clht: smaller table",
            Some(_) => "clht: table with new versions",
        });
        let tag = size.map_or(tag::DIRECTORY, Size::tag);
        self.swing(slot, closed, guard, |slot| {
            let _durable = slot.publish::<LinkAndPersist, M, _>(media, built, tag).commit();
        });
        Ok(())
    }

    /// Removes a table without keys from its slot.
    fn remove_table(&self, place: &Place<'_>, closed: Closed<'_, M>, guard: &Guard) -> Result<(), Error> {
        let media = self.heap.media();
        let Ok(_directory) = place.directory.lock(&self.heap) else {
            return Ok(());
        };
        let slot = &place.directory.slots[place.at];
        if slot.load(media) != place.link {
            return Ok(());
        }
        media.comes_to("clht: table goes");
        self.swing(slot, closed, guard, |slot| self.empty(slot));
        Ok(())
    }

    fn empty(&self, slot: &PSlot) {
        let media = self.heap.media();
        let _durable = slot.publish_link::<LinkAndPersist, M>(media, Link::NULL).commit();
    }

    /// Condemns a table, changes its slot, and retires it.
    fn swing(&self, slot: &PSlot, mut closed: Closed<'_, M>, guard: &Guard, change: impl FnOnce(&PSlot)) {
        // Before the slot changes: a writer that locks one of its buckets from now on looks for another table.
        closed.locks.iter_mut().for_each(Locked::condemn);
        change(slot);
        drop(closed.locks);
        for link in closed.overflow {
            self.retire_bucket(link, guard);
        }
        // SAFETY: only the slot led to it, and has changed under the guard and the locks.
        unsafe {
            self.heap
                .retire(guard, closed.segment.offset, closed.segment.extent())
        };
    }

    /// Removes directories whose slots are all null from their slots, from the last on the way to a hash upward.
    fn collapse(&self, hash: u64, guard: &Guard) -> Result<(), Error> {
        let media = self.heap.media();
        loop {
            let Place { directory, above, .. } = self.locate(hash)?;
            let Some((parent, at)) = above.filter(|_| directory.is_empty(media)) else {
                return Ok(());
            };
            // A directory with a used slot is never removed, so the one above exists while this one does.
            let (Ok(mut locked), Ok(_parent)) = (directory.lock(&self.heap), parent.lock(&self.heap)) else {
                return Ok(());
            };
            let slot = &parent.slots[at];
            if !directory.is_empty(media) || slot.load(media).offset() != Some(directory.offset) {
                return Ok(());
            }
            media.comes_to("clht: directory goes");
            locked.condemn();
            self.empty(slot);
            drop(locked);
            // SAFETY: only the slot led to it, and was emptied under the guard and its lock.
            unsafe {
                self.heap
                    .retire(guard, directory.offset, directory::extent(FANOUT))
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::segment::SegmentRef;
    use super::super::{Clht, hash};
    use heap::Heap;
    use index::Index;
    use pmem::{Hardware, Pool, PoolOptions};

    /// A table whose last key has gone before a writer replaces it, as it has a bucket that is used up, is removed.
    #[test]
    fn a_table_without_keys_is_not_renewed() {
        let pool = Pool::anonymous(&PoolOptions::default(), Hardware::detect()).expect("a pool");
        let table: Clht = index::OnHeap::create(&Heap::new(pool).expect("a heap"), b"table").expect("room");
        assert!(table.insert(b"stays...", b"8 bytes!").expect("room"));
        let guard = heap::pin();
        let place = table.locate(hash(b"stays...")).expect("sound");
        let [bucket] = SegmentRef::at(&table.heap, place.link).expect("a table").buckets else {
            panic!("one bucket")
        };
        let media = table.heap.media();
        while !bucket.state(media).is_used_up() {
            assert!(table.insert(b"comes...", b"8 bytes!").expect("room"));
            assert!(table.remove(b"comes...").expect("room"));
        }
        // As by the removal in another thread, before it looks whether the table is empty.
        let locked = table.lock(bucket).expect("sound").expect("in use");
        let state = bucket.state(media);
        let slot = (0..3).find(|&slot| state.has(slot)).expect("the key");
        bucket.set(state.emptied(slot), media);
        drop(locked);
        table.renew(hash(b"stays..."), &guard).expect("room");
        assert!(table.locate(hash(b"stays...")).expect("sound").link.is_null());
    }
}
