//! The helping mechanism (RECIPE's Condition #2): a modification of several nodes is a sequence of compare-and-swaps,
//! each durable before the next, and the next writer to a node with an unfinished one completes it first. (A remove
//! does so only at a frozen node: otherwise it just names its pair in the head, which stays a mark.)
//!
//! | modification | 1 | 2 | 3 |
//! |---|---|---|---|
//! | split | `Split` on the node | route to the sibling in the parent, or a new root | |
//! | removal | `Frozen` on the node | `Merge` on the left sibling, with its content | removing the parent's route |
//! | lower root | `Frozen` on the only child, with its new cell | the link to the root | |
//!
//! A mark as head means that the modification may not be complete; a delta above a mark means that it is. So a writer
//! that finds a mark as head, and is to put something above it, calls [`Writer::help`], which continues at the missing
//! step; it makes no difference whether the thread that began is slow or was ended by a crash.
//!
//! **A step is not done twice.** The helper loads the parent's head, then checks that the mark is still its node's
//! head, and publishes in the parent only over the loaded head. If the mark was there in between, and the parent has
//! not changed, then the modification was not complete when the parent was loaded, and is not at the store.
//!
//! **Helping terminates.** It goes up the tree, and, for nodes about to be removed, to the left.

use super::aim::Aim;
use super::build::{Bounds, draft_cell, draft_inner_base};
use super::link::{Kind, LEVELS, MAX_DEEP, cell_tag, delta_tag, depth, is_mark, kind, level_of, same_place};
use super::object::{Range, RangeRef, draft_to_fit, lengths};
use super::page::Page;
use super::write::Writer;
use art::{Missed, Tries, damaged};
use heap::Error;
use pmem::{Draft, Link, Media, PSlot, PWord, PersistBatch, Purpose, persist_scope};

/// Number of deltas above an inner base at which a writer replaces the chain.
pub(super) const LONG_INNER: u16 = 4;

impl<'a, M: Media, const FULL: usize> Writer<'a, M, FULL> {
    /// An inner node with at most this many children is merged with its left sibling.
    pub(super) const SPARSE: usize = FULL / 8;

    /// Completes the modification whose mark is the node's head.
    pub(super) fn help(&self, page: Page<'a>) -> Result<(), Error> {
        let mark = RangeRef::at(self.heap, page.head)?;
        match kind(page.head) {
            Kind::Split => self.end_split(page, mark),
            Kind::Merge => self.end_merge(page, mark),
            Kind::Frozen => {
                let low = page.low(self.heap)?;
                match low.is_empty() {
                    true => self.end_lowering(page, mark),
                    false => self.end_removal(page, low),
                }
            }
            _ => Ok(()),
        }
    }

    /// The node that has, or would have, the separator `from`, of a node with a mark; its own modifications are
    /// complete. `None` if the caller must start over.
    pub(super) fn parent(&self, page: Page<'a>, from: &[u8]) -> Result<Option<Page<'a>>, Error> {
        let Some(parent) = self.locate(Aim::to(from), page.level + 1)? else {
            return Ok(None);
        };
        if is_mark(parent.head) {
            self.help(parent)?;
            if kind(parent.head) == Kind::Frozen {
                return Ok(None);
            }
        }
        if depth(parent.head) == MAX_DEEP {
            self.consolidate(parent)?;
            return Ok(None);
        }
        Ok(Some(parent))
    }

    /// Drafts a delta or mark above `next`.
    pub(super) fn draft_range<'e>(
        &self,
        next: Link,
        cell: Link,
        from: &[u8],
        to: Option<&[u8]>,
        batch: &PersistBatch<'e, '_, M>,
    ) -> Result<Draft<'e, 'a, Range>, Error> {
        let len = from.len() + to.map_or(0, <[u8]>::len);
        let mut range = draft_to_fit(self.heap, len, batch, |spare| Range {
            next: PSlot::null(),
            cell: PSlot::null(),
            lengths: PWord::new(lengths(from, to, spare)),
        })?;
        range.link(|range| &mut range.next, next);
        range.link(|range| &mut range.cell, cell);
        let (start, end) = range.tail_mut()[..len].split_at_mut(from.len());
        start.copy_from_slice(from);
        end.copy_from_slice(to.unwrap_or_default());
        Ok(range)
    }

