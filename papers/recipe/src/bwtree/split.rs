//! Splits, first step: a new sibling with the upper half, and a mark on the node. The second step is in `help`.

use super::base::BaseRef;
use super::build::{Bounds, draft_cell, draft_inner_base, draft_leaf_base};
use super::content::{Child, cell_extent};
use super::link::{BASE, Kind, cell_tag, delta_tag, kind, part_tag};
use super::object::RangeRef;
use super::page::Page;
use super::write::Writer;
use art::common_prefix;
use heap::{Access, Error};
use index::codec::PairWords;
use pmem::{Link, Media, Purpose, persist_scope};

/// The share of entries that the last node of a level keeps: ascending keys leave nodes nearly full.
pub(super) const BEHIND: (usize, usize) = (7, 8);

impl<'a, M: Media, const FULL: usize> Writer<'a, M, FULL> {
    /// Splits a node whose chain is only a base. Returns whether to tend the node again.
    pub(super) fn split(&self, page: Page<'a>, base: &BaseRef<'a>) -> Result<bool, Error> {
        let media = self.media();
        let (_, high) = base.bounds(self.heap)?;
        let count = base.entries.len();
        let mut stay = match high {
            Some(_) => count / 2,
            None => count * BEHIND.0 / BEHIND.1,
        };
        let (mut pairs, mut children) = (Vec::new(), Vec::new());
        let separator = if page.level == 0 {
            pairs = page.pairs(self.heap)?.items;
            if pairs.len() < count {
                // Pairs were removed since the node was found to be complete.
                return Ok(true);
            }
            between(self.heap, &pairs[stay - 1], &pairs[stay])?
        } else {
            children = page.children(self.heap)?.items;
            match self.nearest_staying(&children, stay)? {
                Some(nearest) => stay = nearest,
                None => return Ok(false),
            }
            children[stay].0.to_vec()
        };
        if !self.parent_takes_split(page, &separator)? {
            return Ok(true);
        }
        media.comes_to(if page.level == 0 {
            "split of a leaf"
        } else {
            "split of an inner node"
        });
        let marked = persist_scope(media, Purpose::Node, |batch| {
            let _later = self.draft_room_for_split(&separator, high, &batch)?;
            let bounds = Bounds {
                low: &separator,
                high,
                right: base.head.right.load(media),
            };
            let upper = match page.level {
                0 => draft_leaf_base(self.heap, &pairs[stay..], bounds, &batch)?,
                level => draft_inner_base(self.heap, level, &children[stay..], bounds, &batch)?,
            };
            let lower = page.head.with_tag(part_tag(stay));
            let mut mark = self.draft_range(lower, Link::NULL, &separator, None, &batch)?;
            let cell = draft_cell(self.heap, upper, &batch)?;
            mark.adopt(|mark| &mut mark.cell, cell.flush(&batch), cell_tag(page.level));
            let tag = delta_tag(Kind::Split, 0);
            let mark = mark.flush(&batch).persisted(&batch.fence());
            let head = mark.link(tag);
            match page.slot.publish_if(media, page.head, mark, tag) {
                Ok(published) => {
                    media.site("bwtree: mark of a split");
                    let _durable = published.commit();
                    Ok(Some(Page { head, ..page }))
                }
                Err(mark) => {
                    let cell = RangeRef::at(self.heap, head)?.cell;
                    let upper = Page::load(self.heap, cell)?.head.with_tag(BASE);
                    let len = BaseRef::at(self.heap, upper)?.extent(self.heap);
                    drop(mark);
                    self.retire(cell, cell_extent());
                    self.retire(upper, len);
                    Ok::<_, Error>(None)
                }
            }
        })?;
        if let Some(marked) = marked {
            self.help(marked)?;
        }
        Ok(true)
    }

    /// The place near `wanted` of a child that is not about to be removed: a removal needs its separator within a
    /// node, and would undo a split there, again and again.
    fn nearest_staying(&self, children: &[Child<'a>], wanted: usize) -> Result<Option<usize>, Error> {
        let mut places: Vec<usize> = (1..children.len()).collect();
        places.sort_by_key(|place| place.abs_diff(wanted));
        for place in places {
            let child = Page::load(self.heap, children[place].1)?;
            if kind(child.head) != Kind::Frozen {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }
}

/// The shortest key that separates two pairs: at most as long as the second one's.
pub(super) fn between<M: Media>(
    heap: &Access<M>,
    before: &PairWords,
    behind: &PairWords,
) -> Result<Vec<u8>, Error> {
    let (mut a, mut b) = ([0; 8], [0; 8]);
    let (before, behind) = (before.key(heap, &mut a)?, behind.key(heap, &mut b)?);
    let shared = common_prefix(before.bytes, behind.bytes);
    Ok(behind.bytes[..behind.bytes.len().min(shared + 1)].to_vec())
}
