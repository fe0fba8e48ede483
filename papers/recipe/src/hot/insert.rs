//! Inserts: choosing among HOT's four cases, and building the new objects.
//!
//! ```text
//!  the key parts from                                   what is built, and where it is published
//!  a branch of a node, or a leaf of one of height 1     normal insert: a copy with one entry more, in the slot above
//!  a leaf of a higher node, or the only leaf            leaf-node pushdown: a node over both, in the leaf's slot
//!  a whole node, which has room                         normal insert into that node, above its first branch
//!  a whole node, which is full                          as if that node had been split from the key, as below
//! ```
//!
//! A copy with too many entries is split at its first branch. The halves hang from
//!
//! ```text
//!  an intermediate node in the slot above, where that leaves the height as it is (or at the root)
//!  a copy of the node above, which takes the branch: parent pull-up; and so on, if that one is full
//! ```
//!
//! **Where pull-ups end.** With keys that part one after the other (prefixes of each other, say) all nodes on the path
//! may be full, and each insert would copy all of them. After [`MAX_PULLS`] the branch stays below, in an intermediate
//! node, which then takes later ones. So a height recorded further up may be too low; heights only guide inserts.

use super::build::Made;
use super::layout::MAX_ENTRIES;
use super::lock::Parent;
use super::node::Node;
use super::plan::{Item, Plan};
use super::position::{Position, bit};
use super::walk::Path;
use super::write::Writer;
use art::Missed;
use heap::Error;
use index::{Action, Edit};
use pmem::{Locked, Media};

/// Maximum number of full nodes that an insert splits: more than the height of a tree of 10^8 random keys.
const MAX_PULLS: usize = 8;

impl<'a, M: Media> Writer<'a, M> {
    /// Edits an absent key, which first differs at `position` from the leaf at the end of the path.
    pub(super) fn edit_absent(
        &self,
        path: &Path<'a>,
        position: Position,
        edit: &mut dyn Edit,
    ) -> Result<Result<Action, Missed>, Error> {
        let depth = path.deepest_before(position);
        let step = &path.steps[depth];
        let plan = step.node.as_ref().map(Plan::of_ways).transpose()?;
        let branch = plan
            .as_ref()
            .is_some_and(|plan| plan.affected(step.index, position).len() > 1);
        let height = step.node.map_or(u16::MAX, |node| node.height());
        let below = path.steps.get(depth + 1).and_then(|below| below.node);
        match (plan, below) {
            (Some(plan), _) if branch => self.insert_into(path, depth, plan, position, edit),
            (_, Some(node)) if node.shape.count < MAX_ENTRIES => {
                self.insert_into(path, depth + 1, Plan::of_ways(&node)?, position, edit)
            }
            (Some(plan), Some(node)) if height <= node.height().saturating_add(1) => {
                self.insert_into(path, depth, plan, position, edit)
            }
            (_, Some(node)) => {
                self.media().comes_to("intermediate node");
                self.insert_between(path, depth, (position, node.height().saturating_add(1)), edit)
            }
            (Some(plan), None) if height == 1 => self.insert_into(path, depth, plan, position, edit),
            (_, None) => {
                self.media().comes_to("leaf-node pushdown");
                self.insert_between(path, depth, (position, 1), edit)
            }
        }
    }

    /// Puts a new node over the key and the object in the slot of that step, in the object's place. Costs 3
    /// write-backs for short keys (the leaf's line, the node's, and the slot's), and 2 fences.
    fn insert_between(
        &self,
        path: &Path<'a>,
        depth: usize,
        (position, height): (Position, u16),
        edit: &mut dyn Edit,
    ) -> Result<Result<Action, Missed>, Error> {
        let step = path.steps[depth];
        let locked = match self.lock_at(&step) {
            Ok(locked) => locked,
            Err(missed) => return Ok(Err(missed)),
        };
        if edit.decide(None) != Action::Put {
            return Ok(Ok(Action::Keep));
        }
        let mut made = Made {
            leaf: Some(edit.value()),
            nodes: Vec::with_capacity(1),
        };
        let (old, new) = (Item::Old(step.link), Item::New(0));
        let pair = match bit(self.key, position) {
            true => Plan::pair(position, old, new),
            false => Plan::pair(position, new, old),
        };
        made.add(pair, height);
        self.publish(&made, || Ok(Parent { step, locked }))?;
        Ok(Ok(Action::Put))
    }

