//! The whole of a node, its chain replayed: for scans, consolidations and modifications.

use super::base::BaseRef;
use super::link::{FIRST_DELTA, Kind, depth, gone, kind};
use super::object::{Cell, Pair, PairRef, RangeRef};
use super::page::{Page, follow};
use art::damaged;
use heap::{Access, footprint};
use index::codec::PairWords;
use pmem::{Fault, Link, Media};
use std::cmp::Ordering;

/// What a node has, in order.
#[derive(Debug)]
pub(super) struct Content<'g, T> {
    pub(super) items: Vec<T>,
    pub(super) low: &'g [u8],
    pub(super) high: Option<&'g [u8]>,
    pub(super) right: Link,
}

/// What leaves with a chain when another takes its place.
#[derive(Debug, Default)]
pub(super) struct Remains {
    /// The objects of the chain, and their lengths.
    pub(super) objects: Vec<(Link, usize)>,
    /// Records of pairs that were removed or replaced.
    pub(super) records: Vec<Link>,
}

/// A separator, and the child that takes the keys from it on.
pub(super) type Child<'g> = (&'g [u8], Link);

/// A pair delta: its pair, and whether it was removed.
type Delta = (PairWords, bool);

impl<'g> Page<'g> {
    fn bounded<M: Media, T>(&self, heap: &'g Access<M>, items: Vec<T>) -> Result<Content<'g, T>, Fault> {
        let low = self.low(heap)?;
        let (high, right) = self
            .high(heap)?
            .map_or((None, Link::NULL), |(high, right)| (Some(high), right));
        if high.is_some_and(|high| high <= low) {
            return Err(damaged("bounds of a node", self.cell));
        }
        Ok(Content {
            items,
            low,
            high,
            right,
        })
    }

    /// The pairs of a leaf.
    pub(super) fn pairs<M: Media>(&self, heap: &'g Access<M>) -> Result<Content<'g, PairWords>, Fault> {
        let (items, _) = self.replay(heap)?;
        self.bounded(heap, items)
    }

    /// The pairs of a leaf, and the records of those that do not count any more.
    fn replay<M: Media>(&self, heap: &'g Access<M>) -> Result<(Vec<PairWords>, Vec<Link>), Fault> {
        let media = heap.media();
        let mut deltas: Vec<Delta> = Vec::new();
        let mut at = self.head;
        while matches!(kind(at), Kind::Put | Kind::PutRecord) {
            let pair = PairRef::at(heap, at)?;
            let is_gone = pair.pair.gone.peek(media) != 0 || gone(self.head) == FIRST_DELTA + depth(at);
            deltas.push((pair.words, is_gone));
            at = follow(at, pair.next)?;
        }
        sort_newest_first(heap, &mut deltas)?;
        let (base, _) = self.ground(heap)?;
        if base.level > 0 {
            return Err(damaged("level of a leaf", self.cell));
        }
        let mut pairs = Vec::with_capacity(base.counted() + deltas.len());
        let mut dead = Vec::new();
        let mut deltas = deltas.into_iter().peekable();
        let take_delta = |delta: Delta, newest: bool, pairs: &mut Vec<PairWords>, dead: &mut Vec<Link>| {
            if newest && !delta.1 {
                pairs.push(delta.0);
            } else {
                dead.push(delta.0.link);
            }
        };
        let mut last: Option<PairWords> = None;
        let is_newest = |delta: &Delta, last: &mut Option<PairWords>| -> Result<bool, Fault> {
            let newest = match last {
                Some(last) => last.compare(heap, &delta.0)? != Ordering::Equal,
                None => true,
            };
            *last = Some(delta.0);
            Ok(newest)
        };
        for entry in 0..base.counted() {
            let pair = base.pair(media, entry);
            let mut counts = gone(self.head) != entry as u16 + 1 && !base.is_gone(media, entry);
            while let Some(delta) = deltas.peek() {
                let order = delta.0.compare(heap, &pair)?;
                if order == Ordering::Greater {
                    break;
                }
                counts &= order != Ordering::Equal;
                let newest = is_newest(delta, &mut last)?;
                take_delta(*delta, newest, &mut pairs, &mut dead);
                deltas.next();
            }
            if counts {
                pairs.push(pair);
            } else {
                dead.push(pair.link);
            }
        }
        for delta in deltas {
            let newest = is_newest(&delta, &mut last)?;
            take_delta(delta, newest, &mut pairs, &mut dead);
        }
        dead.retain(|link| !link.is_null());
        Ok((pairs, dead))
    }

    /// The children of an inner node.
    pub(super) fn children<M: Media>(&self, heap: &'g Access<M>) -> Result<Content<'g, Child<'g>>, Fault> {
        let mut routes = Vec::new();
        let mut at = self.head;
        while kind(at) == Kind::Route {
            let route = RangeRef::at(heap, at)?;
            routes.push(route);
            at = follow(at, route.next)?;
        }
        let (base, _) = self.ground(heap)?;
        if base.level == 0 {
            return Err(damaged("level of an inner node", self.cell));
        }
        let mut children = base.children(heap)?;
        children.truncate(base.counted());
        for route in routes.into_iter().rev() {
            let from = children.partition_point(|(separator, _)| *separator < route.from);
            let to = match route.to {
                Some(to) => children.partition_point(|(separator, _)| *separator < to),
                None => children.len(),
            };
            children.splice(from..to.max(from), [(route.from, route.cell)]);
        }
        if children.is_empty() {
            return Err(damaged("inner node without a child", self.cell));
        }
        self.bounded(heap, children)
    }

    /// All that goes when something else takes the chain's place: a merged sibling with it.
    pub(super) fn remains<M: Media>(&self, heap: &'g Access<M>) -> Result<Remains, Fault> {
        let mut remains = Remains::default();
        if self.level == 0 {
            remains.records = self.replay(heap)?.1;
        }
        self.add_objects(heap, &mut remains)?;
        Ok(remains)
    }

    fn add_objects<M: Media>(&self, heap: &'g Access<M>, remains: &mut Remains) -> Result<(), Fault> {
        let mut at = self.head;
        loop {
            at = match kind(at) {
                Kind::Put | Kind::PutRecord => {
                    remains.objects.push((at, size_of::<Pair>()));
                    follow(at, PairRef::at(heap, at)?.next)?
                }
                Kind::Route | Kind::Split | Kind::Merge | Kind::Frozen => {
                    let range = RangeRef::at(heap, at)?;
                    remains.objects.push((at, range.extent));
                    if kind(at) == Kind::Merge {
                        let merged = Page::load(heap, range.cell)?;
                        if kind(merged.head) != Kind::Frozen {
                            return Err(damaged("merged node", range.cell));
                        }
                        if merged.level == 0 {
                            remains.records.extend(merged.replay(heap)?.1);
                        }
                        merged.add_objects(heap, remains)?;
                        remains.objects.push((range.cell, size_of::<Cell>()));
                    }
                    follow(at, range.next)?
                }
                Kind::Base | Kind::Apart => {
                    let base = BaseRef::at(heap, at)?;
                    remains.objects.push((at, base.extent(heap)));
                    return Ok(());
                }
            };
        }
    }
}

/// Sorts deltas by their keys, those of one key as they were.
fn sort_newest_first<M: Media>(heap: &Access<M>, deltas: &mut [Delta]) -> Result<(), Fault> {
    let mut fault = None;
    deltas.sort_by(|a, b| match a.0.compare(heap, &b.0) {
        Ok(order) => order,
        Err(found) => {
            fault = Some(found);
            Ordering::Equal
        }
    });
    fault.map_or(Ok(()), Err)
}

const _: () = assert!(size_of::<Pair>() == 32 && size_of::<Cell>() == 8);

/// The length of a cell, as the heap counts it.
pub(super) fn cell_extent() -> usize {
    footprint::<Cell>(0).unwrap_or(usize::MAX)
}
