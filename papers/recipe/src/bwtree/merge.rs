//! Removal of nodes: empty leaves, inner nodes with few children, and roots with one.
//!
//! A node is first frozen: its chain does not change any more. Readers may go on reading it: it has the current
//! content of its keys until a writer reaches them on another way, which no writer does before the modification is
//! complete. So no reader restarts because of a merge.

use super::aim::Aim;
use super::base::{BaseRef, Head};
use super::build::{draft_inner_base, draft_leaf_base};
use super::content::{Content, cell_extent};
use super::link::{BASE, Kind, cell_tag, delta_tag, is_mark, kind, level_of, part_tag, same_place};
use super::object::{Cell, RangeRef};
use super::page::Page;
use super::write::{Writer, is_whole};
use art::{Missed, Tries, damaged};
use heap::Error;
use pmem::{Draft, Link, Media, PSlot, PersistBatch, Purpose, persist_scope};

impl<'a, M: Media, const FULL: usize> Writer<'a, M, FULL> {
    /// Removes a node whose chain is only a base, and which is not the first of its level. Returns whether to tend
    /// the node again.
    pub(super) fn remove_node(&self, page: Page<'a>) -> Result<bool, Error> {
        if !self.has_room_for_removal(page)? {
            return Ok(true);
        }
        let media = self.media();
        media.comes_to(if page.level == 0 {
            "removal of a leaf"
        } else {
            "removal of an inner node"
        });
        match self.publish_range(page, Kind::Frozen, Link::NULL, (&[], None))? {
            Some(frozen) => self.help(frozen).map(|()| false),
            None => Ok(true),
        }
    }

    /// Makes the root's only child, whose chain is only a base, the root: freezes the child, with a new cell in the
    /// mark that takes its place. (If the root's link led to the child's own cell again, a writer that raises the
    /// root could be misled.) Returns whether to tend the node again.
    pub(super) fn lower(&self, page: Page<'a>) -> Result<bool, Error> {
        let media = self.media();
        // If the node is the root, it stays the root while it has one child that has not changed.
        if !same_place(self.top()?.load(media), page.cell) {
            return Ok(false);
        }
        let Some(child) = self.only_child(page)? else {
            return Ok(false);
        };
        let child = child.settled(media);
        if is_mark(child.head) {
            self.help(child)?;
        }
        let (base, _) = child.ground(self.heap)?;
        if child.high(self.heap)?.is_some() || kind(child.head) == Kind::Frozen {
            return Ok(false);
        }
        if !is_whole(media, child.head, &base) {
            self.consolidate(child)?;
            return Ok(true);
        }
        // Loaded after the child: if the child is frozen in that state, it has been the only one all the while, and
        // stays so. So the root, whose chain is only a base, does not change either, and is retired with that base.
        if page.slot.load(media) != page.head {
            return Ok(true);
        }
        media.comes_to("lower root");
        let frozen = persist_scope(media, Purpose::Node, |batch| {
            let mut mark = self.draft_range(child.head, Link::NULL, &[], None, &batch)?;
            let mut cell = self.heap.draft(Cell { head: PSlot::null() }, 0, &batch)?;
            cell.link(|cell| &mut cell.head, child.head);
            mark.adopt(|mark| &mut mark.cell, cell.flush(&batch), cell_tag(child.level));
            let tag = delta_tag(Kind::Frozen, 0);
            let mark = mark.flush(&batch).persisted(&batch.fence());
            let head = mark.link(tag);
            match child.slot.publish_if(media, child.head, mark, tag) {
                Ok(published) => {
                    media.site("bwtree: only child of a root, frozen");
                    let _durable = published.commit();
                    Ok(Some(Page { head, ..child }))
                }
                Err(mark) => {
                    let cell = RangeRef::at(self.heap, head)?.cell;
                    drop(mark);
                    self.retire(cell, cell_extent());
                    Ok::<_, Error>(None)
                }
            }
        })?;
        match frozen {
            Some(frozen) => self.help(frozen).map(|()| false),
            None => Ok(true),
        }
    }

