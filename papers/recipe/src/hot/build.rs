//! Making changes durable: new objects, one fence, the store that commits, its fence.

use super::layout::{HEAD, LEAF_TAG, Masks, Selection, Shape};
use super::lock::Parent;
use super::node::{Head, shape_word};
use super::plan::{Item, Plan};
use super::write::Writer;
use art::{damaged, draft_leaf};
use heap::{Error, Heap};
use pmem::{
    Draft, Erased, Flushed, GenerationLock, LinkAndPersist, Media, PWord, PersistBatch, Purpose, Tag,
    persist_scope,
};

/// A node to be built.
#[derive(Debug)]
pub(super) struct NewNode {
    plan: Plan,
    shape: Shape,
    selection: Selection,
    height: u16,
}

/// The objects that a write makes, numbered from 0 on for [`Item::New`]: a leaf of the key with this value, if any, and
/// then the nodes. Each object but the last hangs from a later one, and the last one from the slot that commits.
#[derive(Debug, Default)]
pub(super) struct Made<'v> {
    pub(super) leaf: Option<&'v [u8]>,
    pub(super) nodes: Vec<NewNode>,
}

impl Made<'_> {
    /// Adds a plan's node to the objects to be made, and returns its item; if the plan has only one entry, makes no
    /// node and returns the entry's item. A node of leaves has height 1, any other this `height`.
    pub(super) fn add(&mut self, plan: Plan, height: u16) -> Item {
        if plan.len() == 1 {
            return plan.item(0);
        }
        let all_leaves = plan.items().iter().all(|item| match item {
            Item::Old(link) => link.tag() == LEAF_TAG,
            Item::New(number) => *number == 0 && self.leaf.is_some(),
        });
        let height = if all_leaves { 1 } else { height };
        self.nodes.push(NewNode::new(plan, height));
        Item::New(usize::from(self.leaf.is_some()) + self.nodes.len() - 1)
    }
}

type New<'e, 'h> = Option<(Flushed<'e, 'h, Erased>, Tag)>;

impl NewNode {
    pub(super) fn new(plan: Plan, height: u16) -> NewNode {
        let (shape, selection) = plan.selection();
        NewNode {
            plan,
            shape,
            selection,
            height,
        }
    }

    /// The tag of a link to the node.
    pub(super) fn tag(&self) -> Tag {
        self.shape.tag()
    }

    /// The place of a slot in the tail of the draft.
    pub(super) fn slot(&self, i: usize) -> usize {
        self.shape.fixed() + i * size_of::<u64>()
    }

    /// Drafts the node without its slots.
    pub(super) fn draft<'e, 'h, M: Media>(
        &self,
        heap: &'h Heap<M>,
        batch: &PersistBatch<'e, '_, M>,
    ) -> Result<Draft<'e, 'h, Head>, Error> {
        let head = Head {
            lock: GenerationLock::new(heap.generation()),
            shape: PWord::new(shape_word(self.shape, self.height, self.selection.select)),
        };
        let mut draft = heap.draft(head, self.shape.size() - HEAD, batch)?;
        self.write_ways(draft.tail_mut());
        Ok(draft)
    }

    /// Writes masks and partial keys.
    fn write_ways(&self, tail: &mut [u8]) {
        let (shape, selection) = (self.shape, &self.selection);
        let width = shape.layout.width.bytes();
        let (masks, partials) = tail[..shape.fixed()].split_at_mut(shape.layout.masks.size());
        match shape.layout.masks {
            Masks::Single => masks.copy_from_slice(&selection.masks[..masks.len()]),
            Masks::Multi(bytes) => {
                let (numbers, masks) = masks.split_at_mut(bytes * 2);
                for (place, number) in numbers.as_chunks_mut::<2>().0.iter_mut().zip(selection.numbers) {
                    *place = number.to_le_bytes();
                }
                masks.copy_from_slice(&selection.masks[..bytes]);
            }
        }
        partials.fill(0);
        for (place, partial) in partials.chunks_exact_mut(width).zip(self.plan.partials()) {
            place.copy_from_slice(&partial.to_le_bytes()[..width]);
        }
    }

    /// Writes the slots; takes new objects out of `made`.
    fn fill<'e, 'h>(&self, draft: &mut Draft<'e, 'h, Head>, made: &mut [New<'e, 'h>]) -> Option<()> {
        for (i, item) in self.plan.items().iter().enumerate() {
            match *item {
                Item::Old(link) => draft.link_in_tail(self.slot(i), link),
                Item::New(number) => {
                    let (object, tag) = made.get_mut(number)?.take()?;
                    draft.adopt_in_tail(self.slot(i), object, tag);
                }
            }
        }
        Some(())
    }
}

impl<'a, M: Media> Writer<'a, M> {
    /// Makes all objects durable, and then the last one reachable, from the parent's slot. Costs a write-back for
    /// each line and 1 for the slot, and 2 fences. `parent` may take its lock, and returns it held.
    ///
    /// # Errors
    ///
    /// If the heap has no room, or the parent is not found. Nothing was changed then.
    pub(super) fn publish(
        &self,
        what: &Made<'_>,
        parent: impl FnOnce() -> Result<Parent<'a, M>, Error>,
    ) -> Result<Parent<'a, M>, Error> {
        persist_scope(self.media(), Purpose::Node, |batch| {
            let (object, tag) = self
                .draft(what, &batch)?
                .ok_or_else(|| damaged("plan of a write", self.index.root))?;
            let fenced = batch.fence();
            let parent = parent()?;
            let slot = parent.step.slot();
            let _durable = slot
                .publish::<LinkAndPersist, M, _>(self.media(), object.persisted(&fenced), tag)
                .commit();
            Ok(parent)
        })
    }

    /// Drafts all objects; returns the last one, from which the others hang. All space is taken before any object
    /// hangs from another, so that everything can be given back if there is no room.
    fn draft<'e>(&self, what: &Made<'_>, batch: &PersistBatch<'e, 'a, M>) -> Result<New<'e, 'a>, Error> {
        let heap = self.heap;
        let mut made: Vec<New<'e, 'a>> = Vec::with_capacity(1 + what.nodes.len());
        if let Some(value) = what.leaf {
            let leaf = draft_leaf(heap, self.key, value, batch)?.flush(batch);
            made.push(Some((leaf.erased(), LEAF_TAG)));
        }
        let drafts: Result<Vec<_>, Error> = what.nodes.iter().map(|node| node.draft(heap, batch)).collect();
        for (node, mut draft) in what.nodes.iter().zip(drafts?) {
            if node.fill(&mut draft, &mut made).is_none() {
                return Ok(None);
            }
            made.push(Some((draft.flush(batch).erased(), node.tag())));
        }
        Ok(made.pop().flatten())
    }
}
