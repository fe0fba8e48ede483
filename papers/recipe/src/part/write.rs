//! Writes: each is an edit of one key (`index::Edit`), decided under the lock of the node that holds its place.
//!
//! 1. Find the place (`locate`), without locks; on the way, complete changes that a crash has interrupted (`repair`).
//! 2. Lock the node. If it is obsolete, or its slot holds an inner node by now, start over. For a key that diverges
//!    within a node's prefix, lock that node first, and start over if anything has changed.
//! 3. Let the edit decide, once.
//! 4. New objects are made durable one by one (`build`). Then one store commits: a counter, an entry of a child index,
//!    or a pointer (`append`), the pointer to an object that takes another's place (`split`, `resize`), a value, or a
//!    null pointer (`remove`).

use super::Writer;
use super::locate::Place;
use art::{Kind, LeafRef, Missed, Tagged, Tries, child_tag, damaged, publish_leaf, replace_value, same};
use heap::Error;
use index::{Action, Edit};
use pmem::{Link, LinkAndPersist, Locked, Media, PSlot};

impl<'a, M: Media> Writer<'a, M> {
    /// Applies `edit` to the key.
    pub(super) fn edit(&self, edit: &mut dyn Edit) -> Result<Action, Error> {
        let mut tries = Tries::default();
        loop {
            let done = match self.locate()? {
                Ok(place) => match place.parting {
                    Some(divergence) => self.split_prefix(&place, divergence, edit)?,
                    None => self.edit_at(&place, edit)?,
                },
                Err(missed) => Err(missed),
            };
            let missed = match done {
                Ok(action) => return Ok(action),
                Err(missed) => missed,
            };
            if !tries.go_on(missed, self.media()) {
                return Err(damaged("walk that does not reach its key", self.index.root()).into());
            }
        }
    }

    /// Applies the edit at a place that holds nothing or a leaf.
    fn edit_at(&self, place: &Place<'a>, edit: &mut dyn Edit) -> Result<Result<Action, Missed>, Error> {
        let Ok(locked) = place.node.lock(self.heap) else {
            return Ok(Err(Missed::Lost));
        };
        let (slot, link) = place.node.slot(self.media(), self.key.get(place.level).copied());
        match (link.kind(), slot) {
            (Kind::Leaf, Some(slot)) => self.edit_leaf(place, locked, (slot, link), edit).map(Ok),
            _ if link.is_inner() => Ok(Err(Missed::Lost)),
            _ if link.is_null() => self.edit_absent(place, locked, edit).map(Ok),
            _ => Err(damaged("link's kind", link).into()),
        }
    }

    /// Applies the edit at a place that holds nothing.
    fn edit_absent(
        &self,
        place: &Place<'a>,
        locked: Locked<'a, M>,
        edit: &mut dyn Edit,
    ) -> Result<Action, Error> {
        if edit.decide(None) != Action::Put {
            return Ok(Action::Keep);
        }
        match self.key.get(place.level) {
            Some(&byte) => self.insert(place, locked, byte, edit.value())?,
            None => {
                let (slot, tag) = (&place.node.header().ends, child_tag(Kind::Leaf, 0, 0));
                publish_leaf::<LinkAndPersist, M>(self.heap, slot, tag, self.key, edit.value())?;
            }
        }
        Ok(Action::Put)
    }

    /// Applies the edit at a place whose slot holds a leaf, of this key or of another.
    fn edit_leaf(
        &self,
        place: &Place<'a>,
        locked: Locked<'a, M>,
        (slot, link): (&'a PSlot, Link),
        edit: &mut dyn Edit,
    ) -> Result<Action, Error> {
        let leaf = LeafRef::at(self.heap, link)?;
        if !same(leaf.key(), self.key) {
            if edit.decide(None) != Action::Put {
                return Ok(Action::Keep);
            }
            self.split_leaf(slot, link, place.level + 1, leaf.key(), edit.value())?;
            return Ok(Action::Put);
        }
        let action = edit.decide(Some(&leaf.value(self.heap)));
        match action {
            Action::Keep => {}
            Action::Put => {
                replace_value::<LinkAndPersist, M>(self.heap, (slot, link), leaf, edit.value(), self.guard)?;
            }
            Action::Remove => self.remove(place, locked, slot, link)?,
        }
        Ok(action)
    }
}
