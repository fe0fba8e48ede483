//! Writes: a line in place, under the lock of the key's home bucket (RECIPE §6.2).
//!
//! A full chain gets another overflow bucket; only afterwards, when the write is done and its lock released, is the
//! table replaced by a larger one if necessary (`rehash`). So a full pool, which has no room for a larger table,
//! leaves a chain that works.

use super::bucket::{Bucket, Filling, State, Wanted};
use super::build;
use super::chain::Chain;
use super::locate::Place;
use super::segment::{SegmentRef, Size, home};
use super::{Clht, tag};
use heap::Error;
use index::codec;
use index::{Action, Edit, Guard};
use pmem::{Fault, Link, LinkAndPersist, Locked, Media, Purpose, persist_scope};

/// The work that remains after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Nothing,
    /// The table has many overflow buckets.
    Grow,
    /// A bucket accepts no more pairs.
    Renew,
    /// A home bucket is bare, or a directory has no tables.
    Shrink,
}

impl After {
    /// The work after a write that leaves a home bucket in this state.
    fn bare(state: State) -> After {
        match state.is_bare() {
            true => After::Shrink,
            false => After::Nothing,
        }
    }
}

/// The result of an edit; `None`: the table or directory was replaced meanwhile, or another writer has made the table.
type Edited = Option<(Action, After)>;

