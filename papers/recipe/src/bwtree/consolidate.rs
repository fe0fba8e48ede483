//! Consolidation: a base with the same content replaces a chain, by one compare-and-swap of the head (Condition #1).
//!
//! What the chain leaves is retired when the new head is durable: its objects, the records of pairs that no longer
//! count, and a merged sibling.

use super::base::Head;
use super::build::{Bounds, draft_inner_base, draft_leaf_base};
use super::content::{Content, Remains};
use super::help::LONG_INNER;
use super::link::{BASE, Kind, MAX_PAIRS, depth, is_emptied, is_mark, kind, same_place};
use super::page::Page;
use super::write::{LONG, Writer, is_whole};
use art::damaged;
use heap::{Error, MayBeFull};
use pmem::{Draft, Link, Media, PersistBatch, Purpose, persist_scope};

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
    /// Replaces a node's chain by a base; returns `false` if another writer was faster, or the node is frozen. Any
    /// modification marked by its head must be complete. In a full pool, a leaf whose pairs are all removed loses its
    /// deltas and records without memory ([`drop_removed`](Writer::drop_removed)).
    pub(super) fn consolidate(&self, page: Page<'a>) -> Result<bool, Error> {
        if kind(page.head) == Kind::Frozen {
            return Ok(false);
        }
        self.settle_gone(page)?;
        self.media().comes_to("consolidation");
        if page.level > 0 {
            let content = page.children(self.heap)?;
            let remains = page.remains(self.heap)?;
            return self.replace(page, remains, |batch| {
                draft_inner_base(self.heap, page.level, &content.items, content.bounds(), batch)
            });
        }
        let (content, remains) = page.pairs_and_remains(self.heap)?;
        if content.items.len() > MAX_PAIRS {
            return Err(damaged("leaf of too many pairs", page.cell).into());
        }
        let replaced = self.replace(page, remains, |batch| {
            draft_leaf_base(self.heap, &content.items, content.bounds(), batch)
        });
        match replaced {
            Err(full) if full.is_full() && content.items.is_empty() => self.drop_removed(page)?.ok_or(full),
            replaced => replaced,
        }
    }

    /// Publishes a base in place of a chain; returns `false` if another writer was faster. Costs 1 write-back for
    /// each line of the base and 1 for the head, and 2 fences.
    fn replace(
        &self,
        page: Page<'a>,
        remains: Remains,
        draft: impl for<'e> FnOnce(&PersistBatch<'e, '_, M>) -> Result<Draft<'e, 'a, Head>, Error>,
    ) -> Result<bool, Error> {
        let media = self.media();
        let replaced = persist_scope(media, Purpose::Node, |batch| {
            let base = draft(&batch)?.flush(&batch).persisted(&batch.fence());
            let Ok(published) = page.slot.publish_if(media, page.head, base, BASE) else {
                return Ok::<_, Error>(false);
            };
            media.site("bwtree: base in place of a chain");
            let _durable = published.commit();
            Ok(true)
        })?;
        if replaced {
            self.retire_all(remains);
        }
        Ok(replaced)
    }

    /// Removes the deltas and records of a leaf whose pairs are all removed, without memory: the head leads to the
    /// base again, or to the mark of a split on it, and says that no entry of the base counts. Returns `false` if
    /// another writer was faster, `None` if there is nothing to remove. Costs 1 write-back and 1 fence.
    ///
    /// This may bring back an earlier head; but then the leaf has the same content as with that head: none.
    fn drop_removed(&self, page: Page<'a>) -> Result<Option<bool>, Error> {
        let media = self.media();
        let (head, remains) = page.without_pairs(self.heap)?;
        if same_place(head, page.head) && is_emptied(page.head) {
            return Ok(None);
        }
        media.comes_to("leaf let go of in a full pool");
        let Some(published) = page.slot.publish_link_if(media, page.head, head) else {
            return Ok(Some(false));
        };
        let _durable = published.commit();
        self.retire_all(remains);
        Ok(Some(true))
    }

    /// Retires what a chain has left.
    pub(super) fn retire_all(&self, remains: Remains) {
        for (link, len) in remains.objects {
            self.retire(link, len);
        }
        for record in remains.records {
            self.retire_record(record);
        }
    }

    /// Tends a node that a write has changed. The write has succeeded whatever happens here: damage is reported by
    /// the operations that reach it, and by checks; and in a full pool the node stays as it is.
    pub(super) fn tend_later(&self, cell: Link, wasteful: bool) {
        let _ = self.tend(cell, wasteful);
    }

    /// Completes an unfinished modification of a node, shortens its chain, and splits or removes the node if it has
    /// become too large or too small. If `wasteful`, it replaces even a short chain.
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
            wasteful |= matches!(mark, Some((Kind::Merge, _))) || base.is_emptied();
            if depth(page.head) >= long || (wasteful && !is_whole(media, page.head, &base)) {
                if self.consolidate(page)? {
                    wasteful = false;
                } else {
                    self.again(art::Missed::Overtaken, &mut tries)?;
                }
                continue;
            }
            if !is_whole(media, page.head, &base) {
                return Ok(());
            }
            let count = base.counted();
            let (low, high) = base.bounds(self.heap)?;
            let has_more = if count > FULL {
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
            if !has_more {
                return Ok(());
            }
        }
    }
}
