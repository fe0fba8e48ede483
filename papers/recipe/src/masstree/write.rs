//! Writes: each is an edit of one key (`index::Edit`), decided under the lock of the key's border.
//!
//! 1. Find the key's border (`locate`), without locks; on the way, repair the leftovers of a crash (`repair`).
//! 2. Lock it. If it was removed, start over; if its sibling covers the key by now, go there.
//! 3. Let the edit decide, once.
//! 4. Apply it (`insert`, `layer`, below): new objects and entries become durable, then one store commits.

use super::insert::in_place;
use super::link::{Target, target};
use super::locate::{Layer, LockedNode, Place, Writer};
use super::node::{Found, Held, NodeRef};
use art::{LeafRef, Tries, damaged, replace_value, same};
use heap::Error;
use index::{Action, Edit};
use pmem::{Link, LinkAndPersist, Media, Purpose, persist_scope};

impl<'a, M: Media> Writer<'a, M> {
    /// Applies `edit` to the key.
    pub(super) fn edit(&self, edit: &mut dyn Edit) -> Result<Action, Error> {
        let mut tries = Tries::default();
        let mut place = self.locate()?;
        loop {
            place = match self.edit_at(place, edit)? {
                Ok(action) => return Ok(action),
                Err(Some((layer, root))) => self.locate_below(layer, root, usize::MAX)?,
                Err(None) => {
                    self.lost(&mut tries)?;
                    self.locate()?
                }
            };
        }
    }

    /// Applies the edit at a place; returns the inner error if the key's place is elsewhere by now: in the given
    /// layer, or anywhere.
    fn edit_at(
        &self,
        place: Place<'a>,
        edit: &mut dyn Edit,
    ) -> Result<Result<Action, Option<(Layer, Link)>>, Error> {
        let Place {
            mut layer,
            border: mut node,
            mut came_right,
        } = place;
        let media = self.media();
        let slice = self.slice(&layer);
        let (locked, order, at, found) = loop {
            let Ok(locked) = self.lock(node)? else {
                return Ok(Err(None));
            };
            let order = node.order(media);
            let (at, found) = node.search(media, order, slice);
            if let Found::Absent { beyond: true } = found
                && let Some(right) = node.right(self.heap, slice.bytes)?
            {
                (node, came_right) = (right, true);
                continue;
            }
            break (locked, order, at, found);
        };
        if came_right {
            self.see_to_separator(&mut layer, node)?;
        }
        let border = LockedNode { node, locked };
        let Found::Held(held) = found else {
            let action = edit.decide(None);
            if action != Action::Put {
                return Ok(Ok(Action::Keep));
            }
            self.put(layer, border, None, edit.value())?;
            return Ok(Ok(action));
        };
        let link = match held {
            Held::Link(link) => link,
            Held::Value(value) => {
                let action = edit.decide(Some(&value.to_le_bytes()));
                match action {
                    Action::Keep => {}
                    Action::Remove => self.remove(layer, border, at, None),
                    Action::Put => match in_place(slice, edit.value()) {
                        Some(value) => self.store_in_place(node, order.entry(at), value),
                        None => self.put(layer, border, Some(at), edit.value())?,
                    },
                }
                return Ok(Ok(action));
            }
        };
        match target(link) {
            Some(Target::Leaf(_)) => {}
            Some(Target::Node(_)) if slice.continues() => {
                layer.above.push(node.link);
                return Ok(Err(Some((layer, link))));
            }
            _ => return Err(damaged("link of an entry", node.link).into()),
        }
        let leaf = LeafRef::at(self.heap, link)?;
        let slot = node.node.entries[order.entry(at)].word.slot();
        if same(leaf.key(), self.key) {
            let action = edit.decide(Some(&leaf.value(self.heap)));
            match action {
                Action::Keep => {}
                Action::Put => {
                    let place = (slot, link);
                    replace_value::<LinkAndPersist, M>(self.heap, place, leaf, edit.value(), self.guard)?;
                }
                Action::Remove => self.remove(layer, border, at, Some((link, leaf.extent()))),
            }
            return Ok(Ok(action));
        }
        if !slice.continues() {
            return Err(damaged("key of a leaf", link).into());
        }
        let action = edit.decide(None);
        if action != Action::Put {
            return Ok(Ok(Action::Keep));
        }
        self.add_layer(&layer, slot, (link, leaf.key()), edit.value())?;
        Ok(Ok(action))
    }

    /// Replaces a key's value in place. The caller holds the lock. Costs 1 write-back and 1 fence.
    fn store_in_place(&self, node: NodeRef<'a>, entry: usize, value: u64) {
        persist_scope(self.media(), Purpose::Node, |batch| {
            let marked = node.node.order.mark(&batch);
            node.node.entries[entry].word.store(value, &batch);
            let _durable = marked.durable(&batch.fence());
        });
    }

    /// Removes the key in this place, and retires its leaf and objects that are no longer needed. Costs 1 write-back
    /// and 1 fence if there are none.
    fn remove(&self, layer: Layer, border: LockedNode<'a, M>, at: usize, leaf: Option<(Link, usize)>) {
        let order = border.node.order(self.media()).without(at);
        let _durable = border
            .node
            .node
            .order
            .publish::<LinkAndPersist, M>(self.media(), order.word())
            .commit();
        if let Some((link, extent)) = leaf {
            self.retire(link, extent);
        }
        if order.len() < 2 {
            // The remove has succeeded whatever happens here: damage is reported by the operations that reach it, and
            // by checks.
            let _ = self.tidy(layer, border);
        }
    }
}