    /// Adds the key to the node of that step; `plan` is the node's, without its slots.
    fn insert_into(
        &self,
        path: &Path<'a>,
        depth: usize,
        mut plan: Plan,
        position: Position,
        edit: &mut dyn Edit,
    ) -> Result<Result<Action, Missed>, Error> {
        let step = &path.steps[depth];
        let Some(node) = step.node else {
            return Ok(Err(Missed::Lost));
        };
        // Next to a single entry the key may be inserted only if the entry is still the one that was compared with
        // it.
        let affected = plan.affected(step.index, position);
        let locked = match affected.len() {
            1 => self.lock_at(step),
            _ => self.lock(step).map_err(|_| Missed::Lost),
        };
        let locked = match locked {
            Ok(locked) => locked,
            Err(missed) => return Ok(Err(missed)),
        };
        if edit.decide(None) != Action::Put {
            return Ok(Ok(Action::Keep));
        }
        let made = Made {
            leaf: Some(edit.value()),
            nodes: Vec::with_capacity(4),
        };
        plan.fill(&node, self.media());
        plan.insert(step.index, position, bit(self.key, position), Item::New(0))?;
        plan.forget_empty();
        self.replace(path, depth, (locked, node), plan, made)?;
        Ok(Ok(Action::Put))
    }

    /// Replaces the node of that step, which is locked, by the plan's, split as often as necessary. Costs a
    /// write-back for each line of leaf and copies and 1 for the slot, and 2 fences.
    fn replace(
        &self,
        path: &Path<'a>,
        mut depth: usize,
        (locked, mut node): (Locked<'a, M>, Node<'a>),
        mut plan: Plan,
        mut made: Made<'_>,
    ) -> Result<(), Error> {
        let media = self.media();
        let mut at = path.steps[depth].at;
        let mut replaced = vec![(locked, at, node)];
        let parent = loop {
            let height = node.height();
            if plan.len() <= MAX_ENTRIES {
                media.comes_to(if replaced.len() == 1 {
                    "normal insert"
                } else {
                    "parent pull-up"
                });
                made.add(plan, height);
                break None;
            }
            let (position, zero, one) = plan.split();
            let (zero, one) = (made.add(zero, height), made.add(one, height));
            depth = depth.saturating_sub(1);
            let parent = self.lock_parent(at, &path.steps[depth])?;
            match parent.step.node {
                Some(above) if takes_branch(&above, height, replaced.len()) => {
                    let index = parent.step.index;
                    plan = Plan::of_ways(&above)?;
                    plan.fill(&above, media);
                    plan.replace(index, zero);
                    plan.insert(index, position, true, one)?;
                    plan.forget_empty();
                    (at, node) = (parent.step.at, above);
                    replaced.push((parent.locked, at, node));
                }
                _ => {
                    media.comes_to("intermediate node");
                    made.add(Plan::pair(position, zero, one), height.saturating_add(1));
                    break Some(parent);
                }
            }
        };
        let above = &path.steps[depth.saturating_sub(1)];
        let parent = self.publish(&made, || match parent {
            Some(parent) => Ok(parent),
            None => Ok(self.lock_parent(at, above)?),
        })?;
        drop(parent);
        self.retire_all(replaced);
        Ok(())
    }

    /// Replaces a node by a copy without empty slots, or by its only entry. The caller holds its lock, and retires
    /// it.
    pub(super) fn without_empty(&self, path: &Path<'a>, node: Node<'a>) -> Result<(), Error> {
        let depth = path.last();
        let (at, above) = (path.steps[depth].at, &path.steps[depth.saturating_sub(1)]);
        let mut plan = Plan::of_ways(&node)?;
        plan.fill(&node, self.media());
        plan.forget_empty();
        self.media().comes_to("empty slots go");
        self.put_in_place(plan, node.height(), || Ok(self.lock_parent(at, above)?))
    }

    /// Publishes the plan's node, or its only entry, in the parent's slot.
    pub(super) fn put_in_place(
        &self,
        plan: Plan,
        height: u16,
        parent: impl FnOnce() -> Result<Parent<'a, M>, Error>,
    ) -> Result<(), Error> {
        let mut made = Made::default();
        match made.add(plan, height) {
            Item::Old(link) => self.swing(&parent()?, link),
            Item::New(_) => drop(self.publish(&made, parent)?),
        }
        Ok(())
    }
}

/// Whether a branch of a node of this height is pulled up into the node above, if the insert replaces this many nodes
/// already.
fn takes_branch(above: &Node<'_>, height: u16, replaced: usize) -> bool {
    above.height() <= height.saturating_add(1) && (above.shape.count < MAX_ENTRIES || replaced < MAX_PULLS)
}