    /// The child of an inner node that has only one.
    fn only_child(&self, page: Page<'a>) -> Result<Option<Page<'a>>, Error> {
        let children = page.children(self.heap)?.items;
        let [(_, child)] = children[..] else {
            return Ok(None);
        };
        if level_of(child).map(|level| level + 1) != Some(page.level) {
            return Err(damaged("child of a node", page.cell).into());
        }
        Ok(Some(Page::load(self.heap, child)?))
    }

    /// The second step of lowering a root. Costs 1 write-back and 1 fence.
    pub(super) fn end_lowering(&self, page: Page<'a>, mark: RangeRef<'a>) -> Result<(), Error> {
        let media = self.media();
        let slot = self.top()?;
        let top = slot.settle(media);
        if level_of(top) != Some(page.level + 1) {
            return Ok(());
        }
        let root = Page::load(self.heap, top)?;
        let only = self.only_child(root)?;
        if !only.is_some_and(|child| same_place(child.cell, page.cell)) {
            return Ok(());
        }
        let remains = root.remains(self.heap)?;
        if level_of(mark.cell) != Some(page.level) {
            return Err(damaged("cell of a node", page.cell).into());
        }
        let Some(published) = slot.publish_link_if(media, top, mark.cell) else {
            // Another thread has completed it; this load makes it durable before this thread answers.
            slot.load(media);
            return Ok(());
        };
        let _durable = published.commit();
        self.retire_all(remains);
        self.retire(top, cell_extent());
        self.retire(page.head, mark.extent);
        self.retire(page.cell, cell_extent());
        self.tend_later(mark.cell, false);
        Ok(())
    }

    /// The second step of a removal: the left sibling takes over the node's content and right sibling. Then the
    /// third.
    pub(super) fn end_removal(&self, page: Page<'a>, low: &[u8]) -> Result<(), Error> {
        let mut tries = Tries::default();
        loop {
            let Some(left) = self.locate(Aim::before(low), page.level)? else {
                return Ok(());
            };
            if left.low(self.heap)? >= low {
                return Err(damaged("bounds of a node", left.cell).into());
            }
            let is_left = matches!(left.high(self.heap)?, Some((_, right)) if same_place(right, page.cell));
            if is_mark(left.head) {
                self.help(left)?;
            }
            if !is_left {
                return Ok(());
            }
            let missed = match kind(left.head) {
                Kind::Frozen => Missed::Lost,
                _ => match self.merge(left, page, low)? {
                    Some(merged) => return self.help(merged),
                    None => Missed::Overtaken,
                },
            };
            self.again(missed, &mut tries)?;
        }
    }

    /// Publishes a base with the content of both, and a mark on it; returns `None` if another writer was faster.
    fn merge(&self, left: Page<'a>, page: Page<'a>, low: &[u8]) -> Result<Option<Page<'a>>, Error> {
        let media = self.media();
        self.settle_gone(left)?;
        let remains = left.remains(self.heap)?;
        media.comes_to("merge");
        let merged = persist_scope(media, Purpose::Node, |batch| {
            let (base, count) = self.draft_union(left, page, &batch)?;
            let mut mark = self.draft_range(Link::NULL, page.cell, low, None, &batch)?;
            mark.adopt(|mark| &mut mark.next, base.flush(&batch), part_tag(count));
            let tag = delta_tag(Kind::Merge, 0);
            let mark = mark.flush(&batch).persisted(&batch.fence());
            let head = mark.link(tag);
            match left.slot.publish_if(media, left.head, mark, tag) {
                Ok(published) => {
                    media.site("bwtree: mark of a merge");
                    let _durable = published.commit();
                    Ok(Some(Page { head, ..left }))
                }
                Err(mark) => {
                    let base = RangeRef::at(self.heap, head)?.next.with_tag(BASE);
                    let len = BaseRef::at(self.heap, base)?.extent(self.heap);
                    drop(mark);
                    self.retire(base, len);
                    Ok::<_, Error>(None)
                }
            }
        })?;
        if merged.is_some() {
            self.retire_all(remains);
        }
        Ok(merged)
    }

    /// Drafts a base with the content of two siblings, and returns the number of its entries.
    pub(super) fn draft_union<'e>(
        &self,
        left: Page<'a>,
        page: Page<'a>,
        batch: &PersistBatch<'e, '_, M>,
    ) -> Result<(Draft<'e, 'a, Head>, usize), Error> {
        if page.level == 0 {
            let union = join(left.pairs(self.heap)?, page.pairs(self.heap)?);
            let base = draft_leaf_base(self.heap, &union.items, union.bounds(), batch)?;
            Ok((base, union.items.len()))
        } else {
            let union = join(left.children(self.heap)?, page.children(self.heap)?);
            let base = draft_inner_base(self.heap, page.level, &union.items, union.bounds(), batch)?;
            Ok((base, union.items.len()))
        }
    }

    /// The third step of a removal: removes the separator from the parent. If the parent begins with it, the parent
    /// is removed first, so that the separator lies within a node.
    pub(super) fn end_merge(&self, page: Page<'a>, mark: RangeRef<'a>) -> Result<(), Error> {
        let media = self.media();
        let mut tries = Tries::default();
        loop {
            let mut missed = Missed::Lost;
            if level_of(self.top()?.load(media)).is_none_or(|level| level <= page.level) {
                return Ok(());
            }
            if let Some(parent) = self.parent(page, mark.from)? {
                let children = parent.children(self.heap)?;
                let at = children
                    .items
                    .partition_point(|(separator, _)| *separator < mark.from);
                let is_there = children
                    .items
                    .get(at)
                    .is_some_and(|(separator, _)| *separator == mark.from);
                if !is_there || !page.still_has_mark(media) {
                    return Ok(());
                }
                if at == 0 {
                    let (base, _) = parent.ground(self.heap)?;
                    if is_whole(media, parent.head, &base) {
                        self.remove_node(parent)?;
                    } else {
                        self.consolidate(parent)?;
                    }
                } else {
                    let (from, child) = children.items[at - 1];
                    let to = children.items.get(at + 1).map(|(separator, _)| *separator);
                    let to = to.or(children.high);
                    if let Some(parent) = self.publish_range(parent, Kind::Route, child, (from, to))? {
                        self.tend_later(page.cell, true);
                        self.tend_later(parent.cell, children.items.len() <= Self::SPARSE + 1);
                        return Ok(());
                    }
                    missed = Missed::Overtaken;
                }
            } else if !page.still_has_mark(media) {
                return Ok(());
            }
            self.again(missed, &mut tries)?;
        }
    }
}

/// The content of a node and its right sibling.
fn join<'g, T>(mut left: Content<'g, T>, right: Content<'g, T>) -> Content<'g, T> {
    left.items.extend(right.items);
    Content {
        high: right.high,
        right: right.right,
        ..left
    }
}
