//! Room for a modification, checked before it begins.
//!
//! A node accepts no inserts from the first step of a modification until the last. In a full pool the last may find
//! no room; so no writer takes the first step before
//!
//! 1. the parent's chain has room for the modification's delta. A chain that cannot be consolidated ends at
//!    [`MAX_DEEP`]; splits use its first few deltas, and removals most of the others, since they shorten the content
//!    to be consolidated;
//! 2. the memory for the later steps was allocated once, and given back.
//!
//! That reserves nothing: beside other writers, and after a crash, a node may still have to wait for room.

use super::aim::Aim;
use super::help::LONG_INNER;
use super::link::{MAX_DEEP, depth};
use super::object::{Cell, draft_to_fit};
use super::page::Page;
use super::write::Writer;
use heap::Error;
use pmem::{Draft, Link, Media, PSlot, PWord, PersistBatch, Purpose, persist_scope};

/// The depth of a parent's chain from which on its children do not split.
const MAX_FOR_SPLITS: u16 = 2 * LONG_INNER;

/// The depth of a parent's chain from which on no child is removed. The rest is for concurrent writers that have
/// checked at the same time.
const MAX_FOR_REMOVALS: u16 = MAX_DEEP - 7;
const _: () = assert!(MAX_FOR_SPLITS < MAX_FOR_REMOVALS);

impl<'a, M: Media, const FULL: usize> Writer<'a, M, FULL> {
    /// Whether the parent has room for the delta of a split at this separator. If not, the parent is consolidated,
    /// and the caller checks again.
    pub(super) fn parent_takes_split(&self, page: Page<'a>, separator: &[u8]) -> Result<bool, Error> {
        match self.locate(Aim::to(separator), page.level + 1)? {
            Some(parent) => self.is_shorter(parent, MAX_FOR_SPLITS),
            None => Ok(true),
        }
    }

    /// Allocates the objects of the second step of a split: a route, or a root above both.
    pub(super) fn draft_room_for_split<'e>(
        &self,
        separator: &[u8],
        high: Option<&[u8]>,
        batch: &PersistBatch<'e, '_, M>,
    ) -> Result<(Draft<'e, 'a, PWord>, Draft<'e, 'a, Cell>), Error> {
        // The base of a root with two children; a route is shorter, except for the bound.
        const ROOT: usize = 72;
        let len = ROOT + separator.len() + high.map_or(0, <[u8]>::len);
        let above = draft_to_fit(self.heap, len, batch, |_| PWord::new(0))?;
        let cell = self.heap.draft(Cell { head: PSlot::null() }, 0, batch)?;
        Ok((above, cell))
    }

    /// Whether there is room for all steps of a node's removal. If not, the parent is consolidated, and the caller
    /// checks again.
    pub(super) fn has_room_for_removal(&self, page: Page<'a>) -> Result<bool, Error> {
        let low = page.low(self.heap)?;
        if let Some(parent) = self.locate(Aim::to(low), page.level + 1)? {
            if !self.is_shorter(parent, MAX_FOR_REMOVALS)? {
                return Ok(false);
            }
            // If the parent begins with the node, the parent is removed first.
            let parent_low = parent.low(self.heap)?;
            if !low.is_empty() && parent_low == low && !self.has_room_for_removal(parent)? {
                return Ok(false);
            }
        }
        let Some(left) = self.locate(Aim::before(low), page.level)? else {
            return Ok(true);
        };
        let high = page.high(self.heap)?.map(|(high, _)| high);
        persist_scope(self.media(), Purpose::Node, |batch| {
            let _merged = self.draft_union(left, page, &batch)?;
            let _mark = self.draft_range(Link::NULL, page.cell, low, None, &batch)?;
            let _route = self.draft_range(Link::NULL, page.cell, low, high, &batch)?;
            Ok(true)
        })
    }

    /// Whether a parent's chain is shorter than this; if not, consolidates it.
    fn is_shorter(&self, parent: Page<'a>, max: u16) -> Result<bool, Error> {
        if depth(parent.head) < max {
            return Ok(true);
        }
        if self.consolidate(parent)? {
            self.tend_later(parent.cell, false);
        }
        Ok(false)
    }
}
