//! Removes: the node is replaced by a copy without the key, and space comes back.
//!
//! ```text
//!  left in the node                  action
//!  two entries or more               a copy, in the slot above; or, where that node has few entries, too, they are
//!                                    drawn into a copy of it
//!  one entry                         it takes the node's place: one store, and nothing is built
//!  none: the others were removed     the node is removed, and the one above has one entry less
//!  in a full pool
//! ```
//!
//! In a full pool the slot is emptied instead of building a copy.

use super::layout::MAX_ENTRIES;
use super::lock::Parent;
use super::node::Node;
use super::plan::{Item, Plan};
use super::walk::Path;
use super::write::Writer;
use art::LeafRef;
use heap::Error;
use pmem::{Link, LinkAndPersist, Locked, Media};

/// A node is merged with the one above if together they have at most this many entries: few enough that the next
/// inserts do not split the result again.
const DRAWN_IN: usize = MAX_ENTRIES / 2;

impl<'a, M: Media> Writer<'a, M> {
    /// Makes a parent's slot lead to a reachable object, or to nothing: a commit point. Costs 1 write-back and 1
    /// fence.
    pub(super) fn swing(&self, parent: &Parent<'a, M>, link: Link) {
        let _durable = parent
            .step
            .slot()
            .publish_link::<LinkAndPersist, M>(self.media(), link)
            .commit();
    }

    /// Removes the leaf at the end of the path, under the lock of its parent.
    pub(super) fn remove(
        &self,
        path: &Path<'a>,
        locked: Locked<'a, M>,
        leaf: LeafRef<'a>,
    ) -> Result<(), Error> {
        let mut depth = path.last();
        let link = path.steps[depth].link;
        let mut parent = Parent {
            step: path.steps[depth],
            locked,
        };
        let mut replaced = Vec::new();
        loop {
            let Some(node) = parent.step.node else {
                self.media().comes_to("remove: the last key");
                self.swing(&parent, Link::NULL);
                drop(parent);
                break;
            };
            let (at, above) = (parent.step.at, path.steps[depth.saturating_sub(1)]);
            let mut plan = Plan::of_ways(&node)?;
            plan.fill(&node, self.media());
            plan.replace(parent.step.index, Item::Old(Link::NULL));
            plan.forget_empty();
            if plan.len() > 0 {
                let more = self.shrink(path, depth, (&parent, node), plan)?;
                match more {
                    Shrunk::Emptied => drop(parent),
                    Shrunk::Replaced(above) => {
                        replaced.push((parent.locked, at, node));
                        replaced.extend(above);
                    }
                }
                break;
            }
            self.media().comes_to("remove: node without keys");
            depth = depth.saturating_sub(1);
            let next = self.lock_parent(at, &above)?;
            replaced.push((parent.locked, at, node));
            parent = next;
        }
        self.retire_all(replaced);
        self.retire(link, leaf.extent());
        Ok(())
    }

    /// Replaces a node, whose lock is held, by the plan's; in a full pool, empties the slot of the removed entry
    /// instead, unless the plan has only one entry.
    fn shrink(
        &self,
        path: &Path<'a>,
        depth: usize,
        (locked, node): (&Parent<'a, M>, Node<'a>),
        plan: Plan,
    ) -> Result<Shrunk<'a, M>, Error> {
        let media = self.media();
        let (at, above) = (locked.step.at, &path.steps[depth.saturating_sub(1)]);
        if plan.len() == 1 {
            media.comes_to("remove: last entry takes the node's place");
            self.put_in_place(plan, 0, || Ok(self.lock_parent(at, above)?))?;
            return Ok(Shrunk::Replaced(None));
        }
        let few = |node: &Node<'_>| node.shape.count - 1 + plan.len() <= DRAWN_IN;
        let done = if above.node.as_ref().is_some_and(few) {
            self.draw_in(path, depth, (at, node), plan)
        } else {
            media.comes_to("remove: copy");
            self.put_in_place(plan, node.height(), || Ok(self.lock_parent(at, above)?))
                .map(|()| None)
        };
        match done {
            Ok(replaced) => Ok(Shrunk::Replaced(replaced)),
            Err(Error::Full { .. }) => {
                media.comes_to("remove: slot emptied");
                self.swing(locked, Link::NULL);
                Ok(Shrunk::Emptied)
            }
            Err(error) => Err(error),
        }
    }

    /// Replaces the node and the one above by a copy of the latter with the entries of both; returns the one above. If
    /// the root or a node with too many entries is above by now, replaces only the node, and returns `None`.
    fn draw_in(
        &self,
        path: &Path<'a>,
        depth: usize,
        (at, node): (Link, Node<'a>),
        plan: Plan,
    ) -> Result<Option<super::write::Replaced<'a, M>>, Error> {
        let parent = self.lock_parent(at, &path.steps[depth.saturating_sub(1)])?;
        let Some(above) = parent
            .step
            .node
            .filter(|above| above.shape.count - 1 + plan.len() <= MAX_ENTRIES)
        else {
            self.put_in_place(plan, node.height(), || Ok(parent))?;
            return Ok(None);
        };
        self.media().comes_to("remove: entries drawn into the node above");
        let mut merged = Plan::of_ways(&above)?;
        merged.fill(&above, self.media());
        merged.draw_in(parent.step.index, &plan);
        merged.forget_empty();
        let further = &path.steps[depth.saturating_sub(2)];
        self.put_in_place(merged, above.height(), || {
            Ok(self.lock_parent(parent.step.at, further)?)
        })?;
        Ok(Some((parent.locked, parent.step.at, above)))
    }
}

/// The fate of a node that lost an entry.
enum Shrunk<'a, M: Media> {
    /// It has an empty slot.
    Emptied,
    /// It was replaced, and perhaps the one above with it.
    Replaced(Option<super::write::Replaced<'a, M>>),
}