/// A chain of buckets, searched under the lock of the first.
struct Searched<'g> {
    segment: SegmentRef<'g>,
    home: &'g Bucket,
    /// The place of the key: its bucket, slot and pair, the bucket's word, and the bucket before it.
    found: Option<Found<'g>>,
    /// The first free slot.
    free: Option<(&'g Bucket, usize, State)>,
    last: (&'g Bucket, State),
    /// Whether a bucket of the chain accepts no more pairs.
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
    /// Applies the edit.
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
                    // The write is done and stays so, whatever happens here: operations that meet a fault report it.
                    // This work does not use the pages that are set apart for a batch.
                    let _ = self.heap.sparing_apart(|| match after {
                        After::Nothing => Ok(()),
                        After::Grow => self.grow(key.hash, guard),
                        After::Renew => self.renew(key.hash, guard),
                        After::Shrink => self.shrink(key.hash, guard),
                    });
                }
                return Ok(action);
            }
            // A table or directory is condemned, and its successor may not be published yet.
            self.heap.media().wait(turn);
            turn = turn.saturating_add(1);
        }
    }

    /// Edits a key for which there is no table yet.
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
            let is_left = place.depth > 0 && place.directory.is_empty(media);
            let after = if is_left { After::Shrink } else { After::Nothing };
            return Ok(Some((Action::Keep, after)));
        }
        media.comes_to("clht: first table");
        let pair = self.store(key, edit.value())?;
        let size = Size::least(place.at);
        let table = build::table(&self.heap, size, (&[(place.rest, pair)], 0));
        let table = self.or_give_back(table, &pair, guard)?;
        let _durable = slot
            .publish::<LinkAndPersist, M, _>(media, table, size.tag())
            .commit();
        Ok(Some((action, After::Nothing)))
    }

    /// Edits a key for which there is a table.
    fn edit_table(
        &self,
        place: &Place<'_>,
        key: &Wanted<'_>,
        edit: &mut dyn Edit,
        guard: &Guard,
    ) -> Result<Edited, Error> {
        let segment = SegmentRef::at(&self.heap, place.link)?;
        let bucket = &segment.buckets[home(place.rest, segment.buckets.len())];
        // If the link states too many buckets, this line may be another object's.
        bucket
            .lock
            .check_stale(self.heap.media(), self.heap.generation(), || {
                segment.compare(place.link, &self.heap)
            })?;
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
            (Action::Keep, Some(_)) => return Ok(Some((Action::Keep, After::Nothing))),
            // A crash may have left a table without keys. Overflow buckets have keys.
            (Action::Keep | Action::Remove, None) => {
                return Ok(Some((Action::Keep, After::bare(chain.last.1))));
            }
            (Action::Put, None) => self.insert(&chain, key, edit.value(), guard)?,
            (Action::Put, Some(found)) => self.replace(&chain, &found, key, edit.value(), guard)?,
            (Action::Remove, Some(found)) => self.remove(&chain, &found, guard)?,
        };
        Ok(Some((action, after)))
    }

    /// Takes the lock of a home bucket; its first holder in a generation settles the marks of its chain.
    pub(super) fn lock<'g>(&'g self, bucket: &'g Bucket) -> Result<Option<Locked<'g, M>>, Fault> {
        let media = self.heap.media();
        let Ok(mut locked) = bucket.lock.lock(media, self.heap.generation()) else {
            return Ok(None);
        };
        if locked.is_stale() {
            let (mut chain, mut next) = (Chain::new(&self.heap), Some(bucket));
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
        let mut chain = Chain::new(&self.heap);
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
                    // The rest is not needed.
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

    /// The pair of a key with this value: in place, or in a record, made durable here.
    fn store(&self, key: &Wanted<'_>, value: &[u8]) -> Result<Filling, Error> {
        match Filling::in_place(key, value) {
            Some(pair) => Ok(pair),
            None => persist_scope(self.heap.media(), Purpose::Node, |batch| {
                let record = codec::draft(&self.heap, key.bytes, value, &batch)?;
                let record = record.persisted(&batch.fence()).into_link(tag::RECORD);
                Ok(Filling::in_record(key.hash, record))
            }),
        }
    }

    /// Retires the record of a pair whose write has failed.
    fn or_give_back<T>(&self, done: Result<T, Error>, pair: &Filling, guard: &Guard) -> Result<T, Error> {
        if done.is_err() {
            self.retire_record(pair, guard)?;
        }
        done
    }

    /// Retires the record of a pair, if there is one, to which nothing leads any more.
    fn retire_record(&self, pair: &Filling, guard: &Guard) -> Result<(), Fault> {
        // SAFETY: the caller has unlinked the pair under the guard, or it was in no bucket.
        unsafe { codec::retire(&self.heap, guard, pair.value.record()) }
    }

    /// Adds the pair. In a slot: 1 write-back, 1 fence. In an overflow bucket: 2, 2. A record costs its lines and a
    /// fence.
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

    /// Adds an overflow bucket with one pair between a bucket, whose word becomes `state`, and the next one. Costs 2
    /// write-backs and 2 fences.
    fn add_bucket(&self, bucket: &Bucket, state: State, pair: &Filling) -> Result<(), Error> {
        let media = self.heap.media();
        media.comes_to("clht: overflow bucket");
        let pairs = [(pair.hash(), *pair)];
        let tag = State::of(&pairs).tag();
        let new = persist_scope(media, Purpose::Node, |batch| {
            let mut draft = self.heap.draft(Bucket::holding(&pairs), 0, &batch)?;
            draft.link(|bucket| &mut bucket.word, state.next().with_tag(tag));
            Ok::<_, Error>(draft.flush(&batch).persisted(&batch.fence()))
        })?;
        media.site("clht: overflow bucket");
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

    /// Replaces the value of the pair. In the same form: 1 write-back, 1 fence; from one form to the other the same
    /// if the bucket has a free slot, otherwise an overflow bucket. A record costs its lines and a fence.
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
            // The old slot still belongs to the pair.
            match state.free() {
                Some(free) => bucket.fill(free, &pair, without.filled(free, &pair), media),
                None => {
                    // The new bucket replaces an overflow bucket that would be left without a pair.
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
        // The pair has changed, whatever happens to its old record in a damaged pool.
        let _ = self.retire_record(&found.pair, guard);
        Ok(after)
    }

    /// Removes the pair. Costs 1 write-back and 1 fence.
    fn remove(&self, chain: &Searched<'_>, found: &Found<'_>, guard: &Guard) -> Result<After, Error> {
        let media = self.heap.media();
        let Found {
            bucket, slot, state, ..
        } = *found;
        let left = state.emptied(slot);
        match found.before {
            // An overflow bucket is removed with its last pair.
            Some((before, word)) if left.count() == 0 => {
                media.comes_to("clht: overflow bucket goes");
                before.set(word.followed_by(state.next()), media);
                chain.segment.count_overflow(-1, &self.heap);
                self.retire_bucket(word.next(), guard);
            }
            _ => bucket.set(left, media),
        }
        // The pair is removed, whatever happens to its record in a damaged pool.
        let _ = self.retire_record(&found.pair, guard);
        Ok(After::bare(chain.home.state(media)))
    }

    /// Retires an overflow bucket.
    pub(super) fn retire_bucket(&self, link: Link, guard: &Guard) {
        if let Some(offset) = link.offset() {
            // SAFETY: the caller has unlinked it under the guard and the lock of its chain.
            unsafe { self.heap.retire(guard, offset, size_of::<Bucket>()) };
        }
    }
}
