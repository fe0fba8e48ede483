//! Consolidation: a chain is replaced by a base that says the same, by one compare-and-swap of the head (Condition #1).
//!
//! What leaves with the chain is retired when the new head is durable: its objects, the records of pairs that do not count,
//! and a sibling that was merged.

use super::build::{Bounds, draft_inner_base, draft_leaf_base};
use super::content::{Content, Remains};
use super::help::LONG_INNER;
use super::link::{BASE, Kind, MOST_PAIRS, depth, is_mark, kind};
use super::page::Page;
use super::write::{LONG, Writer, is_whole};
use heap::Error;
use pmem::{Link, Media, Purpose, persist_scope};

impl<T> Content<'_, T> {
    pub(super) fn bounds(&self) -> Bounds<'_> {
        Bounds {
            low: self.low,
            high: self.high,
            right: self.right,
        }
    }
}

impl<'a, M: Media, const FULL: usize> Writer<'a, M, FULL> {
    /// Replaces a node's chain by a base; `false` if another writer was faster. The modification that its head may be amid
    /// is complete.
    pub(super) fn consolidate(&self, page: Page<'a>) -> Result<bool, Error> {
        let media = self.media();
        if kind(page.head) == Kind::Frozen {
            return Ok(false);
        }
        self.settle_gone(page)?;
        let remains = page.remains(self.heap)?;
        media.comes_to("consolidation");
        let replaced = persist_scope(media, Purpose::Node, |batch| {
            let base = if page.level == 0 {
                let content = page.pairs(self.heap)?;
                if content.items.len() > MOST_PAIRS {
                    return Ok(false);
                }
                draft_leaf_base(self.heap, &content.items, content.bounds(), &batch)?
            } else {
                let content = page.children(self.heap)?;
                draft_inner_base(self.heap, page.level, &content.items, content.bounds(), &batch)?
            };
            let base = base.flush(&batch).persisted(&batch.fence());
            let Ok(published) = page.slot.publish_if(media, page.head, base, BASE) else {
                return Ok::<_, Error>(false);
            };
            let _durable = published.commit();
            Ok(true)
        })?;
        if replaced {
            self.retire_all(remains);
        }
        Ok(replaced)
    }

    /// Retires what has left with a chain.
    pub(super) fn retire_all(&self, remains: Remains) {
        for (link, len) in remains.objects {
            self.retire(link, len);
        }
        for record in remains.records {
            self.retire_record(record);
        }
    }

    /// Looks after a node that a write has changed. The write has succeeded whatever is met here: damage is reported to the
    /// operations whose way leads there, and to checks; and in a full pool the node stays as it is.
    pub(super) fn tend_later(&self, cell: Link, wasteful: bool) {
        let _ = self.tend(cell, wasteful);
    }

    /// Completes what is under way at a node, shortens its chain, and splits or removes it where it has become too large or
    /// too small.
    pub(super) fn tend(&self, cell: Link, mut wasteful: bool) -> Result<(), Error> {
        let media = self.media();
        let mut tries = art::Tries::default();
        loop {
            let page = Page::load(self.heap, cell)?.settled(media);
            if is_mark(page.head) {
                self.help(page)?;
                if kind(page.head) == Kind::Frozen {
                    return Ok(());
                }
            }
            let (base, mark) = page.ground(self.heap)?;
            let long = if page.level == 0 { LONG } else { LONG_INNER };
            wasteful |= matches!(mark, Some((Kind::Merge, _)));
            if depth(page.head) >= long || (wasteful && !is_whole(media, page.head, &base)) {
                if self.consolidate(page)? {
                    wasteful = false;
                } else {
                    self.lost(&mut tries)?;
                }
                continue;
            }
            if !is_whole(media, page.head, &base) {
                return Ok(());
            }
            let count = base.counted();
            let (low, high) = base.bounds(self.heap)?;
            let goes_on = if count > FULL {
                self.split(page, &base)?
            } else if low.is_empty() {
                if page.level == 0 || count > 1 || high.is_some() {
                    return Ok(());
                }
                self.lower(page)?
            } else if count <= if page.level == 0 { 0 } else { Self::SPARSE } {
                self.remove_node(page)?
            } else {
                return Ok(());
            };
            if !goes_on {
                return Ok(());
            }
        }
    }
}
