//! Nodes as of one load of their cell, and the lookup of a key in the chain.
//!
//! I1 A chain is constant, except for the flags of pairs that its head, or an earlier one, has named as removed. So
//!    everything that a walk of the chain finds was there together when the head was loaded, and only pairs that were
//!    removed since may be missing.
//! I2 A mark lies directly on a base. Anything above a mark came after the modification was complete.
//! I3 The depths of a chain's links descend.

use super::aim::Aim;
use super::base::BaseRef;
use super::link::{FIRST_DELTA, Kind, depth, gone, is_emptied, is_mark, kind, level_of, part_tag, with_gone};
use super::object::{PairRef, RangeRef, slot_at};
use art::damaged;
use heap::Access;
use index::codec::{PairWords, SearchKey};
use pmem::{Fault, Link, Media, PSlot};
use std::cmp::Ordering;

/// A node: its cell, and the head that was loaded there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page<'g> {
    pub(super) cell: Link,
    pub(super) slot: &'g PSlot,
    pub(super) level: u8,
    pub(super) head: Link,
}

/// The result of a key's lookup in a leaf.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    /// The pair, and its number in a head.
    Pair(PairWords, u16),
    Absent,
    /// The key belongs to a sibling further right.
    Right,
}

/// The next step of a walk.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'g> {
    Child(Page<'g>),
    Right(Page<'g>),
}

/// The next link of a chain. If a mark says so, it leads to a base of which no entry counts.
#[inline(always)]
pub(super) fn follow(at: Link, next: Link) -> Result<Link, Fault> {
    let is_ground = matches!(kind(next), Kind::Base | Kind::Apart);
    if depth(next) < depth(at) && (is_ground || (depth(next) > 0 && !is_mark(at))) {
        Ok(if is_mark(at) && is_emptied(at) {
            next.with_tag(part_tag(0))
        } else {
            next
        })
    } else {
        Err(damaged("chain of a node", at))
    }
}

impl<'g> Page<'g> {
    /// Loads the node with this cell; the loaded head is durable.
    #[inline(always)]
    pub(super) fn load<M: Media>(heap: &'g Access<M>, cell: Link) -> Result<Page<'g>, Fault> {
        let Some(level) = level_of(cell) else {
            return Err(damaged("cell of a node", cell));
        };
        let slot = slot_at(heap, cell)?;
        let head = slot.load(heap.media());
        Ok(Page {
            cell,
            slot,
            level,
            head,
        })
    }

    /// The node as it is now, with the mark of its slot cleared: a writer publishes only over an unmarked slot.
    pub(super) fn settled<M: Media>(self, media: &M) -> Page<'g> {
        Page {
            head: self.slot.settle(media),
            ..self
        }
    }

    /// Whether the mark that was the head is still the head, whatever pairs were removed since.
    pub(super) fn still_has_mark<M: Media>(&self, media: &M) -> bool {
        with_gone(self.slot.load(media), 0) == with_gone(self.head, 0)
    }

    /// A neighbour at the same level.
    fn sibling<M: Media>(&self, heap: &'g Access<M>, cell: Link) -> Result<Page<'g>, Fault> {
        if level_of(cell) != Some(self.level) {
            return Err(damaged("sibling of a node", self.cell));
        }
        Page::load(heap, cell)
    }

    /// Looks up a key in the leaf.
    #[inline(always)]
    pub(super) fn find<M: Media>(&self, heap: &'g Access<M>, key: &SearchKey<'_>) -> Result<Found, Fault> {
        let media = heap.media();
        let aim = Aim::to(key.bytes);
        let removed = gone(self.head);
        let mut at = self.head;
        loop {
            match kind(at) {
                Kind::Put | Kind::PutRecord => {
                    let pair = PairRef::at(heap, at)?;
                    if key.compare(heap, pair.words.prefix, pair.words.link)? == Ordering::Equal {
                        let position = FIRST_DELTA + depth(at);
                        let is_gone = position == removed || pair.pair.gone.peek(media) != 0;
                        return Ok(if is_gone {
                            Found::Absent
                        } else {
                            Found::Pair(pair.words, position)
                        });
                    }
                    at = follow(at, pair.next)?;
                }
                Kind::Split | Kind::Merge | Kind::Frozen => {
                    let mark = RangeRef::at(heap, at)?;
                    if kind(at) == Kind::Split && aim.reaches(mark.from) {
                        return Ok(Found::Right);
                    }
                    at = follow(at, mark.next)?;
                }
                Kind::Base | Kind::Apart => break,
                Kind::Route => return Err(damaged("chain of a leaf", at)),
            }
        }
        let base = self.base(heap, at)?;
        let (_, high) = base.bounds(heap)?;
        if high.is_some_and(|high| aim.reaches(high)) {
            return Ok(Found::Right);
        }
        Ok(match base.search(heap, key)? {
            Ok(entry) if usize::from(removed) != entry + 1 && !base.is_gone(media, entry) => {
                Found::Pair(base.pair(media, entry), entry as u16 + 1)
            }
            _ => Found::Absent,
        })
    }

    /// The next step from an inner node towards an aim.
    #[inline(always)]
    pub(super) fn step<M: Media>(&self, heap: &'g Access<M>, aim: Aim<'_>) -> Result<Step<'g>, Fault> {
        let mut at = self.head;
        let cell = loop {
            match kind(at) {
                Kind::Route => {
                    let route = RangeRef::at(heap, at)?;
                    if aim.reaches(route.from) && !route.to.is_some_and(|to| aim.reaches(to)) {
                        break route.cell;
                    }
                    at = follow(at, route.next)?;
                }
                Kind::Split | Kind::Merge | Kind::Frozen => {
                    let mark = RangeRef::at(heap, at)?;
                    if kind(at) == Kind::Split && aim.reaches(mark.from) {
                        return Ok(Step::Right(self.sibling(heap, mark.cell)?));
                    }
                    at = follow(at, mark.next)?;
                }
                Kind::Base | Kind::Apart => {
                    let base = self.base(heap, at)?;
                    let (_, high) = base.bounds(heap)?;
                    if high.is_some_and(|high| aim.reaches(high)) {
                        let right = base.head.right.load(heap.media());
                        return Ok(Step::Right(self.sibling(heap, right)?));
                    }
                    break base.child(heap, aim)?;
                }
                Kind::Put | Kind::PutRecord => return Err(damaged("chain of an inner node", at)),
            }
        };
        if level_of(cell).map(|level| level + 1) != Some(self.level) {
            return Err(damaged("child of a node", self.cell));
        }
        Page::load(heap, cell).map(Step::Child)
    }

    /// The base of the chain, to which `at` leads.
    #[inline(always)]
    fn base<M: Media>(&self, heap: &'g Access<M>, at: Link) -> Result<BaseRef<'g>, Fault> {
        let base = BaseRef::at(heap, at)?;
        if base.level != self.level {
            return Err(damaged("level of a node", self.cell));
        }
        Ok(base)
    }

    /// The base at the end of the chain, and the mark on it, if there is one.
    #[inline]
    pub(super) fn ground<M: Media>(
        &self,
        heap: &'g Access<M>,
    ) -> Result<(BaseRef<'g>, Option<(Kind, RangeRef<'g>)>), Fault> {
        let mut at = self.head;
        let mut mark = None;
        loop {
            let next = match kind(at) {
                Kind::Put | Kind::PutRecord => PairRef::at(heap, at)?.next,
                Kind::Route => RangeRef::at(heap, at)?.next,
                Kind::Split | Kind::Merge | Kind::Frozen => {
                    let range = RangeRef::at(heap, at)?;
                    mark = Some((kind(at), range));
                    range.next
                }
                Kind::Base | Kind::Apart => return Ok((self.base(heap, at)?, mark)),
            };
            at = follow(at, next)?;
        }
    }

    /// The lower bound of its keys.
    pub(super) fn low<M: Media>(&self, heap: &'g Access<M>) -> Result<&'g [u8], Fault> {
        Ok(self.ground(heap)?.0.bounds(heap)?.0)
    }

    /// The upper bound of its keys, and the sibling's cell.
    pub(super) fn high<M: Media>(&self, heap: &'g Access<M>) -> Result<Option<(&'g [u8], Link)>, Fault> {
        let (base, mark) = self.ground(heap)?;
        if let Some((Kind::Split, mark)) = mark {
            return Ok(Some((mark.from, mark.cell)));
        }
        let (_, high) = base.bounds(heap)?;
        Ok(high.map(|high| (high, base.head.right.load(heap.media()))))
    }

    /// The node of this level for an aim, here or further right.
    pub(super) fn right_to<M: Media>(self, heap: &'g Access<M>, aim: Aim<'_>) -> Result<Page<'g>, Fault> {
        let mut page = self;
        let mut low = page.low(heap)?;
        while let Some((high, cell)) = page.high(heap)?
            && aim.reaches(high)
        {
            if high <= low {
                return Err(damaged("bounds of a node", page.cell));
            }
            low = high;
            page = page.sibling(heap, cell)?;
        }
        Ok(page)
    }
}

/// Maximum number of siblings that a descent passes, on all levels together. In a sound pool, the siblings without a
/// separator are those of unfinished splits, which are few.
const MAX_SIBLINGS: usize = 100_000;

/// Descends to the node of a level for an aim, or to one left of it; returns `None` if the tree is lower.
#[inline(always)]
pub(super) fn descend<'g, M: Media>(
    heap: &'g Access<M>,
    top: Link,
    aim: Aim<'_>,
    level: u8,
) -> Result<Option<Page<'g>>, Fault> {
    let mut page = Page::load(heap, top)?;
    let mut right = 0;
    while page.level > level {
        page = match page.step(heap, aim)? {
            Step::Child(child) => child,
            Step::Right(sibling) => {
                right += 1;
                if right > MAX_SIBLINGS {
                    return Err(damaged("more than 100000 siblings: the list has a cycle", top));
                }
                sibling
            }
        };
    }
    Ok((page.level == level).then_some(page))
}