    /// Publishes a delta or mark above the node's head, whose `cell`, if any, is reachable already; returns `None` if
    /// another writer was faster. Costs 2 write-backs (and one for each further line of the bounds), and 2 fences.
    pub(super) fn publish_range(
        &self,
        page: Page<'a>,
        form: Kind,
        cell: Link,
        (from, to): (&[u8], Option<&[u8]>),
    ) -> Result<Option<Page<'a>>, Error> {
        let media = self.media();
        persist_scope(media, Purpose::Node, |batch| {
            let range = self.draft_range(page.head, cell, from, to, &batch)?;
            let tag = delta_tag(form, depth(page.head));
            let range = range.flush(&batch).persisted(&batch.fence());
            let head = range.link(tag);
            match page.slot.publish_if(media, page.head, range, tag) {
                Ok(published) => {
                    let _durable = published.commit();
                    Ok(Some(Page { head, ..page }))
                }
                Err(_) => Ok(None),
            }
        })
    }

    /// The second step of a split: adds the sibling to the parent.
    fn end_split(&self, page: Page<'a>, mark: RangeRef<'a>) -> Result<(), Error> {
        let media = self.media();
        let mut tries = Tries::default();
        loop {
            let mut missed = Missed::Lost;
            let top = self.top()?.settle(media);
            if level_of(top) == Some(page.level) {
                if !page.still_has_mark(media) {
                    return Ok(());
                }
                if same_place(top, page.cell) {
                    if self.raise_root(top, page, mark)? {
                        return Ok(());
                    }
                } else {
                    let root = Page::load(self.heap, top)?.settled(media);
                    if is_mark(root.head) {
                        self.help(root)?;
                    }
                }
            } else if let Some(parent) = self.parent(page, mark.from)? {
                let children = parent.children(self.heap)?;
                let at = children
                    .items
                    .partition_point(|(separator, _)| *separator < mark.from);
                let next = children.items.get(at).map(|(separator, _)| *separator);
                if next == Some(mark.from) || !page.still_has_mark(media) {
                    return Ok(());
                }
                let to = next.or(children.high);
                if let Some(parent) = self.publish_range(parent, Kind::Route, mark.cell, (mark.from, to))? {
                    if depth(parent.head) >= LONG_INNER {
                        self.tend_later(parent.cell, false);
                    }
                    return Ok(());
                }
                missed = Missed::Overtaken;
            } else if !page.still_has_mark(media) {
                return Ok(());
            }
            self.again(missed, &mut tries)?;
        }
    }

    /// Publishes a new root above the old one and its sibling; returns `false` if another writer was faster.
    fn raise_root(&self, top: Link, page: Page<'a>, mark: RangeRef<'a>) -> Result<bool, Error> {
        let media = self.media();
        let level = page.level + 1;
        if level >= LEVELS {
            return Err(damaged("level of the root", top).into());
        }
        media.comes_to("new root");
        persist_scope(media, Purpose::Node, |batch| {
            let all = Bounds {
                low: &[],
                high: None,
                right: Link::NULL,
            };
            let children: [(&[u8], Link); 2] = [(&[], page.cell), (mark.from, mark.cell)];
            let base = draft_inner_base(self.heap, level, &children, all, &batch)?;
            let cell = draft_cell(self.heap, base, &batch)?;
            let cell = cell.flush(&batch).persisted(&batch.fence());
            let made = cell.link(cell_tag(level));
            let below = Page::load(self.heap, made)?;
            match self.top()?.publish_if(media, top, cell, cell_tag(level)) {
                Ok(published) => {
                    let _durable = published.commit();
                    Ok(true)
                }
                Err(cell) => {
                    let base = below.remains(self.heap)?;
                    drop(cell);
                    self.retire_all(base);
                    Ok::<_, Error>(false)
                }
            }
        })
    }
}
