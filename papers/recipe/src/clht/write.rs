//! Writes: one line in place, under the lock of its home bucket (RECIPE §6.2).
//!
//! A full chain takes an overflow bucket more; whether the table is replaced by a larger one is asked afterwards, when
//! the write is done and its lock is free (`rehash`). So a full pool, in which no larger table can be had, leaves a
//! chain that works.

use super::bucket::{Bucket, Filling, State, Wanted};
use super::build::Loose;
use super::directory::Head;
use super::locate::Place;
use super::read::Chain;
use super::segment::{SegmentRef, Size, home};
use super::{Clht, tag};
use heap::Error;
use index::codec;
use index::{Action, Edit, Guard};
use pmem::{Fault, Link, LinkAndPersist, Locked, Media, Persisted, Purpose, persist_scope};

/// What remains to be done when a write is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Nothing,
    /// The table has many overflow buckets.
    Grow,
    /// A bucket takes no pairs any more.
    Renew,
    /// A home bucket is bare now.
    Shrink,
}

/// What came of an edit; `None`: the table was replaced meanwhile.
type Edited = Option<(Action, After)>;

/// A chain of buckets, searched under the lock of the first.
struct Searched<'g> {
    segment: SegmentRef<'g>,
    home: &'g Bucket,
    /// Where the key is: its bucket, slot and pair, the bucket's word, and the bucket before it.
    found: Option<Found<'g>>,
    /// The first slot that can be filled.
    free: Option<(&'g Bucket, usize, State)>,
    last: (&'g Bucket, State),
    /// Whether a bucket of the chain takes no pairs any more.
    used_up: bool,
}

#[derive(Clone, Copy)]
struct Found<'g> {
    bucket: &'g Bucket,
    slot: usize,
    pair: Filling,
    state: State,
    before: Option<(&'g Bucket, State)>,
}

impl<M: Media> Clht<M> {
    /// Carries the edit out.
    pub(super) fn write(
        &self,
        key: &Wanted<'_>,
        edit: &mut dyn Edit,
        guard: &Guard,
    ) -> Result<Action, Error> {
        let mut turn = 0;
        loop {
            let place = self.locate(key.hash)?;
            let edited = match place.link.is_null() {
                true => self.edit_nothing(&place, key, edit, guard)?,
                false => self.edit_table(&place, key, edit, guard)?,
            };
            if let Some((action, after)) = edited {
                if after != After::Nothing {
                    // The write is done: whatever comes of this, it stays so, and what is wrong the next one will say.
                    // Nor does it take what others of a batch will need.
                    let _ = self.heap.sparing_apart(|| match after {
                        After::Nothing => Ok(()),
                        After::Grow => self.grow(key.hash, guard),
                        After::Renew => self.renew(key.hash, guard),
                        After::Shrink => self.shrink(key.hash, guard),
                    });
                }
                return Ok(action);
            }
            // Beside a table that is condemned, and its successor not there yet.
            self.heap.media().wait(turn);
            turn = turn.saturating_add(1);
        }
    }

    /// No table is there yet.
    fn edit_nothing(
        &self,
        place: &Place<'_>,
        key: &Wanted<'_>,
        edit: &mut dyn Edit,
        guard: &Guard,
    ) -> Result<Edited, Error> {
        let media = self.heap.media();
        let slot = &place.directory.slots[place.at];
        let Ok(_locked) = place.directory.lock(&self.heap) else {
            return Ok(None);
        };
        if !slot.load(media).is_null() {
            return Ok(None);
        }
        let action = edit.decide(None);
        if action != Action::Put {
            return Ok(Some((Action::Keep, After::Nothing)));
        }
        media.comes_to("clht: first table");
        let pair = self.store(key, edit.value())?;
        let size = Size::least(place.at);
        let table: Result<Persisted<'_, Head>, Error> =
            self.build_segment(size, &[(place.rest, pair)], &mut Loose::default());
        let table = self.or_give_back(table, &pair, guard)?;
        let _durable = slot
            .publish::<LinkAndPersist, M, _>(media, table, size.tag())
            .commit();
        Ok(Some((action, After::Nothing)))
    }

    /// A table is there.
    fn edit_table(
        &self,
        place: &Place<'_>,
        key: &Wanted<'_>,
        edit: &mut dyn Edit,
        guard: &Guard,
    ) -> Result<Edited, Error> {
        let segment = SegmentRef::at(&self.heap, place.link)?;
        let bucket = &segment.buckets[home(place.rest, segment.buckets.len())];
        let Some(_locked) = self.lock(bucket)? else {
            return Ok(None);
        };
        let chain = self.search(segment, bucket, key)?;
        let value = chain
            .found
            .map(|found| found.pair.value(&self.heap))
            .transpose()?;
        let action = edit.decide(value.as_deref());
        let after = match (action, chain.found) {
            (Action::Keep, _) | (Action::Remove, None) => return Ok(Some((Action::Keep, After::Nothing))),
            (Action::Put, None) => self.insert(&chain, key, edit.value(), guard)?,
            (Action::Put, Some(found)) => self.replace(&chain, &found, key, edit.value(), guard)?,
            (Action::Remove, Some(found)) => self.remove(&chain, &found, guard)?,
        };
        Ok(Some((action, after)))
    }

    /// Takes the lock of a home bucket; the first to do so in a generation settles the marks of its chain.
    pub(super) fn lock<'g>(&'g self, bucket: &'g Bucket) -> Result<Option<Locked<'g, M>>, Fault> {
        let media = self.heap.media();
        let Ok(mut locked) = bucket.lock.lock(media, self.heap.generation()) else {
            return Ok(None);
        };
        if locked.is_stale() {
            let (mut chain, mut next) = (Chain::new(self), Some(bucket));
            while let Some(bucket) = next {
                bucket.word.settle(media);
                next = chain.follow(bucket.state(media).next())?;
            }
            locked.repaired();
        }
        Ok(Some(locked))
    }

    /// Searches the chain, whose lock the caller holds.
    fn search<'g>(
        &'g self,
        segment: SegmentRef<'g>,
        home: &'g Bucket,
        key: &Wanted<'_>,
    ) -> Result<Searched<'g>, Fault> {
        let media = self.heap.media();
        let mut chain = Chain::new(self);
        let mut searched = Searched {
            segment,
            home,
            found: None,
            free: None,
            last: (home, home.state(media)),
            used_up: false,
        };
        let mut before = None;
        let mut next = Some(home);
        while let Some(bucket) = next {
            let (state, pairs) = bucket.held(media);
            searched.used_up |= state.is_used_up();
            for (slot, pair) in pairs.into_iter().enumerate() {
                if let Some(pair) = pair
                    && pair.is_of(key, &self.heap)?
                {
                    searched.found = Some(Found {
                        bucket,
                        slot,
                        pair,
                        state,
                        before,
                    });
                    // What follows is not needed.
                    return Ok(searched);
                }
            }
            searched.free = searched.free.or(state.free().map(|slot| (bucket, slot, state)));
            searched.last = (bucket, state);
            before = Some((bucket, state));
            next = chain.follow(state.next())?;
        }
        Ok(searched)
    }

    /// The pair of a key with this value: in place, or by a record, which is durable.
    fn store(&self, key: &Wanted<'_>, value: &[u8]) -> Result<Filling, Error> {
        match Filling::in_place(key, value) {
            Some(pair) => Ok(pair),
            None => persist_scope(self.heap.media(), Purpose::Node, |batch| {
                let record = codec::draft(&self.heap, key.bytes, value, &batch)?;
                let record = record.persisted(&batch.fence()).into_link(tag::RECORD);
                Ok(Filling::in_record(key, record))
            }),
        }
    }

    /// Where something failed for which a pair was stored: its record is of no use.
    fn or_give_back<T>(&self, done: Result<T, Error>, pair: &Filling, guard: &Guard) -> Result<T, Error> {
        if done.is_err() {
            self.retire_record(pair, guard)?;
        }
        done
    }

    /// Takes the record of a pair, which nothing leads to any more, out of use, if there is one.
    fn retire_record(&self, pair: &Filling, guard: &Guard) -> Result<(), Fault> {
        // SAFETY: the caller has unlinked the pair under the guard, or it was in no bucket.
        unsafe { codec::retire(&self.heap, guard, pair.value.record()) }
    }

    /// Adds the pair. A slot: 1 write-back, 1 fence. An overflow bucket: 2, 2. A record costs its lines and a fence.
    fn insert(
        &self,
        chain: &Searched<'_>,
        key: &Wanted<'_>,
        value: &[u8],
        guard: &Guard,
    ) -> Result<After, Error> {
        let pair = self.store(key, value)?;
        match chain.free {
            Some((bucket, slot, state)) => {
                bucket.fill(slot, &pair, state.filled(slot, &pair), self.heap.media());
                Ok(After::Nothing)
            }
            None => {
                let (last, state) = chain.last;
                let added = self.add_bucket(last, state, &pair);
                self.or_give_back(added, &pair, guard)?;
                Ok(self.has_grown(chain))
            }
        }
    }

    /// Hangs an overflow bucket with one pair behind a bucket whose word is to become `state`, with the new bucket
    /// between it and the next. 2 write-backs, 2 fences.
    fn add_bucket(&self, bucket: &Bucket, state: State, pair: &Filling) -> Result<(), Error> {
        let media = self.heap.media();
        media.comes_to("clht: overflow bucket");
        let tag = State::of(&[*pair]).tag();
        let new = persist_scope(media, Purpose::Node, |batch| {
            let mut draft = self.heap.draft(Bucket::holding(&[*pair]), 0, &batch)?;
            draft.link(|bucket| &mut bucket.word, state.next().with_tag(tag));
            Ok::<_, Error>(draft.flush(&batch).persisted(&batch.fence()))
        })?;
        let _durable = bucket
            .word
            .publish::<LinkAndPersist, M, _>(media, new, state.tag())
            .commit();
        Ok(())
    }

    fn has_grown(&self, chain: &Searched<'_>) -> After {
        let overflow = chain.segment.count_overflow(1, &self.heap);
        if overflow as usize >= chain.segment.buckets.len() {
            After::Grow
        } else if chain.used_up {
            After::Renew
        } else {
            After::Nothing
        }
    }

    /// Gives the pair another value. In its form: 1 write-back, 1 fence; from one form into the other, where the bucket
    /// has a slot to spare, as much, else an overflow bucket. A record costs its lines and a fence.
    fn replace(
        &self,
        chain: &Searched<'_>,
        found: &Found<'_>,
        key: &Wanted<'_>,
        value: &[u8],
        guard: &Guard,
    ) -> Result<After, Error> {
        let media = self.heap.media();
        let Found {
            bucket, slot, state, ..
        } = *found;
        let pair = self.store(key, value)?;
        let mut after = After::Nothing;
        if pair.is_record() == found.pair.is_record() {
            bucket.update(slot, pair.value, state, media);
        } else {
            media.comes_to("clht: a pair changes its form");
            let without = state.emptied(slot);
            // The old slot is still the pair's.
            match state.free() {
                Some(free) => bucket.fill(free, &pair, without.filled(free, &pair), media),
                None => {
                    // An overflow bucket that would be left without a pair gives the new one its place.
                    let emptied = found.before.filter(|_| without.count() == 0);
                    let (last, word) = match emptied {
                        Some((before, word)) => (before, word.followed_by(state.next())),
                        None => (bucket, without),
                    };
                    let added = self.add_bucket(last, word, &pair);
                    self.or_give_back(added, &pair, guard)?;
                    match emptied {
                        Some((_, word)) => self.retire_bucket(word.next(), guard),
                        None => after = self.has_grown(chain),
                    }
                }
            }
        }
        // The pair is changed, whatever becomes of its old record in a damaged pool.
        let _ = self.retire_record(&found.pair, guard);
        Ok(after)
    }

    /// Removes the pair. 1 write-back, 1 fence.
    fn remove(&self, chain: &Searched<'_>, found: &Found<'_>, guard: &Guard) -> Result<After, Error> {
        let media = self.heap.media();
        let Found {
            bucket, slot, state, ..
        } = *found;
        let left = state.emptied(slot);
        match found.before {
            // With its last pair an overflow bucket goes.
            Some((before, word)) if left.count() == 0 => {
                media.comes_to("clht: overflow bucket goes");
                before.set(word.followed_by(state.next()), media);
                chain.segment.count_overflow(-1, &self.heap);
                self.retire_bucket(word.next(), guard);
            }
            _ => bucket.set(left, media),
        }
        // The pair is gone, likewise.
        let _ = self.retire_record(&found.pair, guard);
        Ok(match chain.home.state(media).is_bare() {
            true => After::Shrink,
            false => After::Nothing,
        })
    }

    /// Takes an overflow bucket out of use.
    pub(super) fn retire_bucket(&self, link: Link, guard: &Guard) {
        if let Some(offset) = link.offset() {
            // SAFETY: the caller has unlinked it under the guard and the lock of its chain.
            unsafe { self.heap.retire(guard, offset, size_of::<Bucket>()) };
        }
    }
}
