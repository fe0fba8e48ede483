//! Writes: each is an edit of one key (`index::Edit`), decided under the lock of one node.
//!
//! 1. Walk down without locks, to a leaf or a null slot (`walk`). The position at which the key first differs from
//!    that leaf's determines the branch beside which it belongs.
//! 2. Lock the node whose slot changes or which will be copied, and check again: if it is obsolete, start over;
//!    likewise if the key goes beside a single entry, or that entry changes, and its slot holds something else by now.
//!    Nothing else needs to be checked, since a node's branches keep their strings (`node`, I2).
//! 3. Let the edit decide, once.
//! 4. Lock the other nodes to be replaced, upward; make the new objects durable; one store to one slot commits.
//! 5. Release the locks from the top down. Replaced nodes are obsolete, and are retired.

use super::Hot;
use super::layout::{LEAF_TAG, Target, target};
use super::node::Node;
use super::position::first_difference;
use super::walk::{Path, Step};
use art::{LeafRef, Missed, Tries, damaged, publish_leaf, replace_value, same_object};
use heap::{Access, Error, Guard};
use index::{Action, Edit};
use pmem::{Link, LinkAndPersist, Locked, Media};

/// One write.
#[derive(Clone, Copy)]
pub(super) struct Writer<'a, M: Media> {
    pub(super) index: &'a Hot<M>,
    pub(super) heap: &'a Access<M>,
    pub(super) guard: &'a Guard,
    pub(super) key: &'a [u8],
}

/// A node that is being replaced, its lock, and its place.
pub(super) type Replaced<'a, M> = (Locked<'a, M>, Link, Node<'a>);

impl<'a, M: Media> Writer<'a, M> {
    pub(super) fn media(&self) -> &'a M {
        self.heap.media()
    }

    /// Frees an object's chunk once no reader can hold it.
    #[track_caller]
    pub(super) fn retire(&self, link: Link, len: usize) {
        art::retire(self.heap, self.guard, link, len);
    }

    /// Releases and retires replaced nodes, given from the lowest up.
    #[track_caller]
    pub(super) fn retire_all(&self, replaced: Vec<Replaced<'a, M>>) {
        for (locked, link, node) in replaced.into_iter().rev() {
            locked.retire();
            self.retire(link, node.shape.size());
        }
    }

    /// Locks a step of a walk; returns [`Missed`] if its node is obsolete, or its slot holds something else by now.
    pub(super) fn lock_at(&self, step: &Step<'a>) -> Result<Locked<'a, M>, Missed> {
        let locked = self.lock(step).map_err(|_| Missed::Lost)?;
        match same_object(step.slot().load(self.media()), step.link) {
            true => Ok(locked),
            false => Err(Missed::Lost),
        }
    }

    /// Applies `edit` to the key.
    pub(super) fn edit(&self, edit: &mut dyn Edit) -> Result<Action, Error> {
        let mut tries = Tries::default();
        loop {
            let path = self.index.walk(self.key)?;
            let end = path.steps[path.last()].link;
            let done = match target(end) {
                Target::Null => self.edit_empty(&path, edit)?,
                _ => {
                    let leaf = LeafRef::at(self.heap, end)?;
                    match first_difference(leaf.key(), self.key) {
                        None => self.edit_present(&path, leaf, edit)?,
                        Some(position) => self.edit_absent(&path, position, edit)?,
                    }
                }
            };
            let missed = match done {
                Ok(action) => return Ok(action),
                Err(missed) => missed,
            };
            if !tries.go_on(missed, self.media()) {
                return Err(damaged("key without a place", self.index.root).into());
            }
        }
    }

    /// Edits a key whose leaf is at the end of the path.
    fn edit_present(
        &self,
        path: &Path<'a>,
        leaf: LeafRef<'a>,
        edit: &mut dyn Edit,
    ) -> Result<Result<Action, Missed>, Error> {
        let step = &path.steps[path.last()];
        let locked = match self.lock_at(step) {
            Ok(locked) => locked,
            Err(missed) => return Ok(Err(missed)),
        };
        let action = edit.decide(Some(&leaf.value(self.heap)));
        match action {
            Action::Keep => {}
            Action::Put => {
                let place = (step.slot(), step.link);
                replace_value::<LinkAndPersist, M>(self.heap, place, leaf, edit.value(), self.guard)?;
            }
            Action::Remove => self.remove(path, locked, leaf)?,
        }
        Ok(Ok(action))
    }

    /// Edits a key whose path ends at a null slot: the key is absent.
    fn edit_empty(&self, path: &Path<'a>, edit: &mut dyn Edit) -> Result<Result<Action, Missed>, Error> {
        let step = &path.steps[path.last()];
        let locked = match self.lock_at(step) {
            Ok(locked) => locked,
            Err(missed) => return Ok(Err(missed)),
        };
        let Some(node) = step.node else {
            let action = edit.decide(None);
            if action != Action::Put {
                return Ok(Ok(Action::Keep));
            }
            publish_leaf::<LinkAndPersist, M>(self.heap, step.slot(), LEAF_TAG, self.key, edit.value())?;
            return Ok(Ok(action));
        };
        // The key may part from the node's keys anywhere, and only a leaf could show where. So if the key's way leads
        // to a null slot, the node is replaced by a copy without null slots, and the edit starts over.
        match self.without_empty(path, node) {
            Ok(()) => {
                self.retire_all(vec![(locked, step.at, node)]);
                Ok(Err(Missed::Held))
            }
            // Without room nothing can be put.
            Err(full @ Error::Full { .. }) => match edit.decide(None) {
                Action::Put => Err(full),
                _ => Ok(Ok(Action::Keep)),
            },
            Err(error) => Err(error),
        }
    }
}
