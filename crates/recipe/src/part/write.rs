//! Writes: every one is an edit of one key (`index::Edit`) under one lock.
//!
//! 1. Find the place (`locate`), without locks; on the way, finish what a crash has interrupted (`repair`).
//! 2. Lock the node. If it is obsolete, or something else hangs there by now, start anew.
//! 3. Let the edit decide, once.
//! 4. New objects are made durable one by one (`build`). Then one store commits: a counter, an index or a pointer
//!    (`append`), or the pointer to an object that replaces another (`split`, `resize`).

use super::Writer;
use super::locate::Place;
use art::{Kind, LeafRef, Missed, Tagged, Tries, child_tag, damaged, same};
use heap::Error;
use index::{Action, Edit};
use pmem::{Link, LinkAndPersist, Media, PSlot, Tag};

impl<'a, M: Media> Writer<'a, M> {
    /// Carries out `edit` on the key.
    pub(super) fn edit(&self, edit: &mut dyn Edit) -> Result<Action, Error> {
        let mut tries = Tries::default();
        loop {
            let done = match self.locate()? {
                Ok(place) => match place.parting {
                    Some(parting) => self.edit_above(&place, parting, edit)?,
                    None => self.edit_at(&place, edit)?,
                },
                Err(missed) => Err(missed),
            };
            let missed = match done {
                Ok(action) => return Ok(action),
                Err(missed) => missed,
            };
            if !tries.go_on(&missed, self.media()) {
                return Err(damaged("key without a place", self.index.root()).into());
            }
        }
    }

    /// Nothing or a leaf hangs at the place.
    fn edit_at(&self, place: &Place<'a>, edit: &mut dyn Edit) -> Result<Result<Action, Missed>, Error> {
        let Ok(locked) = place.node.lock(self.heap()) else {
            return Ok(Err(Missed::Busy));
        };
        let byte = self.key.get(place.level).copied();
        let (slot, link) = place.node.slot(self.media(), byte);
        let (Some(slot), Kind::Leaf) = (slot, link.kind()) else {
            if link.is_inner() {
                return Ok(Err(Missed::Lost));
            }
            if !link.is_null() {
                return Err(damaged("link's kind", link).into());
            }
            let action = edit.decide(None);
            return Ok(Ok(match (action, byte) {
                (Action::Put, Some(byte)) => {
                    self.insert(place, locked, byte, edit.value())?;
                    action
                }
                (Action::Put, None) => {
                    self.publish_leaf(
                        &place.node.header().ends,
                        child_tag(Kind::Leaf, 0, 0),
                        edit.value(),
                    )?;
                    action
                }
                _ => Action::Keep,
            }));
        };
        let leaf = LeafRef::at(self.heap(), link)?;
        if !same(leaf.key(), self.key) {
            let action = edit.decide(None);
            if action != Action::Put {
                return Ok(Ok(Action::Keep));
            }
            self.split_leaf(slot, link, place.level + 1, leaf.key(), edit.value())?;
            return Ok(Ok(action));
        }
        let action = edit.decide(Some(&leaf.value(self.heap())));
        match action {
            Action::Keep => {}
            Action::Put => self.replace_value(slot, link, leaf, edit.value())?,
            Action::Remove => self.remove(place, locked, slot, link)?,
        }
        Ok(Ok(action))
    }

    /// Publishes a new leaf in a slot. 2 write-backs, 2 fences.
    fn publish_leaf(&self, slot: &PSlot, tag: Tag, value: &[u8]) -> Result<(), Error> {
        let leaf = self.persist_leaf(value)?;
        let _durable = slot
            .publish::<LinkAndPersist, M, _>(self.media(), leaf, tag)
            .commit();
        Ok(())
    }

    /// Gives a key that is present another value: in place if both have eight bytes (1 write-back, 1 fence), else by a
    /// new leaf (2, 2).
    fn replace_value(&self, slot: &PSlot, link: Link, leaf: LeafRef<'_>, value: &[u8]) -> Result<(), Error> {
        if let Some(word) = leaf.takes_word(value) {
            let _durable = leaf.store_word::<LinkAndPersist, M>(self.heap(), word);
            return Ok(());
        }
        self.publish_leaf(slot, link.tag(), value)?;
        self.retire(link, leaf.extent());
        Ok(())
    }
}
