//! Writes: each is an edit of one key (`index::Edit`), retried until no other writer was faster.
//!
//! 1. Find the key's leaf, without locks.
//! 2. Let the edit decide, given the pair in the chain.
//! 3. *Put*: complete an unfinished modification of the leaf (`help`). The delta, and its record, become durable;
//!    then one compare-and-swap of the head commits (Condition #1). *Remove*: one compare-and-swap of the head names
//!    the pair, so that it needs no memory.
//! 4. If the head has changed meanwhile, the edit starts over. A record that was made for it is reused if the value is
//!    still the same, so that with long values no more time passes between loading the head and publishing over it than
//!    with short ones.
//! 5. A chain that has become long, or holds much that no longer counts, is replaced (`consolidate`).

use super::aim::Aim;
use super::base::BaseRef;
use super::link::{
    CROWDED, FIRST_DELTA, Kind, MAX_DEEP, RECORD, delta_tag, depth, gone, is_mark, kind, with_gone,
};
use super::object::{Pair, PairRef, set_flag};
use super::page::{Found, Page, descend, follow};
use super::{BwTree, root_at};
use art::{Missed, Tries, damaged};
use heap::{Access, Error, Guard};
use index::codec::{self, PairWords, RecordRef, SearchKey};
use index::{Action, Edit};
use pmem::{Link, Media, PEither, PSlot, PWord, Purpose, persist_scope};

/// One write, or a part of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writer<'a, M: Media, const FULL: usize> {
    pub(super) index: &'a BwTree<M, FULL>,
    pub(super) heap: &'a Access<M>,
    pub(super) guard: &'a Guard,
}

/// Length in bytes from which on a record that was replaced or removed causes its chain to be replaced at once: until
/// then the chain keeps the record.
const LARGE: usize = 1024;

