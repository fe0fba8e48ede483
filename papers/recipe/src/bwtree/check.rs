//! Checks of the structure: every node in its place, every key in its node.
//!
//! The check walks the tree level by level along the siblings, so that it meets nodes without a separator too.
//! Half-done modifications, as a crash leaves them, are no fault.

use super::BwTree;
use super::content::Child;
use super::link::{Kind, LEVELS, RECORD, kind, same_place};
use super::page::Page;
use art::damaged;
use index::Faults;
use index::codec::{PairWords, RecordRef};
use pmem::{Fault, Link, Media};
use std::cmp::Ordering;
use std::collections::VecDeque;

struct Check<'i, M: Media, const FULL: usize> {
    index: &'i BwTree<M, FULL>,
    faults: Faults,
}

impl<M: Media, const FULL: usize> BwTree<M, FULL> {
    /// Walks everything and reports faults.
    pub(super) fn check_structure(&self) -> Faults {
        let _guard = heap::pin();
        let mut check = Check {
            index: self,
            faults: Faults::default(),
        };
        if let Err(fault) = check.check_levels() {
            check.note(fault);
        }
        check.faults
    }
}

impl<M: Media, const FULL: usize> Check<'_, M, FULL> {
    fn note(&mut self, Fault { what, offset }: Fault) {
        self.faults.note(|| format!("offset {offset:#x}: {what}"));
    }

    /// Walks the tree, and stops at a fault, since the rest could be anything.
    fn check_levels(&mut self) -> Result<(), Fault> {
        let heap = &self.index.heap;
        self.faults.objects += 1;
        let mut first = Page::load(heap, self.index.top()?)?;
        if first.level >= LEVELS {
            return Err(damaged("level of a node", first.cell));
        }
        let mut above: Option<VecDeque<Child<'_>>> = None;
        loop {
            let mut below = VecDeque::new();
            let mut at = first;
            let mut low: &[u8] = &[];
            loop {
                self.faults.objects += 1;
                if at.level != first.level || at.low(heap)? != low {
                    return Err(damaged(
                        "a node's low bound differs from its left sibling's high bound",
                        at.cell,
                    ));
                }
                check_mark(&at, heap)?;
                if let Some(above) = &mut above {
                    // An unfinished removal leaves a separator, of a node that the siblings' list skips.
                    while above.front().is_some_and(|(separator, _)| *separator < low) {
                        self.check_passed(above.pop_front())?;
                    }
                    if above.front().is_some_and(|(separator, _)| *separator == low) {
                        match above.pop_front() {
                            Some((_, cell)) if same_place(cell, at.cell) => {}
                            passed => self.check_passed(passed)?,
                        }
                    }
                }
                let (high, right) = if at.level == 0 {
                    let content = at.pairs(heap)?;
                    self.check_pairs(&content.items, (low, content.high), at.cell)?;
                    (content.high, content.right)
                } else {
                    let content = at.children(heap)?;
                    check_children(&content.items, (low, content.high), at.cell)?;
                    below.extend(content.items);
                    (content.high, content.right)
                };
                let Some(high) = high else { break };
                low = high;
                at = Page::load(heap, right)?;
            }
            for passed in above.into_iter().flatten() {
                self.check_passed(Some(passed))?;
            }
            if first.level == 0 {
                return Ok(());
            }
            let Some(&(_, child)) = below.front() else {
                return Err(damaged("an inner node without a child", first.cell));
            };
            let child = Page::load(heap, child)?;
            if child.level + 1 != first.level {
                return Err(damaged("child of a node", first.cell));
            }
            (first, above) = (child, Some(below));
        }
    }

    /// Checks that a separator without a node in the list below leads to a merged node.
    fn check_passed(&self, passed: Option<Child<'_>>) -> Result<(), Fault> {
        if let Some((_, cell)) = passed
            && kind(Page::load(&self.index.heap, cell)?.head) != Kind::Frozen
        {
            return Err(damaged("a child is not among its level's siblings", cell));
        }
        Ok(())
    }

    /// Checks the pairs of a leaf.
    fn check_pairs(
        &mut self,
        pairs: &[PairWords],
        (low, high): (&[u8], Option<&[u8]>),
        leaf: Link,
    ) -> Result<(), Fault> {
        let heap = &self.index.heap;
        let mut last: Option<&PairWords> = None;
        for pair in pairs {
            let mut buffer = [0; 8];
            let key = pair.key(heap, &mut buffer)?.bytes;
            if key < low || high.is_some_and(|high| high <= key) {
                return Err(damaged("a leaf has a key outside its bounds", leaf));
            }
            if let Some(last) = last
                && last.compare(heap, pair)? != Ordering::Less
            {
                return Err(damaged("the pairs of a leaf are out of order", leaf));
            }
            last = Some(pair);
            self.faults.keys += 1;
            if !pair.link.is_null() {
                self.faults.objects += 1;
                if pair.link.tag() != RECORD || !RecordRef::at(heap, pair.link)?.is_whole(heap) {
                    return Err(damaged("a record does not match its checksum", pair.link));
                }
            }
        }
        Ok(())
    }
}

/// A base must be partial if and only if the mark of a split or a merge lies on it. Below a split's mark some entries
/// must not count; of any other base all must count or, if it is not partial, none.
fn check_mark<M: Media>(page: &Page<'_>, heap: &heap::Access<M>) -> Result<(), Fault> {
    let (base, mark) = page.ground(heap)?;
    let is_part = kind(base.link) == Kind::Apart;
    let has_part = matches!(mark, Some((Kind::Split | Kind::Merge, _)));
    let is_all = base.counted() == base.entries.len() || (base.is_emptied() && !is_part);
    let is_split = matches!(mark, Some((Kind::Split, _)));
    if is_part != has_part || is_all == is_split {
        return Err(damaged("the mark of a node does not fit its base", page.cell));
    }
    Ok(())
}

/// Checks the separators of an inner node.
fn check_children(
    children: &[Child<'_>],
    (low, high): (&[u8], Option<&[u8]>),
    node: Link,
) -> Result<(), Fault> {
    let is_sorted = children.is_sorted_by(|(a, _), (b, _)| a < b);
    let begins = children.first().is_some_and(|(separator, _)| *separator == low);
    let ends = children
        .last()
        .is_some_and(|(separator, _)| high.is_none_or(|high| *separator < high));
    if is_sorted && begins && ends {
        Ok(())
    } else {
        Err(damaged("the separators of a node are out of order", node))
    }
}