impl<'a, M: Media, const FULL: usize> Writer<'a, M, FULL> {
    pub(super) fn media(&self) -> &'a M {
        self.heap.media()
    }

    /// The slot of the root's cell.
    pub(super) fn top(&self) -> Result<&'a PSlot, Error> {
        Ok(&root_at(self.heap, self.index.root)?.top)
    }

    /// The node of a level for an aim; `None` if the tree is lower.
    pub(super) fn locate(&self, aim: Aim<'_>, level: u8) -> Result<Option<Page<'a>>, Error> {
        let top = self.top()?.load(self.media());
        let Some(mut page) = descend(self.heap, top, aim, level)? else {
            return Ok(None);
        };
        loop {
            page = page.right_to(self.heap, aim)?.settled(self.media());
            // It may have been split since it was loaded.
            let high = page.high(self.heap)?;
            if !high.is_some_and(|(high, _)| aim.reaches(high)) {
                return Ok(Some(page));
            }
        }
    }

    /// Waits before the next try.
    ///
    /// # Errors
    ///
    /// If there were too many for a sound pool.
    pub(super) fn again(&self, missed: Missed, tries: &mut Tries) -> Result<(), Error> {
        if tries.go_on(missed, self.media()) {
            return Ok(());
        }
        Err(damaged("key without a place", self.index.root).into())
    }

    /// Applies `edit` to the key.
    pub(super) fn edit(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        let mut spare = Link::NULL;
        let done = self.try_edit(&SearchKey::new(key), edit, &mut spare);
        self.retire_record(spare);
        done
    }

    /// Tries to apply `edit` to the key. `spare` is an unlinked record that was made for it.
    fn try_edit(&self, key: &SearchKey<'_>, edit: &mut dyn Edit, spare: &mut Link) -> Result<Action, Error> {
        let mut tries = Tries::default();
        let mut page = self.leaf_of(key)?;
        loop {
            page = page.settled(self.media());
            let pair = match page.find(self.heap, key)? {
                Found::Right => {
                    // In a damaged pool the siblings may form a cycle.
                    self.again(Missed::Lost, &mut tries)?;
                    page = page.right_to(self.heap, Aim::to(key.bytes))?;
                    continue;
                }
                Found::Absent => None,
                Found::Pair(pair, position) => Some((pair, position)),
            };
            let current = match &pair {
                Some((pair, _)) => Some(pair.value(self.heap)?),
                None => None,
            };
            let action = edit.decide(current.as_deref());
            let done = match (action, pair) {
                (Action::Put, old) => {
                    self.put(page, (key, edit.value()), old.map(|(pair, _)| pair), spare)?
                }
                (Action::Remove, Some((pair, position))) => self.remove(page, pair, position)?,
                (Action::Keep | Action::Remove, _) => return Ok(Action::Keep),
            };
            match done {
                Ok(()) => return Ok(action),
                Err(missed) => self.again(missed, &mut tries)?,
            }
            page = self.leaf_of(key)?;
        }
    }

    fn leaf_of(&self, key: &SearchKey<'_>) -> Result<Page<'a>, Error> {
        let top = self.top()?.load(self.media());
        descend(self.heap, top, Aim::to(key.bytes), 0)?.ok_or_else(|| damaged("root of a tree", top).into())
    }

    /// Sets the key's value; returns [`Missed`] if the edit must start over. If another writer was faster, `spare` is
    /// then the record, if there is one. Costs 2 write-backs and those of the record, and 2 fences.
    fn put(
        &self,
        page: Page<'a>,
        (key, value): (&SearchKey<'_>, &[u8]),
        old: Option<PairWords>,
        spare: &mut Link,
    ) -> Result<Result<(), Missed>, Error> {
        let media = self.media();
        if is_mark(page.head) {
            self.help(page)?;
            if kind(page.head) == Kind::Frozen {
                return Ok(Err(Missed::Lost));
            }
        }
        self.settle_gone(page)?;
        if depth(page.head) == MAX_DEEP {
            self.consolidate(page)?;
            return Ok(Err(Missed::Lost));
        }
        if kind(page.head) == Kind::Base && BaseRef::at(self.heap, page.head)?.entries.len() >= CROWDED {
            self.tend(page.cell, true)?;
            return Ok(Err(Missed::Lost));
        }
        let serves_again = !spare.is_null() && RecordRef::at(self.heap, *spare)?.value == value;
        let published = persist_scope(media, Purpose::Node, |batch| {
            let in_place = codec::in_place(key.bytes, value);
            let pair = Pair {
                next: PSlot::null(),
                prefix: PWord::new(key.prefix),
                word: PEither::value(in_place.unwrap_or(0)),
                gone: PWord::new(0),
            };
            let mut pair = self.heap.draft(pair, 0, &batch)?;
            pair.link(|pair| &mut pair.next, page.head);
            let form = match in_place {
                Some(_) => Kind::Put,
                None if serves_again => {
                    pair.link(|pair| pair.word.slot_mut(), *spare);
                    Kind::PutRecord
                }
                None => {
                    let record = codec::draft(self.heap, key.bytes, value, &batch)?;
                    pair.adopt(|pair| pair.word.slot_mut(), record, RECORD);
                    Kind::PutRecord
                }
            };
            let tag = delta_tag(form, depth(page.head));
            let pair = pair.flush(&batch).persisted(&batch.fence());
            let link = pair.link(tag);
            match page.slot.publish_if(media, page.head, pair, tag) {
                Ok(published) => {
                    media.site("bwtree: pair");
                    let _durable = published.commit();
                    Ok(true)
                }
                Err(pair) => {
                    let record = PairRef::at(self.heap, link)?.words.link;
                    drop(pair);
                    if !serves_again {
                        self.retire_record(std::mem::replace(spare, record));
                    }
                    Ok::<_, Error>(false)
                }
            }
        })?;
        if !published {
            return Ok(Err(Missed::Overtaken));
        }
        if serves_again {
            *spare = Link::NULL;
        }
        let replaced = old.is_some_and(|pair| self.is_large(pair));
        if replaced || depth(page.head) + 1 >= LONG {
            self.tend_later(page.cell, replaced);
        }
        Ok(Ok(()))
    }

    /// Removes the pair at this position of the chain; returns [`Missed`] if another writer was faster, or the leaf is
    /// frozen. Costs 1 write-back and 1 fence, and as many again if the previously removed pair must be flagged first.
    fn remove(&self, page: Page<'a>, pair: PairWords, position: u16) -> Result<Result<(), Missed>, Error> {
        let media = self.media();
        if kind(page.head) == Kind::Frozen {
            self.help(page)?;
            return Ok(Err(Missed::Lost));
        }
        self.settle_gone(page)?;
        let head = with_gone(page.head, position);
        let Some(published) = page.slot.publish_link_if(media, page.head, head) else {
            return Ok(Err(Missed::Overtaken));
        };
        let _durable = published.commit();
        // The remove has succeeded, whatever happens here.
        let Ok((base, _)) = page.ground(self.heap) else {
            return Ok(Ok(()));
        };
        let dead = base.gone_count(media) + usize::from(depth(head)) + 1;
        let replaced = self.is_large(pair);
        if replaced || 2 * dead > base.counted() {
            self.tend_later(page.cell, true);
        }
        Ok(Ok(()))
    }

    fn is_large(&self, pair: PairWords) -> bool {
        let record = (!pair.link.is_null()).then(|| RecordRef::at(self.heap, pair.link));
        matches!(record, Some(Ok(record)) if record.extent() >= LARGE)
    }

    /// Flags the pair that the head names as removed, so that the next head need not name it.
    pub(super) fn settle_gone(&self, page: Page<'a>) -> Result<(), Error> {
        let media = self.media();
        let gone = gone(page.head);
        if gone == 0 {
            return Ok(());
        }
        if gone <= FIRST_DELTA {
            let (base, _) = page.ground(self.heap)?;
            let entry = usize::from(gone - 1);
            if base.level > 0 || entry >= base.entries.len() {
                return Err(damaged("head of a leaf", page.cell).into());
            }
            base.set_gone(media, entry);
            return Ok(());
        }
        let mut at = page.head;
        while depth(at) > gone - FIRST_DELTA && matches!(kind(at), Kind::Put | Kind::PutRecord) {
            at = follow(at, PairRef::at(self.heap, at)?.next)?;
        }
        if !matches!(kind(at), Kind::Put | Kind::PutRecord) {
            return Err(damaged("head of a leaf", page.cell).into());
        }
        set_flag(media, &PairRef::at(self.heap, at)?.pair.gone, 1);
        Ok(())
    }

    /// Frees an object's chunk once no reader can hold it.
    #[track_caller]
    pub(super) fn retire(&self, link: Link, len: usize) {
        art::retire(self.heap, self.guard, link, len);
    }

    /// Retires a record, if there is one.
    pub(super) fn retire_record(&self, link: Link) {
        // SAFETY: the caller has unlinked it, or nothing has led to it. (A damaged record is not freed.)
        let _ = unsafe { codec::retire(self.heap, self.guard, link) };
    }
}

/// Number of deltas above a leaf's base at which a writer replaces the chain.
pub(super) const LONG: u16 = 8;

/// Whether a chain is only a base, all of whose entries count, and none of whose pairs was removed.
pub(super) fn is_whole<M: Media>(media: &M, head: Link, base: &BaseRef<'_>) -> bool {
    kind(head) == Kind::Base && gone(head) == 0 && !base.is_emptied() && base.gone_count(media) == 0
}
